"""What the kernels of embeddings compute, by NumPy: for a few bags that is not work for a compiler.

`embedding="auto"` tries many embeddings and takes one. On a small sample, NumPy embeds the bags in
less time than the kernels of all candidates take to be compiled. The functions here take the
arguments of the kernels, and compute in double: they differ from the kernels by rounding alone.
Points that are to be left out ("drop") are the kernels' business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import EitherPrecision, Floats, Integers
from ..bases.projection_kernels import COSINE, PROJECTIONS
from ..launching import substitutes
from .hdd_kernels import POWERS
from .mean_map_kernels import MEAN_MAPS
from .moments_kernels import moments
from .same_bits import (
    INTERMEDIATE_NUMBERS,
    count_outside,
    moments_by_arrays,
    quantiles_by_arrays,
    scaled,
)
from .sliced_kernels import sliced_quantiles
from .spread_kernels import spread_bags

_MAX_POINTS = 200_000  # largest sample that is embedded by arrays; times the coordinates beyond ten
_MANY_DIMS = 10
# of sin x / x − 1 in powers of x², the last one first: what follows is below 1e-16 up to π/4
SINE_SERIES = [(-1.0) ** k / factorial(2 * k + 1) for k in range(7, 0, -1)]


def is_small(n_points: int, n_dims: int) -> bool:
    """Return whether so many points are embedded by arrays, where a choice is made."""
    return n_points * max(1.0, n_dims / _MANY_DIMS) <= _MAX_POINTS


@contextmanager
def by_arrays(small: bool) -> Iterator[None]:
    """Embed bags by NumPy until the block ends, if they are ``small``."""
    token = substitutes.set(_FUNCTIONS if small else None)
    try:
        yield
    finally:
        substitutes.reset(token)


def _mean_map(
    begin: int,
    end: int,
    points: EitherPrecision,
    offsets: Integers,
    groups: Integers,
    lo: Floats,
    inverse: Floats,
    drop: bool,
    margin: float,
    turns: NDArray[Any],
    out: NDArray[Any],
    n_outside: Integers,
) -> None:
    unit, edges, beyond = scaled(begin, end, points, offsets, lo, inverse, margin=margin)
    n_outside[begin:end] = count_outside(beyond[:, groups[0]], edges)
    unit, rates = unit[:, groups[0]], turns[: groups.shape[1]].astype(np.float64)
    n_frequencies = turns.shape[1]
    for i, (start, stop) in enumerate(pairwise(edges), begin):
        sums = np.zeros((2, n_frequencies))
        for first, last in _blocks(start, stop, n_frequencies):
            sums += sums_of_sines_cosines(unit[first:last] @ rates)
        out[i] = sums.ravel() / ((stop - start) * np.sqrt(n_frequencies))


def _cosine_projection(
    begin: int,
    end: int,
    points: EitherPrecision,
    offsets: Integers,
    groups: Integers,
    lo: Floats,
    inverse: Floats,
    drop: bool,
    squared: bool,
    n_functions: int,
    prefixes: Integers,
    counts: Integers,
    changed: Integers,
    scales: Floats,
    out: NDArray[Any],
    n_outside: Integers,
) -> None:
    unit, edges, beyond = scaled(begin, end, points, offsets, lo, inverse, out.dtype)
    n_outside[begin:end] = _most(beyond, edges, groups)
    # a few of many coordinates, as for the marginals of one bandwidth: no table of the others
    taken, places = np.unique(groups, return_inverse=True)
    unit, groups = unit[:, taken], np.asarray(places, np.int64).reshape(-1, groups.shape[1])
    if groups.shape[1] == 1:
        columns = groups[:, 0]
        for i, (start, stop) in enumerate(pairwise(edges), begin):
            sums = cosine_sums(unit[start:stop].T, n_functions, squared)
            out[i] = (sums[columns] * (scales / (stop - start))).ravel()
        return
    half_turns = np.arange(n_functions)[:, None, None] / 2
    chosen = np.arange(n_functions) < counts[:, None]

    def tables_of(first: int, last: int) -> Floats:
        """Return cos(kπx), shape (K, points, d)."""
        turns = half_turns * unit[first:last]
        turns -= np.rint(turns)
        turns *= 2 * np.pi
        tables: Floats = np.cos(turns, out=turns)
        return np.square(tables, out=tables) if squared else tables

    size = n_functions * max(unit.shape[1], len(prefixes))
    for i, (start, stop) in enumerate(pairwise(edges), begin):
        sums = np.zeros((len(groups), len(scales)))
        for first, last in _blocks(start, stop, size):
            tables = tables_of(first, last)
            for group, columns in enumerate(groups):
                products = tables[prefixes[:, 0], :, columns[0]]
                for level, column in enumerate(columns[1:-1], 1):
                    products = products * tables[prefixes[:, level], :, column]
                sums[group] += (products @ tables[:, :, columns[-1]].T)[chosen]
        out[i] = (sums * (scales / (stop - start))).ravel()


def cosine_sums(unit: Floats, n_functions: int, squared: bool) -> Floats:
    """Return sums of cos(kπx), or of its square, over points (d, n), for each k: shape (d, K).

    With k = ua + b, cos kθ = cos uaθ cos bθ − sin uaθ sin bθ: sums over points are products of
    matrices of √K functions each. A square is (1 + cos 2kθ) / 2.
    """
    n_fine = int(np.ceil(np.sqrt(n_functions)))
    fine, coarse = np.arange(n_fine), n_fine * np.arange(-(-n_functions // n_fine))
    half_turns = unit if squared else unit / 2
    sums = np.zeros((len(unit), len(coarse), n_fine))
    for first, last in _blocks(0, unit.shape[1], 4 * n_fine * len(unit)):
        turns = half_turns[:, None, first:last]
        sine, cosine = sines_and_cosines(fine[:, None] * turns)
        coarse_sine, coarse_cosine = sines_and_cosines(coarse[:, None] * turns)
        sums += coarse_cosine @ cosine.swapaxes(1, 2) - coarse_sine @ sine.swapaxes(1, 2)
    of_all: Floats = sums.reshape(len(unit), -1)[:, :n_functions]
    return (unit.shape[1] + of_all) / 2 if squared else of_all


def _spread(
    begin: int,
    end: int,
    points: EitherPrecision,
    offsets: Integers,
    groups: Integers,
    lo: Floats,
    inverse: Floats,
    drop: bool,
    n_grid: int,
    squares: NDArray[Any],
    scale: float,
    out: NDArray[Any],
    n_outside: Integers,
) -> None:
    unit, edges, beyond = scaled(begin, end, points, offsets, lo, inverse, out.dtype)
    n_outside[begin:end] = _most(beyond, edges, groups)
    half, g = len(squares) - 1, groups.shape[1]
    rate, rows = -np.log(np.float64(squares[1])), np.arange(2 * half)

    def weights_of(first: int, last: int) -> Floats:
        """Return what each midpoint has of points, mirrored at the edges, shape (points, d, G)."""
        at = unit[first:last] * n_grid - 0.5
        below = np.floor(at)
        gaps = (at - below)[..., None] + (half - 1 - rows)
        padded = np.zeros((*at.shape, n_grid + 2 * half))
        places = (below.astype(np.int64) + 1)[..., None] + rows
        np.put_along_axis(padded, places, np.exp(-rate * gaps**2), axis=-1)
        inner: Floats = padded[..., half:-half]
        inner[..., :half] += padded[..., :half][..., ::-1]
        inner[..., -half:] += padded[..., -half:][..., ::-1]
        return inner

    size = max((n_grid + 2 * half) * unit.shape[1], n_grid ** max(1, g - 1))
    for i, (start, stop) in enumerate(pairwise(edges), begin):
        sums = np.zeros((len(groups), n_grid**g))
        for first, last in _blocks(start, stop, size):
            weights = weights_of(first, last)
            if g == 1:
                sums += weights.sum(axis=0)[groups[:, 0]]
                continue
            for group, columns in enumerate(groups):
                products = weights[:, columns[0]]
                for column in columns[1:-1]:
                    products = (products[:, :, None] * weights[:, column, None]).reshape(
                        last - first, -1
                    )
                sums[group] += (products.T @ weights[:, columns[-1]]).ravel()
        out[i] = sums.ravel() * (scale / (stop - start))


def _powers(
    begin: int,
    end: int,
    estimates: NDArray[Any],
    g: int,
    n_coefficients: int,
    n_grid: int,
    n_functions: int,
    to_grid: NDArray[Any],
    to_grid_t: NDArray[Any],
    from_grid: NDArray[Any],
    from_grid_t: NDArray[Any],
    floor: float,
    exponent: float,
    rates: NDArray[Any],
    weights: NDArray[Any],
    n_parts: int,
    chosen: Integers,
    out: NDArray[Any],
) -> None:
    back = from_grid.reshape(n_grid, n_functions)
    for first, last in _blocks(begin, end, n_grid**g):
        values: Floats = estimates[first:last].reshape(-1, *(n_coefficients or n_grid,) * g)
        if n_coefficients:
            values = _separable(values, to_grid.reshape(n_coefficients, n_grid))
        density = np.maximum(values, floor)
        roots = np.sqrt(density) if exponent == 0.5 else density**exponent
        turns = np.log(density) / (2 * np.pi) if rates.any() else density
        parts: list[Floats] = []
        for rate, weight in zip(rates.tolist(), weights.tolist(), strict=True):
            if rate == 0:
                parts.append(weight * roots)
            else:
                sine, cosine = sines_and_cosines(rate * turns)
                parts += [weight * roots * cosine, weight * roots * sine]
        projected = [_separable(part, back).reshape(last - first, -1) for part in parts]
        out[first:last] = np.concatenate([row[:, chosen] for row in projected], axis=1)


_FUNCTIONS: dict[Callable[..., None], Callable[..., None]] = {
    moments: moments_by_arrays,
    sliced_quantiles: quantiles_by_arrays,
    PROJECTIONS[COSINE]: _cosine_projection,
    spread_bags: _spread,
    **dict.fromkeys(MEAN_MAPS.values(), _mean_map),
    **dict.fromkeys(POWERS.values(), _powers),
}


def _most(beyond: NDArray[np.bool_], edges: Integers, groups: Integers) -> Integers:
    """Return the points of each bag outside the box, in the group where they are most."""
    if not beyond.any():
        return np.zeros(len(edges) - 1, np.int64)
    each = [count_outside(beyond[:, columns], edges) for columns in groups]
    return np.asarray(np.max(each, axis=0))


def _blocks(start: int, stop: int, width: int) -> Iterator[tuple[int, int]]:
    """Cut a range of rows of so many numbers into blocks that fit a cache."""
    step = max(1, INTERMEDIATE_NUMBERS // width)
    for first in range(start, stop, step):
        yield first, min(first + step, stop)


def sines_and_cosines(turns: Floats) -> tuple[Floats, Floats]:
    """Return sin(2πt) and cos(2πt): one sine, of a quarter of the angle, and a root."""
    s, squares = _quarter_sine(turns)
    half_sine = np.sqrt(1 - squares)
    half_sine *= s
    half_sine *= 2
    squares *= -2
    squares += 1  # the cosine of half the angle
    sine = half_sine * squares
    sine *= 2
    half_sine *= half_sine
    half_sine *= -2
    half_sine += 1
    return sine, half_sine


def sums_of_sines_cosines(turns: Floats) -> Floats:
    """Return sums of sin(2πt) and of cos(2πt) over rows of turns (n, D), shape (2, D).

    With s and c of a quarter of the angle they are 4 Σ sc(1 − 2s²) and n − 8 Σ s²c².
    """
    s, squares = _quarter_sine(turns)
    rest = 1 - squares
    cosines = len(turns) - 8 * np.einsum("ij,ij->j", squares, rest)
    products = np.sqrt(rest, out=rest)
    products *= s
    squares *= -2
    squares += 1
    return np.stack([4 * np.einsum("ij,ij->j", products, squares), cosines])


def _quarter_sine(turns: Floats) -> tuple[Floats, Floats]:
    """Return sin(2πt / 4) and its square, of whole turns left out.

    A quarter is at most π/4, where the root of 1 − sin² has as many digits as the sine. There its
    series is exact to rounding, and takes a third of the time of `numpy.sin`.
    """
    quarter = np.rint(turns)
    np.subtract(turns, quarter, out=quarter)
    quarter *= np.pi / 2
    squares = quarter * quarter
    series = SINE_SERIES[0] * squares
    for coefficient in SINE_SERIES[1:]:
        series += coefficient
        series *= squares
    series *= quarter
    s = np.add(quarter, series, out=quarter)
    return s, np.multiply(s, s, out=squares)


def _separable(tensors: Floats, matrix: NDArray[Any]) -> Floats:
    """Apply a matrix (a, b) to every axis of tensors, shape (n, a, …, a), but the first."""
    for _ in range(tensors.ndim - 1):
        tensors = np.tensordot(tensors, matrix, (1, 0))
    return tensors
