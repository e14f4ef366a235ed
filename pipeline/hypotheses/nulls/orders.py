"""Permutations of the second of two paired samples that are equally likely under independence."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...core.arrays import Integers
from ...core.errors import DataError
from .draws import generator_of

_VALUES_PER_BLOCK = 2**22  # of orders in memory at a time: 32 MiB


def permuted_orders(
    units: Integers, n_orders: int, seed: int, strata: Integers | None = None
) -> Iterator[Integers]:
    """Yield blocks (m, n) of random permutations that move whole units.

    A unit is exchanged only with units of the same size. Each row keeps its position in its unit,
    and every permutation is as likely as the observed order.

    Parameters
    ----------
    units : int64, shape (n,)
        The unit of each row.
    strata : int64, shape (n,), optional
        Stratum of each row, the same for all rows of a unit. Units are exchanged within their
        stratum only.

    Raises
    ------
    DataError
        If no two units (of the same stratum) have the same size.
    """
    generator = generator_of(seed, "orders")
    sizes = np.bincount(units)
    by_unit = np.argsort(units, kind="stable")
    starts = np.cumsum(sizes) - sizes
    stratum = np.zeros_like(sizes)
    if strata is not None:
        stratum[units] = strata
    alike = []
    for size, of in np.unique(np.column_stack([sizes, stratum])[sizes > 0], axis=0):
        members = np.flatnonzero((sizes == size) & (stratum == of))
        if len(members) > 1:
            alike.append(by_unit[starts[members, None] + np.arange(size)])
    if not alike:
        where = "" if strata is None else " within one label"
        raise DataError(
            f"no two groups{where} have as many rows, so that none can trade places with another"
        )
    n = len(units)
    for count in _blocks(n, n_orders):
        block = np.tile(np.arange(n), (count, 1))
        for order in block:
            for rows in alike:
                order[rows] = generator.permutation(rows)
        yield block


def shifted_orders(n: int, n_orders: int, seed: int) -> Iterator[Integers]:
    """Yield blocks (m, n) of rotations of a series, drawn without repeats from all n − 1.

    A rotation preserves the autocorrelation of a series, which random permutations destroy.
    """
    shifts = generator_of(seed, "orders").permutation(np.arange(1, n))[:n_orders]
    rows, done = np.arange(n), 0
    for count in _blocks(n, len(shifts)):
        yield (rows + shifts[done : done + count, None]) % n
        done += count


def _blocks(n: int, n_orders: int) -> Iterator[int]:
    step = max(1, _VALUES_PER_BLOCK // n)
    return (min(step, n_orders - start) for start in range(0, n_orders, step))
