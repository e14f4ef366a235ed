"""The tables of `scaling`, and what they say of a billion bags."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bagbasis.execution.costs import SPLIT_EVERY, PassLimits
from bagbasis.regression.statistics import BLOCK_BYTES, BLOCK_ROWS

from .kit.experiment import Result, Table
from .kit.frame import Column, column, frame, table
from .kit.timing import upper_exponent
from .scaling_fits import Size

NAMES = {
    "N": "bags N",
    "D": "random features D",
    "n": "points a bag n",
    "d": "dimensions d",
    "s": "functions s = |V|",
}
MEMORY_OVER = ("n", "d", "s")  # beside N and D
MIB = 2**20
MINUTE = 60.0
NODES, CORES_PER_NODE = 1000, 16  # of the cost on paper, as are …
DISK_PER_NODE, NETWORK_PER_NODE = 0.5e9, 1.25e9  # … these, in bytes a second


# ---------------------------------------------------------------------- time


def ladder(results: Sequence[Result], middle: Size, name: str) -> pd.DataFrame:
    """The fits that differ from the middle in one variable alone, in its order.

    Columns are the variable, and CPU seconds: ``fit`` of the whole, ``solve`` of its solve alone,
    ``passes`` without it, and ``model`` of the pass by the cost model.
    """
    others = {key: value for key, value in middle.model_dump().items() if key != name}
    solves = frame(results, measure="solve").set_index("D")["one"]
    rows = frame(results, measure="fit", **others).sort_values(name, ignore_index=True)
    rows["solve"] = rows["D"].map(solves)
    rows["passes"] = rows["fit"] - rows["solve"]
    return rows


def time_tables(results: Sequence[Result], middle: Size) -> list[Table]:
    """Exponents of all variables, then the seconds they come from."""
    rows: list[list[Any]] = []
    ladders = []
    for name, text in NAMES.items():
        at = ladder(results, middle, name)
        x = column(at, name)
        slopes = [upper_exponent(x, column(at, key)) for key in ("fit", "passes", "model")]
        upper = f"{x[len(x) // 2]:,.0f} … {x[-1]:,.0f}"
        rows.append([text, int(x[0]), int(x[-1]), upper, *slopes])
        ladders.append(at.assign(varied=name, value=at[name]))
    seconds = pd.concat(ladders, ignore_index=True)
    seconds["ratio"] = seconds["passes"] / seconds["model"]
    exponents = Table(
        "Exponents of one fit's time, upper half of each ladder",
        ["varied", "from", "to", "fitted over", "fit, measured", "without its solve",
         "cost model"],
        rows,
        [
            "Seconds are CPU seconds of this process on one core, reading and decoding included: "
            "on a machine that is shared they say what wall seconds do not. The solve is a "
            "Cholesky decomposition (one penalty), measured alone; the cost model "
            "(`pass_seconds`) has no solve, sines and cosines (∝ N D) or decoding (∝ N n d), for "
            "it only cuts fits into tasks: it needs the right order.",
            "Exponents below one are those of sums: what does not grow with the variable, or grows "
            "slower, is still part of the time. Those of d come from its largest values alone, "
            "with s kept the same.",
        ],
    )  # fmt: skip
    columns: dict[str, Column] = {"varied": "varied", "value": "value", "fit (s)": "fit"}
    columns |= {"of that, solve (s)": "solve", "pass by the cost model (s)": "model"}
    columns |= {"pass, measured / model": "ratio"}
    size = ", ".join(f"{name} = {value:,}" for name, value in middle.model_dump().items())
    low, high = (seconds.iloc[i] for i in (seconds["ratio"].argmin(), seconds["ratio"].argmax()))
    grids = frame(results, measure="solve")
    grids = grids[grids["gcv"].map(lambda value: not isinstance(value, bool))]
    eigen = "; ".join(
        f"D = {r['D']:,}: {r['gcv']:.3g} s against {r['one']:.3g} s" for _, r in grids.iterrows()
    )
    remarks = [
        f"In the middle: {size}. The least of {seconds['n_rounds'][0]} fits each.",
        f"A pass takes {low['ratio']:.2f} ({low['varied']} = {low['value']:,}) to "
        f"{high['ratio']:.2f} ({high['varied']} = {high['value']:,}) times what the cost model "
        "says; tasks are longer or shorter by as much.",
        f"A solve by GCV over a grid is one eigendecomposition instead: {eigen}.",
    ]
    return [exponents, table("CPU seconds of one fit on one core", seconds, columns, remarks)]


# ---------------------------------------------------------------------- memory


def memory_over(results: Sequence[Result], name: str) -> pd.DataFrame:
    """Least and largest peaks in bytes over a variable; ``block`` is the block of rows that goes
    through one SYRK, ``rest`` the largest peak without it."""
    rows = frame(results, measure="memory", over=name).sort_values(name, ignore_index=True)
    rows["block"] = rows["D"].map(block_bytes)
    rows["rest"] = rows["largest"] - rows["block"]
    return rows


def block_bytes(n_features: int) -> int:
    """Of the float32 block of rows that goes through one SYRK."""
    return 4 * n_features * int(np.clip(BLOCK_BYTES // (4 * n_features), 64, BLOCK_ROWS))


def _mib(key: str) -> Column:
    return lambda rows: rows[key] / MIB


def memory_tables(results: Sequence[Result]) -> list[Table]:
    """Peaks over N, over D with what of them is the block of rows, and over the others."""
    over_bags, over_features = (memory_over(results, name) for name in ("N", "D"))
    first = over_bags.iloc[0]
    over_bags["points"] = over_bags["N"] * (4 * first["n"] * first["d"])
    bags, least, peaks = (column(over_bags, key) for key in ("N", "least", "largest"))
    flat = table(
        "Peak of the arrays of one fit over N",
        over_bags,
        {"N": "N", "points in the store (MiB)": _mib("points"), "least peak (MiB)": _mib("least"),
         "largest (MiB)": _mib("largest")},
        [
            f"D = {first['D']:,}, n = {first['n']:,}, d = {first['d']}. As `tracemalloc` has it: "
            "what numpy allocates, without the interpreter, code and caches of libraries. Points "
            "are read by partitions of 32 MiB, of which one is worked on while the next is "
            "decoded; where the store has not three of them the peak is lower. From the last N but "
            f"one to the last the least peak changes by a factor {least[-1] / least[-2]:.3f}, the "
            f"largest by {peaks[-1] / peaks[-2]:.3f} (fits each: {first['n_rounds']}); in the "
            f"upper half the least is ∝ N^{upper_exponent(bags, least):.2f}. Fits of one size "
            "differ, probably by what the decoding threads hold when the work's peak comes.",
        ],
    )  # fmt: skip
    features, peaks, rest = (column(over_features, key) for key in ("D", "largest", "rest"))
    squares = table(
        "Peak of the arrays of one fit over D",
        over_features,
        {"D": "D", "peak (MiB)": _mib("largest"), "of that, block of rows (MiB)": _mib("block"),
         "rest (MiB)": _mib("rest"), "rest / D² (bytes)": lambda f: f["rest"] / f["D"] ** 2},
        [
            f"Peak ∝ D^{upper_exponent(features, peaks):.2f}, and without the block of "
            f"rows ∝ D^{upper_exponent(features, rest):.2f}, in the upper half. The block "
            f"has {BLOCK_ROWS:,} rows up to D = {BLOCK_BYTES // (4 * BLOCK_ROWS):,}, so it is ∝ D, "
            f"and takes {BLOCK_BYTES // MIB} MiB from there on: a buffer that makes the products "
            "fast, and most of the peak where D is small. The pass has 8 D² bytes beside it, a "
            "float64 triangle and a float32 square; the solve has no block and 12 D², which is "
            "more only beyond the block's limit.",
        ],
    )  # fmt: skip
    return [flat, squares, _memory_over_others(results)]


def _memory_over_others(results: Sequence[Result]) -> Table:
    """Peaks over points, dimensions and functions."""
    found, exponents = [], []
    for name in MEMORY_OVER:
        rows = memory_over(results, name)
        found.append(rows.assign(varied=NAMES[name], value=rows[name]))
        slope = upper_exponent(column(rows, name), column(rows, "least"))
        exponents.append(f"{name}^{slope:.2f}")
    return table(
        "Peak of the arrays of one fit over n, d and |V|",
        pd.concat(found),
        {"varied": "varied", "value": "value", "least peak (MiB)": _mib("least"),
         "largest (MiB)": _mib("largest")},
        [
            "The fits that are timed above. The least peak is, in the upper half of each, ∝ "
            f"{', '.join(exponents)}. n and d are the size of the store, of which at most some "
            "partitions of 32 MiB are in memory; of s there is a block of bags' coefficients.",
        ],
    )  # fmt: skip


# ---------------------------------------------------------------------- clusters


def task_cpu(loads: pd.DataFrame) -> pd.Series:
    """CPU seconds of the scheduler a task, its merge and events included, heartbeats not."""
    return (loads["cpu"] - loads["idle"] * loads["wall"]).clip(lower=0) / loads["n_tasks"]


def load_at_a_minute(loads: pd.DataFrame) -> pd.Series:
    """The share of a core that the scheduler takes when tasks take a minute, as a fit's do.

    Of shorter tasks the events of a minute are not counted in full.
    """
    return loads["idle"] + task_cpu(loads) * loads["n_workers"] / MINUTE


def cluster_tables(results: Sequence[Result], cores: int) -> list[Table]:
    """A fit over workers, and the scheduler over simulated workers."""
    fits, loads = frame(results, measure="workers"), frame(results, measure="scheduler")
    one = fits.iloc[0]
    fits["faster"], fits["more"] = one["wall"] / fits["wall"], fits["cpu"] / one["cpu"]
    fits["same"] = [
        "yes" if found == one["coefficients"][:1] else "no" for found in fits["coefficients"]
    ]
    loads["per task"], loads["busy"] = 1e3 * task_cpu(loads), 100 * load_at_a_minute(loads)
    return [
        table(
            "One fit on local workers of one core each",
            fits,
            {"workers": "n_workers", "wall (s)": "wall", "times as fast as one": "faster",
             "CPU of all workers (s)": "cpu", "CPU / that of one worker": "more",
             "peak memory a worker (MiB)": _mib("peak_a_worker"), "the same bits as one's": "same"},
            [
                f"N = {one['N']:,}, D = {one['D']:,}, n = {one['n']}, d = {one['d']}, s = "
                f"{one['s']}; the least of {one['n_rounds']} fits each. More workers than this "
                f"machine's {cores} cores can not make it faster; what counts there is that their "
                "CPU time does not grow. Memory is all that is resident, the interpreter and "
                "libraries included.",
            ],
        ),
        table(
            "A scheduler under simulated workers",
            loads,
            {"workers": "n_workers", "tasks": "n_tasks", "seconds a task": "task_seconds",
             "wall (s)": "wall", "CPU of the scheduler (s)": "cpu",
             "of that a task (ms)": "per task",
             "% of a core when idle": lambda f: 100 * f["idle"],
             "% of a core, tasks of a minute": "busy",
             "memory for workers and graph (MiB)": _mib("memory")},
            [
                "The scheduler has a process of its own and runs a fit's graph (tasks, merges, "
                "progress events) over TCP on workers that are real to it, but share two processes "
                "and sleep instead of working. Its CPU time and memory are those of a real "
                "cluster's; the wall time is not: so many workers take more of this machine's "
                "cores than there are.",
                "A task's CPU time is without that of the heartbeats (the idle scheduler's), and "
                "with that of its progress events, one a second or heartbeat. The last but one "
                "column is computed: idle, and a task a minute from each worker; where tasks took "
                "less than a minute here, they had fewer events.",
            ],
        ),
    ]  # fmt: skip


# ---------------------------------------------------------------------- a billion bags


def graph_table(graphs: pd.DataFrame) -> Table:
    """Tasks and bytes over N."""
    columns: dict[str, Column] = {"D": "D", "N": "N", "tasks": "tasks", "nodes": "nodes"}
    columns |= {"bags a task": "largest_task", "model: seconds a task": "model_task"}
    columns |= {"graph (KiB)": lambda f: f["bytes"] / 1024}
    columns |= {"bytes a task": lambda f: f["bytes"] / f["tasks"]}
    columns |= {"of these shared by all (bytes)": "shared", "CPU s to make and pickle": "seconds"}
    remark = (
        "A task is a range of bags of at most about a minute on one core, and a GiB of points; "
        f"there are at most {PassLimits().max_tasks:,}. It "
        "travels as two numbers, a topic and an index, beside merges in a tree; store, "
        "features and encoding are one node that a worker gets once, and random frequencies "
        "are made again from their seed. Bytes are those of the pickled nodes, without the "
        "priority that each has."
    )
    return table("The graph of a fit, made without data", graphs, columns, [remark])


@dataclass(frozen=True)
class PaperCost:
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
    passes: float, n_bytes: float, solve: float, graph: Any, loads: pd.DataFrame
) -> PaperCost:
    """From core-seconds and bytes a bag, the graph cut for the bags, and a scheduler's load.

    Nodes have one lane of all their cores; the busiest one decides. Each level of the tree ends,
    at worst, with a whole node's merges one after the other. The scheduler has the load of the
    most simulated workers, and besides tasks only heartbeats.
    """
    tasks, D = graph["tasks"], graph["D"]
    waves = math.ceil(tasks / NODES)
    bags_per_node = waves * graph["largest_task"]
    levels = math.ceil(math.log(tasks, SPLIT_EVERY)) if tasks > 1 else 0
    return PaperCost(
        passes,
        n_bytes,
        bags_per_node * passes / CORES_PER_NODE,
        bags_per_node * n_bytes / DISK_PER_NODE,
        tasks * task_cpu(loads).iloc[-1] / (1 - loads["idle"].iloc[-1]),
        levels * (SPLIT_EVERY - 1) * 4 * D * (D + 1) / NETWORK_PER_NODE,
        solve,
        waves,
        min(tasks, NODES),
    )


def costs(results: Sequence[Result], middle: Size) -> dict[int, PaperCost]:
    """At the largest N of the graphs, for each D that has both a graph and a timed fit."""
    at, loads = ladder(results, middle, "D"), frame(results, measure="scheduler")
    [n_bytes] = frame(results, measure="fit", **middle.model_dump())["bytes_a_bag"]
    graphs = frame(results, measure="graph")
    found = {}
    for _, graph in graphs[graphs["N"] == graphs["N"].max()].iterrows():
        for _, fit in at[at["D"] == graph["D"]].iterrows():
            passes = fit["passes"] / middle.N
            found[graph["D"]] = cost_on_paper(passes, n_bytes, fit["solve"], graph, loads)
    return found


def cost_table(results: Sequence[Result], middle: Size) -> Table:
    """What the largest N of the graphs would take."""
    most = int(frame(results, measure="graph")["N"].max())
    found = costs(results, middle)
    rows = pd.DataFrame([vars(cost) | {"D": D, "total": cost.total} for D, cost in found.items()])
    columns: dict[str, Column] = {"D": "D", "nodes with tasks": "n_nodes"}
    columns |= {"core-µs a bag (measured)": lambda f: 1e6 * f["core_seconds"]}
    columns |= {"bytes a bag (measured)": "n_bytes"}
    columns |= {"core-hours of the pass": lambda f: most * f["core_seconds"] / 3600}
    columns |= {"tasks a node": "waves", "pass (s)": "work", "reading (s)": "reading"}
    columns |= {"scheduler (s)": "scheduling", "last merges (s)": "merging"}
    columns |= {"solve (s)": "solve", "total (s)": "total"}
    return table(
        f"Computed, not measured: {most:,} bags on {NODES:,} nodes",
        rows,
        columns,
        [
            f"Assumed: {CORES_PER_NODE} cores a node as fast as this one, all of them busy, "
            f"{DISK_PER_NODE / 1e9:g} GB/s from disk or object store and {NETWORK_PER_NODE / 1e9:g}"
            f" GB/s of network for each node, n = {middle.n}, d = {middle.d}, s = {middle.s}. "
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
