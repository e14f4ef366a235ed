"""Tests of hypotheses on points and on bags, with the bag as the unit."""

from .result import HypothesisResult

__all__ = ["HypothesisResult"]
