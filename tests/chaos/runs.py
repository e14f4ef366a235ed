"""Submitted jobs whose driver or client dies, or that are cancelled, and are resumed."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np

from bagbasis.jobs.runs import Status, record, runs_in
from tests.chaos.accounting import Tally
from tests.chaos.children import PATIENCE, Child, End, run, tell
from tests.chaos.contents import Place, model_of
from tests.chaos.jobs import FITTED, Job, command, labelled_store
from tests.chaos.kills import Files, Killed
from tests.jobs.running import settings

MARK = "CHAOS_DRIVERS"  # in the environment of drivers, by which those of a trial are found


def submit_until_done(place: Place) -> None:
    """Submit a fit, or resume what is not done, and wait for it.

    The minute without a sign of life is over at once: a driver that lives is taken for dead, too,
    and has to notice.
    """
    patience, root = record.DEAD_SECONDS, place.at("runs")
    record.DEAD_SECONDS = 0.0
    before = runs_in(root)
    if not before:
        values = {"data_url": place.store, "model_url": place.at("m.zarr"), **FITTED}
        command("submit", "fit", *settings(**values), "--root", root)
    elif before[-1].status() is not Status.DONE:
        command("submit", "fit", "--resume", before[-1].id, "--root", root)
    record.DEAD_SECONDS = patience
    result = runs_in(root)[-1]
    tell(result.id)
    result.result(timeout=PATIENCE - 10)


def cancel(place: Place) -> None:
    for item in runs_in(place.at("runs")):
        if not item.status().is_over:
            command("cancel", item.url)


def kill_drivers(place: Place) -> bool:
    """Whether there was one."""
    mark, result = f"{MARK}={place.url}".encode(), False
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            is_one = mark in (folder / "environ").read_bytes().split(b"\0")
            if is_one and b"drive" in (folder / "cmdline").read_bytes().split(b"\0"):
                os.kill(int(folder.name), signal.SIGKILL)
                result = True
        except (FileNotFoundError, PermissionError, ProcessLookupError):
            continue
    return result


class Submitted(Killed):
    """Trials of one submitted fit."""

    def begin(self, folder: Path) -> None:
        super().begin(folder)
        self.ground.environment = {MARK: str(folder / "place")}

    def _killed(self, rng: np.random.Generator, place: Place) -> End:
        what = rng.choice(["driver", "client", "cancel"])

        def act(child: Child) -> None:
            if what == "cancel":
                run(cancel, place, place=place.local)
                return
            if what == "driver":
                kill_drivers(place)
            child.kill()

        options: dict[str, Any] = {"place": place.local, "environment": self.ground.environment}
        end = Child(self.job.run, place, **options).wait(
            after=rng.uniform(0, 1.1 * self.seconds), act=act
        )
        self._judge(end)
        end.killed = end.killed or end.error is not None
        return end

    def _sweep(self, place: Place, tally: Tally) -> None:
        """Runs stay until people delete them."""

    def _finish(self, place: Place) -> None:
        try:
            super()._finish(place)
        finally:
            kill_drivers(place)


SUBMIT = Job("submit", labelled_store, submit_until_done, model_of, model_of)
CAMPAIGNS = (Submitted(SUBMIT, Files),)
