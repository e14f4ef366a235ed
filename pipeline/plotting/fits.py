"""Figures of fits: errors of compared candidates, and learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from ..core import Instance, checked
from ..core.errors import DataError, plural
from .style import BLUE, GREY, ORANGE, axes_of, label_of, plain_log

if TYPE_CHECKING:
    from ..models.base import DoubleBasis
    from ..models.tuning.records import Tuning

MAX_CANDIDATES = 12


@checked
def plot_choice(model: Annotated[DoubleBasis, Instance()], *, ax: Axes | None = None) -> Axes:
    """Draw the errors of the candidates that ``embedding="auto"`` compared, the best first.

    For each embedding, the error with the best kernel width is drawn. Bars are one standard error.

    Parameters
    ----------
    model : fitted estimator
        Model that was fitted with ``embedding="auto"``.
    ax : matplotlib Axes, optional
        Axes to draw into. Default: the Axes of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    DataError
        If the model was fitted with a given embedding, so that no candidates were compared.

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
    return _draw_candidates(
        axes_of(ax, 8.0, height_of(order)),
        names,
        [candidate["error"] for candidate in order],
        [candidate["standard_error"] for candidate in order],
        "squared error over folds / variance of the labels",
        f"Chosen from {len(tried)} candidates",
    )


def height_of(candidates: Sequence[object]) -> float:
    """Return the height of a figure with a row for each candidate."""
    return 1.5 + 0.35 * len(candidates)


def _draw_candidates(
    ax: Axes,
    labels: Sequence[str],
    errors: Sequence[float],
    spreads: Sequence[float],
    what: str,
    title: str,
) -> Axes:
    """Draw a row with the error of each candidate; the first candidate is the chosen one."""
    places = range(len(errors))
    ax.errorbar(errors, places, xerr=spreads, fmt="o", color=BLUE, ecolor=GREY)
    ax.plot(errors[0], 0, "o", color=ORANGE, markersize=9, label="chosen")
    ax.set_yticks(places, labels=labels)
    ax.invert_yaxis()
    ax.set_xlabel(what)
    ax.set_title(title)
    ax.legend(fontsize=9)
    return ax


@checked
def plot_tuning(result: Annotated[Tuning, Instance()], *, ax: Axes | None = None) -> Axes:
    """Draw the errors of the candidates that `tune` compared, the winner first.

    The error of a candidate is measured on the bags of the last rung that the candidate reached.
    Bars are one standard error. If the only candidate has ``embedding="auto"``, the embeddings that
    it compared are drawn, as in `plot_choice`.

    Parameters
    ----------
    result : Tuning
        Result of `tune`.
    ax : matplotlib Axes, optional
        Axes to draw into. Default: the Axes of a new figure.

    Returns
    -------
    matplotlib Axes

    See Also
    --------
    bagbasis.tune : Search embeddings, widths and penalties.
    plot_choice : Plot what ``embedding="auto"`` compared.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import DoubleBasisRegressor, MomentsEmbedding, tune
    >>> from bagbasis.models import Search
    >>> from bagbasis.plotting import plot_tuning
    >>> search = Search([MomentsEmbedding()], scale_multipliers=[0.5, 1.0], heads=['ridge'])
    >>> ax = plot_tuning(tune(DoubleBasisRegressor(), X, y, search=search))
    >>> ax.get_title()
    '2 candidates'
    """
    choice = result.model.report_.get("choice")
    if len(result.candidates) == 1 and choice and choice["tried"]:
        return plot_choice(result.model, ax=ax)
    shown = result.ranking[:MAX_CANDIDATES]
    labels, errors, spreads = [], [], []
    for c in shown:
        candidate = result.candidates[c]
        score = [of_rung[c] for of_rung in result.scores if c in of_rung][-1]
        width = candidate.scale_multiplier
        label = label_of(candidate.first, 60) + ("" if width is None else f"; σ × {width:g}")
        labels.append(label + (f"; {score.n_bags:,} bags" if len(result.rungs) > 1 else ""))
        errors.append(score.error)
        spreads.append(score.error * score.relative_spread)
    n = len(result.candidates)
    part = f"The best {len(shown)} of " if len(shown) < n else ""
    title = f"{part}{n:,} {plural('candidate', n)}"
    what = "squared error / variance of the labels, on bags that were not fitted"
    return _draw_candidates(
        axes_of(ax, 8.0, height_of(shown)), labels, errors, spreads, what, title
    )


def plot_learning_curve(
    n_bags: ArrayLike,
    errors: ArrayLike,
    *,
    standard_errors: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw errors against the number of fitted bags.

    Parameters
    ----------
    n_bags : shape (k,)
        Numbers of bags to which the models were fitted.
    errors : shape (k,), or (k, n_folds)
        Errors of the models. For errors of folds, means and standard errors are drawn.
    standard_errors : shape (k,), optional
        Standard errors, if ``errors`` has shape (k,).
    ax : matplotlib Axes, optional
        Axes to draw into. Default: the Axes of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    DataError
        If the shapes of the arrays do not match.

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
