"""Functions in processes of their own, forked from this one, which has imported all they need.

A child is the leader of its session, so that whatever it starts can be killed with it. It says
what it likes over a pipe, and what it prints goes to a file.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from tests.chaos.accounting import Stuck
from tests.data.storage.killing import before_writes

PATIENCE = 150.0  # seconds until a child that does not end counts as stuck
PR_SET_PDEATHSIG = 1  # of linux/prctl.h
ONE_CORE = {"BAGBASIS_WORKER_CORES": "1", "OMP_NUM_THREADS": "1"}

_lock = threading.Lock()  # of the pipe, in a child
_pipe: Connection


def tell(what: object) -> None:
    """In a child: say something that the parent keeps, even if the child dies next."""
    with _lock:
        _pipe.send(("told", what))


def ask(what: object) -> Any:
    """In a child: say something and wait for the answer."""
    with _lock:
        _pipe.send(("told", what))
        return _pipe.recv()


@dataclass
class End:
    """How a child ended.

    Attributes
    ----------
    killed : bool
    value : object
        Result of its function.
    error : str or None
        Error of its function, with the traceback.
    messages : list
        See `tell`.
    n_writes : int
        Below the watched folder.
    """

    killed: bool = False
    value: Any = None
    error: str | None = None
    messages: list[Any] = field(default_factory=list)
    n_writes: int = 0
    seconds: float = 0.0

    @property
    def last_line(self) -> str:
        """The last line of the error."""
        return (self.error or "").strip().rpartition("\n")[2]


class Child:
    """A function that runs until it ends or is killed.

    Parameters
    ----------
    place : path
        The folder that is watched for writes; what the child prints goes next to it.
    at : int, optional
        Before this write, from 0, the child stands still and `halted` is called in the parent.
    environment : mapping
        In addition to this process's.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *args: Any,
        place: Path,
        at: int | None = None,
        environment: Mapping[str, str] = ONE_CORE,
    ) -> None:
        self.place, self.begun, self._end = place, time.monotonic(), End()
        self._pipe, there = Pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            self._pipe.close()
            _live(there, function, args, place, at, {**ONE_CORE, **environment})
        there.close()

    def kill(self) -> None:
        """Let it die by SIGKILL, with all that it has started in its session."""
        self._end.killed = True
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:  # it has not begun its session
            os.kill(self.pid, signal.SIGKILL)

    def wait(
        self,
        *,
        after: float | None = None,
        act: Callable[[Child], object] = kill,
        beside: Child | None = None,
        react: Callable[[Child, Any], object] = lambda child, what: None,
    ) -> End:
        """Return how it ends.

        Parameters
        ----------
        after : float, optional
            Seconds after which ``act`` is called with the child.
        act : callable
            Also called when the child stands before the write it was to halt at, and then goes on.
        beside : Child, optional
            Another one, and ``react`` what is called with this one when that one says something.

        Raises
        ------
        Stuck
            It did not end.
        """
        deadline = time.monotonic() + PATIENCE
        moment = None if after is None else self.begun + after
        while True:
            now = time.monotonic()
            if now > deadline:
                self.end()
                raise Stuck(f"no end after {PATIENCE:.0f} s; see {self.log_of(self.place)}")
            if moment is not None and now >= moment:
                moment = None
                act(self)
            until = deadline if moment is None else min(deadline, moment)
            is_alone = beside is None or beside._pipe.closed
            pipes = [self._pipe] if is_alone else [beside._pipe, self._pipe]  # type: ignore
            for ready in wait(pipes, max(0.0, until - now)):
                if ready is not self._pipe:
                    react(self, beside.heard())  # type: ignore[union-attr]
                elif not self._hear(act):
                    return self._ended()

    def heard(self) -> Any:
        """Return what it says next; None where it has died."""
        if not self._pipe.poll(PATIENCE):
            raise Stuck(f"says nothing; see {self.log_of(self.place)}")
        try:
            return self._pipe.recv()[1]
        except (EOFError, OSError):  # it died
            self._pipe.close()
            return None

    def answer(self, what: object = None) -> None:
        """Let it go on after it has asked."""
        if not self._pipe.closed:
            self._pipe.send(what)

    def end(self) -> None:
        """Kill it, whatever it does, and wait for that."""
        self.kill()
        os.waitpid(self.pid, 0)
        self._pipe.close()

    @staticmethod
    def log_of(place: Path) -> Path:
        """Return the file that children of the place print into."""
        return place.with_name(f"{place.name}.log")

    def _hear(self, act: Callable[[Child], object]) -> bool:
        """Take one message; False for the last one."""
        try:
            kind, *what = self._pipe.recv()
        except (EOFError, OSError):  # it died
            return False
        if kind == "told":
            self._end.messages.append(what[0])
        elif kind == "halted":
            act(self)
            self._pipe.send("go on") if not self._end.killed else None
        else:
            self._end.value, self._end.error, self._end.n_writes = what
            return False
        return True

    def _ended(self) -> End:
        _, status = os.waitpid(self.pid, 0)
        self._pipe.close()
        if status == 0:
            self._end.killed = False  # it was done before
        elif not self._end.killed:
            self._end.error = f"died with status {status}; see {self.log_of(self.place)}"
        self._end.seconds = time.monotonic() - self.begun
        return self._end


def run(function: Callable[..., Any], *args: Any, place: Path, **options: Any) -> Any:
    """Return what a function returns in a child that nobody kills; raises `Stuck` if it fails."""
    end = Child(function, *args, place=place, **options).wait()
    if end.error is not None:
        raise Stuck(end.last_line)
    return end.value


def _live(
    pipe: Connection,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    place: Path,
    at: int | None,
    environment: Mapping[str, str],
) -> None:
    """All that a child does; never returns."""
    global _pipe
    _pipe = pipe
    try:
        os.setsid()
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # none outlives the parent
        log = os.open(Child.log_of(place), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for number, fd in enumerate((os.open(os.devnull, os.O_RDONLY), log, log)):
            os.dup2(fd, number)
        os.environ.update({"TMPDIR": str(place), **environment})
        tempfile.tempdir = None
        numbers = itertools.count()

        def react(what: str) -> None:
            if next(numbers) == at:
                print(f"halted before {what}", flush=True)
                with _lock:
                    pipe.send(("halted", what))
                    pipe.recv()

        before_writes(place, react)
        value, error = None, None
        try:
            value = function(*args)
        except BaseException:
            error = traceback.format_exc()
            print(error)
        sys.stdout.flush()
        with _lock:
            pipe.send(("done", value, error, next(numbers)))
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)
