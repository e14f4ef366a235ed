"""The pass over the data: what it sums does not depend on chunks, partitions, blocks or tasks."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from bagbasis import (
    Bags,
    Box,
)
from bagbasis.embeddings import FourierSpec, ProjectionSpec
from bagbasis.execution.costs import PassLimits, plan_tasks
from tests.models.splits import Split
from tests.oracles.labelled import LabelledBags, features_by_loop, labelled, labelled_bags, stored
from tests.oracles.planned import FeatureMap, plan_of
from tests.oracles.ridge import statistics
from tests.oracles.ridge_entries import unpacked
from tests.passes import pass_limits

N = 120
BAGS, Y = labelled_bags(N, most=20)
Y = np.where(np.arange(N) % 11 == 0, np.nan, Y)


def feature_map(n_features=64, n_per_dim=4):
    spec = ProjectionSpec("cosine", n_per_dim=n_per_dim, max_norm=None, box=Box.unit(2))
    return FeatureMap(spec, FourierSpec(spec.n_features, n_features, scale=1.0))


def pass_over(bags, precision="float64", validation=None):
    return plan_of(bags, feature_map(), validation, precision)


def bags_of(store, **options):
    return labelled(store, **options)


def ranges(n_bags, n_points, features):
    """The plan of a fit to so many bags, which there are not."""
    nothing = LabelledBags(Bags(np.zeros((1, features.n_dims)), [0, 1]))
    cost = plan_of(nothing, features).cost
    return plan_tasks(n_bags, n_points, features.n_dims, cost)


@pytest.fixture
def small_partitions():
    """Partitions of about 60 points: their ends depend on the chunks."""
    with pass_limits(partition_bytes=60 * 16):
        yield


@pytest.fixture
def sixteen_tasks():
    """Small fits are cut as if they took an hour."""
    with pass_limits(small_task_seconds=1e-9):
        yield


@pytest.mark.long
@pytest.mark.usefixtures("small_partitions", "sixteen_tasks")
@pytest.mark.parametrize("rows", [1, 4096])
def test_against_the_matrix(tmp_path, rows):
    """Many tasks, partitions and blocks add up to ZᵀZ of the labelled bags, nothing more."""
    store = stored(tmp_path / "s.zarr", BAGS, Y, chunk_points=50)
    task = pass_over(bags_of(store, left_out=Split(0.2, 1)), validation=Split(0.3, 2))
    assert len(task.ranges) == 16
    with pass_limits(rows_per_block=rows):
        result = task.run()

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
        len(bag) for bag, saved in zip(BAGS, labelled & ~out, strict=True) if saved
    )


def test_memory_and_store_are_cut_alike(tmp_path):
    """Bags in memory and in a store go through the same blocks: the same bits."""
    store = stored(tmp_path / "s.zarr", BAGS, Y)
    sources = (bags_of(store), labelled(store.read(), Y))
    results = [pass_over(source, "float32").run().train for source in sources]
    for ours, truth in zip(unpacked(results[0]), unpacked(results[1]), strict=True):
        np.testing.assert_array_equal(ours, truth)


@pytest.mark.long
@settings(max_examples=200)
@given(
    n_bags=st.integers(1, 10**9),
    size=st.integers(1, 10**6),
    n_features=st.integers(1, 2**13).map(lambda half: 2 * half),
)
def test_plan(n_bags, size, n_features):
    """Any fit is cut into at most 4,096 ranges that cover all bags once, about equally long."""
    plan, limits = ranges(n_bags, n_bags * size, feature_map(n_features)), PassLimits()
    assert 1 <= len(plan) <= limits.max_tasks
    assert plan[0][0] == 0
    assert plan[-1][1] == n_bags
    assert all(a[1] == b[0] for a, b in pairwise(plan))
    lengths = [stop - start for start, stop in plan]
    assert max(lengths) - min(lengths) <= 1
    assert min(lengths) > 0
    most = 4 * size * feature_map(n_features).n_dims * (max(lengths) - 1)
    assert most <= limits.task_bytes or len(plan) == limits.max_tasks


def test_plan_of_a_million_bags():
    """A million bags of 200 points, 10² cosines and 2,048 features: a few dozen tasks."""
    assert len(ranges(10**6, 200 * 10**6, feature_map(2048, 10))) <= 100
    assert len(ranges(1000, 200_000, feature_map(2048, 10))) == 1
    grown = [len(ranges(n, 200 * n, feature_map(4096, 10))) for n in 10 ** np.arange(10)]
    assert grown == sorted(grown)


def test_plan_of_a_billion_bags_with_few_features():
    """They are cut by their bytes, where computing is cheap: no task reads more than a GiB."""
    points = 256 * 10**9
    assert len(ranges(10**9, points, feature_map(256, 10))) == -(-4 * 2 * points // 2**30)


@pytest.mark.usefixtures("small_partitions", "sixteen_tasks")
@pytest.mark.parametrize("in_memory", [True, False])
def test_progress(tmp_path, in_memory):
    """Progress is in bags, never goes back, moves within tasks and ends at the total."""
    store = stored(tmp_path / "s.zarr", BAGS, Y)
    in_store = bags_of(store)
    source = labelled(store.read(), Y) if in_memory else in_store
    seen = []
    with pass_limits(rows_per_block=3):
        pass_over(source).run(lambda done, total: seen.append((done, total)))
    assert {total for _, total in seen} == {N}
    counts = [done for done, _ in seen]
    assert counts == sorted(counts)
    assert counts[0] == 0
    assert counts[-1] == N
    assert len(set(counts)) > 20
