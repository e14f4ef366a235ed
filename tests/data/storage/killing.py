"""SIGKILL right before an operation that writes: every state that a killed process can leave.

An audit hook of Python sees every file that is opened for writing, and every folder, rename,
deletion and truncation. `kill_before` is for any process, `each_kill` for a function of a test.
What libraries write that are not Python (Icechunk, DuckDB) the hook does not see.
"""

from __future__ import annotations

import atexit
import itertools
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from tests.data.store.processes import running

PATIENCE = 120.0  # seconds until a process that says nothing fails the test
ONE_PATH = ("os.mkdir", "os.remove", "os.rmdir", "os.truncate")  # of these events: path, …, dir_fd
TWO_PATHS = ("os.rename", "os.link", "os.symlink")  # from, to, …
WRITABLE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def before_writes(root: str | os.PathLike[str], react: Callable[[str], object]) -> None:
    """Call ``react`` before every write below the folder, from now on and in forked children.

    It gets what is about to happen: ``os.rename /tmp/s/zarr.json``. An exchange of two names has
    no event of its own; it is known by the look-up of its function.
    """
    root = os.path.abspath(root)

    def hook(event: str, args: tuple[Any, ...]) -> None:
        path = _written(event, args)
        if path is not None and (path == root or path.startswith(f"{root}/") or path == "?"):
            react(f"{event} {path}")

    sys.addaudithook(hook)


def kill_before(k: int, root: str | os.PathLike[str], *, group: bool = False) -> None:
    """Let this process die by SIGKILL just before its k-th write below the folder, from 0.

    Parameters
    ----------
    group : bool
        Whether all processes of its group die with it.
    """
    numbers = itertools.count()

    def react(what: str) -> None:
        if next(numbers) == k:
            os.kill(0 if group else os.getpid(), signal.SIGKILL)

    before_writes(root, react)


def each_kill(
    act: Callable[[Path], object], place: Path, *, most: int = 30, seed: int = 0
) -> Iterator[str]:
    """Yield before which write ``act(place)`` was killed; the folder is what that kill left.

    For every write of an undisturbed call the folder is put back to what it was at first, and the
    call is made in a process that dies there. Those processes are forked from one that has made
    this call, and those of other tests, before, so that kernels are loaded.

    Parameters
    ----------
    act : function of a module
    place : path
        A folder that holds what the function begins with.
    most : int
        With more writes than this, only the first, the last and a sample are taken.
    seed : int
        Seed of the sample.
    """
    value = place.with_name(f"{place.name}.given")
    shutil.copytree(place, value, symlinks=True)
    pipe = _forking()

    def answer() -> Any:
        assert pipe.poll(PATIENCE), "the process that is to be killed stands still"
        message = pipe.recv()
        assert not isinstance(message, str), message
        return message

    pipe.send((act, place))
    writes = answer()
    for k in _sample(len(writes), most, seed):
        shutil.rmtree(place)
        shutil.copytree(value, place, symlinks=True)
        pipe.send(k)
        answer()
        print(f"killed before write {k} of {len(writes)}: {writes[k]}")  # seen on failure
        yield writes[k]


@cache
def _forking() -> Connection:
    """The pipe of the process that calls and forks, which ends with this one."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(running(_act_and_die))[1]


def _sample(n: int, most: int, seed: int) -> list[int]:
    if n <= most:
        return list(range(n))
    drawn = np.random.default_rng(seed).choice(np.arange(1, n - 1), most - 2, replace=False)
    return [0, *sorted(drawn.tolist()), n - 1]


def _act_and_die(pipe: Connection) -> None:
    """Tell the writes of each call that is sent; for every number fork a child that makes it."""
    act: Callable[[Path], object]
    place: Path
    while True:
        try:
            what = pipe.recv()
        except EOFError:
            return
        try:
            if isinstance(what, tuple):
                (act, place), writes = what, []
                before_writes(place, writes.append)
                act(place)
                pipe.send(writes)
                continue
            pid = os.fork()
            if pid == 0:
                _act_once(act, place, what)
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            pipe.send(f"the child ended with {status}" if status not in (0, -9) else status)
        except BaseException:
            pipe.send(traceback.format_exc())


def _act_once(act: Callable[[Path], object], place: Path, k: int) -> None:
    signal.alarm(int(PATIENCE / 2))  # a child that stands still dies of it
    try:
        kill_before(k, place)
        act(place)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def _written(event: str, args: tuple[Any, ...]) -> str | None:
    """Return the path that an event of the audit is about to write, None for any other event."""
    if event == "open":
        path, _, flags = args
        return _absolute(path) if isinstance(flags, int) and flags & WRITABLE else None
    if event in ONE_PATH:
        return _absolute(args[0], args[-1] if event != "os.truncate" else -1)
    if event in TWO_PATHS:
        return _absolute(args[1], args[-1])
    return "?" if event == "ctypes.dlsym" and args[1] == "renameat2" else None


def _absolute(path: Any, folder: Any = -1) -> str | None:
    if isinstance(path, int):  # an open file
        return os.readlink(f"/proc/self/fd/{path}")
    text = os.fsdecode(path)
    if isinstance(folder, int) and folder >= 0:
        return os.path.join(os.readlink(f"/proc/self/fd/{folder}"), text)
    return os.path.abspath(text)
