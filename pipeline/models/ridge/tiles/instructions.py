# mypy: disallow-untyped-defs=False
"""Instructions that multiply tiles of 16-bit floats, for Numba's kernels: AMX of Intel's Xeons.

A core has eight tiles of 16 rows of 64 bytes: 32 bfloat16 or 16 float32. It multiplies two of the
former into one of the latter in 16 cycles, 32 times as many products as its float32 units make.
Tiles are selected by compile-time numbers, memory by raw addresses. A
thread says first what its tiles look like (`configure_tiles`), and in the end that it has done.
"""

from __future__ import annotations

import platform
import sys
from functools import cache

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import config
from numba.core.cgutils import get_or_insert_function
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from ....core.systems import c_library

ROWS = 16  # of a tile
ROW_BYTES = 64
N_TILES = 8
# Linux gives tiles to processes that ask for them: a system call, its request, and for what.
ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA = 158, 0x1023, 18

_BYTE, _WORD = ir.IntType(8), ir.IntType(64)
_ADDRESS = _BYTE.as_pointer()


@cache
def has_tiles() -> bool:
    """Return whether this machine has these instructions, and lets this process use them."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    if config.DISABLE_JIT:  # type: ignore[attr-defined]  # which numba sets by its name
        return False
    instructions = cpu_target.target_context.codegen().magic_tuple()[2].split(",")
    if "+amx-bf16" not in instructions:  # of the machine, or of NUMBA_CPU_FEATURES
        return False
    library = c_library()
    assert library is not None, "Linux has one"
    return bool(library.syscall(ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA) == 0)


def tile_shapes():
    """Return what `configure_tiles` reads, uint8 (64,): palette 1, and whole tiles."""
    shapes = np.zeros(64, np.uint8)
    shapes[0] = 1
    shapes[16 : 16 + 2 * N_TILES].view(np.uint16)[:] = ROW_BYTES
    shapes[48 : 48 + N_TILES] = ROWS
    return shapes


def _instruction(name, n_tiles, n_words=0):
    """Return the typing and the code of one: so many tiles, then an address and other words."""

    def typed(tiles, words):
        def code(context, builder, _, given):
            values = [ir.Constant(_BYTE, tile.literal_value) for tile in tiles]
            if n_words:
                values += [builder.inttoptr(given[n_tiles], _ADDRESS), *given[n_tiles + 1 :]]
            kinds = [_BYTE] * n_tiles + [_ADDRESS, _WORD][:n_words]
            kind = ir.FunctionType(ir.VoidType(), kinds)
            builder.call(get_or_insert_function(builder.module, kind, f"llvm.x86.{name}"), values)
            return context.get_dummy_value()

        return types.void(*tiles, *words), code

    return typed


@intrinsic
def configure_tiles(_, shapes):
    """Take the shapes of tiles from an address."""
    return _instruction("ldtilecfg", 0, 1)((), (shapes,))


@intrinsic
def release_tiles(_):
    """End the use of tiles by this thread."""
    return _instruction("tilerelease", 0)((), ())


@intrinsic(prefer_literal=True)
def clear_tile(_, tile):
    """Set a tile to zero."""
    return _instruction("tilezero", 1)((tile,), ())


@intrinsic(prefer_literal=True)
def load_tile(_, tile, address, stride):
    """Read a tile's rows, ``stride`` bytes apart; three times as fast where 64 divides both."""
    return _instruction("tileloadd64", 1, 2)((tile,), (types.intp, types.intp))


@intrinsic(prefer_literal=True)
def store_tile(_, tile, address, stride):
    """Write a tile's rows, ``stride`` bytes apart."""
    return _instruction("tilestored64", 1, 2)((tile,), (types.intp, types.intp))


@intrinsic(prefer_literal=True)
def multiply_tiles(_, total, left, right):
    """Add left · right to the float32 tile ``total``, of bfloat16 pairs.

    left holds row i's pair p at (i, p), right column j's pair p at (p, j).
    """
    return _instruction("tdpbf16ps", 3)((total, left, right), ())
