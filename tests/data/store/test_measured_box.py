"""Without a box a store measures its bags as those in memory are."""

import json
import shutil
import warnings

import numpy as np
import pytest

from bagbasis import (
    BagbasisWarning,
    Bags,
    BagStore,
    Box,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    MomentsEmbedding,
    ParameterError,
    ProjectionEmbedding,
    merge_stores,
)
from bagbasis.data.labelled.labelled import box_of_bags


def sets():
    """Yield ten generated sets: a name, bags of float32, labels, and whether they are classes."""
    rng = np.random.default_rng(3)
    shapes = {
        "1-d": (1, 1.0, 0.0, "real"),
        "unit cube": (2, None, 0.0, "real"),
        "5-d": (5, 1.0, 0.0, "real"),
        "wide ranges": (3, np.array([1.0, 1e4, 1e-3]), 0.0, "real"),
        "far from 0": (2, 1.0, 1000.0, "real"),
        "negative": (2, 5.0, -40.0, "real"),
        "ragged": (2, 2.0, 1.0, "real"),
        "two classes": (2, 3.0, 0.0, "class"),
        "three classes": (4, 1.0, 7.0, "class"),
        "heavy tails": (2, 1.0, 0.0, "real"),
    }
    for name, (d, scale, shift, kind) in shapes.items():
        bags, labels = [], rng.uniform(0.5, 2, 72)
        for s in labels:
            n = int(rng.integers(3, 60)) if name == "ragged" else 25
            points = rng.standard_t(3, (n, d)) if name == "heavy tails" else rng.normal(size=(n, d))
            points = s * points * (1.0 if scale is None else scale) + shift
            points = 1 / (1 + np.exp(-points)) if scale is None else points
            bags.append(points.astype(np.float32))
        if kind == "class":
            n_classes = 2 if name.startswith("two") else 3
            labels = np.floor(n_classes * (labels - 0.5) / 1.5)
        yield pytest.param(name, bags, labels, kind == "class", id=name)


def unusual_sets():
    """Yield sets of 36 bags that strain single precision, with the dtype that a store gives them.

    A store rounds points to float32 unless that merges them. Of the same points both ways give
    the same model; of Unix seconds in days, which float32 has in steps of 128, predictions from
    double precision differ by about 1e-4 standard deviations.
    """
    rng = np.random.default_rng(5)
    labels = rng.uniform(0.5, 2, 36)
    bags = [s * rng.normal(size=(20, 2)) for s in labels]
    seconds = [np.column_stack([1.7e9 + 2.6e5 * bag[:, 0], np.full(20, 7.0)]) for bag in bags]
    wide = [bag * (1e6 if i == 3 else 1.0) for i, bag in enumerate(bags)]
    night = [2_459_000.5 + bag / 1e3 for bag in bags]
    for name, points, dtype in (
        ("Unix seconds and a constant", seconds, np.float32),
        ("one wide bag", wide, np.float32),
        ("a night of Julian dates", night, np.float64),
    ):
        yield pytest.param(name, [bag.astype(dtype) for bag in points], labels, False, id=name)


CHOSEN = ("1-d", "two classes")


@pytest.mark.long
@pytest.mark.parametrize(("name", "bags", "y", "are_classes"), [*sets(), *unusual_sets()])
def test_a_store_without_a_box_predicts_as_memory_does(tmp_path, name, bags, y, are_classes):
    store = BagStore.create(tmp_path / "s.zarr", bags[0].shape[1], target_names=["y"])
    for part in np.array_split(np.arange(len(bags)), 3):
        store.append([bags[i] for i in part], y[part])
    assert store.box == BagStore.open(store.url).box == box_of_bags(Bags.from_list(bags))
    kind = DoubleBasisClassifier if are_classes else DoubleBasisRegressor
    # the box is the subject, but for two sets in which all is chosen
    model = kind() if name in CHOSEN else kind(ProjectionEmbedding(n_per_dim=3), alpha=1e-3)
    ask = (lambda m: m.predict_proba) if are_classes else (lambda m: m.predict)
    in_memory = ask(model.fit(bags, y))(bags)
    stored = ask(model.fit(store, target="y"))(bags)
    assert store.read().points.dtype == bags[0].dtype
    assert np.abs(stored - in_memory).max() <= 1e-6 * y.std()


def test_old_stores_without_a_box_are_unit_cubes(tmp_path):
    store = BagStore.create(tmp_path / "s.zarr", 2, target_names=["y"])
    store.append([np.full((2, 2), 7.0)], [1.0])
    path = tmp_path / "s.zarr" / "zarr.json"
    values = json.loads(path.read_text())
    own = values["attributes"]["bagbasis"]
    assert own.pop("ranges") == {"points": [[7.0, 7.0], [7.0, 7.0]]}
    own.pop("checksum", None)
    own["box"] = [[0.0, 1.0]] * 2  # as earlier versions wrote
    path.write_text(json.dumps(values))
    old = BagStore.open(store.url)
    old.append([np.full((2, 2), 9.0)], [1.0])
    assert BagStore.open(store.url).box == Box.unit(2)
    shutil.rmtree(store.url)


def test_a_given_box_stays_and_an_empty_store_has_the_unit_cube(tmp_path):
    store = BagStore.create(tmp_path / "g.zarr", 1, box=[(0, 9)])
    store.append([np.array([[20.0]])])
    assert store.box.bounds == [[0, 9]]
    assert "ranges" not in store.meta.to_attributes()["bagbasis"]
    empty = BagStore.create(tmp_path / "e.zarr", 1)
    assert empty.box == Box.unit(1)
    with pytest.raises(ParameterError, match="box is None; dtype uint16 holds fractions of a box"):
        BagStore.create(tmp_path / "u.zarr", 1, dtype="uint16")
    bytes_ = BagStore.create(tmp_path / "b.zarr", 1, dtype="uint8")
    bytes_.append([np.array([[3.0]])])
    assert bytes_.box.bounds == [[0, 255]]


@pytest.mark.long
def test_responses_merged_stores_and_datasets_are_measured_too(tmp_path):
    rng = np.random.default_rng(0)
    stores = []
    for name, shift in ("a", 10), ("b", -10):
        store = BagStore.create(tmp_path / f"{name}.zarr", 1, response_dims=1)
        bags, answers = rng.normal(shift, 1, (2, 4, 9, 1))
        ids = [f"{name}{i}" for i in range(4)]
        stores.append(store.append(list(bags), ids=ids, responses=list(answers)))
        points = np.concatenate(answers).astype(np.float32)
        assert store.response_box == Box.around(points.min(axis=0), points.max(axis=0))
    merged = merge_stores(stores, tmp_path / "m.zarr")
    assert merged.box == box_of_bags(merged.read())
    assert merged.meta.measures_responses
    merged.append([np.array([[99.0]])], ids=["c"])
    assert merged.box.hi[0] > 99
    fixed = BagStore.create(tmp_path / "f.zarr", 1, box=[(-50, 50)], response_dims=1)
    fixed.append([np.array([[0.0]])], ids=["d"])
    saved = merge_stores([merged, fixed], tmp_path / "k.zarr")
    assert not saved.meta.is_measured
    assert saved.box.lo == (-50,)
    xarray = pytest.importorskip("xarray")
    assert xarray
    again = BagStore.from_xarray(merged.to_xarray(), tmp_path / "x.zarr")
    assert again.meta.is_measured
    assert again.box == merged.box


@pytest.mark.long
def test_a_fit_of_a_store_that_grows_is_measured_anew(tmp_path):
    store = BagStore.create(tmp_path / "s.zarr", 1, target_names=["y"])
    rng = np.random.default_rng(0)
    store.append([rng.normal(0, s, (30, 1)) for s in (1, 2, 3)], [1, 2, 3])
    first = DoubleBasisRegressor(MomentsEmbedding()).fit(store)
    store.append([rng.normal(0, s, (30, 1)) for s in (40, 50)], [40, 50])
    second = DoubleBasisRegressor(MomentsEmbedding()).fit(store)
    assert second.features_.embedding.box.hi[0] > 10 * first.features_.embedding.box.hi[0]


def test_an_append_outside_a_given_box_is_warned_of(tmp_path):
    store = BagStore.create(tmp_path / "s.zarr", 1, target_names=["y"], box=[(0, 1)])
    rng = np.random.default_rng(0)
    with pytest.warns(BagbasisWarning, match="300 of 300 appended points lie outside"):
        store.append([rng.uniform(400, 500, (30, 1)) for _ in range(10)], np.arange(10.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error", BagbasisWarning)
        store.append([rng.uniform(0, 1.2, (30, 1)) for _ in range(10)], np.arange(10.0))


@pytest.mark.parametrize("n", [1, 2])
def test_fits_of_few_bags_and_of_constant_labels_are_warned_of(n):
    rng = np.random.default_rng(0)
    bags = [rng.normal(size=(9, 2)) for _ in range(30)]
    model = DoubleBasisRegressor(MomentsEmbedding(), alpha=1.0)
    with pytest.warns(BagbasisWarning, match=f"fitted to {n} labelled bag"):
        model.fit(bags[:n], np.arange(float(n)))
    with pytest.warns(BagbasisWarning, match="all labels of y are alike in the 30 bags fitted"):
        model.fit(bags, np.full(30, 3.0 * n))
    with pytest.warns(BagbasisWarning, match="all labels of column 1 of y are alike"):
        model.fit(bags, np.column_stack([rng.normal(size=30), np.zeros(30)]))


@pytest.mark.parametrize("end", [-100.0, 200.0])
def test_a_bag_of_weight_0_does_not_widen_the_box_at_either_end(end, tmp_path):
    rng = np.random.default_rng(0)
    bags = [*rng.uniform(5, 10, (12, 20, 1)), np.full((20, 1), end)]
    store = BagStore.create(tmp_path / "s.zarr", 1, target_names=["y", "w"])
    store = store.append(bags, np.column_stack([np.arange(13.0), np.arange(13) < 12]))
    model = DoubleBasisRegressor(ProjectionEmbedding(), alpha=1.0)
    [[low, high]] = model.fit(store, target="y", sample_weight="w").features_.embedding.box.bounds
    assert 4.9 < low < high < 10.1
