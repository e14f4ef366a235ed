"""Figures of fits: the candidates of a choice, and the error over the number of bags."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from ..core.errors import DataError
from .style import BLUE, GREY, ORANGE, axes_of, label_of, plain_log

if TYPE_CHECKING:
    from ..models.base import DoubleBasis

MAX_CANDIDATES = 12


def plot_choice(model: DoubleBasis, *, ax: Axes | None = None) -> Axes:
    """Draw the errors of the candidates that ``embedding="auto"`` compared, the best first.

    Each embedding is drawn with its best width; bars are one standard error.

    Parameters
    ----------
    model : fitted estimator
    ax : matplotlib Axes, optional
        Axes to draw into; default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    DataError
        If the embedding was given, so that nothing was compared.

    See Also
    --------
    bagbasis.DoubleBasisRegressor : Predict numbers from bags.
    bagbasis.tune : Search embeddings, widths and penalties.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import DoubleBasisRegressor
    >>> from bagbasis.plotting import plot_choice
    >>> model = DoubleBasisRegressor().fit(X[:20], y[:20])
    >>> ax = plot_choice(model)
    >>> ax.get_xlabel()
    'squared error over folds / variance of the labels'
    """
    tried = (model.report_.get("choice") or {}).get("tried")
    if not tried:
        raise DataError("the embedding was given and nothing was compared; fit with 'auto'")
    best = {candidate["name"]: candidate for candidate in reversed(tried)}
    order = [candidate for candidate in tried if best[candidate["name"]] is candidate][
        :MAX_CANDIDATES
    ]
    names = [label_of(candidate["name"], 60) for candidate in order]
    ax = axes_of(ax, 8.0, 1.5 + 0.35 * len(order))
    ax.errorbar(
        [candidate["error"] for candidate in order],
        range(len(order)),
        xerr=[candidate["standard_error"] for candidate in order],
        fmt="o",
        color=BLUE,
        ecolor=GREY,
    )
    ax.plot(order[0]["error"], 0, "o", color=ORANGE, markersize=9, label="chosen")
    ax.set_yticks(range(len(order)), labels=names)
    ax.invert_yaxis()
    ax.set_xlabel("squared error over folds / variance of the labels")
    ax.set_title(f"Chosen from {len(tried)} candidates")
    ax.legend(fontsize=9)
    return ax


def plot_learning_curve(
    n_bags: ArrayLike,
    errors: ArrayLike,
    standard_errors: ArrayLike | None = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw errors against the number of bags that models were fitted to.

    Parameters
    ----------
    n_bags : shape (k,)
        Numbers of bags.
    errors : shape (k,), or (k, n_folds)
        Errors of the models; of folds, means and standard errors are drawn.
    standard_errors : shape (k,), optional
        Standard errors of ``errors`` of shape (k,).
    ax : matplotlib Axes, optional
        Axes to draw into; default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    DataError
        If the arrays do not fit each other.

    See Also
    --------
    bagbasis.tune : Search embeddings, widths and penalties.
    bagbasis.cross_val_score : Scores by cross-validation.

    Examples
    --------
    >>> from bagbasis.plotting import plot_learning_curve
    >>> ax = plot_learning_curve([50, 100, 200], [0.4, 0.3, 0.25])
    >>> ax.get_xlabel()
    'bags fitted'
    """
    n, values = np.asarray(n_bags, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    spread = None if standard_errors is None else np.asarray(standard_errors, dtype=np.float64)
    if values.ndim == 2 and values.shape[1] > 1 and spread is None:
        spread = values.std(axis=1, ddof=1) / values.shape[1] ** 0.5
        values = values.mean(axis=1)
    if n.ndim != 1 or values.shape != n.shape or not n.size or (n <= 0).any():
        raise DataError(
            f"n_bags has shape {n.shape}, errors {values.shape}; give an error, or a row of folds, "
            "for each number of bags"
        )
    if spread is not None and spread.shape != n.shape:
        raise DataError(f"standard_errors has shape {spread.shape}; expected {n.shape}")
    ax = axes_of(ax)
    ax.errorbar(n, values, yerr=spread, fmt="o-", color=BLUE, ecolor=GREY)
    ax.set_xscale("log")
    plain_log(ax.xaxis)
    ax.set_xlabel("bags fitted")
    ax.set_ylabel("error")
    ax.set_title("Learning curve")
    return ax
