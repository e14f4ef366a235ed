"""The tables of `Rectify2LPT`: errors as in 004, Table 3.1, and times over the training pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from ..kit.experiment import Result, Table
from ..kit.frame import column, frame, select, whole_table
from ..kit.notes import remarks
from ..kit.timing import exponent

PAPER_PAIRS = 900_000
PAPER_MSE = {"3BE": 4.958, "LSE": 6.816, "2LPT": 6.424, "AD": 9.289}  # 004, Table 3.1
PAPER_SECONDS = {"3BE": 0.009, "LSE": 4.977}
LEAST_ALPHA = 1e-7  # per bag: the end of the estimator's default grid
METHODS = {
    "3BE": "3BE",
    "LSE": "kernel smoother\n(LSE)",
    "2LPT": "the input\n(2LPT)",
    "AD": "average density\n(AD)",
}
WAYS = {"single": "one bag per call", "batch": "batches"}
N_FITTED = 3  # exponents are fitted to so many of the largest numbers of pairs


def mse_of_methods(results: Sequence[Result]) -> dict[str, float]:
    """Return our MSE of each of `METHODS`."""
    [errors], [smoother] = (select(results, measure=kind) for kind in ("errors", "smoother"))
    v = errors.values
    own = {"3BE": v["mse"], "2LPT": v["input_mse"], "AD": v["average_mse"]}
    return own | {"LSE": smoother.values["mse"]}


def determination(mse: dict[str, float], method: str) -> float:
    """R²: 1 − MSE / MSE of the average density."""
    return 1 - mse[method] / mse["AD"]


def gain(mse: dict[str, float]) -> float:
    """Return by what share the 3BE's R² exceeds that of the input density."""
    return determination(mse, "3BE") / determination(mse, "2LPT") - 1


def error_table(results: Sequence[Result]) -> Table:
    """Make 004, Table 3.1."""
    ours, [errors] = mse_of_methods(results), select(results, measure="errors")
    last = time_rows(results).iloc[-1]
    rows = pd.DataFrame(
        [
            {
                "": method,
                "MSE": ours[method],
                "R²": determination(ours, method),
                "s per bag": last.get(f"{method.lower()}_single"),
                "MSE, paper": PAPER_MSE[method],
                "R², paper": determination(PAPER_MSE, method),
                "s per bag, paper": PAPER_SECONDS.get(method),
            }
            for method in METHODS
        ]
        + [{"": "noise of a Poisson sample", "MSE": errors.values["noise_mse"]}]
    )
    title = f"Squared L2 distance to the densities of {errors.values['n']:,} test cubes"
    return whole_table(title, rows, _error_remarks(results, ours))


def _error_remarks(results: Sequence[Result], ours: dict[str, float]) -> list[str]:
    [errors], fits = select(results, measure="errors"), select(results, measure="fit")
    fit, n_fits, v = fits[0].values, len(fits), errors.values
    seconds = sum(r.seconds for r in [*fits, *select(results, measure="smoother")])
    among = f", by generalised cross-validation among {n_fits}" if n_fits > 1 else ""
    paper, edge = PAPER_MSE, fit["alpha_a_bag"] <= LEAST_ALPHA * (1 + 1e-9)
    return remarks(
        "rectify-2lpt", "errors", gain=gain(ours), fit=fit, width=v["scale_multiplier"],
        three_be=ours["3BE"] / ours["2LPT"], paper_three_be=paper["3BE"] / paper["2LPT"],
        lse=ours["LSE"] / ours["2LPT"], paper_lse=paper["LSE"] / paper["2LPT"], among=among,
        noise=v["noise_mse"] / ours["AD"], edge=edge, seconds=seconds,
        times=PAPER_PAIRS / fit["n_pairs"],
    )  # fmt: skip


def time_rows(results: Sequence[Result]) -> pd.DataFrame:
    """Return seconds per bag and their ratios, over the training pairs."""
    rows = frame(results, measure="time").sort_values("n_pairs", ignore_index=True)
    for way in WAYS:
        rows[f"ratio_{way}"] = rows[f"lse_{way}"] / rows[f"3be_{way}"]
    return rows


def extrapolate(rows: pd.DataFrame, way: str, n_pairs: float) -> tuple[float, float]:
    """Return seconds per bag of LSE and 3BE beyond the largest N that was measured.

    The LSE's grow in proportion to N, the 3BE's stay.
    """
    last = rows.iloc[-1]
    return last[f"lse_{way}"] * n_pairs / last["n_pairs"], last[f"3be_{way}"]


def exponents(rows: pd.DataFrame, way: str) -> tuple[float, float]:
    """Return the exponents of N in the LSE's time and in the ratio, over its upper range."""
    upper = rows.iloc[-N_FITTED:]
    n, lse, ratio = (column(upper, key) for key in ("n_pairs", f"lse_{way}", f"ratio_{way}"))
    return exponent(n, lse), exponent(n, ratio)


def time_table(found: pd.DataFrame) -> Table:
    """Make the table of milliseconds per bag over N, and extrapolated to the paper's N."""
    rows: list[list[Any]] = []
    for _, at in found.iterrows():
        cells = [(1e3 * at[f"lse_{w}"], 1e3 * at[f"3be_{w}"], at[f"ratio_{w}"]) for w in WAYS]
        rows.append([f"{at['n_pairs']:,}", *(float(value) for cell in cells for value in cell)])
    reached = [extrapolate(found, way, PAPER_PAIRS) for way in WAYS]
    cells = [(1e3 * lse, 1e3 * three_be, lse / three_be) for lse, three_be in reached]
    rows.append([f"{PAPER_PAIRS:,}, extrapolated", *(float(v) for cell in cells for v in cell)])
    lse, three_be = PAPER_SECONDS["LSE"], PAPER_SECONDS["3BE"]
    paper = [1e3 * lse, 1e3 * three_be, lse / three_be]
    rows.append([f"{PAPER_PAIRS:,}, paper", *paper, *[None] * 3])
    columns = ["training pairs"]
    for text in WAYS.values():
        columns += [f"LSE, {text}, ms", f"3BE, {text}, ms", f"ratio, {text}"]
    notes = remarks("rectify-2lpt", "times", n_queries=found["n_queries"][0])
    first = found["n_pairs"].iloc[-N_FITTED:].iloc[0]
    for way, text in WAYS.items():
        of_lse, of_ratio = exponents(found, way)
        notes.append(
            f"Fitted exponents of N from {first:,} pairs on, {text}: LSE {of_lse:.2f}, ratio "
            f"{of_ratio:.2f} (linear growth: 1)."
        )
    return Table("Prediction time per bag", columns, rows, notes)
