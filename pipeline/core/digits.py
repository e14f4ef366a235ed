"""Numbers in words: no more digits than their standard errors allow."""

from __future__ import annotations

import math


def with_error(value: float, spread: float | None) -> str:
    """Return a value with its standard error, with no more digits than that allows."""
    if spread is None or not math.isfinite(spread) or spread <= 0:
        return rounded(value)
    return f"{rounded(value, spread)} ± {rounded(spread, spread)}"


def rounded(value: float, spread: float | None = None) -> str:
    """Return a value with two digits of its standard error, or with three digits without one."""
    if spread is None or not math.isfinite(spread) or spread <= 0 or not math.isfinite(value):
        return f"{value:#.3g}".rstrip(".") if 1e-4 <= abs(value) < 1e5 else f"{value:.3g}"
    decimals = 1 - math.floor(math.log10(float(f"{spread:.1e}")))  # .0996 is .10
    if decimals > 8 or decimals < -4:
        return f"{value:.3g}"
    return f"{round(value, decimals):,.{max(0, decimals)}f}"
