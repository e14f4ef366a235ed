"""Computed sentences: where lines cross, who is ahead, and whether an order holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

SURE = 2.0  # standard errors from which a lead is one
FAR = 0.05  # lead in accuracy that ≫ asks for
PICKED = (
    "The best HDD was picked by accuracy on these test images, so that its lead is a little too "
    "large."
)
MEANING = (
    f"≥ means: not behind by more than {SURE:g} standard errors; >: ahead by more than that; ≫: "
    f"ahead by {FAR:g} too."
)


def listing(words: Sequence[Any]) -> str:
    """Return words with "and" before the last; numbers have commas between thousands."""
    texts = [word if isinstance(word, str) else f"{word:,}" for word in words]
    return " and ".join(filter(None, [", ".join(texts[:-1]), *texts[-1:]]))


def numbers(values: Sequence[int]) -> str:
    """Return numbers with commas between, or "none"."""
    return ", ".join(f"{value:,}" for value in values) or "none"


def crossing(x: NDArray[np.float64], values: NDArray[np.float64], level: float) -> float | None:
    """Return where lines through the points, straight in logarithms, first rise to a level.

    None if they do not, or if they begin above it.
    """
    for i in range(1, len(x)):
        if values[i - 1] < level <= values[i]:
            share = np.log(level / values[i - 1]) / np.log(values[i] / values[i - 1])
            return float(x[i - 1] * (x[i] / x[i - 1]) ** share)
    return None


def two_digits(value: float) -> int:
    """Return the number rounded to its first two digits: the rest of a crossing is noise."""
    return int(float(f"{value:.1e}"))


def standard_error(values: NDArray[np.float64]) -> float | None:
    """Return the standard error of a mean over repeats; None with one repeat."""
    return float(values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else None


def lead(ours: NDArray[np.float64], other: NDArray[np.float64]) -> tuple[float, float]:
    """Return the mean lead over splits, and its standard error: 0 with one split."""
    gaps = ours - other
    return float(gaps.mean()), standard_error(gaps) or 0.0


def lead_text(ours: NDArray[np.float64], other: NDArray[np.float64], digits: int) -> str:
    """Return the lead, and its standard error where there is one."""
    mean, error = lead(ours, other)
    return f"{mean:+.{digits}f}" + (f" ± {error:.{digits}f}" if len(ours) > 1 else "")


def order_verdict(
    shares: Mapping[str, NDArray[np.float64]], claims: Sequence[tuple[str, str, str]], digits: int
) -> str:
    """Return which claims hold and which do not, with their leads.

    Parameters
    ----------
    shares : mapping from a method to its accuracies, shape (n_splits,)
    claims : sequence of (method, relation, method)
        The relation is one of ≥, >, ≫, see `MEANING`.
    digits : int
        Number of decimals of the leads.
    """
    found: dict[bool, list[str]] = {True: [], False: []}
    for one, relation, other in claims:
        mean, error = lead(shares[one], shares[other])
        least = {"≥": -SURE * error, ">": SURE * error, "≫": max(FAR, SURE * error)}[relation]
        holds = mean >= least if relation == "≥" else mean > least
        found[holds].append(
            f"{one} {relation} {other} ({lead_text(shares[one], shares[other], digits)})"
        )
    return (
        f"Holds here: {', '.join(found[True]) or 'nothing'}. Does not hold here: "
        f"{', '.join(found[False]) or 'nothing'}."
    )
