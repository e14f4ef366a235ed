"""Numbers in words: no more digits than their standard errors allow."""

from __future__ import annotations

import math

_MIN_RELATIVE_ERROR = 1e-14  # relative to the value: a smaller standard error is rounding


def with_error(value: float, spread: float | None) -> str:
    """Return a value with its standard error, with no more digits than that allows."""
    if spread is None or not _is_spread(value, spread):
        return rounded(value)
    return f"{rounded(value, spread)} ± {rounded(spread, spread)}"


def rounded(value: float, spread: float | None = None) -> str:
    """Return a value with two digits of its standard error, or with three digits without one."""
    if spread is None or not _is_spread(value, spread):
        return f"{value:#.3g}".rstrip(".") if 1e-4 <= abs(value) < 1e5 else f"{value:.3g}"
    decimals = 1 - math.floor(math.log10(float(f"{spread:.1e}")))  # .0996 is .10
    if decimals > 8 or decimals < -4:
        return f"{value:.3g}"
    return f"{round(value, decimals) + 0.0:,.{max(0, decimals)}f}"  # never -0.00


def _is_spread(value: float, spread: float) -> bool:
    """Whether a standard error says anything: it is finite, and more than rounding."""
    return (
        math.isfinite(value) and math.isfinite(spread) and spread > _MIN_RELATIVE_ERROR * abs(value)
    )
