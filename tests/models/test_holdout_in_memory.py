"""Bags in memory that a model was fitted to with a holdout are judged on the bags held out."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import xxhash

from bagbasis import (
    BagbasisWarning,
    Bags,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    KernelSmoother,
    ModelError,
    ProjectionEmbedding,
    TripleBasisRegressor,
    evaluate,
    load_model,
)
from bagbasis.ingest import ingest_arrays

N = 120
RNG = np.random.default_rng(1)
Y = RNG.uniform(0.5, 3, N)
BAGS = [RNG.normal(0, s, (30, 2)) for s in Y]
SMALL = ProjectionEmbedding(n_per_dim=4)
NOISE = RNG.normal(size=N)


def exact(kind=DoubleBasisRegressor, **parameters):
    """Return an estimator that learns its labels by heart."""
    return kind(SMALL, alpha=1e-9, **parameters)


def test_the_bags_held_out_are_judged():
    model = exact().fit(BAGS, NOISE, holdout=0.25)
    errors = evaluate(model, BAGS, NOISE)
    assert errors.subset == "holdout"
    assert errors.n == model.report_["n_bags_held_out"]
    assert model.score(BAGS, NOISE) == errors.score < 0.5
    assert evaluate(model, BAGS, NOISE, subset="all").n == N
    assert evaluate(model, BAGS, NOISE, subset="train").n == N - errors.n


EACH_KIND = pytest.mark.parametrize(
    ("make", "labels"),
    [
        (exact, NOISE),
        (lambda: exact(DoubleBasisClassifier), np.where(NOISE > 0, "a", "b")),
        (lambda: TripleBasisRegressor(SMALL, response_embedding=SMALL), BAGS),
        (lambda: KernelSmoother(SMALL), Y),
    ],
    ids=["regressor", "classifier", "densities", "smoother"],
)


@EACH_KIND
def test_the_same_bags_are_known_in_any_form(make, labels, tmp_path):
    """The bags held out are judged, of every kind of model, loaded ones too."""
    model = make().fit(BAGS, labels, holdout=0.25)
    known = [model]
    if not isinstance(model, KernelSmoother):  # which is not saved
        model.save(tmp_path / "m")
        known.append(load_model(tmp_path / "m"))
    for fitted in known:
        for bags in (BAGS, Bags.from_list(BAGS), [bag.tolist() for bag in BAGS]):
            assert evaluate(fitted, bags, labels).subset == "holdout"


def test_equal_numbers_are_the_same_bags_in_any_dtype():
    single = [bag.astype(np.float32) for bag in BAGS]
    model = exact().fit(single, NOISE, holdout=0.25)
    double = [bag.astype(np.float64) for bag in single]
    assert evaluate(model, double, NOISE).subset == "holdout"
    double[-1][0, 0] += 1e-12
    assert evaluate(model, double, NOISE).subset == "all"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_dims", [1, 3])
def test_the_digest_is_of_all_points_in_double_precision(dtype, n_dims):
    points = np.random.default_rng(2).normal(size=(60_000, n_dims)).astype(dtype)
    sizes = np.full(N, 500, "<i8")
    report = exact().fit(Bags(points, np.arange(N + 1) * 500), NOISE).report_
    hashed = xxhash.xxh3_128_hexdigest(sizes.tobytes() + points.astype("<f8").tobytes())
    assert report["data_digest"] == {"n_bags": N, "n_points": 60_000, "xxh3_128": hashed}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_change_of_points_or_sizes_changes_the_digest(dtype):
    """Also of the last point of the first block that is hashed, and of the next."""
    points = np.random.default_rng(2).normal(size=(N * 150, 2)).astype(dtype)
    offsets = np.arange(N + 1) * 150
    others = [(points, offsets), (np.ascontiguousarray(points[:, ::-1]), offsets)]
    for i, j in ((0, 0), (16_383, 1), (16_384, 0), (len(points) - 1, 1)):
        other = points.copy()
        other[i, j] = np.nextafter(other[i, j], dtype(9))
        others.append((other, offsets))
    divided = offsets.copy()
    divided[1] += 1
    others.append((points, divided))
    reports = [exact().fit(Bags(*arrays), NOISE).report_ for arrays in others]
    assert len({report["data_digest"]["xxh3_128"] for report in reports}) == len(others)


EIGHTHS = [np.arange(6.0).reshape(3, 2) / 8 + i % 7 for i in range(N)]  # exact on any machine
BLAKE2B_OF_EIGHTHS = "84d95decd366ce58743b096aefabca3f"  # as saved by the versions before xxh3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_model_saved_with_the_earlier_hash_knows_its_bags(dtype, tmp_path):
    bags = [bag.astype(dtype) for bag in EIGHTHS]
    model = exact().fit(bags, NOISE, holdout=0.25)
    entry = model.report_["data_digest"]
    del entry["xxh3_128"]
    entry["points"] = BLAKE2B_OF_EIGHTHS
    model.save(tmp_path / "m")
    known = load_model(tmp_path / "m")
    assert set(known.report_["data_digest"]) == {"n_bags", "n_points", "points"}
    assert evaluate(known, bags, NOISE).subset == "holdout"
    other = [*bags[:-1], bags[-1] + 1]
    assert evaluate(known, other, NOISE).subset == "all"


def test_a_hash_that_is_not_known_is_of_other_bags():
    model = exact().fit(BAGS, NOISE, holdout=0.25)
    entry = model.report_["data_digest"]
    entry["of_a_later_version"] = entry.pop("xxh3_128")
    assert evaluate(model, BAGS, NOISE).subset == "all"


@pytest.fixture
def frame():
    """The bags, with a number and a class of each."""
    labels = {"noise": NOISE, "sign": np.where(NOISE > 0, "a", "b")}
    return pd.concat([
        pd.DataFrame(bag, columns=["a", "b"]).assign(id=i, **{k: v[i] for k, v in labels.items()})
        for i, bag in enumerate(BAGS)
    ])  # fmt: skip


def test_swapped_columns_of_a_frame_are_the_same_bags(frame):
    bags = frame[["id", "a", "b"]].groupby("id")
    model = exact().fit(bags, NOISE, holdout=0.25)
    assert evaluate(model, bags[["b", "a"]], NOISE).subset == "holdout"


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        (DoubleBasisRegressor, "noise"),
        (DoubleBasisRegressor, ["noise"]),
        (DoubleBasisClassifier, "sign"),
    ],
)
def test_labels_are_taken_from_the_columns_that_the_fit_used(kind, target, frame):
    labels = frame.groupby("id")[target].first().to_numpy()
    groups = frame[["id", "a", "b", *np.ravel(target)]].groupby("id")
    model = exact(kind).fit(groups, target=target, holdout=0.25)
    errors = evaluate(model, groups)
    assert errors.subset == "holdout"
    assert errors.values() == evaluate(model, frame.groupby("id")[["a", "b"]], labels).values()


@EACH_KIND
def test_the_bags_fitted_are_told_where_none_was_held_out(make, labels, tmp_path):
    """Their errors are too small; other bags and a ``subset`` that is asked for have no warning."""
    model = make().fit(BAGS, labels)
    ours = "fitted to bags that it is judged on: errors are too small"
    with pytest.warns(BagbasisWarning, match=ours):
        assert evaluate(model, BAGS, labels).subset == "all"
    with pytest.warns(BagbasisWarning, match=ours):
        model.score(Bags.from_list(BAGS), labels)
    if not isinstance(model, KernelSmoother):  # which is not saved
        model.save(tmp_path / "m")
        with pytest.warns(BagbasisWarning, match=ours):
            evaluate(load_model(tmp_path / "m"), BAGS, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error", BagbasisWarning)
        evaluate(model, BAGS, labels, subset="all")
        evaluate(model, BAGS[:-1], labels[:-1])


def test_the_store_of_a_fit_without_a_holdout_is_told_too(tmp_path):
    store = ingest_arrays(BAGS, tmp_path / "s.zarr", targets={"y": NOISE})
    for model in (exact(), KernelSmoother(SMALL)):
        with pytest.warns(BagbasisWarning, match="fitted to bags that it is judged on"):
            evaluate(model.fit(store, target="y"), store)
    assert evaluate(KernelSmoother(SMALL).fit(store, target="y", holdout=0.25), store).n < N / 2


def test_no_intervals_of_the_errors_on_the_bags_fitted():
    """Their errors are too small to promise by, in memory as of a store."""
    with pytest.raises(ModelError, match="bags in memory: the model was fitted to these bags"):
        exact().fit(BAGS, NOISE).conformalize(BAGS, NOISE)


def test_intervals_are_made_of_the_bags_held_out():
    model = exact().fit(BAGS, NOISE, holdout=0.25)
    widths = np.ptp(model.predict_interval(BAGS, coverage=0.5), axis=0)
    model.conformalize(BAGS, NOISE)
    np.testing.assert_array_equal(
        np.ptp(model.predict_interval(BAGS, coverage=0.5), axis=0), widths
    )
