"""Tasks that say when they run, checkpoints in a folder, and clusters whose parts are killed."""

from __future__ import annotations

import runpy
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

from bagbasis.models import Checkpoints
from tests.data.store.processes import context
from tests.execution.gated import Gate, alive, until
from tests.oracles.labelled import LabelledBags, labelled
from tests.oracles.planned import plan_of
from tests.passes import pass_limits

N_TASKS, EVERY, FREE = 32, 4, 14


class LoggedBags(LabelledBags):
    """A store's bags; every range that is done is a line of the file ``.log`` next to the store,
    and when there are fourteen the others stand still at the gate. Passes over some of the bags
    alone, as those held out, are not noted."""

    def batches(self, start, stop, **limits):
        if self.only is not None:
            yield from super().batches(start, stop, **limits)
            return
        log = Log(self.url)
        if len(log.lines()) >= FREE:
            log.gate.wait()
        yield from super().batches(start, stop, **limits)
        if log.gate.is_closed():
            time.sleep(0.2)  # every worker gets its share of the tasks before the gate
        with open(f"{self.url}.log", "a") as file:
            file.write(f"{start}\n")


class Log:
    """What a `LoggedBags` of the store has noted, and its gate."""

    def __init__(self, url):
        self.url = str(url)
        self.gate = Gate(f"{url}.gate")

    def arm(self) -> Log:
        self.gate.arm()
        return self

    def lines(self) -> list[int]:
        with suppress(FileNotFoundError):
            return [int(line) for line in Path(f"{self.url}.log").read_text().split()]
        return []

    def standing(self, n: int) -> set[int]:
        """The processes that stand before the gate, when there are so many."""
        until(lambda: sum(map(alive, self.gate.waiting())) == n)
        return {pid for pid in self.gate.waiting() if alive(pid)}


class FolderCheckpoints:
    """A `CheckpointStore` of texts, a file each."""

    def __init__(self, folder, every):
        self.folder = Path(folder)
        self.every = every
        self.folder.mkdir(exist_ok=True)

    def load(self, group):
        with suppress(FileNotFoundError):
            text = (self.folder / str(group)).read_text()
            return None if text == "damaged" else text

    def save(self, group, value):
        (self.folder / str(group)).write_text(value)


def many_tasks():
    """Within the block fits are cut into 32 tasks, whose sums may be kept by fours."""
    return pass_limits(small_task_seconds=1e-9, small_tasks=N_TASKS, groups=N_TASKS // EVERY)


def checkpoints(url, store, features, every=EVERY) -> Checkpoints:
    """Checkpoints every few tasks of such a fit."""
    seconds = plan_of(labelled(store), features).seconds
    return Checkpoints(url, seconds=(every + 0.5) * seconds / N_TASKS)


@contextmanager
def process(module: str, *args: str):
    """A forked process that does what ``python -m`` would; killed, if it is there at the end."""
    running = context.Process(target=_run_module, args=(module, args))
    running.start()
    try:
        yield running
    finally:
        running.kill()
        running.join()


def _run_module(module: str, args: tuple[str, ...]) -> None:
    sys.argv = [module, *args]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def scheduler(folder):
    """A scheduler on loopback; its address is in the file ``scheduler.json`` when it listens."""
    file = Path(folder, "scheduler.json")
    file.unlink(missing_ok=True)
    options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file"]
    return process("dask", "scheduler", *options, str(file))


def worker(folder):
    """A worker of one thread of that scheduler, which nobody replaces when it dies."""
    options = ["--nthreads", "1", "--no-nanny", "--no-dashboard"]
    options += ["--preload", "tests.execution.logged", "--scheduler-file"]
    return process("dask", "worker", *options, f"{folder}/scheduler.json")
