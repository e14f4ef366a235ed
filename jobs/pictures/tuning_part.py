"""The part of a page on ``bags tune``: who won, by how much, and where the search ended."""

from __future__ import annotations

from collections.abc import Sequence

from bagbasis.core.digits import with_error
from bagbasis.core.errors import plural
from bagbasis.models import Score, Tuning
from bagbasis.models.fit_summary import chosen_name
from bagbasis.models.verdict import targets_in_words, verdict, verdict_of

from .charts import Chart, Series
from .model_part import (
    CHECKS_OF_MODEL,
    card_of,
    choice_tables,
    compare_judged,
    header_of,
    path_of,
    score_tables,
    worries_of_model,
)
from .parts import Part, Table, facts

_COLORS = ("blue", "orange", "green", "purple", "grey")  # of the candidates that are drawn
_CHECKS = ("the winner better than the others by two standard errors", "its width within the grid")
BARS = "Bars: one standard error, as if errors were normal and bags independent."


def tune_part(result: Tuning, names: Sequence[str], edge: str | None, urls: Sequence[str]) -> Part:
    """Return the part of a tune.

    Parameters
    ----------
    result : Tuning
    names : sequence of str
        Names of the candidates.
    edge : str or None
        That the best σ is the first or the last that was tried.
    urls : model's and data's
    """
    order = result.ranking
    last, best = result.scores[-1], result.scores[-1][result.winner]
    worries = [] if edge is None else [f"{edge}."]
    if best.error >= 1:
        worries.append(f"The winner is no better than a constant: its error is {best.error:.3g}.")
    close = [names[c] for c in order if c in last and _is_close(last[c], best, c == result.winner)]
    if close:
        which = close[0] if len(close) == 1 else f"{len(close)} others, {close[0]} first"
        worries.append(
            f"The winner is not clearly better than {which}: less than two standard errors apart "
            "on the same bags."
        )
    model = result.model
    rows = [
        [
            names[c],
            "winner" if c == result.winner else "",
            *[_say(scores[c]) if c in scores else None for scores in result.scores],
        ]
        for c in order
    ]
    columns = ["candidate", "", *[f"{rung.n_bags:,} bags" for rung in result.rungs]]
    note = (
        "Squared error over the variance, on bags that the candidate was not fitted to. "
        f"{BARS.replace('Bars', '±')}"
    )
    judged = result.judged
    compared_on = f"{best.n_held_out:,} bags that tuning compared on"
    judged_on = f"{compared_on}: squared error over the variance {_say(best)}"
    what = targets_in_words(model.outcome_.scored_names)
    if judged is None:
        beaten, tables = [], []
        beside = [("the winner", best.error), ("the best constant", 1.0)]
        sentence = verdict(
            what, "squared error over the variance", compared_on, beside, _error(best, best.error)
        )
    else:
        sentence = verdict_of(what, judged)
        beaten, tables = compare_judged(judged), score_tables(judged)
        error = with_error(judged["error"], judged.get("standard_error"))
        judged_on = f"{judged['measure']}: {error} ({judged['n']:,} bags); {judged_on}"
    title = f"{len(order)} {plural('candidate', len(order))}"
    compared = choice_tables(model) if _is_choice(result) else [Table(title, columns, rows, note)]
    head = head_of(result)
    return Part(
        f"Tuning of {what}",
        header_of(model, *urls),
        [*beaten, *worries, *worries_of_model(model)],
        [*tables, *compared, *([facts({"head": head})] if head else [])],
        [*_charts(result, order, names), *path_of(model)],
        card=card_of(model, judged_on),
        answer=f"{sentence} {winner_in_words(result, names)}.",
        checks=[*(_CHECKS if len(order) > 1 else ()), *CHECKS_OF_MODEL],
    )


def winner_in_words(result: Tuning, names: Sequence[str]) -> str:
    """Return what was chosen, and from how many."""
    if _is_choice(result):
        report = result.model.report_
        n, name = len(report["choice"]["tried"]), chosen_name(report)
    else:
        n, name = len(names), names[result.winner]
    return f"Chosen from {n:,} {plural('candidate', n)}: {name}"


def _is_choice(result: Tuning) -> bool:
    """Return whether all that was compared is what ``embedding="auto"`` compares by folds."""
    choice = result.model.report_.get("choice")
    return len(result.candidates) == 1 and bool(choice and choice["tried"])


def head_of(result: Tuning) -> str | None:
    """Return which head was taken, and the errors of all by folds; None where one was tried."""
    head = result.model.report_.get("head")
    if head is None:
        return None
    if "refused" in head:
        return f"ridge; no trees were grown: {head['refused']}"
    errors = ", ".join(f"{name} {error:.3f}" for name, error in head["errors"].items())
    text = f"{head['head']}; errors over {head['n_folds']} folds: {errors}"
    least = min(head["errors"], key=head["errors"].get)
    if head["head"] != least:
        text += (
            f"; {head['head']} was taken although {least} has the least error: folds do not tell "
            "heads apart on so few bags, and a mean of heads errs less on new ones"
        )
    return text


def _charts(result: Tuning, order: Sequence[int], names: Sequence[str]) -> list[Chart]:
    paths, rungs = [], []
    for color, c in reversed([*zip(_COLORS, order, strict=False)]):  # so the winner lies on top
        scores = [of_rung[c] for of_rung in result.scores if c in of_rung]
        far, joined = scores[-1], len(scores) > 1
        x = [alpha / far.n_train for alpha in far.alphas]
        bars = [_error(far, error) for error in far.errors]
        paths.append(Series(names[c], x, far.errors, (), bars, color, joined=True))
        n, errors = [score.n_bags for score in scores], [score.error for score in scores]
        bars = [_error(score, score.error) for score in scores]
        rungs.append(Series(names[c], n, errors, (), bars, color, joined))
    drawn = "" if len(order) <= len(_COLORS) else f"The best {len(_COLORS)} of {len(order)}. "
    what = "error / variance"
    return [
        Chart(
            "Over the penalty, on the most bags that each has seen",
            *("penalty λ per fitted bag", what),
            paths,
            drawn + BARS,
            log_x=True,
        ),
        Chart("Over the rungs", "bags compared on", what, rungs, drawn + BARS, log_x=True),
    ]


def _error(score: Score, error: float) -> float:
    return error * score.relative_spread


def _say(score: Score) -> str:
    return with_error(score.error, _error(score, score.error))


def _is_close(score: Score, best: Score, is_best: bool) -> bool:
    return not is_best and score.error - best.error < 2 * _error(best, best.error)
