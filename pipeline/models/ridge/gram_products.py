"""ZᵀZ of blocks of rows, added to a packed triangle of doubles, on all cores and to the same bits.

The triangle is cut into pairs of panels of columns, and the rows into chunks: one product each, in
the working precision and on one thread. What all chunks give is then added up in their order.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ...core.arrays import Floats
from ...execution.blas import add_gram, add_product
from ...execution.pool import even_edges, run_kernel, run_parts
from ...execution.worker_threads import one_blas_thread
from .statistics_kernels import add_panels, add_triangle, unpack_centred

# Columns of a panel, at most. BLAS copies both factors of a product before it multiplies them:
# of 512 columns that takes a fifth of the time, of 1,024 a tenth.
PANEL_FEATURES = 1024
# Chunks of a full block of rows, where there are 1, 2 or 3 panels: about a dozen parts, which are
# enough for eight cores. With more panels the pairs are enough.
CHUNKS = (8, 4, 2)
_SECONDS_PER_SUM = 5e-10  # of two numbers of a large triangle: memory is read
PANEL_STRIPE = 64  # rows of the triangle that one thread adds at a time


class GramProducts:
    """Adds ZᵀZ of blocks of up to ``n_rows`` rows; the memory of one block serves all."""

    def __init__(self, n_features: int, n_rows: int, dtype: DTypeLike) -> None:
        self._dtype, d = np.dtype(dtype), n_features
        n_panels = max(1, -(-d // PANEL_FEATURES))
        edges = [d * i // n_panels for i in range(n_panels + 1)]
        self._edges = np.array(edges)
        self._pairs = [(i, j) for i in range(n_panels) for j in range(i, n_panels)]
        self._chunk_rows = -(-n_rows // _count_chunks(n_panels))
        self._shape = _panels_shape(d)
        self._stripes = [
            (panel, start, min(edges[panel + 1], start + PANEL_STRIPE))
            for panel in range(n_panels)
            for start in range(edges[panel], edges[panel + 1], PANEL_STRIPE)
        ]

    def add(self, packed: Floats, z: NDArray[Any]) -> None:
        """Add ZᵀZ, of z (n, D), to the upper triangle ``packed`` by rows."""
        blocks = self._blocks
        n_chunks = -(-len(z) // self._chunk_rows)

        def multiply(part: int) -> None:
            chunk, pair = divmod(part, len(self._pairs))
            rows = z[chunk * self._chunk_rows : (chunk + 1) * self._chunk_rows]
            panel, other = (rows[:, self._panel(i)] for i in self._pairs[pair])
            out = blocks[pair, chunk, : panel.shape[1], : other.shape[1]].T
            if self._pairs[pair][0] == self._pairs[pair][1]:
                add_gram(panel.T, out)
            else:
                add_product(other.T, panel, out)

        def add_stripe(part: int) -> None:
            add_panels(packed, blocks, self._edges, n_chunks, *self._stripes[part])

        with one_blas_thread():
            run_parts(multiply, n_chunks * len(self._pairs))
        run_parts(add_stripe, len(self._stripes))

    def _panel(self, i: int) -> slice:
        return slice(*self._edges[i : i + 2].tolist())

    @cached_property
    def _blocks(self) -> NDArray[Any]:
        """Memory of the products of panels."""
        return np.empty(self._shape, self._dtype)


def add_upper(packed: Floats, square: Floats) -> None:
    """Add the upper triangle of a matrix (D, D) to one that is packed by rows."""
    n = len(square)
    run_kernel(add_triangle, even_edges((n + 1) // 2, _SECONDS_PER_SUM * n), packed, square)


def unpack_products(packed: Floats, sums: Floats, n_rows: float, shift: float = 0.0) -> Floats:
    """Return packed − sums sumsᵀ / n_rows + shift · I, shape (D, D), in the upper triangle."""
    n = len(sums)
    square = np.empty((n, n))
    edges = even_edges(n, _SECONDS_PER_SUM * n)
    run_kernel(unpack_centred, edges, packed, sums, n_rows, shift, square)
    return square


def gram_bytes(n_features: int, dtype: DTypeLike) -> int:
    """Return the memory of `GramProducts`."""
    return np.dtype(dtype).itemsize * int(np.prod(_panels_shape(n_features)))


def _panels_shape(n_features: int) -> tuple[int, int, int, int]:
    """Return the shape of the products: pairs of panels, chunks of rows, columns of each panel."""
    n_panels = max(1, -(-n_features // PANEL_FEATURES))
    width = -(-n_features // n_panels)
    return n_panels * (n_panels + 1) // 2, _count_chunks(n_panels), width, width


def _count_chunks(n_panels: int) -> int:
    return CHUNKS[n_panels - 1] if n_panels <= len(CHUNKS) else 1
