"""Rates of rejection without a difference, at small scale."""

from __future__ import annotations

from typing import ClassVar

import pytest

from bagbasis.hypotheses import FIT, TWO_SAMPLE
from tests.jobs.experiments.contract import Contract, make


class TestLevels(Contract):
    name = "levels"
    sizes: ClassVar = {"n_tests": 40}

    def test_statistics_with_every_null(self, report):
        """At paper scale all of two samples and of fit; a rate of 60 tests is rough, and no larger
        than chance makes it."""
        points = {p.label for p, _ in make(self.name, scale="paper").points()}
        for name, kind in {**TWO_SAMPLE, **FIT}.items():
            series = "wild_bootstrap" if name in TWO_SAMPLE else None
            assert {f"points {name} {n}" for n in kind.nulls if n != series} <= points
        [table] = report["tables"]
        assert {row[0] for row in table["rows"]} == {
            "points", "unequal", "heavy", "ties", "bags", "buckets", "groups", "within",
            "samples within", "learnt", "series",
        }  # fmt: skip
        for *_, at_5, at_10, _ in table["rows"]:
            assert at_5 == pytest.approx(0.05, abs=0.13)
            assert at_10 == pytest.approx(0.1, abs=0.16)
