"""Figures of predictions: true values, calibration, coverage of intervals, importance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray

from ..core import Instance, checked, documented
from ..core.arrays import Floats
from ..core.checks import check_position
from ..core.digits import rounded, with_error
from ..core.errors import DataError, ParameterError
from ..models.outcomes.details import ClassDetails, DensityDetails, RealDetails
from ..models.verdict import r2_error
from .calibration import CalibrationGroup, groups_of
from .style import BLUE, GREY, ORANGE, axes_of, label_of

if TYPE_CHECKING:
    from ..models.errors import Errors
    from ..models.evaluation.importance import Importance

_MAX_VALUES = 30  # largest number of values of an integer target drawn as violins
_MAX_SCATTERED = 3000  # with more bags, dots of a scatter plot hide each other
MAX_BARS = 30  # largest number of coordinates in a chart
OVERSHOOT = 0.25  # part of the true range by which predictions on the axis may exceed it


@documented
@checked
def plot_predictions(
    errors: Annotated[Errors, Instance()], target: int = 0, *, ax: Axes | None = None
) -> Axes:
    """Draw predicted against true values of one target.

    A target with few integer values has a violin for each value. Thousands of bags are drawn as
    cells instead of dots. The legend counts predictions far beyond the true range.

    Parameters
    ----------
    errors : Errors
        Result of `evaluate` for a regressor.
    target
        Position of the target.
    ax : matplotlib Axes
        Axes to draw into. Default: the Axes of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    DataError
        If the model is a classifier or a regressor of densities.
    ParameterError
        If there is no such target.

    See Also
    --------
    bagbasis.evaluate : Errors on labelled bags.
    plot_intervals : Plot the coverage of intervals.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import DoubleBasisRegressor, evaluate
    >>> from bagbasis.plotting import plot_predictions
    >>> model = DoubleBasisRegressor('moments', alpha=1e-3).fit(X[:60], y[:60])
    >>> errors = evaluate(model, X[60:], y[60:])
    >>> ax = plot_predictions(errors)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('true y', 'predicted y')
    """
    names = list(errors.values())
    true, predicted = errors.sample.true, errors.sample.predicted
    if not isinstance(errors.details, RealDetails):
        raise DataError(
            "errors are not those of numbers; use plot_calibration for classes, and "
            "plot_density_errors, or plot_densities of model.densities(X), for densities"
        )
    check_position("target", target, true.shape[1])
    ax = axes_of(ax)
    draw_predictions(ax, true[:, target], predicted[:, target], names[target])
    spread = float(errors.rmse_errors[target])
    ax.set_title(errors_in_words(errors.values()[names[target]], spread))
    return ax


def errors_in_words(values: Mapping[str, Any], spread: float | None = None) -> str:
    """Return the title of a figure of predictions, from the `Errors.values` of one target.

    ``spread`` is the standard error of the RMSE.
    """
    r2 = rounded(values["r2"], None if spread is None else r2_error(values, spread))
    return (
        f"RMSE {with_error(values['rmse'], spread)}, "
        f"best constant {rounded(values['constant_rmse'], spread)}, R² {r2}"
    )


def draw_predictions(ax: Axes, true: NDArray[Any], predicted: NDArray[Any], name: str) -> None:
    """Draw true and predicted values of one target into Axes; see `plot_predictions`."""
    least, most = float(true.min()), float(true.max())
    over = OVERSHOOT * (most - least) or np.inf
    lo = min(least, max(float(predicted.min()), least - over))
    hi = max(most, min(float(predicted.max()), most + over))
    pad = 0.04 * (hi - lo) or 0.5
    beyond = int(((predicted < lo) | (predicted > hi)).sum())
    seen = (least - pad, most + pad, lo - pad, hi + pad)
    values = np.unique(true)
    if len(values) <= _MAX_VALUES and (values == np.round(values)).all():
        _violins(ax, true, predicted, values)
    elif len(true) > _MAX_SCATTERED:
        image = ax.hexbin(
            true, predicted, gridsize=55, cmap="viridis", mincnt=1, bins="log", extent=seen
        )
        ax.figure.colorbar(image, ax=ax, label="bags in a cell")
    else:
        ax.plot(true, predicted, ".", color=BLUE, alpha=0.5, markersize=4, label="bag")
    ax.plot([lo, hi], [lo, hi], color=ORANGE, linestyle="--", label="predicted = true")
    if beyond:
        ax.plot([], [], " ", label=f"{beyond:,} bags lie beyond the axis")
    ax.set_xlim(*seen[:2])
    ax.set_ylim(*seen[2:])
    ax.set_xlabel(f"true {label_of(name)}")
    ax.set_ylabel(f"predicted {label_of(name)}")
    ax.legend(loc="upper left", fontsize=9)


def _violins(ax: Axes, true: NDArray[Any], predicted: NDArray[Any], values: NDArray[Any]) -> None:
    """Draw one violin per value of an integer target, or dots for a value with few bags."""
    groups = [predicted[true == value] for value in values]
    wide = [(v, g) for v, g in zip(values, groups, strict=True) if len(g) >= 5 and np.ptp(g) > 0]
    few = [(v, g) for v, g in zip(values, groups, strict=True) if len(g) < 5 or np.ptp(g) == 0]
    if wide:
        parts = ax.violinplot(
            [g for _, g in wide], [float(v) for v, _ in wide], widths=0.8, showextrema=False
        )
        bodies: Any = parts["bodies"]
        for body in bodies:
            body.set_facecolor(BLUE)
            body.set_alpha(0.45)
        bodies[0].set_label("predictions")
        low, middle, high = np.array([np.percentile(g, [25, 50, 75]) for _, g in wide]).T
        at = [v for v, _ in wide]
        ax.vlines(at, low, high, color=BLUE, linewidth=3, label="middle half")
        ax.plot(at, middle, "o", color="white", markeredgecolor=BLUE, label="median")
    for value, group in few:
        ax.plot(np.full(len(group), value), group, ".", color=BLUE)


@checked
def plot_calibration(errors: Annotated[Errors, Instance()], *, ax: Axes | None = None) -> Axes:
    """Draw the observed frequency of classes against their predicted probability.

    Bags are divided into up to ten groups of equal size by the probability of the predicted class.
    Bars are Wilson intervals of one standard error, which assume independent bags.

    Parameters
    ----------
    errors : Errors
        Result of `evaluate` for a classifier.
    ax : matplotlib Axes, optional
        Axes to draw into. Default: the Axes of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    DataError
        If the model is not a classifier.

    See Also
    --------
    bagbasis.DoubleBasisClassifier : Classify bags.
    bagbasis.evaluate : Errors on labelled bags.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import DoubleBasisClassifier, evaluate
    >>> from bagbasis.plotting import plot_calibration
    >>> labels = np.where(y > 1.25, 'wide', 'narrow')
    >>> model = DoubleBasisClassifier('moments', alpha=1e-3).fit(X[:60], labels[:60])
    >>> ax = plot_calibration(evaluate(model, X[60:], labels[60:]))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('mean predicted probability of the predicted class', 'fraction that is right')
    """
    groups = calibration_groups(errors)
    ax = axes_of(ax)
    _draw_groups(ax, groups)
    ends = [min(group.predicted for group in groups), 1.0]
    ax.plot(ends, ends, color=ORANGE, linestyle="--", label="right as often as predicted")
    ax.set_xlabel("mean predicted probability of the predicted class")
    ax.set_ylabel("fraction that is right")
    ax.set_title(f"Calibration of probabilities, {errors.n:,} bags")
    ax.legend(fontsize=9)
    return ax


def calibration_groups(errors: Errors) -> list[CalibrationGroup]:
    """Return groups of bags, ordered by the probability of the predicted class.

    Raises
    ------
    DataError
        If the model is not a classifier.
    """
    sample = errors.sample
    if not isinstance(errors.details, ClassDetails):
        raise DataError("errors are not those of classes; use plot_predictions for numbers")
    return groups_of(sample.predicted[:, 1], sample.predicted[:, 0] == sample.true[:, 0])


def plot_errors(errors: Errors, target: int = 0, *, ax: Axes | None = None) -> Axes:
    """Draw the figure for the kind of model: predictions, calibration, or density errors."""
    if isinstance(errors.details, RealDetails):
        return plot_predictions(errors, target, ax=ax)
    check_position("target", target, 1)
    if isinstance(errors.details, ClassDetails):
        return plot_calibration(errors, ax=ax)
    return plot_density_errors(errors, ax=ax)


@checked
def plot_density_errors(errors: Annotated[Errors, Instance()], *, ax: Axes | None = None) -> Axes:
    """Draw the error of each predicted density against the error of the average density.

    Each dot is a bag. The vertical axis is the squared L2 distance between the prediction and the
    density of the response. The horizontal axis is this distance for the average density of the
    fitted bags. Below the line, the prediction is better than the average density. Use
    `plot_densities` to draw the densities.

    Parameters
    ----------
    errors : Errors
        Result of `evaluate` for a regressor of densities.
    ax : matplotlib Axes, optional
        Axes to draw into. Default: the Axes of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    DataError
        If the model does not predict densities.

    See Also
    --------
    plot_densities : Plot predicted densities of some bags.
    bagbasis.TripleBasisRegressor : Predict densities.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> responses = [rng.normal(s, 0.1, (20, 1)) for s in y]
    >>> from bagbasis import TripleBasisRegressor, evaluate
    >>> from bagbasis.plotting import plot_density_errors
    >>> model = TripleBasisRegressor('moments', alpha=1e-3).fit(X[:60], responses[:60])
    >>> ax = plot_density_errors(evaluate(model, X[60:], responses[60:]))
    >>> ax.get_ylabel()
    'squared distance of the predicted density'
    """
    if not isinstance(errors.details, DensityDetails):
        raise DataError(
            "errors are not those of densities; use plot_predictions for numbers, and "
            "plot_calibration for classes"
        )
    of_average, of_model = errors.sample.true[:, 0], errors.sample.predicted[:, 0]
    ax = axes_of(ax)
    ax.plot(of_average, of_model, ".", color=BLUE, alpha=0.5, markersize=4, label="bag")
    ends = [0.0, float(of_average.max())]
    ax.plot(ends, ends, color=ORANGE, linestyle="--", label="as far as the average density")
    ax.set_xlabel("squared distance of the average density")
    ax.set_ylabel("squared distance of the predicted density")
    values, spread = errors.values()["densities"], errors.spreads.get("densities", {})
    ax.set_title(
        f"Mean {with_error(values['mse'], spread.get('mse'))}, average density "
        f"{rounded(values['average_mse'], spread.get('average_mse'))}, {errors.n:,} bags"
    )
    ax.legend(fontsize=9)
    return ax


@documented
def plot_intervals(
    y: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    *,
    sizes: ArrayLike,
    coverage: float = 0.9,
    ax: Axes | None = None,
) -> Axes:
    """Draw the measured coverage of prediction intervals against the size of bags.

    Parameters
    ----------
    y, lower, upper : shape (n_bags,)
        Labels, and lower and upper ends of the prediction intervals.
    sizes : shape (n_bags,)
        Number of points of each bag.
    coverage
        Nominal coverage, drawn as a line.
    ax : matplotlib Axes
        Axes to draw into. Default: the Axes of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    DataError
        If the arrays have different lengths or are empty.

    See Also
    --------
    bagbasis.DoubleBasisRegressor : Predict numbers from bags.
    plot_predictions : Plot predicted against true values.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import DoubleBasisRegressor
    >>> from bagbasis.plotting import plot_intervals
    >>> model = DoubleBasisRegressor('moments', alpha=1e-3).fit(X[:60], y[:60], holdout=0.3)
    >>> lower, upper = (bound.ravel() for bound in model.predict_interval(X[60:]))
    >>> ax = plot_intervals(y[60:], lower, upper, sizes=[len(x) for x in X[60:]])
    >>> ax.get_xlabel()
    'points in the bag, mean of a group of bags'
    """
    columns = [np.asarray(column, dtype=np.float64).ravel() for column in (y, lower, upper, sizes)]
    if len({len(column) for column in columns}) != 1 or not len(columns[0]):
        lengths = [len(column) for column in columns]
        raise DataError(f"y, lower, upper and sizes have {lengths} values; give one for each bag")
    truth, low, high, n_points = columns
    ax = axes_of(ax)
    _draw_groups(ax, groups_of(n_points, (truth >= low) & (truth <= high)))
    ax.axhline(coverage, color=ORANGE, linestyle="--", label=f"nominal coverage {coverage:.0%}")
    ax.set_xlabel("points in the bag, mean of a group of bags")
    ax.set_ylabel("measured coverage")
    ax.set_title(f"Coverage of intervals, {len(truth):,} bags")
    ax.legend(fontsize=9)
    return ax


def _draw_groups(ax: Axes, groups: Sequence[CalibrationGroup]) -> None:
    x, y = [group.predicted for group in groups], [group.right for group in groups]
    below = [max(0.0, group.right - group.interval[0]) for group in groups]
    above = [max(0.0, group.interval[1] - group.right) for group in groups]
    ax.errorbar(x, y, yerr=[below, above], fmt="o-", color=BLUE, label="group of bags, ± 1 s.e.")


@checked
def plot_importance(
    importance: Annotated[Importance, Instance()],
    target: str | None = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw the drop in score for each coordinate, the most important coordinate first.

    Parameters
    ----------
    importance : Importance
        Result of `permutation_importance`.
    target : str, optional
        Name of the target. Default: the first target.
    ax : matplotlib Axes, optional
        Axes to draw into. Default: the Axes of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ParameterError
        If there is no such target.

    See Also
    --------
    bagbasis.models.permutation_importance : Importance of each coordinate.
    plot_explanation : Plot an explanation.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import DoubleBasisRegressor
    >>> from bagbasis.models import permutation_importance
    >>> from bagbasis.plotting import plot_importance
    >>> model = DoubleBasisRegressor('moments', alpha=1e-3).fit(X[:60], y[:60])
    >>> ax = plot_importance(permutation_importance(model, X[60:], y[60:], n_repeats=2))
    >>> ax.get_xlabel()
    'drop of R², which is 0.80'
    """
    targets = importance.values()["targets"]
    name = next(iter(targets)) if target is None else target
    if name not in targets:
        raise ParameterError(f"target is {name!r}; expected one of {list(targets)}")
    drops = targets[name]["drops"][:MAX_BARS]
    names = [label_of(drop["coordinate"]) for drop in drops]
    heights: Floats = np.array([drop["drop"] for drop in drops])
    spreads = [drop["standard_error"] for drop in drops]
    ax = axes_of(ax, height=1.5 + 0.3 * len(drops))
    ax.barh(names, heights, xerr=spreads, color=BLUE, ecolor=GREY)
    ax.axvline(0, color=GREY, linewidth=1)
    ax.invert_yaxis()
    ax.set_xlabel(f"drop of {importance.measure}, which is {targets[name]['score']:.2f}")
    ax.set_title(f"{label_of(name)}: importance of coordinates")
    return ax
