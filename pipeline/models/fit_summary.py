"""`FitSummary`: the choices of a fit, its error and the next step, in a few lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from ..core.digits import with_error
from ..data.bags.html import html_table, text_table
from ..embeddings.registered import spec_to_dict
from .fitting.choice.short_list import LINEAR_IN_MEANS
from .fitting.feature_map import FeatureMap
from .outcomes.base import Outcome
from .verdict import NEAR_ERRORS, RELATIVE, no_better, optimism_of, root_spread, times_constant

BY_FOLDS = f"error by folds{RELATIVE}"
"""Measure of the choice of an embedding: a ratio of root mean squared errors, as in verdicts."""


@dataclass(frozen=True)
class FitSummary:
    """The lines of ``model.summary()``: printed as text, and as a table in a notebook.

    Attributes
    ----------
    title : str
        First line of the summary.
    rows : dict
        Text of each line by its label.
    """

    title: str
    rows: Mapping[str, str]

    def beginning_with(self, verdict: str) -> Self:
        """Return the summary with a verdict as its first row."""
        return replace(self, rows={"verdict": verdict, **self.rows})

    def __str__(self) -> str:
        """Return a line for each row."""
        return text_table(self.title, self.rows)

    def __repr__(self) -> str:
        """Return the text, which a prompt shows."""
        return str(self)

    def _repr_html_(self) -> str:
        """Return the same lines as a table."""
        return html_table(self.title, self.rows)


def summary_of(
    estimator: str, features: FeatureMap, outcome: Outcome, penalty: str, report: Mapping[str, Any]
) -> FitSummary:
    """Return the summary of a fitted estimator, named by its class."""
    targets = ", ".join(outcome.names)
    rows = {
        "learned": outcome.kind + (f" ({targets})" if targets else ""),
        "bags": _bags(report),
        "embedding": f"{embedding_in_words(features, report)}; {features.n_features:,} features",
        "penalty": penalty,
    }
    if embedded := report.get("choice", {}).get("coordinates"):
        rows["coordinates"] = f"{', '.join(embedded)}; the others are left out"
    rows |= _errors(report)
    if outside := report.get("n_points_outside_box"):
        rows["outside the box"] = f"{outside:,} of {report['n_points_seen']:,} points"
    rows["next"] = _next_step(report)
    return FitSummary(f"{estimator}, fitted", rows)


def chosen_name(report: Mapping[str, Any]) -> str | None:
    """Return the choice of ``embedding="auto"`` in words; None for a given embedding."""
    choice = report.get("choice")
    if choice is None:
        return None
    width = choice["tried"][0]["width"] if choice["tried"] else None
    return str(choice["chosen"] + ("" if width is None else f", width {width:.3g}"))


def _bags(report: Mapping[str, Any]) -> str:
    fitted, held = report["n_bags_fitted"], report["n_bags_held_out"]
    parts = [f"{fitted:,} fitted"]
    parts += [f"{held:,} held out"] if held else []
    unlabelled = report["n_bags_unlabelled"]
    parts += [f"{unlabelled:,} without a label"] if unlabelled else []
    return ", ".join(parts) + f" ({report['n_points_seen']:,} points)"


def embedding_in_words(features: FeatureMap, report: Mapping[str, Any]) -> str:
    """Return the chosen or given embedding in words."""
    chosen = chosen_name(report)
    if chosen is None:
        return str(spec_to_dict(features.embedding)["name"])
    if not report["choice"]["tried"]:
        return f"{chosen}; too few bags to compare embeddings"
    return f"{chosen}; chosen from {len(report['choice']['tried'])} candidates"


def _errors(report: Mapping[str, Any]) -> dict[str, str]:
    """Return the error of the choice by folds next to its rivals; empty without a choice."""
    choice = report.get("choice")
    if choice is None or not choice["tried"]:
        return {}
    best, means = chosen_of(report), linear_of(report)
    rivals = f"; {LINEAR_IN_MEANS}: {_relative_error(means)}" if means else ""
    worries = {"warning": worry} if (worry := _no_better(best)) else {}
    return {
        "error": f"{times_constant(_relative_error(best))}{rivals}",
        **worries,
        "estimated by": f"{choice['n_folds']} folds of {choice['n_bags']:,} bags"
        + (", corrected for the choice" if "error" in choice else ""),
    }


def _no_better(best: Mapping[str, Any]) -> str | None:
    """Return a warning if the error is that of a constant, or within two standard errors of it."""
    return no_better(best["error"], 1.0, NEAR_ERRORS * best["standard_error"], "a constant")


def error_in_words(report: Mapping[str, Any]) -> str | None:
    """Return the error of the chosen embedding by folds; None without a choice."""
    if not report.get("choice", {}).get("tried"):
        return None
    error = _relative_error(chosen_of(report))
    return f"{BY_FOLDS.removesuffix(RELATIVE)} {times_constant(error)}"


def chosen_of(report: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the chosen candidate with its error corrected for being the least of several."""
    best = report["choice"]["tried"][0]
    return {**best, "error": best["error"] + optimism_of(report)}


def linear_of(report: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the candidate that is linear in means; None if it was not tried, or was chosen."""
    others = report["choice"]["tried"][1:]
    return next((judged for judged in others if judged["name"] == LINEAR_IN_MEANS), None)


def _relative_error(candidate: Mapping[str, Any]) -> str:
    """Return the root of a candidate's squared error over that of the best constant."""
    error = candidate["error"] ** 0.5
    return with_error(error, root_spread(error, candidate["standard_error"]))


def _next_step(report: Mapping[str, Any]) -> str:
    if report["n_bags_held_out"]:
        return "evaluate(model, X, y) judges the model on the bags held out"
    return "cross_val_score(model, X, y), or fit with holdout=0.2, then evaluate"
