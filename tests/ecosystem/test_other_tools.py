"""What people try first with tools of others: it works, or the refusal says what does."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest
import xarray as xr
from sklearn.ensemble import BaggingRegressor, VotingRegressor
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bagbasis
from bagbasis import (
    Bags,
    BagStore,
    DataError,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    EmbeddingUnion,
    KernelSmoother,
    MeanMapEmbedding,
    MomentsEmbedding,
    NystroemFeatures,
    ParameterError,
    PointTransformer,
    evaluate,
)
from bagbasis.ingest import ingest_frame

RNG = np.random.default_rng(0)
N = 40
BAGS = [RNG.uniform(size=(int(n), 2)) ** (1 + n % 3) for n in RNG.integers(5, 15, N)]
Y = np.array([bag.mean() for bag in BAGS])
IDS = np.repeat(np.arange(N) * 3, [len(bag) for bag in BAGS])
LONG = pd.DataFrame(np.concatenate(BAGS), columns=["pulse", "pressure"]).assign(id=IDS)
COORDINATES = ["pulse", "pressure"]


def linear():
    return DoubleBasisRegressor(
        MomentsEmbedding(), random_features=False, alpha=1e-3, precision="float64"
    )


@pytest.fixture
def store(tmp_path):
    """The bags with their means."""
    made = BagStore.create(tmp_path / "s.zarr", n_dims=2, target_names=["y"], dtype="float64")
    return made.append(Bags.from_list(BAGS), {"y": Y})


def same(bags, expected):
    """Whether two collections hold the same points of the same bags."""
    np.testing.assert_array_equal(bags.points, np.concatenate(expected))
    np.testing.assert_array_equal(bags.sizes, [len(item) for item in expected])


# ------------------------------------------------------------------ scikit-learn


def test_bagging_takes_a_column_of_bags():
    """Each model weighs bags as often as they were drawn; ragged arrays are refused."""
    bags = Bags.from_list(BAGS)
    model = BaggingRegressor(linear(), n_estimators=3, random_state=0).fit(bags.to_column(), Y)
    assert model.score(bags.to_column(), Y) > 0.9
    weights = np.bincount(model.estimators_samples_[0], minlength=N)
    first = linear().fit(BAGS, Y, sample_weight=weights)
    np.testing.assert_array_equal(
        first.predict(bags), model.estimators_[0].predict(bags.to_column())
    )
    with pytest.raises(DataError, match=r"are not a matrix.*bags\.to_column\(\)"):
        BaggingRegressor(linear()).fit(bags, Y)


def test_a_smoother_is_a_regressor():
    """scikit-learn's ensembles of regressors take it."""
    smoother = KernelSmoother("moments")
    voting = VotingRegressor([("linear", linear()), ("smoother", smoother)]).fit(BAGS, Y)
    mean = (linear().fit(BAGS, Y).predict(BAGS) + smoother.fit(BAGS, Y).predict(BAGS)) / 2
    np.testing.assert_allclose(voting.predict(BAGS), mean)


def test_permutation_importance_takes_a_column_of_bags():
    """It exchanges whole bags; coordinates are exchanged by ours."""
    bags, model = Bags.from_list(BAGS), linear().fit(BAGS, Y)
    importances = permutation_importance(model, bags.to_column(), Y, n_repeats=3, random_state=0)
    assert importances.importances_mean.shape == (1,)
    assert importances.importances_mean[0] > 0.5
    with pytest.raises(DataError, match=r"bags\.to_column\(\)"):
        permutation_importance(model, bags, Y)
    assert len(bagbasis.models.permutation_importance(model, BAGS, Y).names) == 2


def test_partial_dependence_takes_the_table_of_an_embedding():
    """A bag has no column that could be varied; what an embedding makes of it has."""
    embedding = MomentsEmbedding().fit(BAGS)
    table = pd.DataFrame(embedding.transform(BAGS), columns=embedding.get_feature_names_out())
    result = partial_dependence(Ridge(1e-3).fit(table, Y), table, [0])
    assert np.ptp(result["average"]) > 0
    with pytest.raises((ValueError, TypeError, AttributeError)):
        partial_dependence(linear().fit(BAGS, Y), Bags.from_list(BAGS), [0])


def test_scalers_are_for_points():
    """One in a pipeline of bags is refused, or scales points within `PointTransformer`."""
    bags = Bags.from_list(BAGS)
    with pytest.raises(DataError, match="scalers of points are PointTransformer's"):
        make_pipeline(StandardScaler(), linear()).fit(bags, Y)
    embedding = PointTransformer(StandardScaler(), MomentsEmbedding())
    model = make_pipeline(DoubleBasisRegressor(embedding, random_features=False, alpha=1e-3))
    assert model.fit(bags, Y).score(bags, Y) > 0.9


@pytest.mark.long
def test_model_selection_reads_a_store(store):
    """scikit-learn's folds of a store are those of its bags; labels have to be passed."""
    folds = KFold(4, shuffle=True, random_state=0)
    scores = cross_val_score(linear(), store, store.targets()[:, 0], cv=folds)
    np.testing.assert_array_equal(scores, cross_val_score(linear(), list(store), Y, cv=folds))
    with pytest.raises(ValueError, match="y is missing"):
        cross_val_score(linear(), store)
    ours = bagbasis.cross_val_score(linear(), store, target="y", cv=4)
    assert len(ours) == 4


@pytest.mark.long
def test_names_of_coordinates_are_those_of_frames(store, tmp_path):
    """`n_features_in_` always, `feature_names_in_` of tables alone, as scikit-learn has them."""
    frames = [frame[COORDINATES] for _, frame in LONG.groupby("id")]
    rows = LONG.assign(y=np.repeat(Y, [len(bag) for bag in BAGS]))
    options = {"coordinates": COORDINATES, "id_column": "id", "targets": ["y"]}
    table = ingest_frame(rows, tmp_path / "t.zarr", **options)
    fits = [linear().fit(frames, Y), linear().fit(LONG.groupby("id"), Y), linear().fit(table)]
    for model in fits:
        assert model.n_features_in_ == 2
        assert model.feature_names_in_.tolist() == COORDINATES
    model.save(tmp_path / "m.zarr")
    assert bagbasis.load_model(tmp_path / "m.zarr").feature_names_in_.tolist() == COORDINATES
    for model in (linear().fit(BAGS, Y), linear().fit(store)):
        assert model.n_features_in_ == 2
        assert not hasattr(model, "feature_names_in_")


@pytest.mark.long
def test_unions_of_a_list_are_searched():
    """Parts without names have those of their kinds, and parameters below them."""
    union = EmbeddingUnion([MomentsEmbedding(), MeanMapEmbedding(n_features=20)])
    assert union.get_params()["mean_map__n_features"] == 20
    grid = {"embedding__mean_map__n_features": [4, 8]}
    model = DoubleBasisRegressor(union, random_features=False, alpha=1e-3)
    assert GridSearchCV(model, grid, cv=2).fit(BAGS, Y).best_score_ > 0.5


def test_few_landmarks_are_said():
    """Nyström features of fewer bags than its default number: all of them, and a warning."""
    model = DoubleBasisRegressor(MomentsEmbedding(), NystroemFeatures())
    with pytest.warns(UserWarning, match="30"):
        model.fit(BAGS[:30], Y[:30])
    assert model.coef_.shape == (30,)


def test_classes_are_no_floats():
    """Different numbers as classes are a mistake, as scikit-learn's "Unknown label type" says."""
    with pytest.raises(DataError, match="use DoubleBasisRegressor"):
        DoubleBasisClassifier(MomentsEmbedding()).fit(BAGS, Y)


def test_evaluate_takes_bags_in_memory():
    """`evaluate(model, bags, y)`."""
    assert evaluate(linear().fit(BAGS, Y), BAGS, Y).values()["y"]["r2"] > 0.9


# ------------------------------------------------------------------ tables


TABLES = {
    "pandas": lambda path: LONG,
    "index": lambda path: LONG.set_index("id"),
    "multi-index": lambda path: LONG.assign(n=np.arange(len(LONG))).set_index(["id", "n"]),
    "polars": lambda path: pl.from_pandas(LONG),
    "lazy": lambda path: pl.from_pandas(LONG).lazy().filter(pl.col("pulse") > -1),
    "arrow": lambda path: pa.Table.from_pandas(LONG),
    "dataset": lambda path: written(path),
    "xarray": lambda path: xr.Dataset.from_dataframe(LONG),
    "shuffled": lambda path: LONG.sample(frac=1, random_state=0).sort_values("id", kind="stable"),
}


def written(path):
    """A data set of Arrow's, of a file."""
    pa.parquet.write_table(pa.Table.from_pandas(LONG), path / "long.parquet")
    return pa.dataset.dataset(path / "long.parquet")


@pytest.mark.long
@pytest.mark.parametrize("kind", TABLES)
def test_tables_become_stores_and_bags(kind, tmp_path):
    """Whatever has a row per point: the same bags, in the order of their ids."""
    table = TABLES[kind](tmp_path)
    made = ingest_frame(
        table, tmp_path / "i.zarr", coordinates=COORDINATES, id_column="id", dtype="float64"
    )
    assert made.ids().tolist() == (np.arange(N) * 3).tolist()
    expected = [np.sort(bag, axis=0) for bag in BAGS]
    bags = Bags.from_frame(table, "id", coordinates=COORDINATES)
    for value in (made, bags):
        same(Bags.from_list([np.sort(bag, axis=0) for bag in value]), expected)


def test_columns_that_pandas_numbers():
    """A frame without names of columns has their numbers, for the id as for coordinates."""
    frame = LONG.set_axis([0, 1, 2], axis=1)
    same(Bags.from_frame(frame, 2, coordinates=[0, 1]), BAGS)
    same(Bags.from_frame(frame, [2]), BAGS)
    with pytest.raises(DataError, match=r"no column '7'; there are \['0', '1', '2'\]"):
        Bags.from_frame(frame, 7)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_groups_are_bags(kind, tmp_path):
    """A groupby is bags for `fit`, `Bags.from_frame` and ingest."""
    frame = LONG if kind == "pandas" else pl.from_pandas(LONG)
    options = {} if kind == "pandas" else {"maintain_order": True}
    groups = (frame.groupby if kind == "pandas" else frame.group_by)("id", **options)
    same(Bags.from_frame(groups), BAGS)
    same(Bags.from_frame(groups, coordinates=["pulse"]), [bag[:, :1] for bag in BAGS])
    np.testing.assert_array_equal(linear().fit(groups, Y).coef_, linear().fit(BAGS, Y).coef_)
    made = ingest_frame(groups, tmp_path / "g.zarr", coordinates=COORDINATES, dtype="float64")
    same(made.read(), BAGS)
    with pytest.raises(DataError, match="leave id_column out"):
        Bags.from_frame(groups, "id")


def test_groups_without_an_order_are_refused():
    """polars' groups come in any order, and labels would be those of other bags."""
    groups = pl.from_pandas(LONG).group_by("id")
    with pytest.raises(DataError, match="maintain_order=True"):
        linear().fit(groups, Y)


@pytest.mark.parametrize("kind", [name for name in TABLES if name != "shuffled"])
def test_a_table_in_place_of_bags_is_refused(kind, tmp_path):
    """Its rows are points, and only its owner knows of which bags."""
    with pytest.raises(DataError, match=r"got a table.*Bags\.from_frame\(table, id_column=…\)"):
        linear().fit(TABLES[kind](tmp_path), Y)


def test_frames_that_can_not_be_used():
    """Each with what is wrong."""
    with pytest.raises(DataError, match="id_column is missing"):
        Bags.from_frame(LONG)
    with pytest.raises(DataError, match=r"no column 'ids' \(did you mean 'id'\?\)"):
        Bags.from_frame(LONG, "ids")
    with pytest.raises(DataError, match="row 3 has no id"):
        Bags.from_frame(LONG.assign(id=LONG.id.astype(float).mask(LONG.index == 3)), "id")
    with pytest.raises(DataError, match=r"column 'who' has .*, not numbers"):
        Bags.from_frame(LONG.assign(who="me"), "id")
    with pytest.raises(DataError, match="row 1: coordinate 'pressure' is nan"):
        Bags.from_frame(LONG.assign(pressure=LONG.pressure.mask(LONG.index == 1)), "id")
    with pytest.raises(DataError, match="expected a table, got 3"):
        Bags.from_frame(3, "id")
    with pytest.raises(ParameterError, match="group by names of columns"):
        ingest_frame(LONG.groupby("id"), "x.zarr", coordinates=COORDINATES, id_column="id")
    ragged = Bags.from_list(BAGS).to_xarray()
    with pytest.raises(DataError, match=r"BagStore\.from_xarray"):
        Bags.from_frame(ragged, "id")


# ------------------------------------------------------------------ bags and stores as sequences


def test_stores_are_indexed(store):
    """As `Bags` are: one for an integer, `Bags` for what chooses several."""
    np.testing.assert_array_equal(store[3], BAGS[3])
    np.testing.assert_array_equal(store[-1], BAGS[-1])
    bags = Bags.from_list(BAGS)
    mask = np.arange(N) % 3 == 1
    for key in (slice(3), slice(None, None, -2), mask, [5, 2, 2, 39], np.array([7]), slice(9, 4)):
        result, expected = store[key], bags[key]
        np.testing.assert_array_equal(result.points, expected.points)
        np.testing.assert_array_equal(result.offsets, expected.offsets)
    with pytest.raises(IndexError):
        store[N]
    store.remove([3])
    assert store[3].shape == (0, 2)


def test_stores_are_iterated(store, monkeypatch):
    """Part by part, in order; the bags of later parts are not read before they are needed."""
    parts = [(start, start + 4) for start in range(0, N, 4)]
    monkeypatch.setattr("bagbasis.data.store.exchange.exports.partitions", lambda *_: parts)
    reads = []
    read = BagStore.read
    monkeypatch.setattr(BagStore, "read", lambda *args: reads.append(args[1:]) or read(*args))
    walk = iter(store)
    np.testing.assert_array_equal(next(walk), BAGS[0])
    assert len(reads) <= 3
    rest = list(walk)
    assert len(rest) == N - 1
    for bag, expected in zip(rest, BAGS[1:], strict=True):
        np.testing.assert_array_equal(bag, expected)
    assert len(reads) == N / 4


def test_a_store_is_no_list(store):
    """What takes bags in memory does not read a store by the way, nor does numpy."""
    with pytest.raises(DataError, match=r"expected bags in memory, got BagStore.*read\(\)"):
        Bags.from_list(store)
    with pytest.raises(DataError, match=r"expected an array, got BagStore"):
        np.asarray(store)


def test_bags_are_joined():
    """`+` puts bags behind bags; other dimensions, or other things, are refused."""
    first, second = Bags.from_list(BAGS[:5]), Bags.from_list(BAGS[5:])
    same(first + second, BAGS)
    with pytest.raises(DataError, match="of 2 and of 1 dimensions"):
        first + Bags.from_list([[[1.0]]])
    with pytest.raises(TypeError):
        first + BAGS


def test_bags_as_arrays():
    """Bags of one size are matrices, as numpy had them; objects where they are asked for."""
    even = Bags.from_list([bag[:5] for bag in BAGS])
    np.testing.assert_array_equal(np.asarray(even), np.stack([bag[:5] for bag in BAGS]))
    assert np.asarray(even, dtype=np.float32).dtype == np.float32
    objects = np.array(Bags.from_list(BAGS), dtype=object)
    assert objects.shape == (N,)
    same(Bags.from_list(objects), BAGS)
    with pytest.raises(DataError, match="different sizes"):
        np.asarray(Bags.from_list(BAGS))


# ------------------------------------------------------------------ to tables of others


def test_bags_as_tables():
    """And back: every bit."""
    bags = Bags.from_list(BAGS)
    same(Bags.from_frame(bags.to_pandas(), "bag"), BAGS)
    same(Bags.from_arrow(bags.to_arrow()), BAGS)
    dataset = bags.to_xarray()
    np.testing.assert_array_equal(dataset["row_size"], bags.sizes)
    np.testing.assert_array_equal(dataset["points"], bags.points)


@pytest.mark.long
def test_stores_as_tables(tmp_path):
    """Rows of points make the same store again, names of coordinates and classes among them."""
    labels = pd.DataFrame({"id": np.arange(N) * 3, "y": Y, "wide": np.where(Y > 0.4, "yes", "no")})
    options = {"coordinates": COORDINATES, "id_column": "id", "targets": ["y", "wide"]}
    made = ingest_frame(LONG, tmp_path / "a.zarr", target_table=labels, **options)
    assert made.coordinate_names == COORDINATES
    frame = made.to_pandas()
    assert list(frame.columns) == ["id", "y", "wide", *COORDINATES]
    again = ingest_frame(frame, tmp_path / "b.zarr", **options)
    same(again.read(), list(made))
    np.testing.assert_array_equal(again.targets(), made.targets())
    assert again.meta.class_names == made.meta.class_names
    made.remove([3])
    table = made.to_arrow(1, 9)
    assert table["id"].to_pylist() == [6, 9, 12, 15, 18, 21, 24]
    assert table["wide"].to_pylist() == labels["wide"][2:9].tolist()
    same(Bags.from_arrow(table, "points"), [made[i] for i in range(2, 9)])
    assert xr.open_zarr(made.url, consolidated=False)["points"].shape == (made.meta.n_points, 2)
