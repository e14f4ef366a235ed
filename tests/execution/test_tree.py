"""The merge tree: one shape, in this process and in a graph, whatever the number of workers."""

from __future__ import annotations

import dask
import pytest
from hypothesis import given, settings, strategies as st

from bagbasis import ParameterError
from bagbasis.execution.costs import SPLIT_EVERY
from bagbasis.execution.tasks import delayed_leaves, fold_results, map_reduce, merge_tree


def merged(a, b):
    """Not commutative and not associative: it spells the tree."""
    return f"({a} {b})"


def level_by_level(names, split_every):
    """Each node folds its children from the left; the levels shrink until one is left."""
    while len(names) > 1:
        nodes = []
        for start in range(0, len(names), split_every):
            node, *others = names[start : start + split_every]
            for other in others:
                node = merged(node, other)
            nodes.append(node)
        names = nodes
    return names[0]


@pytest.mark.long
@settings(max_examples=300)
@given(n=st.integers(1, 700), split_every=st.integers(2, 20))
def test_fold_is_the_tree(n, split_every):
    """Folding results as they come, few of them alive, spells the tree of the levels."""
    names = [str(i) for i in range(n)]
    expected = level_by_level(names, split_every)
    assert fold_results(iter(names), merged, split_every) == expected
    assert merge_tree(names, merged, split_every) == expected


def test_fold_keeps_few_alive():
    """One of thousands of results is kept per level, and the one being merged."""
    alive = peak = 0

    class Partial:
        def __init__(self):
            nonlocal alive, peak
            alive += 1
            peak = max(peak, alive)

        def __del__(self):
            nonlocal alive
            alive -= 1

    fold_results((Partial() for _ in range(3000)), lambda a, b: Partial(), SPLIT_EVERY)
    assert peak <= 8


def test_map_reduce_in_this_process():
    """Without a cluster the tasks run here, in order, and merge in the same tree."""
    tasks = [str(i) for i in range(40)]
    result = map_reduce(lambda task, report: task, tasks, merged, sizes=[1] * 40, split_every=3)
    assert result == level_by_level(tasks, 3)


@pytest.mark.parametrize("split_every", [1, 0, -2])
def test_width(split_every):
    """A node of one child would never end."""
    with pytest.raises(ParameterError, match=f"split_every is {split_every}"):
        map_reduce(lambda t, r: t, ["a", "b"], merged, sizes=[1, 1], split_every=split_every)


@pytest.mark.parametrize("n", [1, 12, 300])
def test_graph_is_linear_in_the_tasks(n):
    """A leaf, its argument and a merge a task: nothing else grows."""
    leaves = delayed_leaves(merged, [(i, i + 1) for i in range(n)], "topic")
    root = merge_tree(leaves, dask.delayed(merged, pure=False), SPLIT_EVERY)
    assert len(dict(root.__dask_graph__())) <= 3 * n + 1


def test_function_travels_once():
    """The leaves share one node for the function, so that its contents are sent once per worker."""
    leaves = delayed_leaves(merged, [(i, i + 1) for i in range(5)], "topic")
    shared = [key for key in dict(dask.delayed(leaves).__dask_graph__()) if "function-" in str(key)]
    assert len(shared) == 1
