"""`Scaling`: how time and memory of one fit grow, and the graph and the cost of a billion bags.

One of N (bags), D (random features), n (points a bag), d (dimensions) and s (functions of the
first basis, |V| in 004) is varied alone around one middle size. Measures of points: "fit" and
"solve" (CPU seconds on one core), "memory" (arrays alive at a time), "graph" (made without data),
"workers" (a fit on local ones) and "scheduler" (under simulated ones).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bagbasis.execution.lanes import lane_cores

from ..terminal import Callback
from .experiment import Experiment, Point, Result, Table
from .scaling_cluster import fit_on_workers, scheduler_load
from .scaling_cluster_report import cluster_tables, draw_clusters
from .scaling_cost import cost_table, graph_table
from .scaling_measures import Size, fit_seconds, graph_of, peak_bytes, solve_seconds
from .scaling_pictures import draw_memory, draw_times
from .scaling_report import MEMORY_OVER, memory_tables, time_tables

MEMORY_BAGS, MEMORY_POINTS = 256, 16  # of memory over D: few, for they do not matter


@dataclass(frozen=True)
class Settings:
    """A scale.

    Attributes
    ----------
    middle : Size
    ladders : mapping from "N", "D", "n", "d", "s" to increasing values
        Of fits that are timed; the middle's value is among them.
    n_rounds : int
        Of which the least time is taken.
    gcv : tuple of int
        D at which the solve for a grid of penalties is timed, too.
    memory : Size
        What memory is measured at over N; over n, d and s it is the ladders' fits.
    memory_bags, memory_features, memory_rounds : tuple of int, tuple of int, int
        N and D of memory, and fits of each.
    graph_bags, graph_features : tuple of int
        N and D of graphs; the rest is the middle's.
    on_workers : Size
        Of the fit on local workers, in several tasks at the paper's scale.
    workers, workers_rounds : tuple of int, int
        How many, and fits of each.
    simulated : tuple of (workers, seconds a task)
        That a scheduler has.
    simulated_tasks, idle_seconds : int, float
        Tasks of each, and for how long an idle scheduler is watched.
    """

    middle: Size
    ladders: Mapping[str, tuple[int, ...]]
    n_rounds: int
    gcv: tuple[int, ...]
    memory: Size
    memory_bags: tuple[int, ...]
    memory_features: tuple[int, ...]
    memory_rounds: int
    graph_bags: tuple[int, ...]
    graph_features: tuple[int, ...]
    on_workers: Size
    workers: tuple[int, ...]
    workers_rounds: int
    simulated: tuple[tuple[int, float], ...]
    simulated_tasks: int
    idle_seconds: float


BILLION = tuple(10**k for k in range(3, 10))
SETTINGS = {
    "small": Settings(
        Size(N=1024, D=256, n=64, d=2, s=16),
        {"N": (512, 1024, 2048, 4096), "D": (128, 256, 512), "n": (16, 64, 256, 1024),
         "d": (1, 2, 4), "s": (4, 16, 64, 256)},
        2, (256,),
        Size(N=8192, D=1024, n=1024, d=2, s=16), (12_288, 20_480), (512, 1024, 2048), 1,
        BILLION, (256, 4096),
        Size(N=4096, D=256, n=64, d=2, s=16), (1, 2), 1,
        ((2, 0.01), (20, 0.1)), 40, 1.0,
    ),
    "paper": Settings(
        Size(N=8192, D=1024, n=256, d=2, s=256),
        {"N": tuple(2**k for k in range(11, 18)), "D": (256, 512, 1024, 2048, 4096),
         "n": (16, 64, 256, 1024, 4096), "d": (1, 2, 4, 8), "s": (16, 64, 256, 1024, 4096)},
        5, (1024, 2048),
        Size(N=8192, D=1024, n=256, d=2, s=256), tuple(2**k for k in range(13, 19)),
        (512, 1024, 2048, 4096), 3,
        BILLION, (1024, 4096),
        Size(N=2**19, D=2048, n=64, d=2, s=256), (1, 2, 3, 4), 3,
        ((1, 0.01), (10, 0.1), (100, 1.0), (1000, 60.0)), 2000, 20.0,
    ),
}  # fmt: skip


class Scaling(Experiment[Settings]):
    """See the module."""

    name = "scaling"
    title = "How a fit scales"
    source = "Not in the papers"
    scales = SETTINGS

    @property
    def size(self) -> str:
        m, ladders = self.settings.middle, self.settings.ladders
        spans = ", ".join(f"{name} {v[0]:,} to {v[-1]:,}" for name, v in ladders.items())
        return (
            f"Fits from a store in the middle of N = {m.N:,} bags, D = {m.D:,} random features, "
            f"n = {m.n:,} points a bag, d = {m.d} dimensions, s = {m.s:,} functions; alone are "
            f"varied {spans}. Graphs of up to {max(self.settings.graph_bags):,} bags, without data."
        )

    def points(self) -> list[Point]:
        s = self.settings
        sizes = {replace(s.middle, **{k: v}) for k, values in s.ladders.items() for v in values}
        fits = [
            _point("fit", size, n_rounds=s.n_rounds)
            for size in sorted(sizes, key=lambda size: (*size.params.values(),))
        ]
        solves = [
            Point(
                f"solve D {D}",
                {"measure": "solve", "D": D, "gcv": D in s.gcv, "n_rounds": s.n_rounds},
            )
            for D in s.ladders["D"]
        ]
        over_bags = [
            _point("memory", replace(s.memory, N=N), over="N", n_rounds=s.memory_rounds)
            for N in s.memory_bags
        ]
        few = replace(s.middle, N=MEMORY_BAGS, n=MEMORY_POINTS)
        over_features = [
            _point("memory", replace(few, D=D), over="D", n_rounds=s.memory_rounds)
            for D in s.memory_features
        ]
        over_others = [
            _point("memory", replace(s.middle, **{name: v}), over=name, n_rounds=s.memory_rounds)
            for name in MEMORY_OVER
            for v in s.ladders[name]
        ]
        graphs = [
            _point("graph", replace(s.middle, N=N, D=D))
            for D in s.graph_features
            for N in s.graph_bags
        ]
        memory = [*over_bags, *over_features, *over_others]
        return [*fits, *solves, *memory, *graphs, *self._cluster_points()]

    def _cluster_points(self) -> list[Point]:
        s = self.settings
        fits = [
            Point(
                f"workers {n}",
                {
                    "measure": "workers",
                    **s.on_workers.params,
                    "n_workers": n,
                    "n_rounds": s.workers_rounds,
                },
            )
            for n in s.workers
        ]
        loads = [
            Point(
                f"scheduler {n}",
                {
                    "measure": "scheduler",
                    "n_workers": n,
                    "n_tasks": s.simulated_tasks,
                    "task_seconds": seconds,
                    "idle_seconds": s.idle_seconds,
                },
            )
            for n, seconds in s.simulated
        ]
        return [*fits, *loads]

    def measure(self, point: Point, progress: Callback) -> dict[str, Any]:
        p = point.params
        if p["measure"] == "solve":
            return solve_seconds(p["D"], p["n_rounds"], self.seed, p["gcv"])
        if p["measure"] == "scheduler":
            sizes = p["n_workers"], p["n_tasks"]
            return scheduler_load(*sizes, p["task_seconds"], p["idle_seconds"], progress)
        size = Size(**{name: p[name] for name in ("N", "D", "n", "d", "s")})
        if p["measure"] == "workers":
            return fit_on_workers(size, p["n_workers"], p["n_rounds"], self.seed, self.out_dir)
        if p["measure"] == "fit":
            return fit_seconds(size, p["n_rounds"], self.seed, self.out_dir)
        if p["measure"] == "memory":
            return peak_bytes(size, p["n_rounds"], self.seed, self.out_dir)
        return graph_of(size, self.out_dir)

    def tables(self, results: Sequence[Result]) -> list[Table]:
        middle = self.settings.middle
        return [
            *time_tables(results, middle),
            *memory_tables(results),
            graph_table(results),
            *cluster_tables(results, lane_cores()),
            cost_table(results, middle),
        ]

    def draw(self, results: Sequence[Result]) -> list[Path]:
        middle = self.settings.middle
        return [
            draw_times(self.out_dir / "times.png", results, middle),
            draw_memory(self.out_dir / "memory.png", results),
            draw_clusters(self.out_dir / "clusters.png", results, lane_cores()),
        ]


def _point(measure: str, size: Size, **more: Any) -> Point:
    label = " ".join(f"{name} {value}" for name, value in size.params.items())
    over = f" over {more['over']}" if "over" in more else ""
    return Point(f"{measure}{over} {label}", {"measure": measure, **size.params, **more})
