"""The tables of `rectify-2lpt`: errors, and times over the number of training pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .experiment import Result, Table
from .timing import exponent

METHODS = ("3BE", "LSE", "2LPT", "AD")
PAPER_MSE = {"3BE": 4.958, "LSE": 6.816, "2LPT": 6.424, "AD": 9.289}  # 004, Table 3.1
PAPER_SECONDS = {"3BE": 0.009, "LSE": 4.977}
PAPER_GAIN = 0.5
GAIN_AIMED_AT = 0.3
N_FITTED = 3  # exponents are fitted to so many of the largest numbers of pairs
WAYS = {"single": "one bag a call", "batch": "batches"}

Floats = NDArray[np.float64]


def of_kind(results: Sequence[Result], kind: str) -> list[dict[str, Any]]:
    """Values of the points that measure this."""
    return [dict(r.values) for r in results if r.point.params["measure"] == kind]


def errors_by_method(results: Sequence[Result]) -> dict[str, float]:
    """Our MSE of each of `METHODS`."""
    [errors], [smoother] = of_kind(results, "errors"), of_kind(results, "smoother")
    return {
        "3BE": errors["mse"],
        "LSE": smoother["mse"],
        "2LPT": errors["input_mse"],
        "AD": errors["average_mse"],
    }


def determination(errors: dict[str, float], method: str) -> float:
    """R²: 1 − MSE / MSE of the average density."""
    return 1 - errors[method] / errors["AD"]


def gain(errors: dict[str, float]) -> float:
    """By what share the 3BE's R² exceeds that of the input density."""
    return determination(errors, "3BE") / determination(errors, "2LPT") - 1


def error_table(results: Sequence[Result], n_paper: int) -> Table:
    """004, Table 3.1."""
    ours = errors_by_method(results)
    [errors] = of_kind(results, "errors")
    last = max(of_kind(results, "time"), key=lambda values: values["n_pairs"])
    seconds = {"3BE": last["3be_single"], "LSE": last["lse_single"]}
    rows: list[list[Any]] = [
        [
            method,
            ours[method],
            determination(ours, method),
            seconds.get(method),
            PAPER_MSE[method],
            determination(PAPER_MSE, method),
            PAPER_SECONDS.get(method),
        ]
        for method in METHODS
    ]
    rows.append(["noise of the responses", errors["noise_mse"], None, None, None, None, None])
    columns = ["", "MSE", "R²", "s a bag", "MSE, paper", "R², paper", "s a bag, paper"]
    title = f"Squared L2 distance to the densities of {errors['n']:,} test cubes"
    return Table(title, columns, rows, [*_error_remarks(results, ours), _limit(results, n_paper)])


def _error_remarks(results: Sequence[Result], ours: dict[str, float]) -> list[str]:
    [errors], fits = of_kind(results, "errors"), of_kind(results, "fit")
    floor = errors["noise_mse"] / ours["AD"]
    most = (1 - floor) / determination(ours, "2LPT") - 1
    return [
        f"R² of the 3BE over that of 2LPT: {gain(ours):+.1%} with {fits[0]['n_pairs']:,} training "
        f"pairs, of {most:+.1%} that the noise of the responses leaves to gain (aimed at on scale "
        f"paper: {GAIN_AIMED_AT:+.0%}; the paper: over {PAPER_GAIN:+.0%} with over 900,000 pairs).",
        f"MSE of the 3BE over that of 2LPT {ours['3BE'] / ours['2LPT']:.3f} (the paper: "
        f"{PAPER_MSE['3BE'] / PAPER_MSE['2LPT']:.3f}), of the LSE {ours['LSE'] / ours['2LPT']:.3f} "
        f"(the paper: {PAPER_MSE['LSE'] / PAPER_MSE['2LPT']:.3f}).",
        "The paper's simulations are others, so that R² and ratios compare and MSEs do not. The "
        f"noise is the part of every MSE, {floor:.1%} of AD's, that comes from the responses' "
        "finite number of particles; no method can predict it.",
        f"{fits[0]['n_inputs']} input and {fits[0]['n_outputs']} output coefficients (the paper: "
        f"365 and 401); σ = {errors['scale_multiplier']:g} medians of the distance"
        f"{', by generalised cross-validation among ' + str(len(fits)) if len(fits) > 1 else ''}.",
    ]


def _limit(results: Sequence[Result], n_paper: int) -> str:
    """Why there are no more training pairs."""
    kinds = ("fit", "smoother")
    seconds = sum(r.seconds for r in results if r.point.params["measure"] in kinds)
    times = n_paper / of_kind(results, "fit")[0]["n_pairs"]
    return (
        f"Time, not memory, limits the training pairs: fits and smoother took {seconds:,.0f} s, "
        f"beside making the simulations, and the paper's number of pairs takes {times:.1f} times "
        "both at least."
    )


@dataclass(frozen=True)
class Times:
    """Seconds a bag of one way to predict, over the number of training pairs.

    Attributes
    ----------
    n_pairs, lse, three_be : float64, shape (n,)
    """

    n_pairs: Floats
    lse: Floats
    three_be: Floats

    @classmethod
    def of(cls, results: Sequence[Result], way: str) -> Times:
        """Of "single" or "batch"."""
        points = sorted(of_kind(results, "time"), key=lambda values: values["n_pairs"])
        keys = ("n_pairs", f"lse_{way}", f"3be_{way}")
        return cls(*(np.array([point[key] for point in points], dtype=float) for key in keys))

    @property
    def ratios(self) -> Floats:
        return self.lse / self.three_be

    def at(self, n_pairs: float) -> tuple[float, float]:
        """Seconds a bag of LSE and 3BE beyond the largest N: there as measured, the LSE's times
        the growth of N."""
        return float(self.lse[-1] * n_pairs / self.n_pairs[-1]), float(self.three_be[-1])

    def exponents(self) -> tuple[float, float]:
        """Of the LSE's time and of the ratio, over the upper range of N."""
        n = self.n_pairs[-N_FITTED:]
        return exponent(n, self.lse[-N_FITTED:]), exponent(n, self.ratios[-N_FITTED:])


def time_table(results: Sequence[Result], n_paper: int) -> Table:
    """Milliseconds a bag and their ratio over N, and at the paper's N as far as the lines reach."""
    ways = {way: Times.of(results, way) for way in WAYS}
    n_pairs = ways["single"].n_pairs
    rows: list[list[Any]] = []
    for i, n in enumerate(n_pairs):
        cells = [(1e3 * t.lse[i], 1e3 * t.three_be[i], t.ratios[i]) for t in ways.values()]
        rows.append([f"{n:,.0f}", *(float(value) for cell in cells for value in cell)])
    reached = [t.at(n_paper) for t in ways.values()]
    cells = [(1e3 * lse, 1e3 * three_be, lse / three_be) for lse, three_be in reached]
    rows.append([f"{n_paper:,}, extrapolated", *(value for cell in cells for value in cell)])
    paper = (PAPER_SECONDS["LSE"], PAPER_SECONDS["3BE"])
    rows.append(
        [f"{n_paper:,}, paper", 1e3 * paper[0], 1e3 * paper[1], paper[0] / paper[1], *[None] * 3]
    )
    columns = ["training pairs"]
    for text in WAYS.values():
        columns += [f"LSE, {text}, ms", f"3BE, {text}, ms", f"ratio, {text}"]
    return Table("Prediction time a bag", columns, rows, _time_remarks(results, ways))


def _time_remarks(results: Sequence[Result], ways: dict[str, Times]) -> list[str]:
    n_queries = of_kind(results, "time")[0]["n_queries"]
    remarks = [
        f"From points to coefficients, data in memory, medians of calls in turn; a batch has "
        f"{n_queries} bags and goes through BLAS, in both methods.",
        "The LSE is `KernelSmoother` with its training rows and their norms in memory, float32: a "
        "call makes two matrix products and the exponential.",
        "The extrapolation takes both times at the largest N, which were measured in turn, and "
        "lets the LSE's grow in proportion to N, and the 3BE's stay: nothing was measured there.",
    ]
    for way, times in ways.items():
        lse, ratio = times.exponents()
        remarks.append(
            f"Fitted exponents of N from {times.n_pairs[-N_FITTED:][0]:,.0f} pairs on, "
            f"{WAYS[way]}: LSE {lse:.2f}, ratio {ratio:.2f} (linear growth: 1)."
        )
    return remarks
