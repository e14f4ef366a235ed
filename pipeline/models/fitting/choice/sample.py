"""The sample of labelled bags for ``embedding="auto"``, read once and divided into folds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....core.arrays import Floats, Integers
from ....core.errors import DataError
from ....core.units import in_units, units_of
from ....data.bags.bags import Bags, concatenate, take_rows
from ....data.labelled.labelled import LabelledBags
from ....data.labelled.leaks import MIN_DISTINCT
from ....data.labelled.splits import PlacedFolds
from ....data.store.plan import Range, ranges_of, sample_ranges
from ...outcomes.classes import Classes
from ..fit_parameters import FOLDED_BAGS
from ..fold_errors import MAX_JUDGED_BAGS, FoldRows, assign_folds
from ..problem import Problem

MIN_SAMPLED_BAGS = 200  # sample size, however many points the bags have
_N_RUNS = 32  # evenly spread, as in other samples of bags
MAX_LABELLED_BAGS = 2**20  # bags whose labels are read
BUDGET_SECONDS = 6.0  # on one core, for the points; a tenth of the fit where that is more
SHARE_OF_FIT = 0.1
ORDER_SEED = 5  # for drawing the direction along which bags are sorted
# Digits of the sort keys: they are rounded, as the order of points changes the last ones.
ORDER_DIGITS = 10
SCALE_QUANTILES = 0.1, 0.5, 0.9  # quantiles of the means of bags: a wild bag does not count
_MAX_COMPARED = 64  # label columns by which copies are compared
# Seconds of a core, in order of magnitude: a point in all embeddings that are tried, and per
# coordinate; a point and a bag in the fit itself.
SECONDS_PER_POINT, SECONDS_PER_COORDINATE = 1.5e-5, 5e-7
SECONDS_PER_FITTED_POINT, SECONDS_PER_FITTED_BAG = 1.5e-6, 5e-5


@dataclass(frozen=True, eq=False)
class LabelledSample:
    """Labelled bags in memory.

    Attributes
    ----------
    bags : Bags
        Bags of the sample.
    rows : FoldRows
        Encoded labels, weights and folds of these bags.
    grouped : bool
        Whether folds keep groups whole.
    n_labelled : int
        Number of labelled bags in the data, counted in at most a million bags.
    index : int64, shape (n,)
        Positions of these bags in the data.
    """

    bags: Bags
    rows: FoldRows
    grouped: bool
    n_labelled: int
    index: Integers

    def __len__(self) -> int:
        """Count the bags."""
        return len(self.bags)

    @property
    def placed_folds(self) -> PlacedFolds | None:
        """First folds of the bags by their positions; None if other bags are labelled, too."""
        if len(self) < self.n_labelled or not len(self):
            return None
        order, folds = np.argsort(self.index), self.rows.folds[0]
        return PlacedFolds(self.index[order], folds[order], int(folds.max()) + 1)


def read_sample(problem: Problem) -> LabelledSample:
    """Read up to 2,000 labelled bags of the fit, in evenly spread runs.

    Fewer bags are read if their points would take too long.

    Raises
    ------
    DataError
        If no bag has a label.
    """
    source = problem.fitted
    places = labelled_places(source)
    if not len(places):
        raise nothing_to_fit(source)
    n = _count(source)
    runs = sample_ranges(len(places), _N_RUNS, -(-n // _N_RUNS))
    chosen = np.concatenate([places[a:b] for a, b in runs])
    index, bags, labels = [], [], []
    for batch in source.batches_of(ranges_of(chosen)):
        if len(batch):
            with source.naming(batch.index):
                labels.append(problem.outcome.encode(batch.labels)[0])
            index.append(batch.index)
            bags.append(batch.bags)
    if not bags:
        raise nothing_to_fit(source)
    joined, encoded = concatenate(bags), np.concatenate(labels)
    joined = Bags.trusted(joined.points, joined.offsets)  # without ids and names
    means = joined.means
    order = order_by_content(means)
    joined, encoded, at = take_rows(joined, order), encoded[order], np.concatenate(index)[order]
    copies = copies_among(joined.sizes, means[order], encoded)
    rows, grouped = fold_rows(problem, at, encoded, copies)
    named = Bags.trusted(joined.points, joined.offsets, names=source.coordinate_names)
    return LabelledSample(named, rows.of_components(), grouped, len(places), at)


def order_by_content(means: Floats) -> Integers:
    """Return an order of bags that depends neither on their order nor on units.

    Bags are sorted by the means of their points, shape (n, n_dims), along a fixed direction.
    """
    low, middle, high = np.quantile(means, SCALE_QUANTILES, axis=0)
    side = np.where(high > low, high - low, 1.0)
    direction = np.random.default_rng(ORDER_SEED).uniform(0.5, 1, means.shape[1])
    values = ((means - middle) / side) @ direction
    return np.argsort(np.round(values, ORDER_DIGITS), kind="stable")


def copies_among(sizes: Integers, means: Floats, y: Floats) -> Integers | None:
    """Return one number per bag, equal for bags of the same points and labels; None: all differ.

    Points are compared by how many there are and by their means, shape (n, n_dims).

    Copies of a bag have to be in one fold, because they would reveal the label of a bag that is
    left out. If most bags have copies, bags repeat by chance, and the result is None.
    """
    rows = np.column_stack([sizes, means, y[:, :_MAX_COMPARED]])
    _, numbers = np.unique(rows, axis=0, return_inverse=True)
    distinct = int(numbers.max()) + 1
    return None if distinct == len(y) or distinct < MIN_DISTINCT * len(y) else numbers.ravel()


def fold_rows(
    problem: Problem,
    index: Integers,
    y: NDArray[np.float64],
    copies: Integers | None = None,
) -> tuple[FoldRows, bool]:
    """Return encoded labels (n, k) of some bags with their folds, and whether groups are whole.

    Numbers are in units of `units_of`. Bags with equal numbers in ``copies`` are in one fold.
    """
    weights = np.ones(len(y)) if problem.weights is None else problem.weights.of(index, y)
    if not weights.sum() > 0:
        weights = np.ones(len(y))  # the fit says that there is nothing to fit
    y = np.asarray(y, np.float64)
    units = problem.outcome.units()
    if units is None:
        y = in_units(y, units_of(y))
        mean = weights @ y / weights.sum()
        with np.errstate(over="ignore", invalid="ignore"):  # too large ones are refused later
            units = weights @ (y - mean) ** 2 / weights.sum()
    units = np.where(np.isfinite(units) & (units > 0), units, 1.0)
    classes = y.argmax(axis=1) if isinstance(problem.outcome, Classes) else None
    together, grouped = copies, False
    if problem.groups is not None:
        _, groups = np.unique(problem.groups.at(index), return_inverse=True)
        if groups.max() > 0:  # one group cannot be left out
            classes, together, grouped = None, groups, True
    folds = assign_folds(len(y), classes, together)
    clusters = np.arange(len(y)) if together is None else together
    return FoldRows(y, folds, units, weights, clusters), grouped


def count_labelled(source: LabelledBags) -> int:
    """Return the number of labelled bags; with at most `FOLDED_BAGS` bags, the number of bags."""
    return source.n_bags if source.n_bags <= FOLDED_BAGS else len(labelled_places(source))


def nothing_to_fit(source: LabelledBags) -> DataError:
    """Return the error for bags of which none has a label and is not held out."""
    where = source.url or "bags in memory"
    names = ", ".join(map(repr, source.target_names)) or "y"
    return DataError(
        f"{where}: no labelled bags to fit: every target is NaN (or held out), of {names}; check "
        "the labels, or hold out fewer bags"
    )


def labelled_places(source: LabelledBags) -> Integers:
    """Return the positions of labelled bags that are not left out, among at most a million bags."""
    places = []
    for start, stop in sample_ranges(source.n_bags, _N_RUNS, MAX_LABELLED_BAGS // _N_RUNS):
        a, b = source.start + start, source.start + stop
        places.append(a + np.flatnonzero(_is_fitted(source, (a, b))))
    return np.concatenate(places) if places else np.empty(0, np.int64)


def _is_fitted(source: LabelledBags, part: Range) -> NDArray[np.bool_]:
    known = source.known(*part)
    if source.left_out is not None:
        known &= ~source.left_out.members(*part)
    if source.only is not None:
        known &= source.only.members(*part)
    return known


def _count(source: LabelledBags) -> int:
    """Return the number of bags to read, limited by the time for their points."""
    n, points = source.n_bags, source.n_points
    fit = points * SECONDS_PER_FITTED_POINT + n * SECONDS_PER_FITTED_BAG
    budget = max(BUDGET_SECONDS, SHARE_OF_FIT * fit)
    per_point = SECONDS_PER_POINT + SECONDS_PER_COORDINATE * source.n_dims
    affordable = budget / (per_point * max(1.0, points / max(1, n)))
    return int(np.clip(affordable, MIN_SAMPLED_BAGS, MAX_JUDGED_BAGS))
