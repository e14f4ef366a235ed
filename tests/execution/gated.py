"""Tasks that wait at a gate: what happens on a cluster while they run can then be arranged."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.oracles.labelled import LabelledBags

PATIENCE = 60.0  # seconds until a test that waits for nothing fails


class Gate:
    """Files in a folder: ``open`` lets everybody pass, ``at-<pid>`` says who stands before it."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def arm(self) -> Gate:
        self.folder.mkdir()
        return self

    def wait(self) -> None:
        """In a worker: stand at the gate until it opens. No gate, no waiting."""
        if self.folder.is_dir():
            (self.folder / f"at-{os.getpid()}").touch()
            until(lambda: (self.folder / "open").exists())

    def waiting(self) -> set[int]:
        """Processes that stand, or stood, at the gate."""
        return {int(path.name.removeprefix("at-")) for path in self.folder.glob("at-*")}

    def is_closed(self) -> bool:
        return self.folder.is_dir() and not (self.folder / "open").exists()

    def open(self) -> None:
        (self.folder / "open").touch()


class GatedBags(LabelledBags):
    """A store's bags, whose second partition lies behind the gate next to the store."""

    def batches(self, *bag_range, **limits):
        for i, batch in enumerate(super().batches(*bag_range, **limits)):
            if i == 1:
                Gate(f"{self.url}.gate").wait()
            yield batch


def until(condition: Callable[[], object]) -> None:
    """Return when the condition holds; fail when it never does."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "waited for nothing"
        time.sleep(0.02)


def kill(pid: int) -> None:
    """SIGKILL a process and wait until it is gone."""
    os.kill(pid, signal.SIGKILL)
    until(lambda: not alive(pid))


def kill_a_worker(cluster: Any, gate: Gate, fit: Callable[[], object]) -> None:
    """Do the fit: when all workers stand at its gate, one of them is killed and the gate opened.

    There are as many workers as before in the end.
    """
    workers = set(cluster.run(os.getpid).values())
    fitting = threading.Thread(target=fit)
    fitting.start()
    until(lambda: gate.waiting() == workers)
    victim = min(workers)
    kill(victim)
    gate.open()
    fitting.join(120)
    assert not fitting.is_alive()
    cluster.wait_for_workers(len(workers))
    assert victim not in set(cluster.run(os.getpid).values())


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # before the file was opened, or was read
        return False
    return state != "Z"
