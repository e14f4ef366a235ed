"""What an interrupt left in Zarr's event loop ends with the process, without a word.

This module is imported with each module that uses Zarr's asynchronous stores.
"""

from __future__ import annotations

import asyncio
import atexit
from contextlib import suppress

from zarr.core.sync import loop, sync

_END_SECONDS = 5.0


def _end_tasks() -> None:
    """Cancel the tasks that an interrupt left running in Zarr's loop.

    Zarr closes its loop when the process ends, and asyncio then prints many lines for each task
    left in it. This function is registered after Zarr's own, so it runs before it.
    """
    running = loop[0]
    if running is None or not running.is_running():
        return

    async def cancel() -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    running.set_exception_handler(lambda *_: None)
    with suppress(TimeoutError):  # a thread that hangs keeps its task
        sync(cancel(), timeout=_END_SECONDS)


atexit.register(_end_tasks)
