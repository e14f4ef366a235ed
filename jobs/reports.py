"""Pages of models and of tests from Python: the ones that commands write, in the same words."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bagbasis.core.errors import needing_extra
from bagbasis.data.storage.urls import normalize_url
from bagbasis.data.store.store import BagStore

if TYPE_CHECKING:
    from bagbasis.data.labelled.inputs import BagsLike, LabelsLike
    from bagbasis.hypotheses.result import HypothesisResult
    from bagbasis.models.base import DoubleBasis

    from .pictures.parts import Part

IN_MEMORY = "bags in memory"
_NEXT = "model.save(url), then model.predict(new_bags), or bags models add REGISTRY url --promote"


def write_model_page(
    model: DoubleBasis, url: str | os.PathLike[str], X: BagsLike | None, y: LabelsLike
) -> None:
    """Write the page of a fitted model, judged on bags if any are given; see `DoubleBasis.report`.

    Raises
    ------
    DataError
        Without jinja2 or matplotlib.
    StoreError
        Something else than such a page is at the URL.
    """
    _check_extras()
    _write("fit", url, [_model_part(model, X, y)])


def write_test_page(result: HypothesisResult, url: str | os.PathLike[str]) -> None:
    """Write the page of the result of a test; raises as `write_model_page`."""
    _check_extras()
    from .pictures.hypothesis_part import hypothesis_part

    names = {"two samples": "test two-sample", "independence": "test independence"}
    _write(names.get(result.question, "test fit"), url, [hypothesis_part(result)])


def _check_extras() -> None:
    """Raise DataError without what pages and their charts are made with, before any work."""
    with needing_extra("cli", "report"):
        import jinja2  # noqa: F401
    with needing_extra("plots", "report"):
        import matplotlib as mpl  # noqa: F401


def _write(name: str, url: str | os.PathLike[str], parts: list[Part]) -> None:
    from .files import check_report_place, is_report_page, make_folder_of, write_page
    from .page import render

    place = normalize_url(url)
    check_report_place(place, is_report_page)
    make_folder_of(place)
    write_page(place, render(name, parts, {}))


def _model_part(model: DoubleBasis, X: BagsLike | None, y: LabelsLike) -> Part:
    from bagbasis.models.evaluation.baselines import judge_given
    from bagbasis.models.evaluation.coverage import judge_intervals

    from .pictures.bags_in_view import BagsInView
    from .pictures.fit_part import part_of_fit
    from .pictures.model_part import interval_tables

    intervals: list[dict[str, Any]] = []
    if X is None:
        return part_of_fit(IN_MEMORY, model, IN_MEMORY, None, None, [])
    bags, judged, errors = judge_given(model, X, y)
    view = bags.data if isinstance(bags.data, BagStore) else BagsInView.of(bags)
    if isinstance(X, BagStore):
        intervals = judge_intervals(model, X)
    part = part_of_fit(IN_MEMORY, model, view.url or IN_MEMORY, view, judged, errors)
    return replace(part, tables=[*part.tables, *interval_tables(model, intervals)], next=_NEXT)
