"""`permutation_importance`: how much each coordinate contributes to the score of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from ...core import Integer, ListOf, MappingOf, Subset, Text, checked
from ...core.arrays import Floats, Integers
from ...core.digits import rounded, with_error
from ...core.errors import DataError, ParameterError, shown
from ...core.units import in_units
from ...data.bags.bags import Bags, concatenate
from ...data.bags.html import html_table, text_table
from ...data.labelled.columns import Column
from ...data.labelled.holdout import Holdout
from ...data.labelled.inputs import LabelsLike
from ...data.labelled.labelled import Batch, LabelledBags
from ...data.labelled.weights import SampleWeight, Weights
from ...data.store.store import BagStore
from ...execution.passes import rows_of, run_pass
from ...execution.progress import Progress, part_of
from ..explain import coordinate_in_words
from ..fitted_model import FittedEstimator, JudgedModel, model_of
from ..judging import TOO_LARGE, find_subset, judged_data, judging_cost, labelled_for
from ..outcomes.details import determination
from .exchanges import draw_donors, drop_of_score, exchange_coordinates

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_N_RUNS = 64  # runs of a store from which bags are taken, so that all of it is read
MAX_POINT_VALUES = 2**26  # coordinates of points held in memory: 256 MiB in float32
_MAX_REPEATS = 1000  # standard errors are those of bags, which more repeats do not reduce
_SEED = 5  # differs from those of the splits in `bags`


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Importance:
    """Result of `permutation_importance`: the drop in score without each coordinate.

    Attributes
    ----------
    names : tuple of str
        Names of the m coordinates, or sets of coordinates, that were permuted.
    targets : tuple of str
        Names of the k scored targets; k is 1 for classes and for densities.
    measure : {"R²", "accuracy"}
        Name of the score.
    score : float64, shape (k,)
        Score on the unchanged bags.
    drop, standard_error : float64, shape (m, k)
        Drop in score when the coordinate is permuted, and its standard error.
    n, n_groups : int
        Number of scored bags, and number of independent groups; without groups, both are equal.
    n_repeats : int
        Number of exchanges that were averaged.
    subset : {"all", "holdout", "train"}
        Subset of the bags that was scored.

    See Also
    --------
    permutation_importance : Importance of each coordinate.
    bagbasis.plotting.plot_importance : Plot permutation importances.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import DoubleBasisRegressor
    >>> from bagbasis.models import permutation_importance
    >>> model = DoubleBasisRegressor('moments').fit(X, y)
    >>> result = permutation_importance(model, X, y, n_repeats=2)
    >>> result.names, result.drop.shape
    (('0', '1'), (2, 1))
    """

    names: tuple[str, ...]
    targets: tuple[str, ...]
    measure: str
    score: Floats
    drop: Floats
    standard_error: Floats
    n: int
    n_groups: int
    n_repeats: int
    subset: str

    def values(self) -> dict[str, Any]:
        """Return the result in types that JSON knows: by target, most important first."""
        targets = {}
        for j, target in enumerate(self.targets):
            order = np.argsort(-self.drop[:, j], kind="stable")
            drops = [
                {
                    "coordinate": self.names[i],
                    "drop": float(self.drop[i, j]),
                    "standard_error": float(self.standard_error[i, j]),
                }
                for i in order.tolist()
            ]
            targets[target] = {"score": float(self.score[j]), "drops": drops}
        numbers = {name: getattr(self, name) for name in ("n", "n_groups", "n_repeats")}
        return {"measure": self.measure, "subset": self.subset, **numbers, "targets": targets}

    def _lines(self) -> dict[str, str]:
        lines = {}
        for j, target in enumerate(self.targets):
            for i in np.argsort(-self.drop[:, j], kind="stable").tolist():
                drop, spread = float(self.drop[i, j]), float(self.standard_error[i, j])
                name = coordinate_in_words(self.names[i])
                lines[f"{target}: {name}"] = with_error(drop, spread)
        return lines

    @property
    def _title(self) -> str:
        scores = ", ".join(rounded(score) for score in self.score.tolist())
        return f"Importance: drop of {self.measure}, which is {scores} of {self.n:,} bags"

    def __repr__(self) -> str:
        """Return a line for each coordinate, the most important first."""
        return text_table(self._title, self._lines())

    def _repr_html_(self) -> str:
        """Show the same as a table in a notebook."""
        return html_table(self._title, self._lines())

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the drop in score of each coordinate; see `plot_importance` for other targets.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into; default those of a new figure.

        Raises
        ------
        DataError
            If matplotlib is not installed (``pip install 'bagbasis[plots]'``).
        """
        from ...plotting.predictions import plot_importance  # noqa: PLC0415 - an extra

        return plot_importance(self, ax=ax)


@checked
def permutation_importance(
    model: FittedEstimator[JudgedModel],
    X: BagStore | LabelledBags | Bags | Sequence[ArrayLike],
    y: LabelsLike = None,
    *,
    coordinates: Annotated[Mapping[str, Sequence[int]], MappingOf(Text, ListOf(Integer()))]
    | None = None,
    groups: str | ArrayLike | None = None,
    n_repeats: Annotated[int, Integer(1, _MAX_REPEATS)] = 5,
    max_bags: Annotated[int, Integer(2)] = 2000,
    subset: Annotated[str, Subset] | None = None,
    sample_weight: SampleWeight = None,
    progress: Progress | None = None,
) -> Importance:
    """Return the drop in score when each coordinate is permuted between bags.

    A label belongs to a bag, not to a point, so bags are permuted. Each bag gets the values of the
    coordinate from another bag, in random order, one for each of its points. If the sizes differ,
    each value is used equally often, as nearly as possible. Every bag keeps its size and its other
    coordinates. The values of all points are not pooled, because all bags would then be alike, and
    unlike any real bag.

    Parameters
    ----------
    model : fitted estimator
        Regressor, classifier or Triple-Basis regressor.
    X : BagStore, LabelledBags, Bags, or list of arrays (n_i, n_dims)
    y : optional
        Labels, or responses, of bags in memory; as for `evaluate`.
    coordinates : mapping from name to list of int, optional
        Sets of coordinates that are exchanged together, such as the sine and cosine of an hour.
        Default: each coordinate by itself, under its name in the store, or its number from 0.
    groups : str or array, shape (n_bags,), optional
        Groups of bags that are not independent, such as patients or days: a column of the store, or
        one value per bag. Values come from a bag of another group, and standard errors are over
        groups. Default: the groups of the model's holdout, if the store has their column.
    n_repeats : int from 1 to 1000
        Number of exchanges that are averaged for each coordinate.
    max_bags : int ≥ 2
        Largest number of bags that are read into memory, from all parts of a larger store. Fewer
        bags are read if their points would take more than 256 MiB.
    subset, sample_weight
        As for `evaluate`.
    progress : callable (bags done, bags in all), optional

    Returns
    -------
    Importance

    Raises
    ------
    DataError
        If no bag is labelled, there are fewer than two groups of bags, or fewer than two weights
        are above 0.
    ParameterError
        If a coordinate does not exist, or y is given and the data carry their labels.
    ModelError
        In the same cases as `evaluate`.

    Notes
    -----
    The score is R² for numbers and densities, see `Errors.values`, and the accuracy for classes. If
    all labels are equal, all drops are 0.

    The standard error includes the variation of both the predicted bags and the bags that give
    their values. It therefore holds for other bags from the same distribution, too.

    Correlated coordinates share their importance: each of them may have a small drop, because the
    others carry the same information. An exchange also separates a coordinate from the other
    coordinates of the same point. The drop includes the loss of this dependence.

    See Also
    --------
    bagbasis.models.explain : What moves the prediction of one bag.
    bagbasis.plotting.plot_importance : Draws the result.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import DoubleBasisRegressor
    >>> from bagbasis.models import permutation_importance
    >>> X = [np.c_[x[:, :1], rng.normal(size=30)] for x in X]  # the second is noise
    >>> model = DoubleBasisRegressor('moments').fit(X, y)
    >>> result = permutation_importance(model, X, y, n_repeats=2)
    >>> bool(result.drop.ravel()[0] > result.drop.ravel()[1])
    True
    """
    fitted = model_of(model)
    taken = judged_data(fitted, X, y, groups=groups, sample_weight=sample_weight)
    groups, sample_weight = taken.values["groups"], taken.values["sample_weight"]
    where = labelled_for(fitted, taken.X, taken.y, subset)
    together = _sets_of(coordinates, where)
    if groups is None and isinstance(where.data, BagStore):
        of_model = Holdout.of(fitted.holdout).groups
        groups = of_model if of_model in where.data.target_names else None
    column = None if groups is None else Column.of(where.data, "groups", groups)
    weights = Weights.of_bags(where.data, sample_weight)
    name, chosen_bags = find_subset(fitted, where, subset, lambda bags: taken_bags(bags, max_bags))
    index, bags, labels = chosen_bags
    members = index if column is None else column.at(index)
    codes = np.unique(members, return_inverse=True)[1]
    if codes.max() < 1:
        raise DataError(f"there is one {'bag' if column is None else 'group'}; two are needed")
    outcome = fitted.outcome
    targets = outcome.encode(labels)[0].astype(np.float64)
    w = np.ones(len(index)) if weights is None else weights.of(index, targets)
    if np.count_nonzero(w) < 2:
        raise DataError("sample_weight: fewer than two bags weigh anything")
    exponents = outcome.exponents(targets)
    targets = in_units(targets, exponents)
    units = outcome.references(targets, w, fitted.mean_targets)
    scores = _Scores(fitted, bags, targets, exponents, n_repeats * len(together) + 1, progress)
    base = scores.losses(bags)
    rng, drops = np.random.default_rng(_SEED), []
    for chosen in together.values():
        donors = [draw_donors(codes, rng) for _ in range(n_repeats)]
        after = [scores.losses(exchange_coordinates(bags, chosen, each, rng)) for each in donors]
        drops.append(drop_of_score(base, np.array(after), np.array(donors), units, w, codes))
    return Importance(
        names=tuple(together),
        targets=outcome.scored_names,
        measure=outcome.score_measure,
        score=determination(w @ base, w @ units),
        drop=np.array([drop for drop, _ in drops]),
        standard_error=np.array([error for _, error in drops]),
        n=len(index),
        n_groups=int(codes.max()) + 1,
        n_repeats=n_repeats,
        subset=name,
    )


class _Scores:
    """Losses of a model on bags with the same labels, which are in units 2^exponents, by passes."""

    def __init__(
        self,
        model: JudgedModel,
        bags: Bags,
        targets: Floats,
        exponents: Integers,
        n_passes: int,
        progress: Progress | None,
    ) -> None:
        self._model, self._targets, self._exponents = model, targets, exponents
        self._progress, self._all, self._done = progress, n_passes * len(bags), 0

    def losses(self, bags: Bags) -> Floats:
        """Return the loss of each bag, shape (n, k)."""
        reduction = rows_of("importance", self._of_batch, judging_cost(self._model))
        progress = self._progress and part_of(self._progress, self._done, self._all)
        self._done += len(bags)
        return run_pass(LabelledBags(bags), reduction, progress=progress)

    def _of_batch(self, batch: Batch) -> Floats:
        rows, outcome = self._model.decision_rows(batch.bags), self._model.outcome
        with np.errstate(over="ignore"):  # refused by name
            rows = in_units(rows, self._exponents)
            losses = outcome.losses(rows, self._targets[batch.index])
        outcome.check_finite(losses, "the squared error", TOO_LARGE)
        return outcome.scored(losses)


def _sets_of(
    groups: Mapping[str, Sequence[int]] | None, bags: LabelledBags
) -> dict[str, list[int]]:
    """Return the coordinates that are exchanged together, by name."""
    if groups is None:
        names = bags.coordinate_names or [str(j) for j in range(bags.n_dims)]
        return {name: [j] for j, name in enumerate(names)}
    if not groups:
        raise ParameterError("coordinates is empty; name some, or leave it out")
    sets = {}
    for name, chosen in groups.items():
        what = f"coordinates of {shown(name)}"
        if isinstance(chosen, (str, bytes)) or not len(chosen):
            raise ParameterError(f"{what} are {shown(chosen)}; expected a list of their numbers")
        sets[str(name)] = [Integer(0, bags.n_dims - 1).check(what, j) for j in chosen]
    return sets


def taken_bags(bags: LabelledBags, max_bags: int) -> tuple[Integers, Bags, Any] | None:
    """Return positions, bags and labels of bags from all parts of the data; None without labels."""
    batches = [batch for batch in _batches(bags, max_bags) if len(batch)]
    if not batches:
        return None
    labels = [batch.labels for batch in batches]
    is_array = isinstance(labels[0], np.ndarray)
    return (
        np.concatenate([batch.index for batch in batches]),
        concatenate([batch.bags for batch in batches]),
        np.concatenate(labels) if is_array else concatenate(labels),
    )


def _batches(bags: LabelledBags, max_bags: int) -> Iterator[Batch]:
    is_small = bags.n_bags <= max_bags and bags.n_points * bags.n_dims <= MAX_POINT_VALUES
    n_runs = 1 if is_small else min(_N_RUNS, max_bags)
    edges = np.linspace(bags.start, bags.end, n_runs + 1).astype(int).tolist()
    for run, (start, stop) in enumerate(pairwise(edges)):
        remaining = max_bags * (run + 1) // n_runs - max_bags * run // n_runs
        values = MAX_POINT_VALUES // n_runs
        for batch in bags.batches(start, stop, rows_per_block=remaining, max_bytes=4 * values):
            few = slice(remaining)
            yield Batch(batch.index[few], batch.bags[few], batch.labels[few], batch.stop)
            remaining -= len(batch)
            values -= batch.bags.points.size
            if remaining <= 0 or values <= 0:
                break
