"""`KernelSmoother`: against its definition, in memory, out of core and on a cluster."""

from __future__ import annotations

import re
import shutil
import warnings

import numpy as np
import pytest
from sklearn.base import clone

from bagbasis import (
    BagStore,
    DataError,
    DoubleBasisRegressor,
    KernelSmoother,
    ModelError,
    ParameterError,
    ProjectionEmbedding,
    StoreError,
)
from bagbasis.models.smoothing.sums import QuerySums, RowsInMemory, SmootherSums
from tests.oracles import series
from tests.oracles.labelled import labelled_bags, stored
from tests.oracles.smoother import leave_one_out_errors, smooth
from tests.passes import pass_limits
from tests.workers import two_workers

N = 90
BAGS, Y = labelled_bags(N, most=25)
QUERIES, _ = labelled_bags(12, seed=5)
EMBEDDING = ProjectionEmbedding(n_per_dim=4)
INDICES = series.index_set_by_loop(2, 4, None, "cosine")


def coefficients(bags, n_dims=2):
    return series.project_by_loop(
        bags, INDICES, "cosine", (0,) * n_dims, (1,) * n_dims, marginals=n_dims
    )[0]


def responses():
    """A response for two bags of three: the mirrored bag."""
    return [None if i % 3 == 2 else 1 - bag for i, bag in enumerate(BAGS)]


@pytest.fixture
def small_blocks():
    with pass_limits(rows_per_block=7, task_seconds=1e-6):
        yield


@pytest.mark.parametrize(("precision", "rtol"), [("float64", 1e-10), ("float32", 2e-4)])
@pytest.mark.parametrize("bandwidth", [0.05, 0.5, 4.0])
@pytest.mark.usefixtures("small_blocks")
def test_reals_in_memory(precision, rtol, bandwidth):
    """004, eq. 3.4: the weighted mean of the targets; also where all weights would underflow."""
    y = np.stack([Y, Y**2 + 3], axis=1)
    model = KernelSmoother(EMBEDDING, bandwidth=bandwidth, precision=precision).fit(BAGS, y)
    truth = smooth(coefficients(BAGS), y, coefficients(QUERIES), bandwidth)
    np.testing.assert_allclose(model.predict(QUERIES), truth, rtol=rtol)
    single = KernelSmoother(EMBEDDING, bandwidth=bandwidth, precision=precision).fit(BAGS, Y)
    np.testing.assert_allclose(single.predict(QUERIES), truth[:, 0], rtol=rtol, atol=rtol)


@pytest.mark.usefixtures("small_blocks")
def test_responses_in_memory():
    """004, eq. 3.22: coefficients of the average density; bags without a response do not count."""
    model = KernelSmoother(
        EMBEDDING, bandwidth=0.4, response_embedding=EMBEDDING, precision="float64"
    )
    model.fit(BAGS, responses=responses())
    selected = [i for i in range(N) if i % 3 != 2]
    targets = coefficients([1 - BAGS[i] for i in selected])
    truth = smooth(coefficients([BAGS[i] for i in selected]), targets, coefficients(QUERIES), 0.4)
    np.testing.assert_allclose(model.predict(QUERIES), truth, rtol=1e-10, atol=1e-12)
    at = np.array([[0.3, 0.6], [0.9, 0.1]])
    functions = np.stack([series.product_function("cosine", alpha, at) for alpha in INDICES])
    np.testing.assert_allclose(model.predict_density(QUERIES, at=at), truth @ functions, rtol=1e-9)


@pytest.mark.long
@pytest.mark.usefixtures("small_blocks")
def test_leave_one_out_bandwidth():
    """The scores are those of leaving each bag out in turn, and the least one is taken."""
    y = np.where(np.arange(N) % 7 == 0, np.nan, Y)
    known = ~np.isnan(y)
    model = KernelSmoother(EMBEDDING, precision="float64").fit(BAGS, y)
    rows = coefficients([bag for bag, k in zip(BAGS, known, strict=True) if k])
    errors = leave_one_out_errors(rows, y[known, None], model.bandwidths_)
    np.testing.assert_allclose(model.bandwidth_scores_, errors / y[known].var(), rtol=1e-8)
    assert model.bandwidth_ == model.bandwidths_[errors.argmin()]
    assert 0 < errors.argmin() < len(errors) - 1
    assert model.score(BAGS, Y) > 0.5


def test_leave_one_out_bandwidth_of_densities():
    """For responses the score is the squared L2 distance of densities: the sum of the errors."""
    model = KernelSmoother(EMBEDDING, response_embedding=EMBEDDING, precision="float64")
    model.fit(BAGS[:40], responses=[1 - bag for bag in BAGS[:40]])
    rows = coefficients(BAGS[:40])
    errors = leave_one_out_errors(
        rows, coefficients([1 - bag for bag in BAGS[:40]]), model.bandwidths_
    )
    np.testing.assert_allclose(model.bandwidth_scores_, errors, rtol=1e-8)


@pytest.mark.long
@pytest.mark.usefixtures("small_blocks")
def test_store_is_read_again_and_gives_the_same(tmp_path):
    """Out of core, on two workers and kept from a store: predictions are those of bags in memory;
    nothing is kept unless asked for."""
    y = np.where(np.arange(N) % 7 == 0, np.nan, Y)
    store = stored(tmp_path / "s.zarr", BAGS, y, chunk_points=50)
    queries = stored(tmp_path / "q.zarr", QUERIES, None, ())
    inside = KernelSmoother(EMBEDDING, precision="float64").fit(BAGS, y)
    model = KernelSmoother(EMBEDDING, precision="float64").fit(store)
    assert not isinstance(model.model_.training, RowsInMemory)
    saved = KernelSmoother(EMBEDDING, precision="float64", in_memory=True).fit(store)
    np.testing.assert_allclose(model.bandwidth_, inside.bandwidth_, rtol=1e-12)
    truth = inside.predict(QUERIES)
    np.testing.assert_allclose(model.predict(QUERIES), truth, rtol=1e-10)
    lazy = model.predict(queries)
    np.testing.assert_allclose(lazy.compute(), truth, rtol=1e-10)
    store.append(BAGS[:5], {"y": np.full(5, 1e6)})
    np.testing.assert_allclose(model.predict(QUERIES), truth, rtol=1e-10)
    with two_workers():
        seen = []
        predicted = model.predict(QUERIES, progress=lambda done, total: seen.append((done, total)))
        with pass_limits(block_bytes=8):  # more tasks than places for those of the passes in them
            np.testing.assert_allclose(model.predict(queries).compute(), truth, rtol=1e-10)
    np.testing.assert_allclose(predicted, truth, rtol=1e-10)
    assert seen[-1] == (N, N)
    shutil.rmtree(store.url.removeprefix("file://"))
    np.testing.assert_allclose(saved.predict(QUERIES), truth, rtol=1e-10)
    with pytest.raises(StoreError):
        model.predict(QUERIES)


@pytest.mark.parametrize("of_densities", [False, True])
def test_predictions_of_a_store_are_lazy(of_densities, tmp_path):
    """They are those of bags in memory, in blocks of any length; wrong stores are refused."""
    queries = stored(tmp_path / "q.zarr", QUERIES, None, (), chunk_points=50)
    model = KernelSmoother(EMBEDDING, precision="float64", bandwidth=0.5)
    model.fit(BAGS, responses=responses()) if of_densities else model.fit(BAGS, Y)
    expected = model.predict(QUERIES)
    row_bytes = expected[0].nbytes
    for step, chunks in ((1, (1,) * 12), (5, (5, 5, 2)), (12, (12,))):
        with pass_limits(block_bytes=step * row_bytes, block_seconds=60.0):
            lazy = model.predict(queries)
        assert (lazy.chunks[0], lazy.shape, lazy.dtype) == (chunks, expected.shape, expected.dtype)
        np.testing.assert_allclose(lazy.compute(), expected, rtol=1e-10, atol=1e-13)
    if of_densities:
        with pass_limits(block_bytes=40, block_seconds=60.0):
            lazy = model.predict_density(queries, grid=4)
        assert len(lazy.chunks[0]) == lazy.shape[0] == 12
        expected = model.predict_density(QUERIES, grid=4)
        np.testing.assert_allclose(lazy.compute(), expected, rtol=1e-10, atol=1e-13)
    with pytest.raises(ParameterError, match=r"predict: progress is given, .* lazy; leave it out"):
        model.predict(queries, progress=print)
    flat = stored(tmp_path / "flat.zarr", [np.ones((2, 1))], None, ())
    with pytest.raises(ModelError, match="of dimension 2, these have 1"):
        model.predict(flat)


def test_store_with_responses(tmp_path):
    """A store's responses are what is smoothed, unless a target is named."""
    store = BagStore.create(
        tmp_path / "s.zarr", 2, target_names=["y"], response_dims=2, dtype=np.float64
    )
    store.append(BAGS, {"y": Y}, responses=responses())
    model = KernelSmoother(
        EMBEDDING, bandwidth=0.4, response_embedding=EMBEDDING, precision="float64"
    ).fit(store)
    inside = KernelSmoother(
        EMBEDDING, bandwidth=0.4, response_embedding=EMBEDDING, precision="float64"
    )
    inside.fit(BAGS, responses=responses())
    np.testing.assert_allclose(model.predict(QUERIES), inside.predict(QUERIES), rtol=1e-10)
    assert model.score(store) == pytest.approx(inside.score(BAGS, responses=responses()), rel=1e-2)
    assert model.features_ == inside.features_
    reals = KernelSmoother(EMBEDDING, bandwidth=0.4).fit(store, target="y")
    assert reals.predict(QUERIES).shape == (len(QUERIES),)
    assert not hasattr(reals, "response_spec_")


def test_sums_merge_in_any_order():
    """Partial sums are relative to their own nearest bag; merged they are those of all rows."""
    rng = np.random.default_rng(0)
    rows, y, queries = rng.random((60, 5)), rng.random((60, 2)), 5 + 9 * rng.random((8, 5))
    bandwidths = np.array([0.05, 1.0])
    saved = RowsInMemory(rows, (rows**2).sum(axis=1) / 2, y)

    def sums_of(start, stop):
        sums = QuerySums(queries, bandwidths, 2)
        for block in saved.batches(start, stop):
            sums.add(block)
        return sums.finish()

    parts = [sums_of(*r) for r in ((0, 11), (11, 47), (47, 60))]
    empty = SmootherSums.empty(bandwidths, 8, 2)
    whole = sums_of(0, 60).predictions
    for sums in ((parts[0] + parts[1]) + parts[2], (parts[2] + empty) + (parts[1] + parts[0])):
        np.testing.assert_allclose(sums.predictions, whole, rtol=1e-12)
    for h, predicted in zip(bandwidths, whole, strict=True):
        np.testing.assert_allclose(predicted, smooth(rows, y, queries, h), rtol=1e-12)


def test_bad_input(tmp_path):
    """One clear error each: labels, dimensions."""
    with pytest.raises(ParameterError, match="targets or responses, not both"):
        KernelSmoother().fit(BAGS, Y, responses=BAGS)
    with pytest.raises(DataError, match="no labelled bags"):
        KernelSmoother().fit(BAGS, np.full(N, np.nan))
    with pytest.raises(DataError, match="two labelled bags"):
        KernelSmoother().fit(BAGS[:1], Y[:1])
    with pytest.raises(ModelError, match="bags of dimension 2, these have 3"):
        KernelSmoother(bandwidth=1.0).fit(BAGS, Y).predict([np.zeros((4, 3))])


@pytest.mark.parametrize(
    "model",
    [
        *(
            KernelSmoother(ProjectionEmbedding(n_per_dim=2), in_memory=here)
            for here in (True, False)
        ),
        DoubleBasisRegressor(ProjectionEmbedding(n_per_dim=2), alpha=1.0),
    ],
    ids=["in memory", "not in memory", "ridge"],
)
@pytest.mark.parametrize("stored", [True, False])
def test_labels_that_nothing_can_be_learnt_from_are_warned_of(stored, model, tmp_path):
    """Two bags, and labels that are all alike; not those of few bags that differ."""
    rng = np.random.default_rng(0)
    bags = [rng.uniform(0, 1, (5, 1)) for _ in range(6)]
    for n, y, match in (
        (2, [1.0, 2.0], "fitted to 2 labelled bags"),
        (6, [3.0] * 6, "all labels of .* are alike in the 6 bags"),
        (6, [3.0] * 5 + [np.nan], "all labels of .* are alike in the 5 bags"),
        (6, [1e9 + i for i in range(6)], "or differ by less than a millionth .* subtract"),
        (6, [3.0] * 5 + [4.0], None),
    ):
        X, arguments = bags[:n], (y,)
        if stored:
            X, arguments = (
                BagStore.create(tmp_path / "s.zarr", 1, target_names=["t"], overwrite=True),
                (),
            )
            X.append(bags[:n], {"t": y})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            clone(model).fit(X, *arguments)
        texts = [str(warning.message) for warning in caught if "labels" in str(warning.message)]
        texts += [
            str(warning.message) for warning in caught if "labelled bags" in str(warning.message)
        ]
        if match is None:
            assert texts == []
        else:
            assert re.search(match, texts[0])
