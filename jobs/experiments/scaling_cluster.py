"""What `scaling` measures of clusters: a fit on 1 to 4 workers, and a scheduler under many."""

from __future__ import annotations

import hashlib
import operator
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from bagbasis import BagStore, connect
from bagbasis.execution import map_reduce

from ..terminal import Callback
from .kit.experiment import Params
from .kit.machine import peak_memory
from .scaling_fits import WARM_UP_BAGS, Size, fit, random_store
from .simulated_cluster import Sleep, simulated_cluster


def fit_on_workers(p: Params, progress: Callback, seed: int, parent: Path) -> dict[str, Any]:
    """Least wall and CPU seconds of a fit on local workers of one core each, and their memory.

    ``coefficients`` are digests of the models', as many as there are different bits.
    """
    size = Size.of(p)
    few = size.but(N=WARM_UP_BAGS)
    with (
        random_store(few, seed, parent) as warm_up,
        random_store(size, seed, parent) as store,
        connect("local", n_workers=p["n_workers"], cores_per_worker=1) as client,
    ):
        pids = client.run(_warm_up, warm_up, few).values()
        workers = [psutil.Process(pid) for pid in pids]
        rounds = [_one_fit(store, size, workers) for _ in range(p["n_rounds"])]
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


def _one_fit(
    store: BagStore, size: Size, workers: Sequence[psutil.Process]
) -> tuple[float, float, str]:
    begun, used = time.perf_counter(), cpu_of(*workers)
    model = fit(store, size)
    wall, used = time.perf_counter() - begun, cpu_of(*workers) - used
    return wall, used, hashlib.sha256(model.coef_.tobytes()).hexdigest()[:12]


def scheduler_load(p: Params, progress: Callback) -> dict[str, float]:
    """CPU and memory of a scheduler's process while a fit's graph runs on simulated workers.

    ``wall`` and ``cpu`` are seconds of the whole pass, ``idle`` CPU seconds a second while nothing
    runs, and ``memory`` bytes for workers and graph.
    """
    n_tasks, idle_seconds = p["n_tasks"], p["idle_seconds"]
    with simulated_cluster(p["n_workers"]) as (scheduler, bare):
        before = cpu_of(scheduler)
        time.sleep(idle_seconds)
        idle = (cpu_of(scheduler) - before) / idle_seconds
        used, begun = cpu_of(scheduler), time.perf_counter()
        merged = map_reduce(
            Sleep(p["task_seconds"]),
            range(n_tasks),
            operator.add,
            sizes=[100] * n_tasks,
            progress=progress,
        )
        wall = time.perf_counter() - begun
        found = {
            "wall": wall,
            "cpu": cpu_of(scheduler) - used,
            "idle": idle,
            "memory": scheduler.memory_info().rss - bare,
        }
    if merged[0] != n_tasks * (n_tasks - 1) / 2:
        raise AssertionError(f"{n_tasks} tasks were merged to {merged[0]}")
    return found


def cpu_of(*processes: psutil.Process) -> float:
    """CPU seconds until now."""
    times = [process.cpu_times() for process in processes]
    return sum(each.user + each.system for each in times)
