"""What `scaling` says of a billion bags: the graph, and the cost on paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bagbasis.execution.costs import SPLIT_EVERY
from bagbasis.regression.accumulate import MAX_TASKS

from .experiment import Result, Table, measured
from .scaling_cluster_report import scheduling_seconds
from .scaling_measures import Size
from .scaling_report import ladder

NODES, CORES_A_NODE = 1000, 16  # of the cost on paper, as are …
DISK_A_NODE, NETWORK_A_NODE = 0.5e9, 1.25e9  # … these, in bytes a second


def graph_table(results: Sequence[Result]) -> Table:
    """Tasks and bytes over N."""
    rows: list[list[Any]] = []
    for r in measured(results, "graph"):
        p, v = r.point.params, r.values
        rows.append([
            f"{p['D']:,}", p["N"], v["tasks"], v["nodes"], v["largest_task"], v["model_task"],
            v["bytes"] / 1024, v["bytes"] / v["tasks"], v["shared"], v["seconds"],
        ])  # fmt: skip
    columns = ["D", "N", "tasks", "nodes", "bags a task", "model: seconds a task",
               "graph (KiB)", "bytes a task", "of these shared by all (bytes)",
               "CPU s to make and pickle"]  # fmt: skip
    return Table(
        "The graph of a fit, made without data",
        columns,
        rows,
        [
            "A task is a range of bags of at most about a minute on one core, and a GiB of points; "
            f"there are at most {MAX_TASKS:,}. It "
            "travels as two numbers, a topic and an index, beside merges in a tree; store, "
            "features and encoding are one node that a worker gets once, and random frequencies "
            "are made again from their seed. Bytes are those of the pickled nodes, without the "
            "priority that each has.",
        ],
    )


@dataclass(frozen=True)
class Cost:
    """Of a fit to a billion bags on paper; seconds where nothing else is said.

    Attributes
    ----------
    core_seconds, n_bytes : float
        A bag, measured: CPU of the pass, and bytes of the store.
    work, reading : float
        Of all tasks on all nodes, one after the other on each node.
    scheduling : float
        CPU of the scheduler for all tasks, measured under simulated workers.
    merging, solve : float
        The last merges, and one core's solve.
    waves, n_nodes : int
        Tasks one after the other on a node, and nodes that have any.
    """

    core_seconds: float
    n_bytes: float
    work: float
    reading: float
    scheduling: float
    merging: float
    solve: float
    waves: int
    n_nodes: int

    @property
    def total(self) -> float:
        return max(self.work, self.reading, self.scheduling) + self.merging + self.solve


def cost_on_paper(
    passes: float, n_bytes: float, solve: float, D: int, graph: Result, load: Result
) -> Cost:
    """From core-seconds and bytes a bag, the graph cut for the bags, and a scheduler's load.

    Nodes have one lane of all their cores; the busiest one decides. Each level of the tree ends,
    at worst, with a whole node's merges one after the other.
    """
    tasks, largest = graph.values["tasks"], graph.values["largest_task"]
    waves = math.ceil(tasks / NODES)
    bags_a_node = waves * largest
    levels = math.ceil(math.log(tasks, SPLIT_EVERY)) if tasks > 1 else 0
    partial = 4 * D * (D + 1)
    return Cost(
        passes,
        n_bytes,
        bags_a_node * passes / CORES_A_NODE,
        bags_a_node * n_bytes / DISK_A_NODE,
        scheduling_seconds(load, tasks),
        levels * (SPLIT_EVERY - 1) * partial / NETWORK_A_NODE,
        solve,
        waves,
        min(tasks, NODES),
    )


def costs(results: Sequence[Result], middle: Size) -> dict[int, Cost]:
    """At the largest N of the graphs, for each D that has both a graph and a timed fit."""
    at, found = ladder(results, middle, "D"), {}
    [n_bytes] = [
        r.values["bytes_a_bag"]
        for r in measured(results, "fit")
        if all(r.point.params[key] == value for key, value in middle.params.items())
    ]
    load = measured(results, "scheduler")[-1]
    graphs = measured(results, "graph")
    most = max(r.point.params["N"] for r in graphs)
    for graph in (r for r in graphs if r.point.params["N"] == most):
        D = graph.point.params["D"]
        for i in np.flatnonzero(at.sizes == D):
            passes = float(at.passes[i]) / middle.N
            found[D] = cost_on_paper(passes, n_bytes, float(at.solve[i]), D, graph, load)
    return found


def cost_table(results: Sequence[Result], middle: Size) -> Table:
    """What the largest N of the graphs would take."""
    most = max(r.point.params["N"] for r in measured(results, "graph"))
    rows = [
        [f"{D:,}", c.n_nodes, 1e6 * c.core_seconds, c.n_bytes, most * c.core_seconds / 3600,
         c.waves, c.work, c.reading, c.scheduling, c.merging, c.solve, c.total]
        for D, c in costs(results, middle).items()
    ]  # fmt: skip
    columns = ["D", "nodes with tasks", "core-µs a bag (measured)", "bytes a bag (measured)",
               "core-hours of the pass", "tasks a node", "pass (s)", "reading (s)",
               "scheduler (s)", "last merges (s)", "solve (s)", "total (s)"]  # fmt: skip
    return Table(
        f"Computed, not measured: {most:,} bags on {NODES:,} nodes",
        columns,
        rows,
        [
            f"Assumed: {CORES_A_NODE} cores a node as fast as this one, all of them busy, "
            f"{DISK_A_NODE / 1e9:g} GB/s from disk or object store and {NETWORK_A_NODE / 1e9:g} "
            f"GB/s of network for each node, n = {middle.n}, d = {middle.d}, s = {middle.s}. "
            f"Measured: CPU of a fit of {middle.N:,} bags without its solve, the size of its "
            "store, the solve (one penalty, one core), and the scheduler's CPU time of a task and "
            "of heartbeats under the most simulated workers.",
            "The pass is that of the busiest node, whose tasks are a whole number; reading and "
            "scheduling go on beside it and the slowest of the three counts. The last merges are "
            f"the worst case: {SPLIT_EVERY - 1} partials of ZᵀZ a level of the tree, one after the "
            "other.",
            "Tasks are cut by the data and the features alone, so that results are the same on any "
            "cluster.",
        ],
    )
