"""`FeatureError`: the errors of paired and of phase features of a Gaussian kernel on an interval.

000, §3.5 and Figures 3.3 to 3.5. Errors f(x, y) = z(x)ᵀz(y) − k(x, y), σ = 1, over all pairs of
evenly spaced points. Paired features, [sin ωx, cos ωx], are `RandomFourierFeatures`; phase
features, √2 cos(ωx + b), are scikit-learn's `RBFSampler`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.lib.stride_tricks import sliding_window_view
from sklearn.kernel_approximation import RBFSampler
from threadpoolctl import threadpool_limits

from bagbasis import RandomFourierFeatures

from ....core.arrays import Floats
from ...pictures import BLUE, GREY, ORANGE
from ...terminal import Callback
from ..kit.experiment import Experiment, Measure, Params, Result, Scale, Table
from ..kit.frame import column, frame, table
from ..kit.notes import remarks
from ..kit.plots import GREEN, Curve, lines
from ..kit.timing import exponent

N_POINTS, WIDEST = 1_000, 5.0  # evenly spaced on [−5, 5], as in 000
RADII = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0)
RADIUS = 3.0  # b of the interval that 000 gives numbers for
AT_RADIUS = RADII.index(RADIUS)
QUANTILES = np.linspace(0, 1, 101)  # of largest errors that are kept for Figure 3.5
SURVIVAL_FEATURES = 500  # D of 000, Figure 3.5
DRAWN_OVER_RADIUS = {50: BLUE, 200: ORANGE, 1000: GREY, 10_000: GREEN}  # D, and its color
FORMS = ("paired", "phase")
NAMES = {"paired": "paired (ours)", "phase": "phase (scikit-learn's RBFSampler)"}
COLORS = {"paired": BLUE, "phase": ORANGE}
PAPER_SQUARE = {"paired": 0.66, "phase": 0.83}  # D · E‖f‖² in 000, §3.5
# Intervals of the exponent of D in E max error in 000, §3.5.
PAPER_EXPONENT = {"paired": (-0.502, -0.496), "phase": (-0.503, -0.497)}


class Sizes(Scale):
    """See ``configs/experiments/rff-error.yaml``."""

    n_features: list[int]
    n_repeats: int


class FeatureError(Experiment[Sizes]):
    """See the module; a point is a number of features."""

    name = "rff-error"
    title = "Errors of random Fourier features"
    source = "000, §3.5"
    kind = Sizes

    @property
    def size(self) -> str:
        s = self.settings
        return (
            f"{N_POINTS:,} points on [−5, 5], {len(s.n_features)} numbers of features from "
            f"{min(s.n_features)} to {max(s.n_features):,}, {s.n_repeats:,} repeats of each; the "
            "paper has these points, 20 numbers of features from 50 to 10,000, and 1,000 repeats."
        )

    def measures(self) -> list[Measure]:
        s = self.settings
        over, fixed = {"n_features": s.n_features}, {"n_repeats": s.n_repeats}
        return [Measure("", self._errors, "D {n_features}", over, fixed)]

    def _errors(self, p: Params, progress: Callback) -> dict[str, Any]:
        n_features, n_repeats = p["n_features"], p["n_repeats"]
        seeds = np.random.SeedSequence([self.seed, n_features]).generate_state(n_repeats)
        errors = {"paired": paired_errors, "phase": phase_errors}
        found: dict[str, list[Errors]] = {form: [] for form in FORMS}
        with threadpool_limits(1):  # of products of so few rows more threads wait for each other
            for done, seed in enumerate(seeds.tolist(), 1):
                for form in FORMS:
                    found[form].append(errors[form](n_features, seed))
                progress(done, n_repeats)
        return {form: _summary(found[form]) for form in FORMS}

    def tables(self, results: Sequence[Result]) -> list[Table]:
        """Make the table of mean maximum errors, and squared errors times D, on [−3, 3]."""
        rows = by_features(results)
        columns = {"D": "n_features", "E max error, paired": "paired.most", "phase": "phase.most"}
        columns["paired / phase"] = "ratio"
        made = table("Errors on [−3, 3], σ = 1", rows, columns, _remarks(rows))
        names, cells = list(made.columns), [list(row) for row in made.rows]
        for form in FORMS:
            names += [f"D · E‖f‖², {form}", "paper"]
            for row, value in zip(cells, rows[f"{form}.scaled"], strict=True):
                row += [float(value), PAPER_SQUARE[form]]
        return [Table(made.title, names, cells, made.remarks)]

    def draw(self, results: Sequence[Result]) -> None:
        rows = by_features(results)
        self._draw_over_features(rows)
        self._draw_over_radius(rows)

    def _draw_over_features(self, rows: pd.DataFrame) -> None:
        """Draw 000, Figure 3.4, and the squared error beside it."""
        n, expected = column(rows, "n_features"), expected_squares()
        largest, squares = [], []
        levels: dict[str, float] = {}
        for form, aside in (("paired", 0.98), ("phase", 1.02)):  # so that bars are seen
            name, (low, high), color = NAMES[form], PAPER_EXPONENT[form], COLORS[form]
            most, scaled = (column(rows, f"{form}.{key}") for key in ("most", "scaled"))
            label = f"{name}: ∝ D^{exponent(n, most):.3f} (000: {low} … {high})"
            spread = 2 * column(rows, f"{form}.largest_error")
            largest.append(Curve(n, most, label, color, "o-", spread))
            spread = 2 * n * column(rows, f"{form}.square_error")
            squares.append(Curve(aside * n, scaled, f"{name}, measured", color, "o", spread))
            exact = f"exact expectation: {expected[form]:.4f}"
            squares.append(Curve([n[0], n[-1]], [expected[form]] * 2, exact, color, "-"))
            levels[f"000, {form}: {PAPER_SQUARE[form]}"] = PAPER_SQUARE[form]
        title = "Gaussian kernel on [−3, 3], σ = 1 (bars: two standard errors)"
        with self.picture("features.png", title, 2, 12.5, 5.0) as (_, [left, right]):
            lines(left, largest, "number of features D",
                  "mean of the largest error |z(x)ᵀz(y) − k(x, y)|", log="xy")  # fmt: skip
            lines(right, squares, "number of features D", "D × mean squared error", log="x",
                  levels=levels)  # fmt: skip
            right.set_ylim(0.5, 1.15)

    def _draw_over_radius(self, rows: pd.DataFrame) -> None:
        """Draw 000, Figures 3.3 and 3.5."""
        at = rows.set_index("n_features")
        curves, survival = [], []
        for form, style in zip(FORMS, (".-", ".--"), strict=True):
            for n, color in DRAWN_OVER_RADIUS.items():
                if n in at.index:
                    errors = at.loc[n, f"{form}.largest"]
                    curves.append(Curve(RADII, errors, f"D = {n:,}, {form}", color, style))
            quantiles = at.loc[SURVIVAL_FEATURES, f"{form}.quantiles"]
            mean, color = float(at[f"{form}.most"][SURVIVAL_FEATURES]), COLORS[form]
            survival.append(Curve(quantiles, 1 - QUANTILES, NAMES[form], color, "-"))
            survival.append(Curve([mean] * 2, [0, 1], f"its mean, {mean:.4f}", color, ":"))
        title = "Largest error of random features of the Gaussian kernel"
        with self.picture("radius.png", title, 2, 12.5, 5.0) as (_, [left, right]):
            lines(left, curves, "radius b of the interval [−b, b], in bandwidths σ",
                  "mean of the largest error within b", log="y", legend={"ncols": 2})  # fmt: skip
            left.set_ylim(bottom=8e-4)
            lines(right, survival, f"ε (D = {SURVIVAL_FEATURES}, b = 3)",
                  "share of draws with a largest error above ε")  # fmt: skip


def by_features(results: Sequence[Result]) -> pd.DataFrame:
    """Return a row per D: E max error on [−3, 3] and D · E‖f‖² of both forms, their ratio."""
    rows = frame(results)
    for form in FORMS:
        rows[f"{form}.most"] = rows[f"{form}.largest"].str[AT_RADIUS]
        rows[f"{form}.scaled"] = rows["n_features"] * rows[f"{form}.square"]
    rows["ratio"] = rows["paired.most"] / rows["phase.most"]
    return rows


def mean_square(rows: pd.DataFrame, form: str) -> float:
    """D · E‖f‖² of all draws of frequencies together, whose relative variance is one at all D."""
    return float(np.average(rows[f"{form}.scaled"], weights=rows["n_repeats"]))


def _remarks(rows: pd.DataFrame) -> list[str]:
    notes, expected = [], expected_squares()
    for form, proposition in zip(FORMS, ("3.4", "3.5"), strict=True):
        low, high = PAPER_EXPONENT[form]
        notes += remarks(
            "rff-error", "form", name=NAMES[form], square=mean_square(rows, form), low=low,
            proposition=proposition, expected=expected[form], paper=PAPER_SQUARE[form], high=high,
            slope=exponent(column(rows, "n_features"), column(rows, f"{form}.most")),
        )  # fmt: skip
    better = all((rows[f"paired.{key}"] < rows[f"phase.{key}"]).all() for key in ("most", "scaled"))
    return [*notes, *remarks("rff-error", "both", better=better, worse=not better)]


@dataclass(frozen=True)
class Errors:
    """Errors of one draw of frequencies.

    Attributes
    ----------
    largest : shape (n_radii,)
        ‖f‖_∞ on [−b, b]² for each b in `RADII`.
    square : float
        ‖f‖²_μ, μ uniform on [−3, 3]².
    """

    largest: Floats
    square: float


def _summary(errors: Sequence[Errors]) -> dict[str, Any]:
    """Return means, their standard errors, and the quantiles of ‖f‖_∞ on [−3, 3]²."""
    largest = np.array([e.largest for e in errors])
    square = np.array([e.square for e in errors])
    within = largest[:, AT_RADIUS]
    root = len(errors) ** 0.5
    return {
        "largest": largest.mean(axis=0),
        "largest_error": within.std(ddof=1) / root,
        "square": square.mean(),
        "square_error": square.std(ddof=1) / root,
        "quantiles": np.quantile(within, QUANTILES),
    }


@dataclass(frozen=True)
class Grid:
    """Points of [−5, 5] at equal distances, the true kernel of theirs, and radii in them.

    Attributes
    ----------
    points, differences, kernel : shape (n,)
        x_i, x_i − x_0, and k(x_i, x_0).
    within : tuple of slice
        The points within each radius.
    """

    points: Floats
    differences: Floats
    kernel: Floats
    within: tuple[slice, ...]


@lru_cache(maxsize=1)
def grid() -> Grid:
    """Return the grid of 000, §3.5."""
    points = np.linspace(-WIDEST, WIDEST, N_POINTS)
    differences = points - points[0]
    within = []
    for radius in RADII:
        inside = np.flatnonzero(np.abs(points) <= radius)
        within.append(slice(int(inside[0]), int(inside[-1]) + 1))
    return Grid(points, differences, np.exp(-0.5 * differences**2), tuple(within))


def expected_squares() -> dict[str, float]:
    """D · E‖f‖²_μ by Propositions 3.4 and 3.5 of 000, over the pairs of points of [−3, 3]."""
    n, squared = _n_within(), grid().kernel ** 2  # k(2Δ) = k(Δ)⁴
    weights = _pairs_at_distance(n)
    of_form = {
        "paired": 1 + squared**2 - 2 * squared,
        "phase": 1 + 0.5 * squared**2 - squared,
    }
    return {form: float(weights @ values[:n]) for form, values in of_form.items()}


def paired_errors(n_features: int, seed: int) -> Errors:
    """Return errors of `RandomFourierFeatures`, functions of x − y: so one row says all."""
    g = grid()
    features = RandomFourierFeatures(n_features=n_features, scale=1.0, seed=seed)
    z = features.fit_transform(g.differences[:, None].astype(np.float32))
    f = np.abs((z @ z[0]).astype(np.float64) - g.kernel)
    largest = np.array([f[: within.stop - within.start].max() for within in g.within])
    n = _n_within()
    return Errors(largest, float(_pairs_at_distance(n) @ f[:n] ** 2))


def phase_errors(n_features: int, seed: int) -> Errors:
    """Return errors of `RBFSampler`: functions of x − y plus functions of x + y."""
    of_difference, of_sum = phase_sums(n_features, seed)
    gaps = of_difference - grid().kernel
    mirrored = np.concatenate([gaps[:0:-1], gaps])
    of_pairs = sliding_window_view(mirrored, N_POINTS)[::-1]  # at |i − j|, as a view
    f = np.abs(of_pairs + sliding_window_view(of_sum, N_POINTS))  # at i + j
    inside = [f[within, within] for within in grid().within]
    return Errors(np.array([part.max() for part in inside]), float((inside[AT_RADIUS] ** 2).mean()))


def phase_sums(n_features: int, seed: int) -> tuple[Floats, Floats]:
    """z(x)ᵀz(y) of `RBFSampler` as the sum of two functions, shapes (n,) and (2n − 1,).

    (2/D) Σ cos(ωx + b) cos(ωy + b) = (1/D) Σ cos ω(x − y) + (1/D) Σ cos(ω(x + y) + 2b); of x_i and
    x_j the values at |i − j| of the first and at i + j of the second.
    """
    points = grid().points
    sampler = RBFSampler(gamma=0.5, n_components=n_features, random_state=seed)
    sampler.fit(points[:, None])
    omega, phase = sampler.random_weights_[0], sampler.random_offset_
    step = float(points[1] - points[0])
    of_difference = cosine_sums(omega, np.zeros_like(omega), step, N_POINTS)
    of_sum = cosine_sums(omega, 2 * (omega * points[0] + phase), step, 2 * N_POINTS - 1)
    return of_difference / n_features, of_sum / n_features


def cosine_sums(omega: Floats, phase: Floats, step: float, n: int) -> Floats:
    """Σ_j cos(phase_j + ω_j · step · m) for m = 0 … n − 1.

    With m = F c + f the sines and cosines of c and of f are made alone, and all sums are two
    products. In single precision, as the paired features are.
    """
    width = int(np.ceil(n**0.5))
    fine = np.outer(np.arange(width) * step, omega)
    coarse = phase + np.outer(np.arange(-(-n // width)) * width * step, omega)
    fine, coarse = fine.astype(np.float32), coarse.astype(np.float32)
    sums = np.cos(coarse) @ np.cos(fine).T - np.sin(coarse) @ np.sin(fine).T
    return sums.ravel()[:n].astype(np.float64)


def _n_within() -> int:
    """Count the points of [−3, 3]."""
    within = grid().within[AT_RADIUS]
    return within.stop - within.start


def _pairs_at_distance(n: int) -> Floats:
    """Return the share of the n² pairs of points that are m = 0 … n − 1 steps apart."""
    counts = 2.0 * (n - np.arange(n))
    counts[0] = n
    return counts / n**2
