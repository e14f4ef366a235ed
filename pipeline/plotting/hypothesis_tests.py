"""Figures of tests: null distribution, contributions of scales and coordinates, drift."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from ..core import Instance, checked, documented
from ..core.errors import DataError, plural
from ..hypotheses.result import LEVEL
from .style import BLUE, GREY, ORANGE, axes_of, label_of, plain_log

if TYPE_CHECKING:
    from ..hypotheses.result import HypothesisResult

FAR_TIMES = 3.0  # a statistic beyond this many ranges of the null is only in the legend
SHORT_LENGTH = 40  # largest total length of horizontal names
MAX_COORDINATES = 20  # largest number of bars with readable labels
_COLORS = {"gaussian": BLUE, "laplacian": ORANGE, "matern": BLUE}


@documented
@checked
def plot_null(
    result: Annotated[HypothesisResult, Instance()], *, level: float = LEVEL, ax: Axes | None = None
) -> Axes:
    """Draw the null distribution of a test, with the statistic and the threshold of a level.

    Parameters
    ----------
    result : HypothesisResult
        Result of a test.
    level
        Level at or below which the p-value is significant.
    ax : matplotlib Axes
        Axes to draw into. Default: the Axes of a new figure.

    Returns
    -------
    matplotlib Axes

    See Also
    --------
    bagbasis.hypotheses.two_sample_test : Compare two samples.
    bagbasis.hypotheses.independence_test : Test for independence.
    plot_scales : Plot the contribution of each bandwidth.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> from bagbasis.hypotheses import two_sample_test
    >>> from bagbasis.plotting import plot_null
    >>> a, b = rng.normal(0, 1, (80, 2)), rng.normal(0.8, 1, (80, 2))
    >>> ax = plot_null(two_sample_test(a, b, statistic='energy', n_permutations=99))
    >>> ax.get_xlabel()
    'energy'
    """
    values = result.null_distribution
    ax = axes_of(ax)
    ax.hist(values, bins=40, color=BLUE, alpha=0.7, label=f"null: {result.null.replace('_', ' ')}")
    threshold = float(np.quantile(values, 1 - level))
    ax.axvline(threshold, color=BLUE, linestyle="--", label=f"level {level:g}: {threshold:.3g}")
    width = float(np.ptp(values)) or 1.0
    label = f"statistic: {result.statistic:.3g}, p = {result.p_value:.3g}"
    if result.statistic < values.max() + FAR_TIMES * width:
        ax.axvline(result.statistic, color=ORANGE, linewidth=2, label=label)
    else:
        ax.plot([], [], color=ORANGE, label=f"{label}, far to the right")
    ax.set_xlabel(result.name)
    ax.set_ylabel(
        "permutations" if result.null == "permutation" else "draws of the null distribution"
    )
    ax.legend(fontsize=8)
    ax.set_title(f"{result.question}: {', '.join(f'{k} {n:,}' for k, n in result.n.items())}")
    return ax


@documented
@checked
def plot_scales(
    result: Annotated[HypothesisResult, Instance()], *, level: float = LEVEL, ax: Axes | None = None
) -> Axes:
    """Draw the contribution of each bandwidth: a weight for "fuse", a p-value for "agg".

    Parameters
    ----------
    result : HypothesisResult
        Result of a test that compares several bandwidths.
    level
        Level at or below which the p-value is significant.
    ax : matplotlib Axes
        Axes to draw into. Default: the Axes of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    DataError
        If the test has a single bandwidth.

    See Also
    --------
    bagbasis.hypotheses.two_sample_test : Compare two samples.
    bagbasis.hypotheses.Aggregate : Several widths, corrected for multiplicity.
    bagbasis.hypotheses.Fuse : Several widths, fused into one statistic.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> from bagbasis.hypotheses import two_sample_test
    >>> from bagbasis.plotting import plot_scales
    >>> a, b = rng.normal(0, 1, (80, 2)), rng.normal(0.8, 1, (80, 2))
    >>> ax = plot_scales(two_sample_test(a, b, statistic='fuse', n_permutations=99))
    >>> ax.get_xlabel()
    'bandwidth: the scale of the difference'
    """
    scales = result.details.get("scales")
    if not scales:
        raise DataError(f"{result.name} has a single scale: nothing to compare; use plot_null")
    names, widths = np.array(scales["kernel"]), np.array(scales["bandwidth"])
    weights = scales.get("weight")
    values = np.array(scales["corrected"] if weights is None else weights)
    ax = axes_of(ax)
    for name in dict.fromkeys(scales["kernel"]):
        of = names == name
        color = _COLORS.get(name, BLUE)
        ax.plot(widths[of], values[of], "o-", color=color, label=f"{name} kernel")
    ax.set_xscale("log")
    plain_log(ax.xaxis)
    ax.set_xlabel("bandwidth: the scale of the difference")
    if weights is None:
        ax.set_yscale("log")
        plain_log(ax.yaxis)
        ax.axhline(level, color="black", linestyle="--", linewidth=1, label=f"level {level:g}")
        ax.set_ylabel("p-value, corrected for all bandwidths")
    else:
        ax.set_ylim(bottom=0)
        ax.set_ylabel("weight in the statistic")
    ax.legend(fontsize=8)
    ax.set_title(f"{result.name.partition('(')[0]}: {_title_of(result, level)}", fontsize=10)
    return ax


@documented
@checked
def plot_coordinates(
    result: Annotated[HypothesisResult, Instance()], *, level: float = LEVEL, ax: Axes | None = None
) -> Axes:
    """Draw the fraction of the statistic that is lost without each coordinate.

    Parameters
    ----------
    result : HypothesisResult
        Result of a test with a bandwidth for each coordinate.
    level
        Level at or below which the p-value is significant.
    ax : matplotlib Axes
        Axes to draw into. Default: the Axes of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    DataError
        If the test does not have a bandwidth for each coordinate.

    See Also
    --------
    bagbasis.hypotheses.two_sample_test : Compare two samples.
    bagbasis.hypotheses.independence_test : Test for independence.
    plot_scales : Plot the contribution of each bandwidth.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> from bagbasis.hypotheses import two_sample_test
    >>> from bagbasis.plotting import plot_coordinates
    >>> a, b = rng.normal(0, 1, (80, 2)), rng.normal(0.8, 1, (80, 2))
    >>> result = two_sample_test(a, b, statistic='mmd_u', bandwidth='ard', n_permutations=99)
    >>> ax = plot_coordinates(result)
    >>> len(ax.patches)
    2
    """
    coordinates = result.details.get("coordinates")
    if not coordinates:
        raise DataError(f"{result.name} does not tell coordinates apart; use plot_null")
    lost = np.array(coordinates["lost_without"])
    order = np.argsort(-lost, kind="stable")[:MAX_COORDINATES]
    ax = axes_of(ax)
    names = coordinates.get("names")
    labels = [str(k) if names is None else label_of(names[k]) for k in order.tolist()]
    ax.bar(range(len(order)), lost[order], color=BLUE)
    ax.set_xticks(range(len(order)), labels)
    if sum(map(len, labels)) > SHORT_LENGTH:  # horizontal names would overlap
        ax.tick_params(axis="x", labelrotation=90)
    first = f", the first {len(order)} of {len(lost):,}" if len(order) < len(lost) else ""
    ax.set_xlabel(f"coordinate{first}")
    ax.set_ylabel("fraction of t that is lost without it")
    ax.set_title(_title_of(result, level, "coordinate"), fontsize=10)
    return ax


def _title_of(result: HypothesisResult, level: float, unit: str = "scale") -> str:
    """Return the title of a figure, which depends on whether the difference is significant."""
    p = f"p = {result.p_value:.2g}"
    if result.p_value <= level:
        return f"{unit}s at which the samples differ, {p}"
    return f"contribution of each {unit} (no significant difference, {p})"


def plot_drift(
    results: Any,  # noqa: ANN401 - of three classes, or a sequence of them
    *,
    level: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the p-values of drift tests over time.

    Parameters
    ----------
    results : DriftResult, DriftPrediction or Round, or a sequence of them
        Results in the order of time. Results without a p-value are left out.
    level : float, optional
        Level at or below which a p-value means drift. Default: the level of the detector for
        predictions of a detector, and 0.05 for other results.
    ax : matplotlib Axes, optional
        Axes to draw into. Default: the Axes of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    DataError
        If no result has a p-value.

    See Also
    --------
    bagbasis.operations.DriftDetector : Monitor new data against a reference.
    bagbasis.operations.drift_test : Compare two sets of bags.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> from bagbasis.operations import DriftDetector
    >>> from bagbasis.plotting import plot_drift
    >>> old, *weeks = ([rng.normal(0, 1, (20, 2)) for _ in range(40)] for _ in range(4))
    >>> detector = DriftDetector(n_permutations=99).fit(old)
    >>> ax = plot_drift([detector.predict(week) for week in weeks])
    >>> ax.get_ylabel()
    'p-value'
    """
    each = results if isinstance(results, Iterable) else [results]
    known = [
        (i + 1, float(p), level or getattr(result, "level", LEVEL))
        for i, result in enumerate(each)
        if (p := getattr(result, "p_value", None)) is not None
    ]
    if not known:
        raise DataError("results have no p-value: test rounds for drift first")
    ax = axes_of(ax)
    x, p, levels = np.array(known).T
    drifted = p <= levels
    ax.plot(x, p, "-", color=GREY, linewidth=1)
    ax.plot(x[~drifted], p[~drifted], "o", color=BLUE, label="no drift")
    ax.plot(x[drifted], p[drifted], "o", color=ORANGE, label="drift")
    for level in np.unique(levels).tolist():
        ax.axhline(level, color=GREY, linestyle="--", label=f"level {level:g}")
    ax.set_yscale("log")
    plain_log(ax.yaxis)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel("test")
    ax.set_ylabel("p-value")
    ax.set_title(f"Drift in {int(drifted.sum())} of {len(p)} {plural('test', len(p))}")
    ax.legend(fontsize=9)
    return ax
