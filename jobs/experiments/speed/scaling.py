"""`Scaling`: how time and memory of one fit grow, and the graph and the cost of a billion bags.

One of N (bags), D (random features), n (points per bag), d (dimensions) and s (functions of the
first basis, |V| in 004) is varied alone around one middle size. Times are CPU seconds on one core,
memory is that of arrays alive at a time; then a fit on local workers, and a simulated cluster.
"""

from __future__ import annotations

import hashlib
import operator
import pickle
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from bagbasis import (
    Bags,
    BagStore,
    DoubleBasisRegressor,
    ProjectionEmbedding,
    RandomFourierFeatures as Fourier,
    connect,
)
from bagbasis.core.errors import ParameterError
from bagbasis.data.labelled.labelled import LabelledBags
from bagbasis.data.labelled.labels import Targets
from bagbasis.execution.costs import SPLIT_EVERY
from bagbasis.execution.passes import RangeTask
from bagbasis.execution.tasks import map_reduce, task_graph
from bagbasis.execution.worker_threads import kernel_threads, use_cores
from bagbasis.models.fitting.feature_map import FeatureMap
from bagbasis.models.fitting.plan import FitPlan
from bagbasis.models.outcomes.reals import Reals
from bagbasis.models.ridge.penalties import Penalties
from bagbasis.models.ridge.ridge import solve, solve_gcv
from bagbasis.models.ridge.sums import StatisticsBuilder

from ..kit import Callback, Curves, Experiment, Measure, Params
from ..machine import peak_memory
from .simulated_cluster import Sleep, simulated_cluster

PENALTY_PER_BAG = 1e-3  # any will do: a solve with one penalty takes the same time
POINTS_PER_WRITE = 2**22  # some tens of MiB
WARM_UP_BAGS = 64  # of fits that are not timed: what is compiled or loaded is not counted


@dataclass(frozen=True, order=True)
class Size:
    """N bags of n points in d dimensions, D random features, and s functions, a d-th power."""

    N: int
    D: int
    n: int
    d: int
    s: int

    @classmethod
    def of(cls, params: Params) -> Size:
        return cls(**{size.name: params[size.name] for size in fields(cls)})

    @property
    def n_per_dim(self) -> int:
        root: int = round(self.s ** (1 / self.d))
        if root**self.d != self.s:
            raise ParameterError(f"s is {self.s}; expected a power of exponent d = {self.d}")
        return root

    def features(self) -> FeatureMap:
        box = [(0.0, 1.0)] * self.d
        first = ProjectionEmbedding(n_per_dim=self.n_per_dim, box=box).fit([np.zeros((1, self.d))])
        second = Fourier(n_features=self.D, scale=1.0)
        return FeatureMap(first.spec_, second.resolve(self.s, lambda _: np.zeros((1, self.s))))

    def model_seconds(self) -> float:
        """Return seconds of the pass over the bags, by the model that cuts fits into tasks."""
        empty = LabelledBags(Bags(np.zeros((1, self.d)), [0, 1]))
        cost = FitPlan(empty, self.features(), Reals(1), None, "float32").cost
        return cost.seconds(self.N, self.N * self.n)


@contextmanager
def random_store(size: Size, seed: int, parent: Path) -> Iterator[BagStore]:
    """Uniform points and targets of that size in a store that is deleted afterwards."""
    rng = np.random.default_rng(seed)
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent, prefix="scaling-") as folder:
        store = BagStore.create(Path(folder) / "bags.zarr", size.d, target_names=["y"])
        step = max(1, POINTS_PER_WRITE // size.n)
        for start in range(0, size.N, step):
            n_bags = min(step, size.N - start)
            points = rng.random((n_bags * size.n, size.d), dtype=np.float32)
            bags = Bags(points, np.arange(n_bags + 1) * size.n)
            store.append(bags, rng.random((n_bags, 1)))
        yield store


def fit(store: BagStore, size: Size) -> DoubleBasisRegressor:
    """One fit with one penalty, so that the solve is one Cholesky decomposition."""
    return DoubleBasisRegressor(
        ProjectionEmbedding(n_per_dim=size.n_per_dim),
        Fourier(n_features=size.D, scale=1.0),
        alpha=PENALTY_PER_BAG * size.N,
    ).fit(store)


def cpu_seconds(call: Callable[[], Any], n_rounds: int) -> float:
    """Return the least CPU seconds of this process, all its threads, over calls."""
    seconds = []
    for _ in range(n_rounds):
        begun = time.process_time()
        call()
        seconds.append(time.process_time() - begun)
    return min(seconds)


def fit_seconds(p: Params, progress: Callback, seed: int, parent: Path) -> dict[str, float]:
    """Measure CPU seconds of a fit from a store on one core, and the bytes per bag takes in it."""
    size = Size.of(p)
    with use_cores(1), random_store(size, seed, parent) as store:
        files = (path for path in Path(store.url).rglob("*") if path.is_file())
        n_bytes = sum(path.stat().st_size for path in files)
        seconds = cpu_seconds(lambda: fit(store, size), p["n_rounds"])
        return {"fit": seconds, "bytes_a_bag": n_bytes / size.N, "model": size.model_seconds()}


def solve_seconds(p: Params, progress: Callback, seed: int) -> dict[str, float]:
    """CPU seconds of solving with one penalty, and with all of a grid (``gcv``), on one core."""
    rng, n_features, n_rounds = np.random.default_rng(seed), p["D"], p["n_rounds"]
    builder = StatisticsBuilder(n_features, 1)
    n_bags = 2 * n_features
    builder.add(rng.random((n_bags, n_features), np.float32), rng.random((n_bags, 1)))
    statistics = builder.finish()
    with use_cores(1), kernel_threads():
        seconds = {"one": cpu_seconds(lambda: solve(statistics, 1.0, 1e-7), n_rounds)}
        if p["gcv"]:
            grid = np.geomspace(1e-3, 1e3, 17)
            seconds["gcv"] = cpu_seconds(lambda: solve_gcv(statistics, Penalties(grid)), n_rounds)
    return seconds


def peak_bytes(p: Params, progress: Callback, seed: int, parent: Path) -> dict[str, int]:
    """Return the most bytes of arrays alive at a time in a fit, the least and largest over fits."""
    size = Size.of(p)
    few = replace(size, N=WARM_UP_BAGS)
    with use_cores(1), random_store(few, seed, parent) as store:
        fit(store, few)  # what is compiled or kept for later fits is not counted
    peaks = []
    with use_cores(1), random_store(size, seed, parent) as store:
        for _ in range(p["n_rounds"]):
            tracemalloc.start()
            try:
                fit(store, size)
                peaks.append(tracemalloc.get_traced_memory()[1])
            finally:
                tracemalloc.stop()
    return {"least": min(peaks), "largest": max(peaks)}


def graph_of(p: Params, progress: Callback, parent: Path) -> dict[str, float]:
    """How a fit of that size is cut, without data, and what of its graph goes to a scheduler.

    Bytes are of the pickled nodes; ``shared`` are of the one that a worker gets once.
    """
    size = Size.of(p)
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        empty = BagStore.create(Path(folder) / "bags.zarr", size.d, target_names=["y"])
        meta = replace(empty.meta, n_bags=size.N, n_points=size.N * size.n)
        source = LabelledBags(BagStore(empty.url, meta=meta), Targets(("y",)))
        fit_pass = FitPlan(source, size.features(), Reals(1), None, "float32")
        begun = time.process_time()
        ranges = fit_pass.ranges
        task = RangeTask.of(source, fit_pass.reduction, ranges)
        root = task_graph(task, ranges, operator.add, "topic", SPLIT_EVERY)
        nodes = dict(root.__dask_graph__())
        n_bytes = len(pickle.dumps(nodes))
        seconds = time.process_time() - begun
    return {
        "tasks": len(ranges),
        "nodes": len(nodes),
        "largest_task": max(stop - start for start, stop in ranges),
        "model_task": size.model_seconds() / len(ranges),
        "bytes": n_bytes,
        "shared": len(pickle.dumps(task)),
        "seconds": seconds,
    }


def fit_on_workers(p: Params, progress: Callback, seed: int, parent: Path) -> dict[str, Any]:
    """Measure a fit on local workers of one core: seconds, memory, digests of coefficients."""
    size, rounds = Size.of(p), []
    few = replace(size, N=WARM_UP_BAGS)
    with (
        random_store(few, seed, parent) as warm_up,
        random_store(size, seed, parent) as store,
        connect("local", n_workers=p["n_workers"], cores_per_worker=1) as client,
    ):
        pids = client.run(_warm_up, warm_up, few).values()
        workers = [psutil.Process(pid) for pid in pids]
        for _ in range(p["n_rounds"]):
            begun, used = time.perf_counter(), cpu_of(*workers)
            model = fit(store, size)
            spent = time.perf_counter() - begun, cpu_of(*workers) - used
            rounds.append((*spent, hashlib.sha256(model.coef_.tobytes()).hexdigest()[:12]))
        peaks = client.run(peak_memory)
    wall, cpu, digests = zip(*rounds, strict=True)
    return {
        "wall": min(wall),
        "cpu": min(cpu),
        "peak_a_worker": max(peaks.values()),
        "coefficients": sorted(set(digests)),
    }


def _warm_up(store: BagStore, size: Size) -> int:
    """Compile or load the kernels in this worker; its process id."""
    fit(store, size)
    return psutil.Process().pid


def scheduler_load(p: Params, progress: Callback) -> dict[str, float]:
    """Measure a scheduler's CPU and memory while a fit's graph runs on simulated workers.

    ``wall`` and ``cpu`` are seconds of the whole pass, ``idle`` is a fraction of a core while
    nothing runs, and ``memory`` bytes for workers and graph.
    """
    n_tasks, idle_seconds = p["n_tasks"], p["idle_seconds"]
    with simulated_cluster(p["n_workers"]) as (scheduler, bare):
        before = cpu_of(scheduler)
        time.sleep(idle_seconds)
        idle = (cpu_of(scheduler) - before) / idle_seconds
        used, begun = cpu_of(scheduler), time.perf_counter()
        task, sizes = Sleep(p["task_seconds"]), [100] * n_tasks
        merged = map_reduce(task, range(n_tasks), operator.add, sizes=sizes, progress=progress)
        wall = time.perf_counter() - begun
        load = {
            "wall": wall,
            "cpu": cpu_of(scheduler) - used,
            "idle": idle,
            "memory": scheduler.memory_info().rss - bare,
        }
    if merged[0] != n_tasks * (n_tasks - 1) / 2:
        raise AssertionError(f"{n_tasks} tasks were merged to {merged[0]}")
    return load


def cpu_of(*processes: psutil.Process) -> float:
    times = [process.cpu_times() for process in processes]
    return sum(each.user + each.system for each in times)


MEMORY_OVER = ("n", "d", "s")  # besides N and D
MEMORY_POINTS = 16  # of a bag, in memory over D: few, for they do not matter
_SIZE = "N {N} D {D} n {n} d {d} s {s}"


class Scaling(Experiment):
    name = "scaling"
    title = "How a fit scales"
    pictures = (
        Curves("times.png", "fit", measure="fit", x="N", by="D", log="xy", label="CPU seconds"),
        Curves("memory.png", "largest", measure="memory", x="N", by="D", log="x", label="bytes"),
        Curves("clusters.png", ("wall", "cpu"), measure="workers", x="n_workers", label="seconds"),
    )
    alone = True

    def measures(self) -> list[Measure]:
        s, seed, parent = self.settings, self.seed, self.out_dir
        middle, largest = Size(**s.middle), Size(**s.memory)
        sizes = {replace(middle, **{k: v}) for k, values in s.ladders.items() for v in values}
        few = replace(middle, n=MEMORY_POINTS)
        memory = {"N": [replace(largest, N=N) for N in s.memory_bags]}
        # more bags than features: of fewer a fit keeps the rows, and makes no sums
        memory["D"] = [replace(few, N=D + 1, D=D) for D in s.memory_features]
        for name in MEMORY_OVER:
            memory[name] = [replace(middle, **{name: v}) for v in s.ladders[name]]
        peaks, rounds = partial(peak_bytes, seed=seed, parent=parent), {"n_rounds": s.memory_rounds}
        solves = [(D, D in s.gcv) for D in s.ladders["D"]]
        graphs = [replace(middle, N=N, D=D) for D in s.graph_features for N in s.graph_bags]
        loads = {"n_workers task_seconds": [(int(n), seconds) for n, seconds in s.simulated]}
        return [
            Measure("fit", partial(fit_seconds, seed=seed, parent=parent), f"fit {_SIZE}",
                    _axis(sorted(sizes)), {"n_rounds": s.n_rounds}),
            Measure("solve", partial(solve_seconds, seed=seed), "solve D {D}",
                    {"D gcv": solves}, {"n_rounds": s.n_rounds}),
            *(Measure("memory", peaks, f"memory over {over} {_SIZE}", _axis(each),
                      {"over": over, **rounds}) for over, each in memory.items()),
            Measure("graph", partial(graph_of, parent=parent), f"graph {_SIZE}",
                    _axis(graphs)),
            Measure("workers", partial(fit_on_workers, seed=seed, parent=parent),
                    "workers {n_workers}", {"n_workers": s.workers},
                    {**s.on_workers, "n_rounds": s.workers_rounds}),
            Measure("scheduler", scheduler_load, "scheduler {n_workers}", loads,
                    {"n_tasks": s.simulated_tasks, "idle_seconds": s.idle_seconds}),
        ]  # fmt: skip


def _axis(sizes: Sequence[Size]) -> dict[str, Any]:
    return {"N D n d s": [astuple(size) for size in sizes]}
