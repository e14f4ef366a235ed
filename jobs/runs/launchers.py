"""Starts a driver so that it outlives its client."""

from __future__ import annotations

import getpass
import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from bagbasis.core.errors import RunError
from bagbasis.data.storage.files import PRIVATE, storage_errors

Launch = Callable[[Sequence[str], Path, str], dict[str, Any]]
Withdraw = Callable[[str], None]

_JOB = '#!/bin/sh\nexec "$@"\n'  # sbatch hands it the command as arguments
# A driver is interrupted so long before its walltime; the run can then be resumed.
SECONDS_TO_END = 120


def launch_here(command: Sequence[str], log: Path, run_id: str) -> dict[str, Any]:
    """Start the command on this machine in a new session; its output goes to the log.

    Returns
    -------
    dict
        Place of the driver for people: host and process id.

    Raises
    ------
    RunError
        It cannot be started.
    """
    with (
        storage_errors(log, "the driver cannot be started", kind=RunError),
        open_log(log) as out,
    ):
        driver = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            close_fds=True,
        )
    return {"host": os.uname().nodename, "pid": driver.pid}


def open_log(log: Path) -> BinaryIO:
    """Open a driver's output to append to, for this account alone; OSError if a link is there.

    The log of a remote run lies in a folder of temporary files, where other accounts may put links.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
    return os.fdopen(os.open(log, flags, PRIVATE), "ab")


def launch_sbatch(command: Sequence[str], log: Path, run_id: str) -> dict[str, Any]:
    """Submit the command as a batch job of SLURM, named like the run; its output goes to the log.

    Partition, account, time and the like are SLURM's defaults, or those of its own environment
    variables (``SBATCH_PARTITION``, ``SBATCH_TIMELIMIT``, …). A job whose node fails is queued
    again.

    Returns
    -------
    dict
        Place of the driver for people: SLURM's job id.

    Raises
    ------
    RunError
        There is no sbatch, or it refuses the job.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".sh", prefix="bagbasis-") as script:
        script.write(_JOB)
        script.flush()
        options = [
            "--parsable",
            f"--job-name={run_id}",
            f"--output={_literally(log)}",
            "--open-mode=append",
            "--requeue",
            f"--signal=B:INT@{SECONDS_TO_END}",
        ]
        answer = _ask("sbatch", *options, script.name, *command)
    if answer is None:
        raise RunError("sbatch is not here: this machine submits no SLURM jobs")
    if answer.returncode:
        reason = " ".join(answer.stderr.replace("sbatch: error:", "").split())
        raise RunError(f"SLURM refuses the driver: {reason or 'no reason'}")
    return {"slurm_job": answer.stdout.strip().partition(";")[0]}


def withdraw_sbatch(run_id: str) -> None:
    """Take a waiting driver out of the queue; a running one stops by itself.

    If there is no scancel, or it fails, the driver stops when it begins.
    """
    _ask("scancel", f"--name={run_id}", f"--user={getpass.getuser()}", "--state=PENDING")


def _ask(*command: str) -> subprocess.CompletedProcess[str] | None:
    """Run a command of SLURM; None if it is not installed."""
    try:
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return None


def _literally(path: Path) -> str:
    """Escape a file name in which SLURM would replace patterns."""
    return str(path).replace("%", "%%")


# name: how. Each takes an argument list, a local path for the log, and the run's id.
LAUNCHERS: dict[str, Launch] = {"local": launch_here, "sbatch": launch_sbatch}

# name: how a driver that has not begun is taken back, where it may have to wait.
WITHDRAWALS: dict[str, Withdraw] = {"sbatch": withdraw_sbatch}
