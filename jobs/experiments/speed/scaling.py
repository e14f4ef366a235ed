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

from ..kit.experiment import Experiment, Measure, Scale
from ..kit.plots import Curves
from .scaling_measures import (
    Size,
    fit_on_workers,
    fit_seconds,
    graph_of,
    peak_bytes,
    scheduler_load,
    solve_seconds,
)

MEMORY_OVER = ("n", "d", "s")  # besides N and D
MEMORY_POINTS = 16  # of a bag, in memory over D: few, for they do not matter
_SIZE = "N {N} D {D} n {n} d {d} s {s}"


class Sizes(Scale):
    """The middle of the ladders, their rungs, and sizes of the fits on workers."""

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
    """Time and memory of one fit, over each of the sizes it depends on."""

    name = "scaling"
    title = "How a fit scales"
    source = "Not in the papers"
    kind = Sizes
    pictures = (
        Curves(
            file="times.png",
            measure="fit",
            x="N",
            y="fit",
            by="D",
            log="xy",
            label="CPU seconds",
        ),
        Curves(
            file="memory.png",
            measure="memory",
            x="N",
            y="largest",
            by="D",
            log="x",
            label="bytes",
        ),
        Curves(
            file="clusters.png",
            measure="workers",
            x="n_workers",
            y=("wall", "cpu"),
            label="seconds",
        ),
    )
    alone = True

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
            Measure("fit", partial(fit_seconds, seed=seed, parent=parent), f"fit {_SIZE}",
                    _axis(sorted(sizes, key=Size.key)), {"n_rounds": s.n_rounds}),
            Measure("solve", partial(solve_seconds, seed=seed), "solve D {D}",
                    {"D gcv": solves}, {"n_rounds": s.n_rounds}),
            *(Measure("memory", peaks, f"memory over {over} {_SIZE}", _axis(each),
                      {"over": over, **rounds}) for over, each in memory.items()),
            Measure("graph", partial(graph_of, parent=parent), f"graph {_SIZE}",
                    _axis(graphs)),
            Measure("workers", partial(fit_on_workers, seed=seed, parent=parent),
                    "workers {n_workers}", {"n_workers": s.workers},
                    {**s.on_workers.model_dump(), "n_rounds": s.workers_rounds}),
            Measure("scheduler", scheduler_load, "scheduler {n_workers}", loads,
                    {"n_tasks": s.simulated_tasks, "idle_seconds": s.idle_seconds}),
        ]  # fmt: skip


def _axis(sizes: Sequence[Size]) -> dict[str, Any]:
    return {"N D n d s": [size.key() for size in sizes]}
