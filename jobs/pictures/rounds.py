"""The picture of a sequence of models: errors, new bags and drift over the rounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from bagbasis.operations import Round
from bagbasis.plotting.style import BLUE, GREY, ORANGE

from .evaluation import new_figure

_MAX_NAMED = 12  # newest rounds, whose numbers of bags are written as text
GATES = {"inputs": ("o", BLUE), "concept": ("s", ORANGE), "labels": ("^", "black")}


def draw_rounds(rounds: Sequence[Round], report: dict[str, Any]) -> Figure:
    """Errors, new bags and, once it was tested, drift over the rounds, one panel each."""
    is_tested = any(past.p_value is not None or past.p_values for past in rounds)
    is_bet = any(past.wealth for past in rounds)
    n_panels = 2 + is_tested + is_bet
    figure = new_figure(9.0, 2.8 * n_panels)
    axes = figure.subplots(n_panels, 1, sharex=True)
    _errors(axes[0], rounds, report["measure"])
    _new_bags(axes[1], rounds)
    if is_tested:
        _p_values(axes[2], rounds)
    if is_bet:
        _wealth(axes[-1], rounds)
    axes[-1].set_xlabel("round")
    axes[-1].xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes[-1].set_xlim(0.3, rounds[-1].number + 0.7)
    figure.suptitle(f"Retraining up to round {rounds[-1].number}")
    return figure


def _errors(axis: Axes, rounds: Sequence[Round], measure: str) -> None:
    judged = [past for past in rounds if past.error is not None]
    against = [past for past in rounds if past.champion_error is not None]
    refused = [past for past in judged if past.decision != "promoted"]
    errors = [_y(past.error) for past in judged]
    axis.plot(_numbers(judged), errors, "o-", color=BLUE, label="challenger")
    if against:
        before = [_y(past.champion_error) for past in against]
        axis.plot(_numbers(against), before, "s--", color=ORANGE, label="champion before")
    if refused:
        errors = [_y(past.error) for past in refused]
        axis.plot(_numbers(refused), errors, "kx", markersize=11, label="refused")
    axis.set_ylabel(measure if len(measure) < 40 else "error")
    axis.legend(loc="best", fontsize=9)


def _new_bags(axis: Axes, rounds: Sequence[Round]) -> None:
    """Draw new bags as dots and labelled bags as rings, which coincide if all bags have labels."""
    numbers = _numbers(rounds)
    new, labelled = ([getattr(past, n) for past in rounds] for n in ("n_new", "n_new_labelled"))
    axis.plot(numbers, new, "o", mfc="none", color=GREY, label="new bags", markersize=11)
    axis.plot(numbers, labelled, "o", color=BLUE, label="with a label")
    for number, n in [*zip(numbers, new, strict=True)][-_MAX_NAMED:]:
        axis.annotate(f"{n:,}", (number, n), (8, 6), textcoords="offset points", fontsize=8)
    axis.set_yscale("symlog", linthresh=1)  # a round may have no label
    axis.set_ylim(0, 4 * max(1, *new))
    axis.set_ylabel("new bags")
    axis.legend(loc="best", fontsize=9)


def _p_values(axis: Axes, rounds: Sequence[Round]) -> None:
    for gate, (marker, color) in GATES.items():
        # rounds of earlier versions had only the first gate
        values = [(past, {"inputs": past.p_value, **past.p_values}.get(gate)) for past in rounds]
        tested = [(past.number, p) for past, p in values if p is not None]
        if tested:
            axis.plot(*zip(*tested, strict=True), marker, color=color, label=gate)
    levels = [(past.number, past.level) for past in rounds if past.level]
    if levels:
        axis.plot(*zip(*levels, strict=True), "--_", color=GREY, label="level")
    axis.set_yscale("log")
    axis.set_ylim(top=1.3)
    axis.set_ylabel("p-values of drift")
    axis.legend(loc="best", fontsize=9)


def _wealth(axis: Axes, rounds: Sequence[Round]) -> None:
    """Draw the capital of each gate that bets, and what it has to reach for an alarm."""
    for gate, (marker, color) in GATES.items():
        known = [(past.number, 10 ** past.wealth[gate]) for past in rounds if gate in past.wealth]
        if known:
            axis.plot(*zip(*known, strict=True), f"{marker}-", color=color, label=gate)
    levels = [(past.number, 1 / past.level) for past in rounds if past.wealth and past.level]
    axis.plot(*zip(*levels, strict=True), "--_", color=GREY, label="alarm")
    axis.set_yscale("log")
    axis.set_ylabel("wealth of the gates")
    axis.legend(loc="best", fontsize=9)


def _numbers(rounds: Sequence[Round]) -> list[int]:
    return [past.number for past in rounds]


def _y(value: float | None) -> float:
    return float("nan") if value is None else value
