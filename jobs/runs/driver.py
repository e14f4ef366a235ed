"""``bags drive``: the driver of a run, a process of its own, and the state that it writes."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from bagbasis.core.credentials import without_credentials
from bagbasis.core.errors import BagbasisError, BusyError, one_line
from bagbasis.data.storage.files import PRIVATE, discard, write_json, writing
from bagbasis.data.storage.urls import local_path

from ..configs.config import load_config
from ..files import plain, run_and_report
from ..interrupts import prompt_interrupts
from ..shell import import_job
from ..terminal import Callback, Terminal
from .record import (
    BEAT,
    BEAT_SECONDS,
    CANCEL,
    CHECKPOINTS,
    LOG,
    RUN,
    STATE,
    Status,
    read_object,
    read_record,
)

LOG_BYTES = 2**18  # end of the driver's output that is copied to a remote folder
NO_BEAT = "no sign of life could be written"

logger = logging.getLogger(__name__)


class Driver:
    """Writes a run's state while its job runs.

    If a run is submitted again, it belongs to the new attempt's driver. An old driver that still
    waits in a queue does not begin, and one that was thought dead stops and writes nothing more.

    Parameters
    ----------
    url : str
        The run's folder.
    attempt : str
        The submission that started this driver.
    log : Path
        File for the output of the driver.
    cancel : callable
        Called once, in a thread, when somebody wants the run to stop.

    Raises
    ------
    RunError
        No such run.
    BusyError
        The run was submitted again since.
    """

    def __init__(self, url: str, attempt: str, log: Path, cancel: Callable[[], None]) -> None:
        self.url = url
        self.record = read_record(url)
        if self.record["attempt"] != attempt:
            raise BusyError(
                f"{url}: the run was submitted again since; this driver, of a submission before, "
                "does nothing"
            )
        self.log = log
        self._cancel = cancel
        self._cancelled = False
        self._over = threading.Event()
        self._now: tuple[str, int, int] = ("", 0, 0)
        self._begun = time.time()

    def progress(self, step: str, done: int, total: int) -> None:
        """Where the job is; written with the next sign of life."""
        self._now = (step, done, total)

    @contextmanager
    def running(self) -> Iterator[dict[str, Any]]:
        """Write signs of life during the block, and at the end how it ended.

        The block runs in the folder of the client that submitted the job, so that relative paths
        mean the same. Yields the report, to be filled in. An error goes on to the caller.
        """
        report: dict[str, Any] = {}
        beating = threading.Thread(target=self._beat_on, daemon=True)
        beating.start()
        try:
            self.beat()
            self.write(Status.RUNNING)
            if self._is_unwanted():
                raise KeyboardInterrupt
            os.chdir(self.record["folder"])
            yield report
        except KeyboardInterrupt:
            self.finish(beating, Status.CANCELLED)
            raise
        except BaseException as error:
            line = str(error) if isinstance(error, BagbasisError) else repr(error)
            failure = {
                "error": one_line(line),
                "traceback": without_credentials(traceback.format_exc()),
            }
            self.finish(beating, Status.FAILED, **failure)
            raise
        with _warned(f"{self.url}: checkpoints may be left over"):
            if self.is_ours():
                discard(f"{self.url}/{CHECKPOINTS}")  # a fit that found its model saved left them
        self.finish(beating, Status.DONE, report=report)

    def give_up(self) -> None:
        """Record that the run was cancelled, if the block cannot be left."""
        self.write(Status.CANCELLED, ended=time.time())

    def finish(self, beating: threading.Thread, status: Status, **more: object) -> None:
        """End the heartbeat, and write how the run ended."""
        self._over.set()
        beating.join()
        with _warned(NO_BEAT):
            self.beat()
        self.write(status, ended=time.time(), **more)

    def write(self, status: Status, **more: object) -> None:
        """Write the state, unless the run was submitted again."""
        values = {"attempt": self.record["attempt"], "status": str(status), "begun": self._begun}
        if self.is_ours():
            write_json(f"{self.url}/{STATE}", {**values, **more}, mode=PRIVATE)

    def _beat_on(self) -> None:
        while not self._over.wait(BEAT_SECONDS):
            with _warned(NO_BEAT):
                self.beat()
                self.heed()

    def beat(self) -> None:
        """Write a sign of life with the progress, and copy the log to a remote run."""
        if not self.is_ours():
            return
        step, done, total = self._now
        where = {"host": os.uname().nodename, "pid": os.getpid()}
        values = {"attempt": self.record["attempt"], "time": time.time(), **where}
        values |= {"step": step, "done": done, "total": total}
        write_json(f"{self.url}/{BEAT}", values, mode=PRIVATE)
        if local_path(self.url) is None and self.log.exists():
            with writing(f"{self.url}/{LOG}") as path:
                path.write_bytes(self.log.read_bytes()[-LOG_BYTES:])

    def heed(self) -> None:
        """Cancel the job once, if somebody wishes that or the run was submitted again."""
        if not self._cancelled and self._is_unwanted():
            self._cancelled = True
            self._cancel()

    def is_ours(self) -> bool:
        """Return whether the run was not submitted again meanwhile."""
        record = read_object(f"{self.url}/{RUN}") or self.record
        return bool(record["attempt"] == self.record["attempt"])

    def _is_unwanted(self) -> bool:
        if not self.is_ours():
            logger.warning("%s: the run was submitted again; this driver stops", self.url)
            return True
        wish = read_object(f"{self.url}/{CANCEL}")
        return wish is not None and wish.get("attempt") == self.record["attempt"]


@contextmanager
def _warned(consequence: str) -> Iterator[None]:
    """Log an OSError and go on, so that a short outage of the filesystem does not end a run."""
    try:
        yield
    except OSError as error:
        logger.warning("%s: %s", consequence, error)


class _Reported:
    """A progress whose counts also go to the run's state."""

    def __init__(self, shown: Callback, report: Callback) -> None:
        self._shown, self._report = shown, report

    def __call__(self, done: int, total: int) -> None:
        self._report(done, total)
        self._shown(done, total)

    def __getattr__(self, name: str) -> Callable[[str], None]:
        """Return ``note`` or ``say`` of the progress that is shown."""
        method: Callable[[str], None] = getattr(self._shown, name)
        return method


class RunTerminal(Terminal):
    """A terminal whose progress also goes to the run's state; ``run`` is for its job alone."""

    def __init__(self, driver: Driver, out: Console | None = None, run: str | None = None) -> None:
        super().__init__(out)
        self._driver = driver
        self.run = run

    def without_tables(self) -> Terminal:
        """Return this terminal for a step of a longer job: it shows progress and no tables."""
        return self._with_parts(RunTerminal(self._driver, Console(quiet=True)))

    @contextmanager
    def progress(self, label: str, unit: str = "bags") -> Iterator[Callback]:
        """Yield a ``progress(done, total)`` callable, whose calls reach the run's state too."""
        with super().progress(label, unit) as shown:
            yield _Reported(shown, partial(self._driver.progress, label))


def run_driver(url: str, attempt: str, log: str, end: Callable[[], None]) -> None:
    """Run the job that was submitted to this folder, and keep its state there.

    ``attempt`` is the submission that started this process: a later one has another driver.
    ``end`` ends the process when it does not listen to an interrupt.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have ignored it
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # of a queue that ends the job
    driver = Driver(url, attempt, Path(log), _interrupt)

    def give_up() -> None:
        driver.give_up()
        end()

    name = driver.record["job"]
    with prompt_interrupts(give_up), driver.running() as report:
        job = import_job(name)
        config = load_config(job.Config, None, (), driver.record["config"])
        console = RunTerminal(driver, run=driver.record["id"])
        report |= plain(run_and_report(job, name, config, console))


def _interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)
