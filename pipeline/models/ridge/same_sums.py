"""Sums of packed triangles by NumPy, to the bits of their kernels in `statistics_kernels`.

They stand in for the kernels until these are worth compiling, see `core.compiling`: each number is
the same expression of the same numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Floats, Integers


def add_triangle_by_arrays(begin: int, end: int, packed: Floats, square: Floats) -> None:
    """Write what the kernel `add_triangle` writes."""
    n = len(square)
    for pair in range(begin, end):
        for i in {pair, n - 1 - pair}:
            start = _row_start(i, n)
            packed[start : start + n - i] += square[i, i:]


def add_panels_by_arrays(
    packed: Floats,
    blocks: NDArray[Any],
    edges: Integers,
    n_chunks: int,
    panel: int,
    start: int,
    stop: int,
) -> None:
    """Write what the kernel `add_panels` writes."""
    n_panels, n = len(edges) - 1, int(edges[-1])
    for other in range(panel, n_panels):
        products = blocks[_row_start(panel, n_panels) + other - panel]
        for i in range(start, stop):
            first = i if other == panel else int(edges[other])
            columns = slice(first - int(edges[other]), int(edges[other + 1] - edges[other]))
            begin = _row_start(i, n) + first - i
            target = packed[begin : begin + columns.stop - columns.start]
            for source in products[:n_chunks, i - edges[panel], columns]:
                target += source


def unpack_centred_by_arrays(
    begin: int,
    end: int,
    packed: Floats,
    sums: Floats,
    n_rows: float,
    shift: float,
    square: Floats,
) -> None:
    """Write what the kernel `unpack_centred` writes."""
    n = len(square)
    means = sums / n_rows
    for i in range(begin, end):
        start = _row_start(i, n)
        row = square[i, i:]
        np.multiply(means[i], sums[i:], out=row)
        np.subtract(packed[start : start + n - i], row, out=row)
        row[0] += shift


def _row_start(i: int, n: int) -> int:
    return i * n - i * (i - 1) // 2
