"""Results of tests in sentences, as the terminal and the page have them."""

from __future__ import annotations

import numpy as np

from bagbasis.core.errors import plural
from bagbasis.hypotheses import HypothesisResult
from bagbasis.hypotheses.result import LEVEL, p_text
from bagbasis.models.verdict import warning_lines

FEW_UNITS = 20  # in a sample: with fewer, only large differences are detected
RESAMPLED = {
    "permutation": "permutations",
    "shift": "shifts",
    "wild_bootstrap": "draws of the wild bootstrap",
}
DRAWS_PARAMETER = {"fit": "n_draws"}  # the parameter that is the number of draws, by test
_NEXT = {
    "two samples": "statistic: agg says which scales differ, bandwidth: ard which coordinates",
    "independence": "bags fit measures how well the bags predict the target",
    "fit": "bags evaluate, or statistic: ksd_agg, which says at which scales",
}


def answer_of_test(result: HypothesisResult, level: float | None = None) -> str:
    """Return the conclusion and the size of the effect in sentences.

    ``level`` is the level of a test for drift; None for any other test.
    """
    conclusion = result.verdict()
    if level is not None:
        which = "Drift: the new data differ from the reference"
        if result.p_value > level:
            which = "No drift was detected"
        conclusion = f"{which} (p = {p_text(result.p_value)}, level {level:g})."
    if not np.isfinite(result.effect):
        return conclusion
    return (
        f"{conclusion} Effect: {result.effect:#.2g}, squared and in units of the spread within "
        "the samples; 0 is none."
    )


def compared(result: HypothesisResult) -> str:
    """Return what was compared, and by what, in a line."""
    parts = []
    for name, n in result.n.items():
        units = result.n_units[name]
        rows = f"{n:,} {plural('row', n)}"
        parts.append(f"{name} {rows if result.unit == 'point' else f'{units:,} {result.unit}s'}")
    samples = ", ".join(parts)
    null = result.null.replace("_", " ")
    return f"Compared: {samples}; {result.name.partition('(')[0]}, {null} null"


def next_step(result: HypothesisResult, level: float = LEVEL) -> str:
    """Return what to do after a test."""
    if result.p_value > level:
        return "more units detect smaller effects; no detection is no proof of equality"
    return _NEXT.get(result.question, "look at the pictures of the difference")


def lines_of_test(
    result: HypothesisResult, level: float | None = None, has_report: bool = True
) -> list[str]:
    """Return the result in a few lines: what was found, what was compared, and what to do next."""
    return [
        answer_of_test(result, level),
        compared(result),
        *warning_lines(worries_of_test(result), has_report),
        f"Next: {next_step(result, LEVEL if level is None else level)}",
    ]


def worries_of_test(result: HypothesisResult) -> list[str]:
    """Return warnings: units left out, few units, or a p-value that is the least possible."""
    worries = [
        f"{value:,} {key.replace('_', ' ')}: bags with fewer points than all are thinned to"
        + (" (thin), or without a value." if key.startswith("pairs") else " (thin).")
        for key, value in result.details.items()
        if "left_out" in key and isinstance(value, int) and value
    ]
    worries += [
        f"Few {result.unit}s: sample {name} has {n:,}; only large differences are detected."
        for name, n in result.n_units.items()
        if n < FEW_UNITS
    ]
    n_null = len(result.null_distribution)
    if result.null in RESAMPLED and result.p_value <= 1 / (n_null + 1):
        worries.append(
            f"The p-value is the least that {n_null:,} {RESAMPLED[result.null]} can give; more "
            f"of them ({DRAWS_PARAMETER.get(result.question, 'n_permutations')}) may give a "
            "smaller one."
        )
    return worries
