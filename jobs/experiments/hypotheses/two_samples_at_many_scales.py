"""`TwoSamplesAtManyScales`: fine differences of wide samples, beside the powers printed for FUSE.

The problems and the printed powers are those of Biggs, Schrab and Gretton (2023): mixtures of four
Gaussians, and uniform laws with a perturbation. What people get who give no option,
``two_sample_test(a, b)``, is tested on more data sets than the other statistics, and of the
perturbed law of the plane also on the very data sets that the printed powers are of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from bagbasis.core.arrays import Floats
from bagbasis.hypotheses import two_sample_test

from ...pictures import BLUE, GREY, ORANGE
from ...terminal import Callback
from ..data.fine_differences import (
    N_PUBLISHED,
    mixtures,
    perturbed_uniforms,
    published_perturbed_uniforms,
)
from ..kit.experiment import Experiment, Measure, Params, Result, Scale, Table
from ..kit.frame import column, frame, whole_table
from ..kit.notes import remarks
from ..kit.plots import BLACK, GREEN, RED, Curve, lines
from ..kit.rates import share_error, shares
from ..kit.verdicts import listing

LEVEL = 0.05
BEHIND = 2.0  # standard errors below a printed share from which ours is lower

Draw = Callable[[np.random.Generator, int], tuple[Floats, Floats]]

MIXTURE, WIDE = "mixture, std 1.3", "mixture, std 2"
LINE, PLANE = "perturbed, d = 1", "perturbed, d = 2"
NOTHING = ("mixture, std 1", "uniform, d = 2")
PROBLEMS: Mapping[str, Draw] = {
    MIXTURE: partial(mixtures, deviation=1.3),
    WIDE: partial(mixtures, deviation=2.0),
    LINE: partial(perturbed_uniforms, n_dims=1, scale=0.2),
    PLANE: partial(perturbed_uniforms, n_dims=2, scale=0.4),
    NOTHING[0]: partial(mixtures, deviation=1.0),
    NOTHING[1]: partial(perturbed_uniforms, n_dims=2, scale=0.0),
}
PUBLISHED: Mapping[str, Callable[[int, int], tuple[Floats, Floats]]] = {
    PLANE: partial(published_perturbed_uniforms, n_dims=2, scale=0.4),
}
DEFAULT, ON_THEIRS = "default", "published"
OTHERS = ("agg", "scf", "mmd_u")
COLORS = {DEFAULT: BLUE, "agg": GREEN, "scf": ORANGE, "mmd_u": GREY}

TESTS = ("FUSE", "Agg", "SCF", "median", "ACTT", "split")
BESIDE = {DEFAULT: "FUSE", "agg": "Agg", "scf": "SCF", "mmd_u": "median"}
PRINTED: Mapping[tuple[str, int], tuple[float, ...]] = {
    (MIXTURE, 500): (0.18, 0.19, 0.22, 0.055, 0.095, 0.10),
    (MIXTURE, 1000): (0.38, 0.385, 0.42, 0.065, 0.23, 0.15),
    (MIXTURE, 2000): (0.765, 0.785, 0.81, 0.035, 0.58, 0.425),
    (MIXTURE, 3000): (0.97, 0.99, 0.945, 0.04, 0.875, 0.64),
    (WIDE, 500): (0.905, 0.945, 0.935, 0.05, 0.77, 0.555),
    (LINE, 1000): (0.43, 0.47, 0.01, 0.22, 0.355, 0.20),
    (LINE, 2000): (0.79, 0.875, 0.04, 0.455, 0.71, 0.495),
    (LINE, 3000): (0.985, 0.99, 0.145, 0.70, 0.945, 0.74),
    (PLANE, 1000): (0.43, 0.335, 0.10, 0.045, 0.275, 0.165),
    (PLANE, 2000): (0.805, 0.765, 0.17, 0.045, 0.675, 0.43),
    (PLANE, 3000): (0.99, 0.975, 0.30, 0.03, 0.93, 0.73),
}


class Sizes(Scale):
    """See ``configs/experiments/two-samples-at-many-scales.yaml``."""

    n_points: dict[str, list[int]]
    n_tests: int
    n_blocks: dict[str, int]
    published: dict[str, list[int]]
    n_permutations: int


class TwoSamplesAtManyScales(Experiment[Sizes]):
    """See the module; a point is a problem at a size, in a block of data sets."""

    name = "two-samples-at-many-scales"
    title = "Fine differences of wide samples"
    source = "Biggs, Schrab and Gretton 2023"
    kind = Sizes

    @property
    def size(self) -> str:
        s = self.settings
        sets = {name: s.n_tests * k for name, k in s.n_blocks.items()}
        theirs = listing([f"{s.n_tests * len(of)} of {int(n):,}" for n, of in s.published.items()])
        return (
            f"{sets['default']} data sets per problem and size for two_sample_test(a, b) as it is, "
            f"of {PLANE} also the authors' own ({theirs} points), "
            f"{sets['others']} for {listing(OTHERS)} with {s.n_permutations} permutations; the "
            f"paper has {N_PUBLISHED} and 2,000 permutations."
        )

    def measures(self) -> list[Measure]:
        s = self.settings
        problems = [(name, n) for name, sizes in s.n_points.items() for n in sizes]
        label = "{problem} n {n} block {block}"
        fixed = {"n_tests": s.n_tests}
        others = {**fixed, "n_permutations": s.n_permutations, "methods": list(OTHERS)}
        blocks = {name: list(range(k)) for name, k in s.n_blocks.items()}
        return [
            Measure(DEFAULT, self._default, f"default {label}",
                    {"block": blocks["default"], "problem n": problems}, fixed),
            Measure(ON_THEIRS, self._on_theirs, f"{ON_THEIRS} {label}",
                    {"problem n block": [(name, int(n), block) for name in PUBLISHED
                                         for n, of in s.published.items() for block in of]},
                    fixed),
            Measure("others", self._others, f"others {label}",
                    {"block": blocks["others"], "problem n": problems}, others),
        ]  # fmt: skip

    def _default(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return the share of a block's data sets in which the default call rejects."""

        def p_value(i: int) -> float:
            return two_sample_test(*self._data(p, i), seed=i).p_value

        return dict(shares({DEFAULT: p_value}, p["n_tests"], LEVEL, progress))

    def _on_theirs(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return the share of the authors' own data sets, a block of them."""

        def p_value(i: int) -> float:
            number = p["block"] * p["n_tests"] + i
            return two_sample_test(*PUBLISHED[p["problem"]](number, p["n"]), seed=i).p_value

        return dict(shares({ON_THEIRS: p_value}, p["n_tests"], LEVEL, progress))

    def _others(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return those of other statistics, of the same data sets."""

        def p_value(name: str, i: int) -> float:
            X, Y = self._data(p, i)
            n = p["n_permutations"]
            return two_sample_test(
                X, Y, statistic=name, n_permutations=n, seed=i, standardize=False
            ).p_value

        tests = {name: partial(p_value, name) for name in p["methods"]}
        return dict(shares(tests, p["n_tests"], LEVEL, progress))

    def _data(self, p: Params, i: int) -> tuple[Floats, Floats]:
        which = [*PROBLEMS].index(p["problem"])
        return PROBLEMS[p["problem"]](self.rng(which, p["n"], p["block"], i), p["n"])

    # ------------------------------------------------------------------ the report

    def tables(self, results: Sequence[Result]) -> list[Table]:
        """Make a table of powers, with those printed beside ours, and one of levels."""
        rows = powers(results)
        is_null = rows["problem"].isin(NOTHING)
        found, null = rows[~is_null].reset_index(drop=True), rows[is_null].reset_index(drop=True)
        printed = pd.DataFrame(
            [PRINTED[one] for one in zip(found["problem"], found["n"], strict=True)],
            columns=list(TESTS),
        )
        columns: dict[str, Any] = {"problem": found["problem"], "n": found["n"]}
        for name, beside in BESIDE.items():
            columns |= {name: found[name], f"{beside}, printed": printed[beside]}
            if name == DEFAULT:
                columns["standard errors above FUSE"] = _apart(found, DEFAULT, printed["FUSE"])
                columns["default, their data sets"] = found[ON_THEIRS]
                columns["standard errors above"] = _apart(found, ON_THEIRS, printed["FUSE"])
        columns |= {f"{name}, printed": printed[name] for name in ("ACTT", "split")}
        own, theirs = (
            _behind(found, columns[name])
            for name in ("standard errors above FUSE", "standard errors above")
        )
        n_theirs = int(found[ON_THEIRS].notna().sum())
        notes = remarks(
            self.name, "power", n_rows=len(found), n_level=len(found) - len(own),
            n_theirs=n_theirs, n_level_of_theirs=n_theirs - len(theirs),
            behind=listing(own) if own else "", behind_of_theirs=listing(theirs) if theirs else "",
        )  # fmt: skip
        shown = null[["problem", "n", DEFAULT, *OTHERS]]
        return [
            whole_table("Share that rejects at .05", pd.DataFrame(columns), notes),
            whole_table("Without a difference", shown, remarks(self.name, "nothing")),
        ]

    def draw(self, results: Sequence[Result]) -> None:
        """Draw a panel per problem."""
        rows = powers(results)
        of_problem = {name: rows[rows["problem"] == name] for name in PROBLEMS}
        drawn = [name for name in PROBLEMS if name not in NOTHING and len(of_problem[name])]
        title = f"{self.title}: share of data sets that reject at .05"
        with self.picture("power.png", title, len(drawn), 4.4 * len(drawn), 4.4) as (_, axes):
            for axis, problem in zip(axes, drawn, strict=True):
                of = of_problem[problem]
                curves = [_curve(of, name, color) for name, color in COLORS.items()]
                for test, color in (("FUSE", BLACK), ("median", RED)):
                    printed = [PRINTED[problem, n][TESTS.index(test)] for n in of["n"]]
                    curves.append(Curve(of["n"], printed, f"{test}, printed", color, "*"))
                lines(axis, curves, "points n", "share", log="x", ticks=list(of["n"]),
                      levels={"level .05": LEVEL}, title=problem)  # fmt: skip
                axis.set_ylim(-0.03, 1.03)


def powers(results: Sequence[Result]) -> pd.DataFrame:
    """Return the shares over all blocks, a row per problem and size, in the order of the table."""
    joined = []
    for measure, names in ((DEFAULT, [DEFAULT]), (ON_THEIRS, [ON_THEIRS]), ("others", [*OTHERS])):
        rows = frame(results, measure=measure)
        groups = rows.groupby(["problem", "n"], sort=False)
        joined.append(groups[names].mean().join(groups["n_tests"].sum().rename(_count(measure))))
    found: pd.DataFrame = joined[0].join(joined[1]).join(joined[2]).reset_index()
    return found


def _count(measure: str) -> str:
    """Return the name of the column that counts the data sets of a measure."""
    return "n_tests" if measure == DEFAULT else f"n_tests of {measure}"


def _apart(rows: pd.DataFrame, measure: str, printed: pd.Series) -> pd.Series:
    """Return the standard errors that our shares are above printed ones."""
    ours, n = rows[measure], rows[_count(measure)]
    found: pd.Series = (ours - printed) / np.hypot(
        share_error(ours, n), share_error(printed, N_PUBLISHED)
    )
    return found


def _behind(rows: pd.DataFrame, apart: pd.Series) -> list[str]:
    """Return the names of the rows whose share is lower than printed."""
    lower = rows[apart < -BEHIND]
    return [
        f"{problem} at n = {n:,}" for problem, n in zip(lower["problem"], lower["n"], strict=True)
    ]


def _curve(rows: pd.DataFrame, name: str, color: str) -> Curve:
    counts = column(rows, "n_tests" if name == DEFAULT else "n_tests of others")
    return Curve(rows["n"], rows[name], name, color, "o-", share_error(rows[name], counts))
