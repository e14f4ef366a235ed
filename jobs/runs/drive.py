"""``bags drive``: the driver of a submitted run, in a process of its own."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from ..config import load_config
from ..files import plain, write_report
from ..interrupts import prompt_interrupts
from ..shell import import_job
from ..terminal import Callback, Terminal


class RunTerminal(Terminal):
    """A terminal whose progress also goes to the run's state; ``run`` is for its job alone."""

    def __init__(self, driving: Any, out: Console | None = None, run: str | None = None) -> None:
        super().__init__(out)
        self._driving = driving
        self.run = run

    def without_tables(self) -> Terminal:
        return RunTerminal(self._driving, Console(quiet=True))

    @contextmanager
    def progress(self, label: str, unit: str = "bags") -> Iterator[Callback]:
        with super().progress(label, unit) as shown:

            def callback(done: int, total: int) -> None:
                self._driving.progress(label, done, total)
                shown(done, total)

            yield callback


def drive(url: str, attempt: str, log: str, end: Callable[[], None]) -> None:
    """Run the job that was submitted to this folder, and keep its state there.

    ``attempt`` is the submission that started this process: a later one has another driver.
    ``end`` ends the process when it does not listen to an interrupt.
    """
    from .driving import Driving

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have ignored it
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # of a queue that ends the job
    driving = Driving(url, attempt, Path(log), _interrupt)

    def give_up() -> None:
        driving.give_up()
        end()

    name = driving.record["job"]
    with prompt_interrupts(give_up), driving.running() as report:
        job = import_job(name)
        config = load_config(job.Config, None, (), driving.record["config"])
        report |= plain(job.run(config, RunTerminal(driving, run=driving.record["id"])))
        if config.report_path is not None:
            write_report(config.report_path, {"job": name, "config": config.model_dump(), **report})


def _interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)
