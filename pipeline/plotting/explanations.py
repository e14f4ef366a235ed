"""Figure of an explanation: points of a bag, coloured by their effect on the prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from matplotlib.axes import Axes

from ..core import Instance, checked, documented
from ..core.checks import check_position
from ..models.explain import coordinate_in_words
from .style import GREY, axes_of, label_of

if TYPE_CHECKING:
    from ..models.explain import Explanation


@documented
@checked
def plot_explanation(
    explanation: Annotated[Explanation, Instance()], target: int = 0, *, ax: Axes | None = None
) -> Axes:
    """Draw the points of a bag, coloured by their effect on the prediction.

    The axes are the two coordinates whose shift or spread changes the prediction most. With one
    coordinate, the effects are drawn over this coordinate.

    Parameters
    ----------
    explanation : Explanation
        Result of `explain`.
    target
        Position of the target or class.
    ax : matplotlib Axes
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
    bagbasis.models.explain : Explain the prediction of one bag.
    plot_importance : Plot permutation importances.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import DoubleBasisRegressor
    >>> from bagbasis.models import explain
    >>> from bagbasis.plotting import plot_explanation
    >>> model = DoubleBasisRegressor('moments', alpha=1e-3).fit(X[:60], y[:60])
    >>> ax = plot_explanation(explain(model, X[60]))
    >>> ax.get_xlabel()
    'coordinate 0'
    """
    check_position("target", target, len(explanation.targets))
    points, effect = explanation.points, explanation.effect[:, target]
    names = [label_of(coordinate_in_words(name)) for name in explanation.coordinate_names]
    ax = axes_of(ax)
    if points.shape[1] == 1:
        ax.vlines(points[:, 0], 0, effect, color=GREY, linewidth=1)
        ax.axhline(0, color=GREY, linewidth=1)
        ax.set_xlabel(names[0])
        ax.set_ylabel("effect on the prediction")
    else:
        size = np.abs(explanation.shift[:, target]) + np.abs(explanation.spread[:, target])
        first, second = np.argsort(-size, kind="stable")[:2]
        most = float(np.abs(effect).max()) or 1.0
        dots = ax.scatter(
            points[:, first], points[:, second], c=effect, cmap="coolwarm", vmin=-most, vmax=most
        )
        ax.figure.colorbar(dots, ax=ax, label="effect on the prediction")
        ax.set_xlabel(names[first])
        ax.set_ylabel(names[second])
    prediction = float(explanation.prediction[target])
    ax.set_title(f"{label_of(explanation.targets[target])}: predicted {prediction:.3g}")
    return ax
