"""Tuning with few bags: the choice of ``embedding="auto"`` by folds, with a stack as the head.

A held-out tenth of some hundred bags cannot distinguish candidates. Folds of all bags can; they are
repeated with few bags. Folds cannot distinguish heads, because the embedding was chosen by the
error of the ridge on the same bags. As the least of dozens of errors, it is optimistic. On other
bags, a stack errs less than the head with the least error by folds (`bags experiment real-bags`),
and its weights can leave out a bad head.
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.base import clone

from ...core.errors import DataError
from ...execution.progress import Progress
from ..base import DoubleBasis, fit_parameters_of
from ..fitting.choice.automatic import Choice
from ..fitting.problem import Problem
from ..stacking import STACK
from .candidates import Candidate
from .last_fit import fit_winner, judge_winner, keep_groups_whole
from .order import Rung
from .records import Score, Tuning
from .search import Search

TUNED_AT_ONCE = 2000  # the choice reads no more


def tune_few(
    problem: Problem,
    estimator: DoubleBasis,
    search: Search,
    choice: Choice,
    progress: Progress,
) -> Tuning:
    """Return the model of a choice by folds, with a stack as its head if the search has one.

    Otherwise the head with the least error by folds is used. The choice is the only candidate. The
    entry "choice" of the model's report has the other embeddings that were tried.

    Raises
    ------
    DataError
        If there are too few labelled bags for folds.
    """
    begun = time.perf_counter()
    report = choice.report
    if not report["tried"]:
        raise DataError(
            f"{problem.source.url or 'X'}: {report['n_bags']} labelled bags are too few to compare "
            "anything on: label more bags"
        )
    second = choice.random_features
    alpha = fit_parameters_of(estimator).alpha_for(choice.n_labelled)
    made = clone(estimator).set_params(
        embedding=choice.embedding, random_features=second, alpha=alpha
    )
    made = keep_groups_whole(problem, made)
    heads = [STACK] if STACK in (search.heads or ()) else search.heads
    model = fit_winner(problem, made, heads, progress, {"choice": report})
    multiplier = None if second is False else float(second.scale_multiplier)
    candidate = Candidate(
        embedding=0, scale_multiplier=multiplier, features=model.features_, first=choice.embedding
    )
    n, best = report["n_bags"], report["tried"][0]
    alpha = float(best["alpha"] * n)
    score = Score(
        error=best["error"],
        n_bags=n,
        n_train=n - -(-n // report["n_folds"]),
        n_held_out=n,
        alpha=alpha,
        alphas=(alpha,),
        errors=(best["error"],),
        seconds=time.perf_counter() - begun,
    )
    judged = judge_winner(model, problem, progress)
    rungs = [Rung(n_blocks=1, n_bags=n, n_candidates=1, n_kept=1)]
    return Tuning(
        embeddings=[choice.embedding],
        candidates=[candidate],
        rungs=rungs,
        scores=[{0: score}],
        winner=0,
        model=model,
        leads=[],
        judged=judged,
    )


def widths_with(search: Search, choice: Choice) -> tuple[float, ...]:
    """Return the multipliers of a search, including the one that the choice took."""
    second = choice.random_features
    widths = {float(width) for width in search.scale_multipliers}
    if second is not False and np.isfinite(second.scale_multiplier):
        widths.add(float(second.scale_multiplier))
    return tuple(sorted(widths))
