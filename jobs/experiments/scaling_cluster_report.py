"""The tables and the picture of `scaling` on clusters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..pictures.evaluation import BLUE, GREY, ORANGE, new_figure, save_figure
from .experiment import Result, Table, measured
from .scaling_report import MIB

MINUTE = 60.0


def task_cpu(result: Result) -> float:
    """CPU seconds of the scheduler a task, its merge and events included, heartbeats not."""
    v = result.values
    return max(0.0, v["cpu"] - v["idle"] * v["wall"]) / result.point.params["n_tasks"]


def load_at_a_minute(result: Result) -> float:
    """The share of a core that the scheduler takes when tasks take a minute, as a fit's do.

    Of shorter tasks the events of a minute are not counted in full.
    """
    busy = task_cpu(result) * result.point.params["n_workers"] / MINUTE
    return float(result.values["idle"]) + busy


def scheduling_seconds(result: Result, n_tasks: int) -> float:
    """What a scheduler that does nothing else but heartbeats takes for so many tasks."""
    return n_tasks * task_cpu(result) / (1 - float(result.values["idle"]))


def cluster_tables(results: Sequence[Result], cores: int) -> list[Table]:
    """A fit over workers, and the scheduler over simulated workers."""
    return [_workers_table(measured(results, "workers"), cores), _scheduler_table(results)]


def _workers_table(fits: Sequence[Result], cores: int) -> Table:
    one, p = fits[0].values, fits[0].point.params
    rows = [
        [r.point.params["n_workers"], v["wall"], one["wall"] / v["wall"], v["cpu"],
         v["cpu"] / one["cpu"], v["peak_a_worker"] / MIB,
         "yes" if v["coefficients"] == one["coefficients"][:1] else "no"]
        for r in fits for v in [r.values]
    ]  # fmt: skip
    return Table(
        "One fit on local workers of one core each",
        ["workers", "wall (s)", "times as fast as one", "CPU of all workers (s)",
         "CPU / that of one worker", "peak memory a worker (MiB)", "the same bits as one's"],
        rows,
        [
            f"N = {p['N']:,}, D = {p['D']:,}, n = {p['n']}, d = {p['d']}, s = {p['s']}; the least "
            f"of {p['n_rounds']} fits each. More workers than this machine's {cores} cores can not "
            "make it faster; what counts there is that their CPU time does not grow. Memory is all "
            "that is resident, the interpreter and libraries included.",
        ],
    )  # fmt: skip


def _scheduler_table(results: Sequence[Result]) -> Table:
    loads = measured(results, "scheduler")
    rows = [
        [r.point.params["n_workers"], r.point.params["n_tasks"], r.point.params["task_seconds"],
         r.values["wall"], r.values["cpu"], 1e3 * task_cpu(r), 100 * r.values["idle"],
         100 * load_at_a_minute(r), r.values["memory"] / MIB]
        for r in loads
    ]  # fmt: skip
    return Table(
        "A scheduler under simulated workers",
        ["workers", "tasks", "seconds a task", "wall (s)", "CPU of the scheduler (s)",
         "of that a task (ms)", "% of a core when idle", "% of a core, tasks of a minute",
         "memory for workers and graph (MiB)"],
        rows,
        [
            "The scheduler has a process of its own and runs a fit's graph (tasks, merges, "
            "progress events) over TCP on workers that are real to it, but share two processes and "
            "sleep instead of working. Its CPU time and memory are those of a real cluster's; the "
            "wall time is not: so many workers take more of this machine's cores than there are.",
            "A task's CPU time is without that of the heartbeats (the idle scheduler's), and with "
            "that of its progress events, one a second or heartbeat. The last but one column is "
            "computed: idle, and a task a minute from each worker; where tasks took less than a "
            "minute here, they had fewer events.",
        ],
    )  # fmt: skip


def draw_clusters(path: Path, results: Sequence[Result], cores: int) -> Path:
    """How much faster workers are, and what share of a core the scheduler takes."""
    figure = new_figure(10.0, 4.2)
    left, right = figure.subplots(1, 2)
    fits = measured(results, "workers")
    workers = [r.point.params["n_workers"] for r in fits]
    one = fits[0].values["wall"]
    ideal = [min(n, cores) for n in workers]
    left.plot(workers, ideal, ":", color=GREY, label=f"ideal on this machine's {cores} cores")
    left.plot(workers, [one / r.values["wall"] for r in fits], "o-", color=BLUE, label="one fit")
    left.set_xticks(workers)
    left.set_ylim(0, max(ideal) + 0.5)
    left.set_xlabel("local workers of one core each")
    left.set_ylabel("times as fast as one worker")
    loads = measured(results, "scheduler")
    workers = [r.point.params["n_workers"] for r in loads]
    idle = [100 * r.values["idle"] for r in loads]
    right.plot(workers, [100 * load_at_a_minute(r) for r in loads], "o-", color=BLUE,
               label="tasks of a minute (computed from the CPU time of a task)")  # fmt: skip
    right.plot(workers, idle, "s--", color=ORANGE, label="idle: heartbeats alone, measured")
    right.axhline(100, color=GREY, linestyle=":", label="a core: all a scheduler can use")
    right.set_xscale("log")
    right.set_yscale("log")
    right.set_ylim(None, 2000)  # room for the legend
    right.set_xticks(workers, labels=[f"{n:,}" for n in workers])
    right.set_xticks([], minor=True)
    right.set_xlabel("simulated workers")
    right.set_ylabel("scheduler's share of a core (%)")
    for axis in (left, right):
        axis.grid(alpha=0.25)
        axis.legend(fontsize=8, loc="upper left")
    figure.suptitle("One fit on more workers, and the scheduler under many")
    return save_figure(figure, path)
