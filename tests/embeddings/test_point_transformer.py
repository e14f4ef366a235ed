"""`PointTransformer` against scikit-learn's transformers of all points stacked."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

from bagbasis import (
    BagbasisWarning,
    Bags,
    Box,
    CoefficientPCA,
    DataError,
    DoubleBasisRegressor,
    MomentsEmbedding,
    ParameterError,
    PointTransformer,
    ProjectionEmbedding,
    RandomFourierFeatures,
    load_model,
)
from bagbasis.embeddings.composed import point_transformer
from bagbasis.models.fitting.feature_map import warn_of_outside
from tests.oracles.labelled import labelled_bags, stored
from tests.passes import pass_limits

BAGS, Y = labelled_bags(120, 3)
RNG = np.random.default_rng(1)
MIX = np.array([[9.0, 1, 0], [-3, 2, 0.1], [0, 0.5, 4]])
BAGS = [bag @ MIX + 20 for bag in BAGS]
POINTS = np.concatenate(BAGS)
LOG = FunctionTransformer(np.log)
TRANSFORMERS = {
    "standardised": StandardScaler(),
    "means alone": StandardScaler(with_std=False),
    "deviations alone": StandardScaler(with_mean=False),
    "rotated": PCA(),
    "whitened": PCA(2, whiten=True),
    "a share": PCA(0.95),
    "logarithms": LOG,
    "nothing": FunctionTransformer(),
    "two columns": ColumnTransformer([("kept", "passthrough", [2, 0])]),
    "columns, scaled": make_pipeline(
        StandardScaler(), ColumnTransformer([("kept", "passthrough", [1, 2])]), PCA()
    ),
    "one pass": make_pipeline(StandardScaler(), PCA(2, whiten=True), StandardScaler()),
    "passes": make_pipeline(
        StandardScaler(with_mean=False), LOG, make_pipeline(PCA(2), "passthrough")
    ),
}
FINE = {"small_task_seconds": 1e-9, "small_tasks": 5, "rows_per_block": 30}
MOSTLY_LONG = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.long] * (name not in ("nothing", "one pass")))
        for name in TRANSFORMERS
    ],
)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return stored(tmp_path_factory.mktemp("points") / "s.zarr", BAGS, Y, box=[(-9, 9)] * 3)


@pytest.mark.long
@MOSTLY_LONG
def test_against_all_points_stacked(name, store):
    """From memory and from a store in many tasks; the box is around the transformed points."""
    transformer = TRANSFORMERS[name]
    peer = clone(transformer).fit_transform(POINTS)
    with pass_limits(**FINE):
        for data in (BAGS, store):
            ours = PointTransformer(transformer).fit(data)
            result = ours.transform_points(BAGS).points
            np.testing.assert_allclose(result, peer, atol=1e-10 * np.abs(peer).max())
            assert ours.spec_.n_dims == 3
            box, ends = ours.spec_.box, (peer.min(axis=0), peer.max(axis=0))
            width = ends[1] - ends[0]
            np.testing.assert_allclose((box.lo, box.hi), ends + np.array([[-0.01], [0.01]]) * width)


@pytest.mark.long
@pytest.mark.parametrize("name", ["standardised", "means alone", "passes"])
def test_variances_alone_of_many_coordinates(name, store, monkeypatch):
    """Points of many coordinates that are scaled alone have no scatter, and the same steps."""
    whole = PointTransformer(TRANSFORMERS[name]).fit(store).spec_.steps
    monkeypatch.setattr(point_transformer, "VARIANCES_ALONE", 2)
    shapes = []
    measured = point_transformer.measure_moments

    def measure(*arguments, **named):
        moments = measured(*arguments, **named)
        shapes.append(moments.scatter.shape)
        return moments

    monkeypatch.setattr(point_transformer, "measure_moments", measure)
    with pass_limits(**FINE):
        steps = PointTransformer(TRANSFORMERS[name]).fit(store).spec_.steps
    for ours, theirs in zip(steps, whole, strict=True):
        assert (ours.function, ours.axes is None) == (theirs.function, theirs.axes is None)
        for part in ("center", "scale"):
            if getattr(theirs, part) is not None:
                np.testing.assert_allclose(getattr(ours, part), getattr(theirs, part), rtol=1e-10)
    assert all(shape == ((3, 3) if name == "passes" else (3,)) for shape in shapes)


def test_a_constant_coordinate_and_few_points():
    """They are divided by nothing, as scikit-learn has it."""
    points = np.column_stack([np.full(9, 1e8), np.arange(9.0)])
    ours = PointTransformer().fit([points]).transform_points([points]).points
    np.testing.assert_allclose(ours, StandardScaler().fit_transform(points), atol=1e-12)
    flat = PointTransformer(PCA(whiten=True)).fit([points]).transform_points([points]).points
    np.testing.assert_allclose(flat[:, 1], 0, atol=1e-6)


def test_an_embedding_sees_transformed_points():
    """It is the embedding of the points transformed before, in the box measured of them."""
    inner = ProjectionEmbedding(n_per_dim=4)
    ours = PointTransformer(PCA(2), CoefficientPCA(clone(inner), n_components=5)).fit(BAGS)
    points = ours.transform_points(BAGS)
    by_hand = CoefficientPCA(inner, n_components=5, box=ours.spec_.box).fit(points)
    np.testing.assert_allclose(ours.transform(BAGS), by_hand.transform(points), atol=1e-5)
    assert ours.spec_.embedding.embedding == by_hand.spec_.embedding
    outside = ours.spec_.are_outside(np.array([[20.0, 20, 20], [200, 0, 0]]))
    assert outside[1]


def test_outliers_do_not_stretch_the_box():
    """As ingest measures boxes."""
    wild = [*BAGS, np.array([[1e4, 20.0, 20.0]] * 1)]
    box = PointTransformer(FunctionTransformer()).fit(wild).spec_.box
    assert box.hi[0] < 1e2


@pytest.mark.parametrize("n_runs", [2, 3])
def test_the_box_is_around_the_points_of_all_runs(n_runs):
    """Points that leave the unit cube on one side alone are not clipped to it."""
    bags = Bags.from_list(np.linspace(0, 1.5, 24).reshape(12, 2, 1))
    whole = point_transformer.ChoiceSample.whole(bags)
    sample = replace(whole, runs=whole.runs._replace(n_runs=n_runs, run_length=2))
    assert point_transformer.box_of_sample(sample) == Box.around([0.0], [1.5])


def test_a_measured_box_is_no_reason_to_warn():
    """It leaves out a fraction of each coordinate, and so more than 1 % of points in many: a fit is
    quiet where a box that was given has its warning, which filters of the module silence."""
    bags = [RNG.normal(size=(20, 12)) for _ in range(60)]
    y = np.arange(60.0)
    second = RandomFourierFeatures(n_features=16)
    measured = DoubleBasisRegressor(
        PointTransformer(embedding=MomentsEmbedding()), second, alpha=0.1
    )
    estimator = DoubleBasisRegressor(MomentsEmbedding(box=[(-2.5, 2.5)] * 12), second, alpha=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", BagbasisWarning)
        features = measured.fit(bags, y).features_
        warn_of_outside(features, 1100, 10_000)  # 1 - .99^12 is .114
        with pytest.raises(BagbasisWarning, match="15 % of the points lie outside the box"):
            estimator.fit(bags, y)
        warnings.simplefilter("ignore", BagbasisWarning)
        estimator.fit(bags, y)
    with pytest.warns(BagbasisWarning, match="12 % of the points lie outside the box"):
        warn_of_outside(features, 1200, 10_000)


def test_a_saved_model_has_its_transformer(store, tmp_path):
    """With its parameters, and the same predictions."""
    transformer = make_pipeline(FunctionTransformer(np.cbrt), PCA(2, whiten=True))
    embedding = PointTransformer(transformer, ProjectionEmbedding(n_per_dim=4))
    model = DoubleBasisRegressor(embedding, RandomFourierFeatures(n_features=32), alpha=1e-3)
    model.fit(store).save(tmp_path / "m.zarr")
    again = load_model(tmp_path / "m.zarr")
    assert repr(again.embedding) == repr(model.embedding)
    np.testing.assert_array_equal(again.predict(BAGS), model.predict(BAGS))


def test_points_without_a_logarithm():
    """The bag is named, at fit and at predict."""
    embedding = PointTransformer(LOG, MomentsEmbedding())
    wrong = [BAGS[0], np.array([[1.0, 2, 3], [1, -2, 3]])]
    for use in (embedding.fit, embedding.fit(BAGS).transform):
        with pytest.raises(DataError, match=r"bag 1: its point \[1.0, -2.0, 3.0\] is transformed"):
            use(wrong)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"transformer": MinMaxScaler()},
            r"MinMaxScaler\(\), which cannot .* expected Stand",
        ),
        ({"transformer": make_pipeline(MinMaxScaler())}, "without pickle; expected Standard"),
        ({"transformer": StandardScaler}, "transformer is .*; expected StandardScaler, PCA"),
        ({"transformer": FunctionTransformer(np.sin)}, "func is .*; expected one of numpy's log"),
        ({"transformer": PCA("mle")}, "n_components is 'mle'; expected an integer"),
        ({"transformer": PCA(4)}, "n_components is 4; expected an integer from 1 to 3"),
        (
            {"transformer": ColumnTransformer([("a", "passthrough", [0, 3])])},
            r"columns \[0, 3\] are kept of points with 3 coordinates; give columns from 0 to 2",
        ),
        (
            {"transformer": ColumnTransformer([("a", StandardScaler(), [0])])},
            "has the part .*StandardScaler.*; expected",
        ),
        (
            {"transformer": ColumnTransformer([("a", "passthrough", slice(2))])},
            r"has the part .*; expected \('passthrough', a list of column numbers\)",
        ),
        (
            {"transformer": ColumnTransformer([("a", "passthrough", ["x0"])])},
            "a column of the ColumnTransformer is 'x0'; expected an integer",
        ),
        (
            {"transformer": ColumnTransformer([("a", "passthrough", [-1])])},
            "a column of the ColumnTransformer is -1; expected an integer",
        ),
        (
            {
                "transformer": ColumnTransformer(
                    [("a", "passthrough", [0])], remainder="passthrough"
                )
            },
            "passes other columns on, or weights them",
        ),
        ({"transformer": ColumnTransformer([])}, "ColumnTransformer .* and nothing else"),
        ({"embedding": PointTransformer()}, "embedding is PointTransformer.*; expected one of"),
        ({"box": [(0, 1)]}, "box has 1 dimensions, the points have 3"),
    ],
)
def test_refusals(params, message):
    """Others are refused by name, with those that are supported."""
    with pytest.raises((ParameterError, DataError), match=message):
        PointTransformer(**params).fit(Bags.from_list(BAGS))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scales_are_those_of_transformers(dtype, monkeypatch):
    """Bits of steps, box and points; what two transformers begin with is measured once."""
    points = 3 + np.random.default_rng(2).normal(size=(60, 3)) * [1, 10, 100]
    bags = Bags(points.astype(dtype), np.arange(0, 61, 6))
    passes, measure = [], point_transformer.measure_moments

    def counted(*arguments, **options):
        passes.append(1)
        return measure(*arguments, **options)

    monkeypatch.setattr(point_transformer, "measure_moments", counted)
    scales = point_transformer.PointScales(bags)
    drawn_in = make_pipeline(StandardScaler(), FunctionTransformer(np.arcsinh))
    values = [scales.put(first) for first in (StandardScaler(), drawn_in)]
    assert len(passes) == 1
    for first, (mapped, put, box) in zip((StandardScaler(), drawn_in), values, strict=True):
        outer = PointTransformer(first, MomentsEmbedding()).fit(bags)
        assert (outer.spec_.steps, outer.spec_.box) == (mapped.steps, box)
        np.testing.assert_array_equal(outer.transform_points(bags).points, put.points)


def test_columns_that_are_kept(tmp_path):
    """Bits and names of the embedding of these columns alone; saved models and stores keep them."""
    columns = ColumnTransformer([("kept", "passthrough", [2, 0])])
    bags = Bags.from_list(BAGS)
    alone = Bags(bags.points[:, [2, 0]], bags.offsets)
    outer = PointTransformer(columns, MomentsEmbedding()).fit(bags)
    inner = MomentsEmbedding(box=outer.spec_.box.bounds).fit(alone)
    np.testing.assert_array_equal(outer.transform(bags), inner.transform(alone))
    assert outer.get_feature_names_out(["a", "b", "c"])[:2].tolist() == ["mean(c)", "mean(a)"]
    model = DoubleBasisRegressor(outer, random_features=False, alpha=0.1).fit(bags, Y)
    model.save(tmp_path / "m.zarr")
    loaded = load_model(tmp_path / "m.zarr")
    assert loaded.features_.embedding == model.features_.embedding
    np.testing.assert_array_equal(loaded.predict(bags), model.predict(bags))
    again = clone(loaded).fit(bags, Y)
    np.testing.assert_array_equal(again.predict(bags), model.predict(bags))
