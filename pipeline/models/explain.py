"""`explain`: which points and coordinates of a bag move its prediction."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from ..core import Integer, checked, documented
from ..core.arrays import Floats, Integers
from ..core.checks import check_position
from ..core.digits import rounded
from ..core.errors import BagbasisWarning, DataError, needing_extra
from ..data.bags.bags import Bags, as_bags
from ..data.bags.frames import is_groups
from ..data.bags.html import html_table, text_table
from ..data.store.store import BagStore
from .fitted_model import in_fitted_order, model_of, names_fitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

    from .base import DoubleBasis

_BLOCK_VALUES = 2**23  # values (points times coordinates) of the bags that are predicted at a time
# How far a coordinate is moved to either side, as a fraction of its spread in the bag.
STEP_FRACTION = 0.1
_TITLE = "Explanation: what moves the prediction most"
_N_SHOWN = 3  # points and coordinates in a printed explanation
N_SHOWN_TARGETS = 8  # four lines each


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Explanation:
    """Result of `explain`: what moves the prediction of one bag.

    Attributes
    ----------
    targets : tuple of str
        Names of the k predicted values: targets, classes (their probabilities are explained), or
        coefficients of the series of a predicted density.
    coordinate_names : tuple of str
        Names of the coordinates of a point.
    prediction : float64, shape (k,)
        Prediction for the unchanged bag.
    rows : int64, shape (m,)
        Positions of the points that were left out, one at a time: all points, or evenly chosen
        points of a large bag.
    points : float64, shape (m, n_dims)
        Coordinates of these points.
    effect : float64, shape (m, k)
        Prediction with the point minus the prediction without it.
    shift, spread : float64, shape (n_dims, k)
        Slopes of the prediction at the unchanged bag. ``shift`` is the change per standard
        deviation by which all points are moved along the coordinate. ``spread`` is the change per
        doubling of the spread of the coordinate about its mean in the bag.

    See Also
    --------
    explain : Explain the prediction of one bag.
    bagbasis.plotting.plot_explanation : Plot an explanation.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import DoubleBasisRegressor
    >>> from bagbasis.models import explain
    >>> model = DoubleBasisRegressor('moments', alpha=1e-3).fit(X[:60], y[:60])
    >>> explanation = explain(model, X[60])
    >>> explanation.shift.shape
    (2, 1)
    >>> len(explanation.to_frame())  # a row per point, the largest effect first
    30
    """

    targets: tuple[str, ...]
    coordinate_names: tuple[str, ...]
    prediction: Floats
    rows: Integers
    points: Floats
    effect: Floats
    shift: Floats
    spread: Floats

    @documented
    @checked
    def to_frame(self, target: Annotated[int, Integer(0)] = 0) -> DataFrame:
        """Return the points as a pandas data frame, sorted by the size of their effect.

        Parameters
        ----------
        target
            Position of the target, or of the class.

        Raises
        ------
        ParameterError
            If there is no such target.
        DataError
            If pandas is not installed (``pip install 'bagbasis[tables]'``).
        """
        with needing_extra("tables", "Explanation.to_frame"):
            from pandas import DataFrame  # noqa: PLC0415 - an extra
        check_position("target", target, len(self.targets))
        order = np.argsort(-np.abs(self.effect[:, target]), kind="stable")
        frame = DataFrame(self.points[order], columns=list(self.coordinate_names))
        frame.insert(0, "effect", self.effect[order, target])
        frame.index = self.rows[order]
        frame.index.name = "point"
        return frame

    @documented
    @checked
    def plot(self, target: Annotated[int, Integer(0)] = 0, *, ax: Axes | None = None) -> Axes:
        """Draw the points, coloured by their effect on the prediction; see `plot_explanation`.

        Parameters
        ----------
        target
            Position of the target, or of the class.
        ax : matplotlib Axes
            Axes to draw into; default those of a new figure.

        Raises
        ------
        ParameterError
            If there is no such target.
        DataError
            If matplotlib is not installed (``pip install 'bagbasis[plots]'``).
        """
        from ..plotting.explanations import plot_explanation  # noqa: PLC0415 - an extra

        return plot_explanation(self, target, ax=ax)

    def _lines(self) -> dict[str, str]:
        lines: dict[str, str] = {}
        moved = np.flatnonzero(self.effect.any(axis=0)).tolist() or [0]
        for j in moved[:N_SHOWN_TARGETS]:
            name = self.targets[j]
            order = np.argsort(-np.abs(self.effect[:, j]), kind="stable")[:_N_SHOWN]
            effects = [f"{self.rows[i]} ({self.effect[i, j]:+.2g})" for i in order.tolist()]
            lines[f"{name}: prediction"] = rounded(float(self.prediction[j]))
            lines[f"{name}: points"] = ", ".join(effects)
            for what, values in (("shift", self.shift), ("spread", self.spread)):
                order = np.argsort(-np.abs(values[:, j]), kind="stable")[:_N_SHOWN]
                effects = [
                    f"{coordinate_in_words(self.coordinate_names[i])} ({values[i, j]:+.2g})"
                    for i in order.tolist()
                ]
                lines[f"{name}: {what} of"] = ", ".join(effects)
        if others := len(self.targets) - len(moved[:N_SHOWN_TARGETS]):
            lines["not shown"] = f"{others} more; effect, shift and spread have them"
        return lines

    def __repr__(self) -> str:
        """Return the prediction and the points and coordinates that move it most, as text."""
        return text_table(_TITLE, self._lines())

    def _repr_html_(self) -> str:
        """Show the same as a table in a notebook."""
        return html_table(_TITLE, self._lines())


def coordinate_in_words(name: str) -> str:
    """Return the name of a coordinate; without names "coordinate 0"."""
    return f"coordinate {name}" if name.isdigit() else name


@documented
@checked
def explain(
    model: DoubleBasis, bag: ArrayLike, *, max_points: Annotated[int, Integer(1)] = 500
) -> Explanation:
    """Return the effect of each point and each coordinate of a bag on its prediction.

    Each point is left out in turn, and the bag is predicted again. These effects are exact, for
    every embedding and every head. The effect of a coordinate is a slope: the coordinate is shifted
    or spread a little for all points together, and the change of the prediction is measured.

    Parameters
    ----------
    model : fitted estimator
        Regressor or classifier. For a classifier, the probabilities are explained.
    bag : shape (n_points, n_dims)
        One bag of two points or more.
    max_points
        Largest number of points that are left out in turn. In a larger bag, these points are
        chosen evenly.

    Returns
    -------
    Explanation

    Raises
    ------
    DataError
        If the bag has a single point, or is not an array of finite numbers.
    ModelError
        If the bag has another dimension than the bags fitted.

    See Also
    --------
    Explanation : Result of `explain`.
    permutation_importance : Importance of each coordinate.
    bagbasis.plotting.plot_explanation : Plot an explanation.

    Examples
    --------
    >>> import numpy as np
    >>> from bagbasis import DoubleBasisRegressor
    >>> from bagbasis.models import explain
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(20, 2)) for _ in range(40)]
    >>> model = DoubleBasisRegressor("moments", random_features=False, alpha=1e-3)
    >>> model = model.fit(bags, [bag[:, 0].mean() for bag in bags])
    >>> explanation = explain(model, bags[0])
    >>> int(abs(explanation.shift[:, 0]).argmax())
    0
    """
    fitted = model_of(model)
    is_several = isinstance(bag, (list, tuple)) and len(bag) > 0 and np.ndim(bag[0]) == 2
    if is_several or isinstance(bag, (Bags, BagStore)) or is_groups(bag):
        raise DataError("bag is several bags; explain one at a time, such as explain(model, X[0])")
    [ordered] = in_fitted_order(as_bags([bag]), fitted.report)
    points = np.asarray(ordered, dtype=np.float64)
    n, n_dims = points.shape
    if n < 2:
        raise DataError("bag has a single point; leave-one-out needs two points or more")
    rows = np.unique(np.linspace(0, n - 1, min(n, max_points)).round().astype(np.int64))
    [prediction] = _predict(model, [points])
    with warnings.catch_warnings():  # the prediction of the bag itself has issued the warning
        warnings.simplefilter("ignore", BagbasisWarning)
        effect, slopes = _effects(model, points, rows, prediction)
    names = names_fitted(fitted.report) or [f"{j}" for j in range(n_dims)]
    return Explanation(
        targets=_targets(model, len(prediction)),
        coordinate_names=tuple(map(str, names)),
        prediction=prediction,
        rows=rows,
        points=points[rows],
        effect=effect,
        shift=slopes[:, 0],
        spread=slopes[:, 1],
    )


def _effects(
    model: DoubleBasis, points: Floats, rows: Integers, prediction: Floats
) -> tuple[Floats, Floats]:
    """Return the effects of points, (m, k), and the slopes of coordinates, (n_dims, 2, k)."""
    n_dims = points.shape[1]
    effect = np.empty((len(rows), len(prediction)))
    size = max(1, _BLOCK_VALUES // points.size)
    for start in range(0, len(rows), size):
        block = rows[start : start + size]
        without = [np.delete(points, row, axis=0) for row in block.tolist()]
        effect[start : start + size] = prediction - _predict(model, without)
    mean, deviation = points.mean(axis=0), points.std(axis=0)
    changed = np.empty((n_dims, 2, 2, len(prediction)))
    for j in range(n_dims):
        moved = []
        for sign in (1, -1):
            shifted, widened = points.copy(), points.copy()
            shifted[:, j] += sign * STEP_FRACTION * deviation[j]
            widened[:, j] = mean[j] + (points[:, j] - mean[j]) * (1 + sign * STEP_FRACTION)
            moved += [shifted, widened]
        changed[j] = _predict(model, moved).reshape(2, 2, -1)
    return effect, (changed[:, 0] - changed[:, 1]) / (2 * STEP_FRACTION)


def _predict(model: Any, bags: list[Floats]) -> Floats:  # noqa: ANN401 - regressors and classifiers
    """Return what is explained of each bag, shape (n_bags, k)."""
    is_classifier = hasattr(model, "predict_proba")
    values = model.predict_proba(bags) if is_classifier else model.predict(bags)
    return np.asarray(values, dtype=np.float64).reshape(len(bags), -1)


def _targets(model: Any, k: int) -> tuple[str, ...]:  # noqa: ANN401 - regressors and classifiers
    classes = getattr(model, "classes_", None)
    if classes is not None:
        return tuple(f"probability of {label}" for label in classes)
    if hasattr(model, "predict_density"):  # of densities, whose series is predicted
        return tuple(f"coefficient {j}" for j in range(k))
    names = model_of(model).outcome.target_labels
    return names if len(names) == k else tuple(f"target {j + 1}" for j in range(k))
