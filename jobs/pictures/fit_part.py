"""The part of a page on a fit: errors on bags held out, what was chosen, and the penalty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bagbasis.core.digits import with_error
from bagbasis.data.store.store import BagStore
from bagbasis.models.errors import Errors
from bagbasis.models.verdict import targets_in_words, verdict_of

from .bags_in_view import BagsInView
from .errors_page import errors_part
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
from .parts import Part

if TYPE_CHECKING:
    from .model_part import JobModel

NO_ESTIMATE = "No error estimate: pass holdout= (a fraction of the bags), or leave alpha= out."


def part_of_fit(
    url: str,
    model: JobModel,
    data_url: str,
    store: BagStore | BagsInView | None,
    judged: dict[str, Any] | None,
    errors: Sequence[Errors | None],
) -> Part:
    """Return the part of the page; without held-out bags it shows the score of the penalty.

    ``errors`` are those of the model, of ridge regression on means and of a forest on the bags of
    ``store``; without any, ``judged`` is what `judge_fit` found, or None.
    """
    title = f"Fit of {targets_in_words(model.outcome_.scored_names)}"
    worries, judged_on = [], "nothing: no bag was held out"
    if errors and store is not None:
        first, *others = errors
        assert first is not None
        part = errors_part(title, model, store, first, *others)
    elif judged is None:
        worries.append(NO_ESTIMATE)
        part = Part(title, card=card_of(model, judged_on))
    else:
        worries += compare_judged(judged)
        error = with_error(judged["error"], judged.get("standard_error"))
        judged_on = f"{judged['measure']}: {error}"
        tables = score_tables(judged)
        answer = verdict_of(targets_in_words(model.outcome_.scored_names), judged)
        part = Part(title, tables=tables, card=card_of(model, judged_on), answer=answer)
    return replace(
        part,
        header=header_of(model, url, data_url),
        worries=[*part.worries, *worries, *worries_of_model(model)],
        checks=[*part.checks, *CHECKS_OF_MODEL],
        tables=[*part.tables, *choice_tables(model)],
        charts=[*part.charts, *path_of(model)],
    )
