"""The pass over the data: what it sums does not depend on chunks, partitions, blocks or tasks."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bagbasis import BagStore, DoubleBasisRegressor, ProjectionEmbedding, RandomFourierFeatures
from bagbasis.bags import Box, reading
from bagbasis.bags.splits import Split
from bagbasis.embeddings import ProjectionSpec
from bagbasis.random_features import FourierSpec
from bagbasis.regression import FeatureMap
from bagbasis.regression.accumulate import (
    MAX_TASKS,
    TASK_BYTES,
    AccumulateTask,
    accumulate,
    task_ranges,
)
from bagbasis.regression.encoding import Classes, Reals
from bagbasis.regression.source import MemorySource, StoreSource
from tests.oracles.labelled import features_by_loop, labelled_bags, stored
from tests.oracles.ridge import statistics
from tests.oracles.ridge_entries import unpacked

N = 120
BAGS, Y = labelled_bags(N, most=20)
Y = np.where(np.arange(N) % 11 == 0, np.nan, Y)


def feature_map(n_features=64, n_per_dim=4):
    spec = ProjectionSpec("cosine", n_per_dim, None, box=Box.unit(2))
    return FeatureMap(spec, FourierSpec(spec.n_features, n_features, 1.0))


def task_of(source, precision="float64", **options):
    fields = {"holdout": None, "validation": None, **options}
    return AccumulateTask(source, feature_map(), Reals(1), precision=precision, **fields)


def close(a, b, rtol):
    for ours, truth in zip(unpacked(a), unpacked(b), strict=True):
        np.testing.assert_allclose(ours, truth, rtol=0, atol=rtol * np.abs(truth).max())


@pytest.fixture
def small_partitions(monkeypatch):
    """Partitions of about 60 points: their ends depend on the chunks."""
    monkeypatch.setattr(reading.partitions, "__defaults__", (60 * 16,))


@pytest.fixture
def sixteen_tasks(monkeypatch):
    """Small fits are cut as if they took an hour."""
    monkeypatch.setattr("bagbasis.regression.accumulate.SMALL_TASK_SECONDS", 1e-9)


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.usefixtures("small_partitions")
def test_chunks_do_not_matter(tmp_path, precision):
    """The same bags in chunks of 7, 1,000 and the default number of points give the same
    statistics to 1e-12 in double precision; float32 features to their rounding."""
    results = []
    for chunk_points in (7, 1000, None):
        store = stored(tmp_path / f"{chunk_points}.zarr", BAGS, Y, chunk_points=chunk_points)
        task = task_of(StoreSource(store, ("y",)), precision, validation=Split(0.2, 2))
        results.append(accumulate(task))
    ends = [
        {stop for _, stop in reading.partitions(BagStore.open(tmp_path / f"{c}.zarr"), 0, N)}
        for c in (7, 1000)
    ]
    assert ends[0] != ends[1]
    assert len(ends[0]) > 15
    for other in results[1:]:
        close(other.train, results[0].train, 1e-12 if precision == "float64" else 1e-6)
        close(other.validation, results[0].validation, 1e-12 if precision == "float64" else 1e-6)
        assert other.n_points == results[0].n_points
        assert other.n_unlabelled == results[0].n_unlabelled == np.isnan(Y).sum()


@pytest.mark.usefixtures("small_partitions")
def test_chunks_do_not_matter_to_the_model(tmp_path):
    """Nor do they to the fitted model: box, index set, width, penalty and coefficients."""
    models = []
    for chunk_points in (7, 1000, None):
        store = stored(tmp_path / f"{chunk_points}.zarr", BAGS, Y, chunk_points=chunk_points)
        embedding = ProjectionEmbedding(n_per_dim="auto")
        model = DoubleBasisRegressor(
            embedding, RandomFourierFeatures(64), "validation", precision="float64"
        )
        models.append(model.fit(store, holdout=0.1))
    for model in models[1:]:
        assert model.features_ == models[0].features_
        assert model.alpha_ == models[0].alpha_
        np.testing.assert_allclose(model.coef_, models[0].coef_, rtol=0, atol=1e-9)


@pytest.mark.usefixtures("small_partitions", "sixteen_tasks")
@pytest.mark.parametrize("rows", [1, 4096])
def test_against_the_matrix(monkeypatch, tmp_path, rows):
    """Many tasks, partitions and blocks add up to ZᵀZ of the labelled bags, nothing more."""
    monkeypatch.setattr("bagbasis.regression.accumulate.ROWS_A_BLOCK", rows)
    store = stored(tmp_path / "s.zarr", BAGS, Y, chunk_points=50)
    task = task_of(StoreSource(store, ("y",)), holdout=Split(0.2, 1), validation=Split(0.3, 2))
    assert len(task_ranges(N, store.n_points, task.features)) == 16
    result = accumulate(task)

    z = features_by_loop(SimpleNamespace(features_=task.features), BAGS)
    out, apart = Split(0.2, 1).members(0, N), Split(0.3, 2).members(0, N)
    labelled = ~np.isnan(Y)
    for ours, chosen in (
        (result.train, labelled & ~out & ~apart),
        (result.validation, labelled & ~out & apart),
    ):
        truth = statistics(z[chosen], Y[chosen, None])
        for value, expected in zip(unpacked(ours), truth.values(), strict=True):
            np.testing.assert_allclose(value, expected, rtol=0, atol=1e-11)
    assert result.n_held_out == out.sum()
    assert result.n_unlabelled == (~labelled & ~out).sum()
    assert result.n_points == sum(
        len(bag) for bag, kept in zip(BAGS, labelled & ~out, strict=True) if kept
    )


def test_memory_and_store_are_cut_alike(tmp_path):
    """Bags in memory and in a store go through the same blocks: the same bits."""
    store = stored(tmp_path / "s.zarr", BAGS, Y)
    sources = (StoreSource(store, ("y",)), MemorySource(store.read(), Y[:, None]))
    results = [accumulate(task_of(source, "float32")).train for source in sources]
    for ours, truth in zip(unpacked(results[0]), unpacked(results[1]), strict=True):
        np.testing.assert_array_equal(ours, truth)


def test_one_hot(tmp_path):
    """Classes become columns; an unlabelled bag has none."""
    codes = np.where(np.isnan(Y), np.nan, np.digitize(Y, [0.0]) * 2.0)
    source = MemorySource(stored(tmp_path / "s.zarr", BAGS, codes).read(), codes[:, None])
    result = accumulate(
        AccumulateTask(source, feature_map(), Classes((0.0, 2.0)), None, None, "float64")
    ).train
    np.testing.assert_array_equal(result.sum_y, [(codes == 0).sum(), (codes == 2).sum()])


@settings(max_examples=200)
@given(
    n_bags=st.integers(1, 10**9),
    size=st.integers(1, 10**6),
    n_features=st.integers(1, 2**13).map(lambda half: 2 * half),
)
def test_plan(n_bags, size, n_features):
    """Any fit is cut into at most 4,096 ranges that cover all bags once, about equally long."""
    ranges = task_ranges(n_bags, n_bags * size, feature_map(n_features))
    assert 1 <= len(ranges) <= MAX_TASKS
    assert ranges[0][0] == 0
    assert ranges[-1][1] == n_bags
    assert all(a[1] == b[0] for a, b in pairwise(ranges))
    lengths = [stop - start for start, stop in ranges]
    assert max(lengths) - min(lengths) <= 1
    assert min(lengths) > 0
    most = 4 * size * feature_map(n_features).n_dims * (max(lengths) - 1)
    assert most <= TASK_BYTES or len(ranges) == MAX_TASKS


def test_plan_of_a_million_bags():
    """A million bags of 200 points, 10² cosines and 2,048 features: a few dozen tasks."""
    assert len(task_ranges(10**6, 200 * 10**6, feature_map(2048, 10))) <= 100
    assert len(task_ranges(1000, 200_000, feature_map(2048, 10))) == 1
    grown = [len(task_ranges(n, 200 * n, feature_map(4096, 10))) for n in 10 ** np.arange(10)]
    assert grown == sorted(grown)


def test_plan_of_a_billion_bags_with_few_features():
    """They are cut by their bytes, where computing is cheap: no task reads more than a GiB."""
    points = 256 * 10**9
    assert len(task_ranges(10**9, points, feature_map(256, 10))) == -(-4 * 2 * points // 2**30)


@pytest.mark.usefixtures("small_partitions", "sixteen_tasks")
@pytest.mark.parametrize("in_memory", [True, False])
def test_progress(monkeypatch, tmp_path, in_memory):
    """Progress is in bags, never goes back, moves within tasks and ends at the total."""
    monkeypatch.setattr("bagbasis.regression.accumulate.ROWS_A_BLOCK", 3)
    store = stored(tmp_path / "s.zarr", BAGS, Y)
    source = MemorySource(store.read(), Y[:, None]) if in_memory else StoreSource(store, ("y",))
    seen = []
    accumulate(task_of(source), lambda done, total: seen.append((done, total)))
    assert {total for _, total in seen} == {N}
    counts = [done for done, _ in seen]
    assert counts == sorted(counts)
    assert counts[0] == 0
    assert counts[-1] == N
    assert len(set(counts)) > 20


@pytest.mark.usefixtures("small_partitions")
def test_reports_of_one_task(tmp_path):
    """A task reports the bags of its range that are behind it, over all of its partitions."""
    store = stored(tmp_path / "s.zarr", BAGS, Y, chunk_points=50)
    reports = []
    task_of(StoreSource(store, ("y",)))((30, 90), reports.append)
    assert reports == sorted(set(reports))
    assert len(reports) == len(reading.partitions(store, 30, 90)) > 3
    assert reports[-1] == np.flatnonzero(~np.isnan(Y[:90]))[-1] + 1 - 30
