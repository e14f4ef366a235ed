"""How a driver is started so that it outlives its client."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..errors import RunError

Launch = Callable[[Sequence[str], Path], dict[str, Any]]


def launch_here(command: Sequence[str], log: Path) -> dict[str, Any]:
    """Start the command on this machine in a session of its own; what it prints goes to the log.

    Returns
    -------
    dict
        What tells people where it is: host and process id.

    Raises
    ------
    RunError
        It can not be started.
    """
    try:
        with log.open("ab") as out:
            driver = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                close_fds=True,
            )
    except OSError as error:
        raise RunError(f"the driver can not be started ({error.strerror or error})") from error
    return {"host": os.uname().nodename, "pid": driver.pid}


# name: how. Each takes an argument list and a local path for the log.
LAUNCHERS: dict[str, Launch] = {"local": launch_here}
