"""The tables of `scaling`, and what they say of a billion bags."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bagbasis.execution.costs import SPLIT_EVERY, PassLimits
from bagbasis.models.ridge.sums import BLOCK_BYTES, BLOCK_ROWS

from ..kit.experiment import Result, Table
from ..kit.frame import Column, column, frame, table
from ..kit.notes import remarks
from ..kit.timing import upper_exponent
from .scaling_measures import Size

NAMES = {
    "N": "bags N",
    "D": "random features D",
    "n": "points per bag n",
    "d": "dimensions d",
    "s": "functions s = |V|",
}
MEMORY_OVER = ("n", "d", "s")  # beside N and D
MIB = 2**20
MINUTE = 60.0
NODES, CORES_PER_NODE = 1000, 16  # of the cost on paper, as are …
DISK_PER_NODE, NETWORK_PER_NODE = 0.5e9, 1.25e9  # … these, in bytes per second


# ---------------------------------------------------------------------- time


def ladder(results: Sequence[Result], middle: Size, name: str) -> pd.DataFrame:
    """Return the fits that differ from the middle in one variable alone, in its order.

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
        remarks("scaling", "exponents"),
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
    notes = remarks("scaling", "seconds", size=size, n_rounds=seconds["n_rounds"][0], low=low,
                    high=high, eigen=eigen)  # fmt: skip
    return [exponents, table("CPU seconds of one fit on one core", seconds, columns, notes)]


# ---------------------------------------------------------------------- memory


def memory_over(results: Sequence[Result], name: str) -> pd.DataFrame:
    """Return the least and largest peaks, in bytes, over a variable.

    ``block`` is the block of rows that goes through one SYRK, ``rest`` the largest peak without it.
    """
    rows = frame(results, measure="memory", over=name).sort_values(name, ignore_index=True)
    rows["block"] = rows["D"].map(block_bytes)
    rows["rest"] = rows["largest"] - rows["block"]
    return rows


def block_bytes(n_features: int) -> int:
    """Return the bytes of the float32 block of rows that goes through one SYRK."""
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
        remarks("scaling", "memory over N", first=first, least=least[-1] / least[-2],
                largest=peaks[-1] / peaks[-2], slope=upper_exponent(bags, least)),
    )  # fmt: skip
    features, peaks, rest = (column(over_features, key) for key in ("D", "largest", "rest"))
    squares = table(
        "Peak of the arrays of one fit over D",
        over_features,
        {"D": "D", "peak (MiB)": _mib("largest"), "of that, block of rows (MiB)": _mib("block"),
         "rest (MiB)": _mib("rest"), "rest / D² (bytes)": lambda f: f["rest"] / f["D"] ** 2},
        remarks("scaling", "memory over D", slope=upper_exponent(features, peaks),
                of_rest=upper_exponent(features, rest), rows=BLOCK_ROWS, mib=BLOCK_BYTES // MIB,
                most=BLOCK_BYTES // (4 * BLOCK_ROWS)),
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
        remarks("scaling", "memory over others", exponents=", ".join(exponents)),
    )  # fmt: skip


# ---------------------------------------------------------------------- clusters


def task_cpu(loads: pd.DataFrame) -> pd.Series:
    """CPU seconds of the scheduler a task, its merge and events included, heartbeats not."""
    return (loads["cpu"] - loads["idle"] * loads["wall"]).clip(lower=0) / loads["n_tasks"]


def load_at_a_minute(loads: pd.DataFrame) -> pd.Series:
    """Return the share of a core that the scheduler takes when tasks take a minute, as a fit's do.

    For shorter tasks, the events of a minute are not counted in full.
    """
    return loads["idle"] + task_cpu(loads) * loads["n_workers"] / MINUTE


def cluster_tables(results: Sequence[Result], cores: int) -> list[Table]:
    """Return a fit over workers, and the scheduler over simulated workers."""
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
             "peak memory per worker (MiB)": _mib("peak_a_worker"),
             "the same bits as one's": "same"},
            remarks("scaling", "workers", one=one, cores=cores),
        ),
        table(
            "A scheduler under simulated workers",
            loads,
            {"workers": "n_workers", "tasks": "n_tasks", "seconds per task": "task_seconds",
             "wall (s)": "wall", "CPU of the scheduler (s)": "cpu",
             "CPU of that per task (ms)": "per task",
             "% of a core when idle": lambda f: 100 * f["idle"],
             "% of a core, tasks of a minute": "busy",
             "memory for workers and graph (MiB)": _mib("memory")},
            remarks("scaling", "scheduler"),
        ),
    ]  # fmt: skip


# ---------------------------------------------------------------------- a billion bags


def graph_table(graphs: pd.DataFrame) -> Table:
    """Make the table of tasks and bytes over N."""
    columns: dict[str, Column] = {"D": "D", "N": "N", "tasks": "tasks", "nodes": "nodes"}
    columns |= {"bags per task": "largest_task", "model: seconds per task": "model_task"}
    columns |= {"graph (KiB)": lambda f: f["bytes"] / 1024}
    columns |= {"bytes per task": lambda f: f["bytes"] / f["tasks"]}
    columns |= {"of these shared by all (bytes)": "shared", "CPU s to make and pickle": "seconds"}
    notes = remarks("scaling", "graph", most=PassLimits().max_tasks)
    return table("The graph of a fit, made without data", graphs, columns, notes)


@dataclass(frozen=True)
class PaperCost:
    """What a fit to a billion bags would take on paper, in seconds where nothing else is said.

    Attributes
    ----------
    core_seconds, n_bytes : float
        A bag, measured: CPU of the pass, and bytes of the store.
    work, reading : float
        Seconds of all tasks on all nodes, one after the other on each node.
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
    passes: float, n_bytes: float, solve: float, graph: Mapping[str, int], loads: pd.DataFrame
) -> PaperCost:
    """Compute the cost from core-seconds and bytes per bag, the graph, and a scheduler's load.

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
    """Compute costs at the largest N of the graphs, per D with a graph and a timed fit."""
    at, loads = ladder(results, middle, "D"), frame(results, measure="scheduler")
    [n_bytes] = frame(results, measure="fit", **middle.model_dump())["bytes_a_bag"]
    graphs = frame(results, measure="graph")
    found = {}
    for _, graph in graphs[graphs["N"] == graphs["N"].max()].iterrows():
        for _, fit in at[at["D"] == graph["D"]].iterrows():
            passes = fit["passes"] / middle.N
            found[graph["D"]] = cost_on_paper(passes, n_bytes, fit["solve"], dict(graph), loads)
    return found


def cost_table(results: Sequence[Result], middle: Size) -> Table:
    """Return what the largest N of the graphs would take."""
    most = int(frame(results, measure="graph")["N"].max())
    found = costs(results, middle)
    rows = pd.DataFrame([vars(cost) | {"D": D, "total": cost.total} for D, cost in found.items()])
    columns: dict[str, Column] = {"D": "D", "nodes with tasks": "n_nodes"}
    columns |= {"core-µs per bag (measured)": lambda f: 1e6 * f["core_seconds"]}
    columns |= {"bytes per bag (measured)": "n_bytes"}
    columns |= {"core-hours of the pass": lambda f: most * f["core_seconds"] / 3600}
    columns |= {"tasks per node": "waves", "pass (s)": "work", "reading (s)": "reading"}
    columns |= {"scheduler (s)": "scheduling", "last merges (s)": "merging"}
    columns |= {"solve (s)": "solve", "total (s)": "total"}
    notes = remarks(
        "scaling", "cost", cores=CORES_PER_NODE, disk=DISK_PER_NODE / 1e9, middle=middle,
        network=NETWORK_PER_NODE / 1e9, merges=SPLIT_EVERY - 1,
    )  # fmt: skip
    title = f"Computed, not measured: {most:,} bags on {NODES:,} nodes"
    return table(title, rows, columns, notes)
