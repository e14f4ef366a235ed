"""The verdict on a paper's order of methods, from accuracies on the same splits."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis.jobs.experiments.order import lead, lead_text, order_verdict

SHARES = {
    "high": np.array([0.90, 0.92, 0.91]),
    "near": np.array([0.89, 0.93, 0.905]),
    "less": np.array([0.87, 0.89, 0.88]),
    "low": np.array([0.80, 0.81, 0.82]),
}


def test_lead_is_that_on_the_same_splits():
    """The error is that of the differences, and there is none with one split."""
    assert lead(SHARES["high"], SHARES["less"]) == pytest.approx((0.03, 0))
    gaps = SHARES["high"] - SHARES["low"]
    assert lead(SHARES["high"], SHARES["low"]) == pytest.approx((0.1, gaps.std(ddof=1) / 3**0.5))
    assert lead_text(SHARES["high"], SHARES["less"], 3) == "+0.030 ± 0.000"
    assert lead_text(SHARES["low"][:1], SHARES["high"][:1], 2) == "-0.10"


@pytest.mark.parametrize(
    ("one", "relation", "other", "holds"),
    [
        ("high", "≥", "near", True),
        ("near", "≥", "high", True),
        ("less", "≥", "high", False),
        ("high", ">", "near", False),
        ("high", ">", "less", True),
        ("high", "≫", "less", False),
        ("high", "≫", "low", True),
    ],
)
def test_relations(one, relation, other, holds):
    """≥ allows a level, > asks for a sure lead, and ≫ for a large one."""
    verdict = order_verdict(SHARES, [(one, relation, other)], 3)
    first, second = verdict.split(". Does not hold here: ")
    assert (f"{one} {relation} {other} (" in first) == holds
    assert (f"{one} {relation} {other} (" in second) != holds
    assert "nothing" in (second if holds else first)
