"""The verdict on a model in a sentence: its error, its standard error, and those of its rivals.

Reports, the terminal and notebooks use these words and digits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.digits import rounded, with_error

RIVALS = {
    "forest_error": "a random forest on moments, minima and maxima",
    "means_error": "ridge regression on the bags' means",
    "constant_error": "the best constant",
}
"""The baselines of a model, by the keys of `judge_fit`."""
MOST_FREQUENT = "the most frequent class"
ERROR_RATE = "error rate"  # the measure of classes, of which people read the accuracy
HELD_OUT = " on bags held out"  # ends the measure of `judge_fit`
RELATIVE = ", relative to the best constant's"
MAX_PERCENT_TIMES = 2.0  # a larger ratio of errors is not stated in percent
NEAR_ERRORS = 2.0  # standard errors: closer errors are called alike


def verdict(
    what: str,
    measure: str,
    where: str,
    errors: Sequence[tuple[str, float]],
    spread: float | None = None,
) -> str:
    """Return a sentence on the error of a model, and one on its comparison with rivals.

    Parameters
    ----------
    what : str
        Names of the targets.
    measure : str
    where : str
        Description of the bags, such as "291 held-out bags".
    errors : sequence of (name, error)
        Errors of the model, which comes first, and of its rivals.
    spread : float, optional
        Standard error of the model's error.
    """
    (_, error), *rivals = errors
    begin = f"Predicting {what}: "
    if measure == ERROR_RATE:
        names = {RIVALS["constant_error"]: MOST_FREQUENT}
        comparisons = [
            f"{names.get(name, name)} {percent(1 - rival, spread).partition(' ±')[0]}"
            for name, rival in ordered(rivals)
        ]
        sentence = f"{begin}accuracy {percent(1 - error, spread)} on {where}"
        return (
            f"{sentence}. For comparison: {', '.join(comparisons)}."
            if comparisons
            else f"{sentence}."
        )
    value = with_error(error, spread)
    if measure.endswith(RELATIVE):
        # the constant's relative error is 1
        rivals = [rival for rival in rivals if rival[0] != RIVALS["constant_error"]]
        relative_error = f"{measure.removesuffix(RELATIVE)} {times_constant(value)}"
        sentence = f"{begin}{relative_error} on {where}."
    else:
        sentence = f"{begin}{measure} {value} on {where}."
    comparisons = [_beside(error, name, rival, spread) for name, rival in ordered(rivals)]
    return f"{sentence} That is {listed(comparisons)}." if comparisons else sentence


def verdict_of(what: str, judged: Mapping[str, Any]) -> str:
    """Return the verdict on a result of `judge_fit`."""
    measure = judged["measure"]
    where = bags_in_words(judged["n"], measure.endswith(HELD_OUT))
    rivals = [(text, judged[key]) for key, text in RIVALS.items() if judged.get(key) is not None]
    errors = [("the model", judged["error"]), *rivals]
    return verdict(
        what, measure.removesuffix(HELD_OUT), where, errors, judged.get("standard_error")
    )


def times_constant(value: str) -> str:
    """Return a ratio of errors in words: "0.42 ± 0.03 times the best constant's"."""
    return f"{value} times {RIVALS['constant_error']}'s"


def root_spread(error: float, spread: float) -> float | None:
    """Return the standard error of an error, from that of its square; None for an error of 0."""
    return spread / (2 * error) if error else None


def optimism_of(report: Mapping[str, Any]) -> float:
    """Return by how much the error of a choice by folds is too small, being the least of several.

    It is a squared error over the variance of the labels; 0 for a given embedding, and for models
    that were saved before it was computed.
    """
    choice = report.get("choice", {})
    return float(choice["error"] - choice["tried"][0]["error"]) if "error" in choice else 0.0


def bags_in_words(n: int, are_held_out: bool) -> str:
    """Return the bags that a model was judged on, in words: "291 held-out bags"."""
    return f"{n:,} {'held-out ' if are_held_out else ''}bags"


def targets_in_words(names: Sequence[str]) -> str:
    """Return the names of the targets as text; names with a comma are quoted."""
    return ", ".join(f'"{name}"' if "," in name else name for name in names)


def listed(texts: Sequence[str]) -> str:
    """Return texts as a list in a sentence: "a, b and c"."""
    *first, last = texts
    return f"{', '.join(first)} and {last}" if first else last


def ordered(rivals: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """Return the rivals, the best first."""
    return sorted(rivals, key=lambda rival: rival[1])


def _beside(error: float, name: str, rival: float, spread: float | None) -> str:
    if not rival:
        return f"above {name} (0)"
    if error >= MAX_PERCENT_TIMES * rival:
        times = error / rival
        shown = f"{times:.1f}" if times < 10 else f"{times:,.0f}" if times < 1000 else "over 1,000"
        return f"{shown} times the error of {name} ({rounded(rival)})"
    change = 100 * (error - rival) / rival
    is_near = spread is not None and abs(error - rival) < NEAR_ERRORS * spread
    near = ", within two standard errors" if is_near else ""
    side = f"{abs(change):.0f} % {'below' if change <= 0 else 'above'}"
    return f"{side if round(abs(change)) else 'level with'} {name} ({rounded(rival, spread)}{near})"


def no_better(error: float, rival: float, spread: float, name: str) -> str | None:
    """Return a warning, without its period, if a rival is not clearly worse; else None.

    ``spread`` is two standard errors of the error, or 0. ``name`` may end in both errors.
    """
    if error >= rival:
        return f"The model is no better than {name}"
    if error + spread >= rival:
        return f"The model is hardly better than {name}, within two standard errors"
    return None


def r2_error(values: Mapping[str, Any], rmse_error: float) -> float:
    """Return the standard error of an R² whose only uncertain part is the RMSE."""
    rmse = values["rmse"]
    return float(2 * (1 - values["r2"]) * rmse_error / rmse) if rmse else 0.0


def share_error(share: float, n: float) -> float:
    """Return the standard error of a fraction of n independent bags.

    For a fraction of 0 or 1, two bags of each kind are added to the sample (Agresti and Coull
    1998), because few bags without a success do not prove that the probability is 0.
    """
    if not 0 < share < 1:
        share, n = (share * n + 2) / (n + 4), n + 4
    return float((share * (1 - share) / n) ** 0.5)


def percent(share: float, spread: float | None = None) -> str:
    """Return a fraction in percent, rounded as its standard error allows: "95.4 % ± 1.2 %"."""
    if not spread:
        return f"{100 * share:.1f} %"
    return f"{rounded(100 * share, 100 * spread)} % ± {rounded(100 * spread, 100 * spread)} %"


def whole_percent(share: float) -> str:
    """Return a fraction in whole percent: "90 %"."""
    return f"{100 * share:.0f} %"


def warning_lines(worries: Sequence[str], has_report: bool = True) -> list[str]:
    """Return a line with the first warning and the number of the others; none without warnings."""
    where = "the report" if has_report else "a report: --set report=report.json"
    more = f" ({len(worries) - 1} more in {where})" if len(worries) > 1 else ""
    return [f"Warning: {worry}{more}" for worry in worries[:1]]
