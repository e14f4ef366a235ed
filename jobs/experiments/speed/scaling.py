"""`Scaling`: how time and memory of one fit grow, and the graph and the cost of a billion bags.

One of N (bags), D (random features), n (points per bag), d (dimensions) and s (functions of the
first basis, |V| in 004) is varied alone around one middle size. Times are CPU seconds on one core,
memory is that of arrays alive at a time, graphs are made without data; then a fit on local
workers, and a scheduler under simulated ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from ...pictures import BLUE, GREY, ORANGE
from ..kit.experiment import Experiment, Measure, Result, Scale, Table
from ..kit.frame import column, frame
from ..kit.plots import AT_ENDS, Curve, lines
from ..kit.timing import upper_exponent
from .scaling_measures import (
    Size,
    fit_on_workers,
    fit_seconds,
    graph_of,
    peak_bytes,
    scheduler_load,
    solve_seconds,
)
from .scaling_report import (
    MEMORY_OVER,
    MIB,
    NAMES,
    cluster_tables,
    cost_table,
    graph_table,
    ladder,
    load_at_a_minute,
    memory_over,
    memory_tables,
    time_tables,
)

MEMORY_POINTS = 16  # of a bag, in memory over D: few, for they do not matter
SIZE = "N {N} D {D} n {n} d {d} s {s}"


class Sizes(Scale):
    """See ``configs/experiments/scaling.yaml``."""

    middle: Size
    ladders: dict[str, list[int]]
    n_rounds: int
    gcv: list[int]
    memory: Size
    memory_bags: list[int]
    memory_features: list[int]
    memory_rounds: int
    graph_bags: list[int]
    graph_features: list[int]
    on_workers: Size
    workers: list[int]
    workers_rounds: int
    simulated: list[list[float]]
    simulated_tasks: int
    idle_seconds: float


class Scaling(Experiment[Sizes]):
    """See the module."""

    name = "scaling"
    title = "How a fit scales"
    source = "Not in the papers"
    kind = Sizes
    alone = True

    @property
    def size(self) -> str:
        m, ladders = self.settings.middle, self.settings.ladders
        spans = ", ".join(f"{name} {v[0]:,} to {v[-1]:,}" for name, v in ladders.items())
        return (
            f"Fits from a store in the middle of N = {m.N:,} bags, D = {m.D:,} random features, "
            f"n = {m.n:,} points per bag, d = {m.d} dimensions, s = {m.s:,} functions; alone are "
            f"varied {spans}. Graphs of up to {max(self.settings.graph_bags):,} bags, without data."
        )

    def measures(self) -> list[Measure]:
        s, seed, parent = self.settings, self.seed, self.out_dir
        sizes = {s.middle.but(**{k: v}) for k, values in s.ladders.items() for v in values}
        few = s.middle.but(n=MEMORY_POINTS)
        memory = {
            "N": [s.memory.but(N=N) for N in s.memory_bags],
            # more bags than features: of fewer a fit keeps the rows, and makes no sums
            "D": [few.but(N=D + 1, D=D) for D in s.memory_features],
            **{name: [s.middle.but(**{name: v}) for v in s.ladders[name]] for name in MEMORY_OVER},
        }
        peaks, rounds = partial(peak_bytes, seed=seed, parent=parent), {"n_rounds": s.memory_rounds}
        solves = [(D, D in s.gcv) for D in s.ladders["D"]]
        graphs = [s.middle.but(N=N, D=D) for D in s.graph_features for N in s.graph_bags]
        loads = {"n_workers task_seconds": [(int(n), seconds) for n, seconds in s.simulated]}
        return [
            Measure("fit", partial(fit_seconds, seed=seed, parent=parent), f"fit {SIZE}",
                    _axis(sorted(sizes, key=Size.key)), {"n_rounds": s.n_rounds}),
            Measure("solve", partial(solve_seconds, seed=seed), "solve D {D}",
                    {"D gcv": solves}, {"n_rounds": s.n_rounds}),
            *(Measure("memory", peaks, f"memory over {over} {SIZE}", _axis(each),
                      {"over": over, **rounds}) for over, each in memory.items()),
            Measure("graph", partial(graph_of, parent=parent), f"graph {SIZE}",
                    _axis(graphs)),
            Measure("workers", partial(fit_on_workers, seed=seed, parent=parent),
                    "workers {n_workers}", {"n_workers": s.workers},
                    {**s.on_workers.model_dump(), "n_rounds": s.workers_rounds}),
            Measure("scheduler", scheduler_load, "scheduler {n_workers}", loads,
                    {"n_tasks": s.simulated_tasks, "idle_seconds": s.idle_seconds}),
        ]  # fmt: skip

    def tables(self, results: Sequence[Result]) -> list[Table]:
        middle = self.settings.middle
        return [
            *time_tables(results, middle),
            *memory_tables(results),
            graph_table(frame(results, measure="graph")),
            *cluster_tables(results, self.cores),
            cost_table(results, middle),
        ]

    # ------------------------------------------------------------------ pictures

    def draw(self, results: Sequence[Result]) -> None:
        self._draw_times(results)
        self._draw_memory(results)
        self._draw_clusters(frame(results, measure="workers"), frame(results, measure="scheduler"))

    def _draw_times(self, results: Sequence[Result]) -> None:
        """CPU seconds of a fit, a panel per variable, with exponents at the lines."""
        middle = self.settings.middle
        looks = (("fit", "fit, measured", BLUE, "o-"),
                 ("passes", "without its solve", ORANGE, "s--"),
                 ("model", "cost model of the pass", GREY, "^:"))  # fmt: skip
        title = (
            "Time of one fit from a store; exponents of the upper half of each ladder, the middle "
            "dashed, the cost model without the solve"
        )
        with self.picture("times.png", title, len(NAMES), 21.0, 4.8) as (figure, axes):
            for axis, name in zip(axes, NAMES, strict=True):
                rows = ladder(results, middle, name)
                x = column(rows, name)
                curves = []
                for key, _, color, style in looks:
                    seconds = column(rows, key)
                    slope = upper_exponent(x, seconds)
                    curves.append(Curve(x, seconds, f"∝ {name}^{slope:.2f}", color, style))
                axis.axvline(getattr(middle, name), color=GREY, linewidth=0.8, linestyle="--")
                y = "CPU seconds on one core" if name == "N" else ""
                lines(axis, curves, NAMES[name], y, log="xy", ticks=x, legend=AT_ENDS)
            texts = [text for _, text, *_ in looks]
            figure.legend(
                axes[0].lines[-len(texts) :], texts, loc="outside lower center", ncols=len(texts)
            )

    def _draw_memory(self, results: Sequence[Result]) -> None:
        """Peaks of arrays over N and over D."""
        over_bags, over_features = (memory_over(results, name) for name in ("N", "D"))
        bags, features = column(over_bags, "N"), column(over_features, "D")
        first = over_bags.iloc[0]
        points = bags * (4 * first["n"] * first["d"] / MIB)
        left = [
            Curve(bags, points, "points of all bags in the store", GREY, ":"),
            Curve(bags, over_bags["largest"] / MIB, "largest peak of a fit's arrays"),
            Curve(bags, over_bags["least"] / MIB, "least peak", ORANGE, "s--"),
        ]
        right = []
        for key, text, color, style in (
            ("largest", "peak of a fit's arrays", BLUE, "o-"),
            ("rest", "without the block of rows", ORANGE, "s--"),
        ):
            values = column(over_features, key)
            slope = upper_exponent(features, values)
            right.append(Curve(features, values / MIB, f"{text}: ∝ D^{slope:.2f}", color, style))
        title = "Memory of one fit from a store"
        with self.picture("memory.png", title, 2, 11.0, 4.4) as (_, axes):
            lines(axes[0], left, NAMES["N"], "MiB", log="xy", ticks=bags)
            lines(axes[1], right, NAMES["D"], "", log="xy", ticks=features)

    def _draw_clusters(self, fits: pd.DataFrame, loads: pd.DataFrame) -> None:
        """How much faster workers are, and what share of a core the scheduler takes."""
        workers, wall = column(fits, "n_workers"), column(fits, "wall")
        ideal = np.minimum(workers, self.cores)
        label = f"ideal on this machine's {self.cores} cores"
        left = [Curve(workers, ideal, label, GREY, ":"), Curve(workers, wall[0] / wall, "one fit")]
        many = column(loads, "n_workers")
        label = "tasks of a minute (computed from the CPU time of a task)"
        right = [
            Curve(many, 100 * load_at_a_minute(loads), label),
            Curve(many, 100 * loads["idle"], "idle: heartbeats alone, measured", ORANGE, "s--"),
        ]
        title = "One fit on more workers, and the scheduler under many"
        with self.picture("clusters.png", title, 2, 10.0, 4.2) as (_, axes):
            lines(axes[0], left, "local workers of one core each", "times as fast as one worker",
                  ticks=workers)  # fmt: skip
            axes[0].set_ylim(0, ideal.max() + 0.5)
            lines(axes[1], right, "simulated workers", "scheduler's share of a core (%)",
                  log="xy", ticks=many,
                  levels={"a core: all a scheduler can use": 100})  # fmt: skip
            axes[1].set_ylim(None, 2000)  # room for the legend


def _axis(sizes: Sequence[Size]) -> dict[str, Any]:
    return {"N D n d s": [size.key() for size in sizes]}
