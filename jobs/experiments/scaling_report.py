"""The tables of `scaling`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagbasis.regression.statistics import BLOCK_BYTES, BLOCK_ROWS

from .experiment import Result, Table, measured
from .scaling_measures import Size
from .timing import upper_exponent

Floats = NDArray[np.float64]

NAMES = {
    "N": "bags N",
    "D": "random features D",
    "n": "points a bag n",
    "d": "dimensions d",
    "s": "functions s = |V|",
}
MEMORY_OVER = ("n", "d", "s")  # beside N and D
MIB = 2**20


@dataclass(frozen=True)
class Ladder:
    """Fits that differ in one variable.

    Attributes
    ----------
    sizes, fit, solve, model : shape (m,)
        Values of the variable; CPU seconds of the whole fit and of its solve alone; seconds of the
        pass by the cost model.
    """

    sizes: Floats
    fit: Floats
    solve: Floats
    model: Floats

    @property
    def passes(self) -> Floats:
        """CPU seconds of a fit without its solve."""
        return self.fit - self.solve

    def upper_exponent(self, seconds: Floats) -> float:
        """Fitted to the upper half of the sizes, where what is fixed matters least."""
        return upper_exponent(self.sizes, seconds)


def ladder(results: Sequence[Result], middle: Size, name: str) -> Ladder:
    """The fits that differ from the middle in one variable alone, in its order."""
    solve = {r.point.params["D"]: r.values["one"] for r in measured(results, "solve")}
    others = {key: value for key, value in middle.params.items() if key != name}
    found = [
        (r.point.params[name], r.values["fit"], solve[r.point.params["D"]], r.values["model"])
        for r in measured(results, "fit")
        if all(r.point.params[key] == value for key, value in others.items())
    ]
    return Ladder(*np.array(sorted(found), dtype=float).T)


def time_tables(results: Sequence[Result], middle: Size) -> list[Table]:
    """Exponents of all variables, then the seconds they come from."""
    columns = ["varied", "from", "to", "fitted over", "fit, measured", "without its solve",
               "cost model"]  # fmt: skip
    rows: list[list[Any]] = []
    seconds: list[list[Any]] = []
    for name, text in NAMES.items():
        at = ladder(results, middle, name)
        upper = at.sizes[len(at.sizes) // 2 :]
        rows.append([
            text, int(at.sizes[0]), int(at.sizes[-1]), f"{upper[0]:,.0f} … {upper[-1]:,.0f}",
            *(at.upper_exponent(values) for values in (at.fit, at.passes, at.model)),
        ])  # fmt: skip
        for i, value in enumerate(at.sizes):
            ratio = at.passes[i] / at.model[i]
            values = [float(v[i]) for v in (at.fit, at.solve, at.model)]
            seconds.append([name, int(value), *values, float(ratio)])
    exponents = Table(
        "Exponents of one fit's time, upper half of each ladder", columns, rows, _time_remarks()
    )
    names = ["varied", "value", "fit (s)", "of that, solve (s)", "pass by the cost model (s)",
             "pass, measured / model"]  # fmt: skip
    return [exponents, Table("CPU seconds of one fit on one core", names, seconds, [
        f"In the middle: {_text(middle)}. The least of "
        f"{measured(results, 'fit')[0].point.params['n_rounds']} fits each.",
        _ratio_remark(seconds),
        *_gcv_remark(results),
    ])]  # fmt: skip


def _time_remarks() -> list[str]:
    return [
        "Seconds are CPU seconds of this process on one core, reading and decoding included: on a "
        "machine that is shared they say what wall seconds do not. The solve is a Cholesky "
        "decomposition (one penalty), measured alone; the cost model (`pass_seconds`) has no "
        "solve, sines and cosines (∝ N D) or decoding (∝ N n d), for it only cuts fits into tasks: "
        "it needs the right order.",
        "Exponents below one are those of sums: what does not grow with the variable, or grows "
        "slower, is still part of the time. Those of d come from its largest values alone, with s "
        "kept the same.",
    ]


def _ratio_remark(rows: Sequence[Sequence[Any]]) -> str:
    """Where the cost model is furthest from what was measured."""
    low, high = (f(rows, key=lambda row: row[-1]) for f in (min, max))
    return (
        f"A pass takes {low[-1]:.2f} ({low[0]} = {low[1]:,}) to {high[-1]:.2f} ({high[0]} = "
        f"{high[1]:,}) times what the cost model says; tasks are longer or shorter by as much."
    )


def _gcv_remark(results: Sequence[Result]) -> list[str]:
    solves = [r for r in measured(results, "solve") if "gcv" in r.values]
    text = "; ".join(
        f"D = {r.point.params['D']:,}: {r.values['gcv']:.3g} s against {r.values['one']:.3g} s"
        for r in solves
    )
    return [f"A solve by GCV over a grid is one eigendecomposition instead: {text}."]


def memory_over(results: Sequence[Result], name: str) -> tuple[Floats, Floats, Floats]:
    """Sizes, and least and largest peaks in bytes, over "N" or "D"."""
    found = [
        (r.point.params[name], r.values["least"], r.values["largest"])
        for r in measured(results, "memory")
        if r.point.params["over"] == name
    ]
    sizes, least, largest = np.array(sorted(found), dtype=float).T
    return sizes, least, largest


def block_bytes(n_features: int) -> int:
    """Of the float32 block of rows that goes through one SYRK."""
    return 4 * n_features * int(np.clip(BLOCK_BYTES // (4 * n_features), 64, BLOCK_ROWS))


def memory_tables(results: Sequence[Result]) -> list[Table]:
    """Peaks over N, and over D with what of them is the block of rows."""
    bags, least, peaks = memory_over(results, "N")
    n = next(r for r in measured(results, "memory") if r.point.params["over"] == "N").point.params
    bytes_a_bag = 4 * n["n"] * n["d"]
    flat = Table(
        "Peak of the arrays of one fit over N",
        ["N", "points in the store (MiB)", "least peak (MiB)", "largest (MiB)"],
        [
            [int(N), N * bytes_a_bag / MIB, a / MIB, b / MIB]
            for N, a, b in zip(bags, least, peaks, strict=True)
        ],
        [
            f"D = {n['D']:,}, n = {n['n']:,}, d = {n['d']}. As `tracemalloc` has it: what numpy "
            "allocates, without the interpreter, code and caches of libraries. Points are read by "
            "partitions of 32 MiB, of which one is worked on while the next is decoded; where the "
            "store has not three of them the peak is lower. From the last N but one to the last "
            f"the least peak changes by a factor {least[-1] / least[-2]:.3f}, the largest by "
            f"{peaks[-1] / peaks[-2]:.3f} (fits each: {n['n_rounds']}); in the upper half the "
            f"least is ∝ N^{upper_exponent(bags, least):.2f}. Fits of one size "
            "differ, probably by what the decoding threads hold when the work's peak comes.",
        ],
    )
    features, _, peaks = memory_over(results, "D")
    blocks = np.array([block_bytes(int(D)) for D in features], dtype=float)
    rest = peaks - blocks
    squares = Table(
        "Peak of the arrays of one fit over D",
        ["D", "peak (MiB)", "of that, block of rows (MiB)", "rest (MiB)", "rest / D² (bytes)"],
        [
            [int(D), p / MIB, b / MIB, r / MIB, r / D**2]
            for D, p, b, r in zip(features, peaks, blocks, rest, strict=True)
        ],
        [
            f"Peak ∝ D^{upper_exponent(features, peaks):.2f}, and without the block of "
            f"rows ∝ D^{upper_exponent(features, rest):.2f}, in the upper half. The block "
            f"has {BLOCK_ROWS:,} rows up to D = {BLOCK_BYTES // (4 * BLOCK_ROWS):,}, so it is ∝ D, "
            f"and takes {BLOCK_BYTES // MIB} MiB from there on: a buffer that makes the products "
            "fast, and most of the peak where D is small. The pass has 8 D² bytes beside it, a "
            "float64 triangle and a float32 square; the solve has no block and 12 D², which is "
            "more only beyond the block's limit.",
        ],
    )
    return [flat, squares, _memory_over_others(results)]


def _memory_over_others(results: Sequence[Result]) -> Table:
    """Peaks over points, dimensions and functions."""
    rows: list[list[Any]] = []
    exponents = []
    for name in MEMORY_OVER:
        sizes, least, peaks = memory_over(results, name)
        rows += [[NAMES[name], int(v), a / MIB, b / MIB]
                 for v, a, b in zip(sizes, least, peaks, strict=True)]  # fmt: skip
        exponents.append(f"{name}^{upper_exponent(sizes, least):.2f}")
    return Table(
        "Peak of the arrays of one fit over n, d and |V|",
        ["varied", "value", "least peak (MiB)", "largest (MiB)"],
        rows,
        [
            "The fits that are timed above. The least peak is, in the upper half of each, ∝ "
            f"{', '.join(exponents)}. n and d are the size of the store, of which at most some "
            "partitions of 32 MiB are in memory; of s there is a block of bags' coefficients.",
        ],
    )


def _text(size: Size) -> str:
    return ", ".join(f"{name} = {value:,}" for name, value in size.params.items())
