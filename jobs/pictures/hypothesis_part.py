"""The parts of a page on a test of a hypothesis, and on a test for drift."""

from __future__ import annotations

from typing import Any

import numpy as np

from bagbasis.core.digits import rounded, with_error
from bagbasis.hypotheses import HypothesisResult
from bagbasis.hypotheses.result import LEVEL, p_text
from bagbasis.models.explain import coordinate_in_words
from bagbasis.plotting.hypothesis_tests import FAR_TIMES, MAX_COORDINATES

from ..conclusions import FEW_UNITS, answer_of_test, compared, next_step, worries_of_test
from .charts import Bars, Chart, Series
from .parts import Part, Table, facts

_N_BINS = 40  # of the null distribution
CHECKS_OF_TEST = (
    f"at least {FEW_UNITS} units in each sample",
    "no unit left out",
    "a p-value above the least possible",
)


def hypothesis_part(result: HypothesisResult, level: float | None = None) -> Part:
    """Return the conclusion, the numbers, the null distribution and the scales."""
    drawn = LEVEL if level is None else level
    lines = {
        "statistic": with_error(result.statistic, result.standard_error),
        "p-value": p_text(result.p_value),
        "effect": f"{result.effect:#.2g}" if np.isfinite(result.effect) else "not known",
        "compared": compared(result).removeprefix("Compared: "),
    }
    return Part(
        ("Test for drift" if level is not None else f"Test: {result.question}"),
        answer=answer_of_test(result, level),
        next=next_step(result, drawn),
        worries=worries_of_test(result),
        checks=CHECKS_OF_TEST,
        tables=[facts(lines)],
        charts=[_null_chart(result, drawn), *_scale_charts(result, drawn)],
        bars=_coordinate_bars(result, drawn),
        details=[_details(result)],
    )


def _null_chart(result: HypothesisResult, level: float) -> Chart:
    null = result.null_distribution
    counts, edges = np.histogram(null, bins=_N_BINS)
    middles, shares = (edges[1:] + edges[:-1]) / 2, counts / max(1, len(null))
    threshold = float(np.quantile(null, 1 - level))
    top = float(shares.max())
    series = [
        Series("without an effect", middles.tolist(), shares.tolist(), joined=True, radius=1.5),
        Series(
            f"level {level:g}", [threshold] * 2, [0.0, top], color="grey", joined=True, radius=0
        ),
    ]
    note = f"Null distribution: {result.null.replace('_', ' ')}, {len(null):,} values."
    statistic = rounded(result.statistic, result.standard_error)
    text = f"statistic {statistic}, p = {p_text(result.p_value)}"
    if result.statistic > null.max() + FAR_TIMES * np.ptp(null):
        note += f" The {text} is far to the right."
    else:
        place = [result.statistic] * 2
        series.append(Series("this statistic", place, [0.0, top], [text] * 2, (), "orange", True))
    return Chart(
        "The statistic, and what chance alone gives",
        result.name.partition("(")[0],
        "fraction",
        series,
        note,
    )


def _scale_charts(result: HypothesisResult, level: float) -> list[Chart]:
    scales = result.details.get("scales")
    if not scales:
        return []
    is_weight = "weight" in scales
    values = np.array(scales["weight" if is_weight else "corrected"], dtype=float)
    kernels, widths = np.array(scales["kernel"]), np.array(scales["bandwidth"], dtype=float)
    colors = ("blue", "orange", "green", "purple")
    series = [
        Series(
            f"{kernel} kernel",
            widths[kernels == kernel].tolist(),
            values[kernels == kernel].tolist(),
            color=colors[i % len(colors)],
            joined=True,
        )
        for i, kernel in enumerate(dict.fromkeys(scales["kernel"]))
    ]
    title = _contributions("scale", result, level)
    y_label = "weight in the statistic" if is_weight else "p-value, corrected for all bandwidths"
    return [Chart(title, "bandwidth", y_label, series, log_x=True, log_y=not is_weight)]


def _coordinate_bars(result: HypothesisResult, level: float) -> list[Bars]:
    coordinates = result.details.get("coordinates")
    if not coordinates or "lost_without" not in coordinates:
        return []
    lost = np.array(coordinates["lost_without"], dtype=float)
    order = np.argsort(-lost, kind="stable")[:MAX_COORDINATES]
    names = coordinates.get("names") or [str(j) for j in range(len(lost))]
    first = f", the first {len(order)} of {len(lost):,}" if len(order) < len(lost) else ""
    return [
        Bars(
            _contributions("coordinate", result, level),
            f"fraction of the statistic that is lost without it{first}",
            [coordinate_in_words(names[j]) for j in order.tolist()],
            lost[order].tolist(),
            [0.0] * len(order),
        )
    ]


def _contributions(unit: str, result: HypothesisResult, level: float) -> str:
    """Return the title of what each scale or coordinate adds to the statistic."""
    title = f"Contribution of each {unit}"
    if result.p_value > level:
        title += f" (no significant difference, p = {p_text(result.p_value)})"
    return title


def _details(result: HypothesisResult) -> Table:
    rows = [
        [name.replace("_", " "), value]
        for name, value in result.details.items()
        if isinstance(value, (int, float, str))
    ]
    kernel = [["kernel", result.kernel]] if result.kernel else []
    seconds: list[list[Any]] = [["seed", result.seed], ["seconds", rounded(result.seconds)]]
    whole: list[list[Any]] = [["statistic", result.name], *kernel, *rows, *seconds]
    return Table("Details", (), whole)
