"""The picture of a tune: error over the penalty, and over the number of bags."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from bagbasis.plotting.style import GREY, MAX_LETTERS

from .evaluation import new_figure, save_figure

if TYPE_CHECKING:
    from bagbasis.models import Rung, Score

MAX_RANKED = 15  # candidates of a single rung
_MAX_NAMED = 4  # candidates with a colour of their own and an entry in the legend
_COLORS = ("#e07b39", "#3b6fb6", "#4c9a5b", "#a8457c")
MARKERS = "osD^"


def draw_tuning(
    path: str | os.PathLike[str],
    rungs: Sequence[Rung],
    scores: Sequence[dict[int, Score]],
    names: Sequence[str],
    winner: int,
) -> Path:
    """Draw every candidate's path over λ on the first rung, and the best scores over the rungs.

    If there is a single rung, the right panel has the best candidates, best first.

    The winner and the candidates that came furthest have a colour and a name, the others are grey.
    """
    reached = {
        c: (-r, score.error) for r, of_rung in enumerate(scores) for c, score in of_rung.items()
    }
    order = sorted(reached, key=lambda c: (c != winner, reached[c], c))
    figure = new_figure(13.0, 5.6)
    left, right = figure.subplots(1, 2)
    for place in reversed(range(len(order))):
        c = order[place]
        named = place < _MAX_NAMED
        style = {
            "color": _COLORS[place] if named else GREY,
            "alpha": 1.0 if named else 0.35,
            "linewidth": 2.4 if place == 0 else 1.3,
            "zorder": 3 if named else 2,
        }
        first = scores[0][c]
        left.plot(np.array(first.alphas) / first.n_train, first.errors, **style)
        left.plot(
            first.alpha / first.n_train,
            first.error,
            MARKERS[place] if named else ".",
            **{**style, "markersize": 7 if named else 4},
        )
        at = [(float(of_rung[c].n_bags), of_rung[c].error) for of_rung in scores if c in of_rung]
        if len(rungs) == 1:
            at = [(first.error, place)]
        label = _label(names[c], place, len(order))
        right.plot(
            *zip(*at, strict=True), marker=MARKERS[place] if named else ".", label=label, **style
        )
    _finish_left(left, scores[0])
    if len(rungs) == 1:
        _finish_ranking(right, [(names[c], scores[0][c].error) for c in order], rungs[0].n_bags)
    else:
        _finish_right(right, rungs)
        handles, labels = right.get_legend_handles_labels()
        shown = [(h, t) for h, t in zip(reversed(handles), reversed(labels), strict=True) if t]
        figure.legend(*zip(*shown, strict=True), loc="outside lower center", ncols=2, fontsize=9)
    figure.suptitle(f"{len(order)} candidates: squared error on bags held out, over the variance")
    return save_figure(figure, path)


def _label(name: str, place: int, n: int) -> str | None:
    if place == 0:
        return f"{name} (winner)"
    if place < _MAX_NAMED:
        return name
    return f"{n - _MAX_NAMED} others" if place == _MAX_NAMED else None


def _finish_left(axis: Axes, scores: dict[int, Score]) -> None:
    """Make axes logarithmic if all penalties are positive; cut off scores that explode."""
    first = next(iter(scores.values()))
    if min(first.alphas) > 0:
        axis.set_xscale("log")
    best = min(score.error for score in scores.values())
    finite = np.array([error for score in scores.values() for error in score.errors])
    top = max(1.05, 1.05 * max(score.error for score in scores.values()))
    axis.set_ylim(max(0.0, best - 0.08 * (top - best)), min(top, 1.02 * finite.max()))
    axis.set_xlabel("penalty λ a fitted bag")
    axis.set_ylabel("error / variance")
    axis.set_title(f"Over the penalty, on the first {first.n_bags:,} bags", fontsize=10)
    axis.grid(alpha=0.25)


def _finish_ranking(axis: Axes, ranked: Sequence[tuple[str, float]], n_bags: int) -> None:
    errors = [error for _, error in ranked[:MAX_RANKED]]
    names = [name for name, _ in ranked[:MAX_RANKED]]
    shown = [name if len(name) <= MAX_LETTERS else f"{name[:MAX_LETTERS]}…" for name in names]
    axis.set_yticks(range(len(shown)), labels=shown, fontsize=8)
    axis.set_ylim(len(shown) - 0.5, -0.5)
    pad = 0.06 * (max(errors) - min(errors)) or 0.05
    axis.set_xlim(min(errors) - pad, max(errors) + pad)
    axis.set_xlabel("error / variance, best penalty")
    of = f" {len(shown)} of {len(ranked)}" if len(shown) < len(ranked) else ""
    axis.set_title(f"The best{of} on {n_bags:,} bags", fontsize=10)
    axis.grid(alpha=0.25)


def _finish_right(axis: Axes, rungs: Sequence[Rung]) -> None:
    sizes = [rung.n_bags for rung in rungs]
    axis.set_xscale("log")
    axis.set_xticks(sizes, labels=[f"{size:,}" for size in sizes])
    axis.set_xticks([], minor=True)
    axis.set_xlabel("bags compared on")
    axis.set_ylabel("error / variance, best penalty")
    axis.set_title("Over the rungs", fontsize=10)
    axis.grid(alpha=0.25)
