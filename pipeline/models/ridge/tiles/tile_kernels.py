# mypy: disallow-untyped-defs=False
"""Kernels of float32 products by tiles of 16-bit floats: rows are split, packed and multiplied."""

from __future__ import annotations

import numpy as np

from ....core.compiling import kernel, subkernel
from .instructions import (
    ROW_BYTES,
    clear_tile,
    configure_tiles,
    load_tile,
    multiply_tiles,
    release_tiles,
    store_tile,
)

SIDE = 16  # of a tile of float32: features
DEPTH = 32  # of a tile of bfloat16: rows of features
TILE_BYTES = 1024
# Features on the right that stay in a core's cache (512 KiB with 1,024 rows) while all others pass.
PANEL = 128 // SIDE

_HALF, _UPPER = np.uint32(0x8000), np.uint32(0xFFFF0000)
_LOWER = np.uint32(16)  # bits


@kernel()  # a test runs its caller as Python
def _split_pair(values, bits, high, low):
    """Split two rows of 16 numbers into pairs of bfloat16: a high and a low part.

    Both parts together have 16 bits of each number. values and bits are the same memory, float32
    and uint32 (2, 16), and are overwritten.
    """
    for j in range(SIDE):
        first, second = (bits[0, j] + _HALF) & _UPPER, (bits[1, j] + _HALF) & _UPPER
        high[j] = (first >> _LOWER) | second
    for row in range(2):
        for j in range(SIDE):
            whole = values[row, j]
            bits[row, j] = (bits[row, j] + _HALF) & _UPPER
            values[row, j] = whole - values[row, j]
    for j in range(SIDE):
        first, second = (bits[0, j] + _HALF) & _UPPER, (bits[1, j] + _HALF) & _UPPER
        low[j] = (first >> _LOWER) | second


@kernel()
def _transpose(tile, out):
    for i in range(SIDE):
        for j in range(SIDE):
            out[i, j] = tile[j, i]


@kernel()
def pack_rows(begin, end, z, centre, left, right, sums, scratch, scratch_bits):
    """Split rows less their centre, and lay them out as tiles.

    Parameters
    ----------
    begin, end : int
        The steps, of DEPTH rows each, that are packed.
    z : float32, shape (n, D)
    centre : float32, shape (padded D,)
    left, right : uint32, shape (2, padded D / 16, at least padded n / 32, 16, 16), written
        High and low parts; of the tiles of 16 features and 32 rows, features are the rows of a
        tile on the left, and the columns of one on the right. Two rows of z make a uint32.
    sums : float64, shape (padded n / 32, padded D), written
        Of z less the centre over the rows of each tile.
    scratch : float32, shape (at least padded n / 32, 2, 16), written
    scratch_bits : uint32
        The same memory.
    """
    n, d = z.shape
    for step in range(begin, end):
        values, bits = scratch[step], scratch_bits[step]
        for group in range(left.shape[1]):
            begin = group * SIDE
            width = min(SIDE, d - begin)
            middle, total = centre[begin : begin + SIDE], sums[step, begin : begin + SIDE]
            for j in range(SIDE):
                total[j] = 0.0
            for pair in range(SIDE):
                for row in range(2):
                    at = step * DEPTH + 2 * pair + row
                    filled = width if at < n else 0
                    for j in range(filled):
                        values[row, j] = z[at, begin + j] - middle[j]
                        total[j] += values[row, j]
                    for j in range(filled, SIDE):
                        values[row, j] = 0.0
                high, low = right[0, group, step, pair], right[1, group, step, pair]
                _split_pair(values, bits, high, low)
            for part in range(2):
                _transpose(right[part, group, step], left[part, group, step])


@subkernel(inline="always")
def _load_left(address, to_group):
    load_tile(4, address, ROW_BYTES)
    load_tile(5, address + to_group, ROW_BYTES)


@subkernel(inline="always")
def _load_right(address, to_group):
    load_tile(6, address, ROW_BYTES)
    load_tile(7, address + to_group, ROW_BYTES)


@subkernel(inline="always")
def _multiply_loaded():
    """Add the products of two groups on the left with two on the right to the first four tiles."""
    multiply_tiles(0, 4, 6)
    multiply_tiles(1, 4, 7)
    multiply_tiles(2, 5, 6)
    multiply_tiles(3, 5, 7)


@subkernel()
def _multiply_block(left, right, to_low, to_group, n_steps, out):
    """Write the products of two groups of features on each side, float32 (32, 32).

    left, right and out are addresses; ``to_low`` bytes after a high part is its low part,
    ``to_group`` after it the next group. The products with low parts are small, and so they are
    added up first.
    """
    clear_tile(0)
    clear_tile(1)
    clear_tile(2)
    clear_tile(3)
    for step in range(n_steps):
        a, b = left + step * TILE_BYTES, right + step * TILE_BYTES
        _load_right(b + to_low, to_group)
        _load_left(a, to_group)
        _multiply_loaded()
        _load_left(a + to_low, to_group)
        _multiply_loaded()
        _load_right(b, to_group)
        _multiply_loaded()
    for step in range(n_steps):
        a, b = left + step * TILE_BYTES, right + step * TILE_BYTES
        _load_left(a, to_group)
        _load_right(b, to_group)
        _multiply_loaded()
    store_tile(0, out, 128)
    store_tile(1, out + 64, 128)
    store_tile(2, out + 2048, 128)
    store_tile(3, out + 2112, 128)


@subkernel()
def _add_panel(left, right, n_steps, first, shapes, block, square):
    """Add the products of all features with those of a panel that begins at group ``first``."""
    d, n_groups = len(square), left.shape[1]
    to_group = left.shape[2] * TILE_BYTES
    to_low = n_groups * to_group
    configure_tiles(shapes.ctypes.data)
    last = min(n_groups, first + PANEL)
    for i in range(0, last, 2):
        for j in range(max(first, i), last, 2):
            a, b = left.ctypes.data + i * to_group, right.ctypes.data + j * to_group
            _multiply_block(a, b, to_low, to_group, n_steps, block.ctypes.data)
            begin, width = j * SIDE, min(2 * SIDE, d - j * SIDE)
            for row in range(min(2 * SIDE, d - i * SIDE)):
                target, source = square[i * SIDE + row, begin : begin + width], block[row]
                for column in range(width):
                    target[column] += source[column]
    release_tiles()


@kernel()
def add_products(begin, end, left, right, n_steps, shapes, blocks, square):
    """Add the products of packed rows to the upper triangle of ``square``.

    Parameters
    ----------
    begin, end : int
        The pairs of panels that are multiplied, a long and a short one: equal work per pair.
    left, right : uint32, shape (2, groups, steps, 16, 16)
        As `pack_rows` writes them; an even number of groups; 64 divides their addresses.
    n_steps : int
        Of them, that are filled.
    shapes : uint8, shape (64,)
        See `tile_shapes`.
    blocks : float32, shape (panels, 32, 32)
        Scratch; 64 divides its address.
    square : float32, shape (D, D)
        What is below the diagonal is left in any state.
    """
    n_panels = len(blocks)
    for pair in range(begin, end):
        block = blocks[pair]
        _add_panel(left, right, n_steps, pair * PANEL, shapes, block, square)
        other = n_panels - 1 - pair
        if other > pair:
            _add_panel(left, right, n_steps, other * PANEL, shapes, block, square)
