"""What every command of ``bags`` shares: the list of jobs, the exit codes, errors as one line."""

from __future__ import annotations

import errno
import importlib
import json
import logging
import multiprocessing
import os
import re
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import TypeGuard

import click

from bagbasis.core.credentials import without_credentials
from bagbasis.core.errors import (
    EXHAUSTED,
    BagbasisError,
    BusyError,
    ConfigError,
    ParameterError,
    closest,
    is_exhaustion,
    one_line,
)

from .asked import wants_json
from .job import JOBS, called

NO_OUTPUT = "what is printed cannot be written ({}); redirect stdout to another place"
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

INTERRUPTED, BUSY, WRONG_CONFIG, FAILED = 130, 4, 2, 1


def check_job(name: str) -> None:
    """Raise ConfigError unless there is a job of that name."""
    if name not in JOBS:
        names = [*map(called, JOBS)]
        raise ConfigError(f"no job {name!r}{closest(name, names)}; there are {', '.join(names)}")


def import_job(name: str) -> ModuleType:
    """Import the module of a job, with its ``Config`` and ``run``, when it is used."""
    module = JOBS[name].module or name
    return importlib.import_module(f"{__package__}.commands.{module}")


def packaged_config(job: str) -> Path:
    """Return the YAML file of a job that the package contains, with every key explained."""
    from importlib import resources

    return Path(str(resources.files("bagbasis.configs") / f"{job}.yaml"))


def guarded(name: str, action: Callable[[], int | None], debug: bool = False) -> int:
    """Return the exit code of an action; print an error as one line on stderr."""
    try:
        with _log_to_stderr(debug):
            code = action() or 0
            print(end="", flush=True)  # what cannot be written is known here
            return code
    except KeyboardInterrupt as interrupt:
        complain("; ".join(["interrupted", *map(str, interrupt.args)]), debug, kind="Interrupted")
        return INTERRUPTED
    except BagbasisError as error:
        if isinstance(error.__cause__, ModuleNotFoundError) and _names_extra(
            name, error.__cause__, debug
        ):
            return WRONG_CONFIG
        complain(f"{name}: {error}", debug, kind=type(error).__name__)
        if isinstance(error, BusyError):
            return BUSY
        return WRONG_CONFIG if isinstance(error, (ConfigError, ParameterError)) else FAILED
    except Exception as error:  # a bug, or something unforeseen: still one line
        if _names_extra(name, error, debug):
            return WRONG_CONFIG
        complain(f"{name}: {_unforeseen(error)}", debug, kind=type(error).__name__)
        return FAILED


def _unforeseen(error: Exception) -> str:
    """Return the message for an error that bagbasis did not raise."""
    if is_exhaustion(error):
        return EXHAUSTED
    if no_output(error):
        return NO_OUTPUT.format(os.strerror(error.errno or 0))
    return f"{type(error).__name__}: {error} (--debug shows where)"


def no_output(error: Exception) -> TypeGuard[OSError]:
    """Whether stdout took no more: files have names, and errors of ours."""
    return isinstance(error, OSError) and error.errno in FULL and error.filename is None


def _names_extra(name: str, error: BaseException | None, debug: bool) -> bool:
    """Whether a module of an extra of ours is missing, which is then named on stderr."""
    # not of a kind below it, PackageNotFoundError, which experiments tell in their own words
    extra = extra_with(error.name or "") if type(error) is ModuleNotFoundError else None
    if extra:
        text = f"{name}: needs pip install 'bagbasis[{extra}]' ({error})"
        complain(text, debug, kind="ModuleNotFoundError")
    return extra is not None


def extra_with(module: str) -> str | None:
    """Return our extra that installs a module; None if none does, as for a module of ours."""
    from importlib.metadata import requires

    package = module.partition(".")[0]
    if package == __name__.partition(".")[0]:
        return None
    wanted = re.compile(rf'{package}\b(?!-).* extra == "(\w+)"')
    matches = map(wanted.match, requires("bagbasis") or ())
    return next((match[1] for match in matches if match), None)


def complain(
    message: str, debug: bool = False, *, kind: str = "", as_json: bool | None = None
) -> None:
    """Print one line on stderr; with ``debug`` after the traceback of the current error.

    With ``--json`` stdout gets one object, too: ``{"error": {"type": …, "message": …}}``; ``kind``
    is its type. What a Python program would pass is a key here.
    """
    message = re.sub(r"\b(pass|with|say|or) (\w+)=(True|False)\b", _as_key, message)
    if debug:
        click.echo(without_credentials(traceback.format_exc()), err=True, nl=False)
    click.echo(f"bags: {one_line(message)}", err=True)
    if wants_json() if as_json is None else as_json:
        error = {"type": kind or "Error", "message": one_line(message)}
        with suppress(OSError):  # stdout may be what cannot be written
            click.echo(json.dumps({"error": error}, indent=2))


def _as_key(advice: re.Match[str]) -> str:
    verb = {"pass": "set", "say": "set", "or": "or set"}.get(advice[1], advice[1])
    return f"{verb} {advice[2]}={advice[3].lower()}"


def give_up() -> None:
    """End this process, and those it has started, at once."""
    complain("interrupted")
    for child in multiprocessing.active_children():
        child.kill()
    os._exit(INTERRUPTED)


class _Formatter(logging.Formatter):
    """Cuts credentials of what is logged, and of tracebacks in it."""

    def format(self, record: logging.LogRecord) -> str:
        return without_credentials(super().format(record))


@contextmanager
def _log_to_stderr(debug: bool) -> Iterator[None]:
    handler = logging.StreamHandler()
    handler.setFormatter(_Formatter("%(levelname)s %(name)s: %(message)s"))
    logger = logging.getLogger("bagbasis")
    level = logger.level
    if not debug:  # that it has no place for its cache is nothing to a user of ours
        logging.getLogger("matplotlib").setLevel(logging.ERROR)
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if debug else logging.WARNING)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
