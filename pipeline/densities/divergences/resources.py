"""Threads and memory of one matrix of bags by bags: its columns, its blocks, its limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

from numpy.typing import NDArray

from ...core import Integer, None_
from ...core.annotations import Progress
from ...core.arrays import Floats, Integers
from ...core.errors import DataError
from ...execution.memory import available_memory
from ...execution.worker_threads import one_blas_thread, worker_cores

BLOCK_POINTS = 1 << 16  # points of a block of whole bags in each thread: some MiB of distances


def for_each(task: Callable[[int], None], n: int, done: Callable[[], None]) -> None:
    """Run ``task(0) … task(n - 1)`` on threads; this thread calls ``done`` after each of them.

    The first exception cancels the tasks that have not begun.
    """
    # set here: OpenBLAS does not always respect limits that are set in the threads that call it
    with one_blas_thread():
        pool = ThreadPoolExecutor(worker_cores(), thread_name_prefix="divergences")
        try:
            for future in as_completed([pool.submit(task, i) for i in range(n)]):
                future.result()
                done()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


class PairCount:
    """Progress of a matrix, in pairs of bags."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._total, self._done, self._progress = total, 0, progress
        self.add(0)

    def add(self, n_pairs: int) -> None:
        """Count pairs of bags that are done, and report the total."""
        self._done += n_pairs
        if self._progress is not None:
            self._progress(self._done, self._total)


def bag_blocks(
    sizes: Integers, max_points: int = BLOCK_POINTS, same_size: bool = False
) -> Iterator[tuple[int, int]]:
    """Yield ranges (first bag, last bag + 1) of up to ``max_points`` points or of a single bag.

    With ``same_size``, all bags of a range have the same size.
    """
    start, points = 0, 0
    for i, size in enumerate(sizes.tolist()):
        full = points + size > max_points or (same_size and size != sizes[start])
        if i > start and full:
            yield start, i
            start, points = i, 0
        points += size
    if start < len(sizes):
        yield start, len(sizes)


def add_own(matrix: Floats, rows: NDArray[Any], columns: NDArray[Any]) -> None:
    """Add rows_i + columns_j in place; a symmetric matrix stays exactly symmetric."""
    for row, own in zip(matrix, rows, strict=True):
        row += own + columns


def require_memory(what: str, n_bytes: int, advice: str, max_bytes: int | None = None) -> None:
    """Raise an error if work needs more memory than there is.

    Parameters
    ----------
    what : str
        Name of the work with its size, for the message.
    n_bytes : int
        Memory needed, for the result and the working copies.
    advice : str
        Advice, for the message.
    max_bytes : int, optional
        Largest memory that may be used. Default: `available_memory`.

    Raises
    ------
    DataError
        If ``n_bytes`` is above the limit.
    ParameterError
        If ``max_bytes`` is not a positive integer.
    """
    checked_limit = (Integer(1) | None_).check("max_bytes", max_bytes)
    limit = available_memory() if checked_limit is None else checked_limit
    if n_bytes > limit:
        allowed = "are available" if max_bytes is None else "are allowed (max_bytes)"
        raise DataError(
            f"{what} needs {n_bytes:,} bytes ({n_bytes / 2**30:.1f} GiB) and {limit:,} bytes "
            f"({limit / 2**30:.1f} GiB) {allowed}; {advice}"
        )
