"""Makes Ctrl-C end a job, even if it is deep inside compiled code."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_GRACE_SECONDS = 10.0
ENDING = (signal.SIGINT, signal.SIGTERM)  # a queue ends a driver by SIGTERM


@contextmanager
def prompt_interrupts(give_up: Callable[[], None]) -> Iterator[None]:
    """Call ``give_up``, which ends the process, if an interrupt has no effect.

    Python raises KeyboardInterrupt between two bytecodes of the main thread. That may be minutes
    late, while a matrix is factorised, or never, if the exception falls into a callback that drops
    it. So a thread watches, and after ten seconds, or at the second Ctrl-C, it gives up waiting.
    The job then leaves what a killed job leaves: whole files, and no commit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    watcher = threading.Thread(target=_watch, args=(reader, give_up), daemon=True)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(writer)
        watcher.join()
        os.close(reader)


def _watch(reader: int, give_up: Callable[[], None]) -> None:
    while number := os.read(reader, 1):
        if number[0] not in ENDING:
            continue
        answered, _, _ = select.select([reader], [], [], _GRACE_SECONDS)
        if not answered or os.read(reader, 1):
            give_up()


@contextmanager
def no_interrupts() -> Iterator[None]:
    """Ignore Ctrl-C during the block, also in processes that are started within it.

    Ctrl-C goes to all processes of the terminal. The job stops its workers itself.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
