"""Differences of two sets of bags in the mean and the spread of each coordinate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Floats
from ...core.saved import Saved
from ...data.bags.bags import Bags
from ...hypotheses.nulls.permutation import p_values

LARGEST_SHIFT = 1e9  # for sets in which all bags are equal
_MIN_RELATIVE_SPREAD = 1e-12  # relative to a coordinate's largest value: less variation is rounding


@dataclass(frozen=True, kw_only=True)
class CoordinateShift(Saved):
    """Difference in the mean and spread of one coordinate between two sets of bags.

    Attributes
    ----------
    coordinate : int
        Index of the coordinate.
    reference_mean, new_mean : float
        Mean of the coordinate in each set: the average of the bags' means, in the units of the
        data.
    mean_shift : float
        Difference new_mean − reference_mean, divided by the pooled standard deviation of the bags'
        means within a set (Cohen's d with the bag as the unit). Clipped to [−1e9, 1e9].
    mean_p_value : float
        p-value of |mean_shift|, corrected for the number of coordinates: the shift is compared with
        the largest shift of any mean or spread in each permutation.
    reference_spread, new_spread, spread_shift, spread_p_value : float
        The same four values for the spread: the standard deviation of the points of a bag.

    See Also
    --------
    DriftResult : Result of `drift_test`.
    drift_test : Compare two sets of bags.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> old = [rng.normal(0, 1, (20, 2)) for _ in range(60)]
    >>> new = [rng.normal(0.7, 1, (20, 2)) for _ in range(60)]
    >>> from bagbasis.operations import drift_test
    >>> shift = drift_test(old, new, n_permutations=199).coordinates[0]
    >>> shift.coordinate, shift.mean_p_value < 0.05
    (0, True)
    """

    coordinate: int
    reference_mean: float
    new_mean: float
    mean_shift: float
    mean_p_value: float
    reference_spread: float
    new_spread: float
    spread_shift: float
    spread_p_value: float


def means_and_spreads(bags: Bags) -> Floats:
    """Return mean and standard deviation of each coordinate per bag, shape (n_bags, 2 n_dims)."""
    means = bags.means
    squares = (bags.points - np.repeat(means, bags.sizes, axis=0)) ** 2
    return np.hstack([means, np.sqrt(Bags.trusted(squares, bags.offsets).means)])


def standardised(moments: Floats) -> Floats:
    """Return columns with mean 0 and standard deviation 1 over all bags; constants become 0.

    Parameters
    ----------
    moments : shape (n_bags, 2 n_dims)
        Moments, as `means_and_spreads` returns them.
    """
    centred = moments - moments.mean(axis=0)
    spreads = centred.std(axis=0)
    largest = np.abs(moments).max(axis=0).reshape(2, -1).max(axis=0)
    varies = spreads > _MIN_RELATIVE_SPREAD * np.tile(largest, 2)
    scaled: Floats = np.divide(centred, spreads, out=np.zeros_like(centred), where=varies)
    return scaled


def coordinate_shifts(
    moments: Floats, is_reference: NDArray[np.bool_], sums: Floats
) -> tuple[CoordinateShift, ...]:
    """Return the shift of every coordinate, in the order of coordinates.

    Parameters
    ----------
    moments : shape (n_bags, 2 n_dims)
        Moments, as `means_and_spreads` returns them.
    is_reference : shape (n_bags,)
    sums : shape (1 + n_permutations, 2 n_dims)
        Sums of the `standardised` moments, by `split_sums`.
    """
    # standardised columns sum to 0, so that the sum over one set is proportional to the difference
    p = p_values(np.abs(sums[0]), np.abs(sums[1:]).max(axis=1))
    reference, new = moments[is_reference], moments[~is_reference]
    varies = standardised(moments).any(axis=0)
    shifts = np.where(varies, _shifts(reference, new), 0)
    table = np.stack([reference.mean(axis=0), new.mean(axis=0), shifts, p], axis=1).tolist()
    n_dims = moments.shape[1] // 2
    return tuple(
        CoordinateShift(
            coordinate=j,
            reference_mean=mean[0],
            new_mean=mean[1],
            mean_shift=mean[2],
            mean_p_value=mean[3],
            reference_spread=spread[0],
            new_spread=spread[1],
            spread_shift=spread[2],
            spread_p_value=spread[3],
        )
        for j, (mean, spread) in enumerate(zip(table[:n_dims], table[n_dims:], strict=True))
    )


def _shifts(reference: Floats, new: Floats) -> Floats:
    """Return the differences of averages in pooled standard deviations within the sets."""
    m, n = len(reference), len(new)
    within = np.sqrt((m * reference.var(axis=0) + n * new.var(axis=0)) / (m + n - 2))
    difference = new.mean(axis=0) - reference.mean(axis=0)
    unit = np.maximum(within, np.abs(difference) / LARGEST_SHIFT)
    shifts: Floats = np.divide(difference, unit, out=np.zeros_like(unit), where=unit > 0)
    return shifts
