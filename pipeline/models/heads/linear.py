"""`LinearHead`: a ridge on summaries of bags, for stacks; and the best weights of a stack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler
from typing_extensions import override

from ...core.arrays import Floats, Integers
from ...core.held_out_choice import simplest_within
from ...core.units import in_units
from ..fitting.fold_errors import FoldRows
from ..model_state import ModelState, OptionalPart

if TYPE_CHECKING:
    from sklearn.linear_model import Ridge

HEAD_PENALTIES = np.logspace(-2, 4, 7)  # of standardised columns: from hardly any to all but all
# Bags and columns up to which other summaries than means are tried: fits take at most seconds.
MAX_SUMMARISED, MAX_SUMMARIES = 5000, 512
# Spread of the shares about equal ones, before any error is seen. From .06 to .18 errors of sets of
# a hundred bags are about the same (`bags experiment real-bags`). More follows noise; 0 keeps what
# is bad.
SPREAD = 0.12
ERROR_TOLERANCE = 1e-12  # relative to all errors: below it, members differ only by rounding


@dataclass(frozen=True, eq=False)
class LinearHead(OptionalPart):
    """A linear model of summaries of bags, and its weight in the predictions of a stack.

    Attributes
    ----------
    coef : float64, shape (k, m)
        Coefficients of the m summaries; of the means alone if there are as many as coordinates.
    intercept : float64, shape (k,)
    weight : float
        Weight in the predictions of the stack.
    low, high : sequence of float, of length m
        Least and largest summaries in training. Summaries of new bags are moved to this range,
        because a line through extremes is not to be trusted beyond them. Empty for means alone,
        which are not moved.
    """

    coef: Floats
    intercept: Floats
    weight: float = 0.0
    low: Sequence[float] = ()
    high: Sequence[float] = ()

    key: ClassVar[str] = "line"
    arrays: ClassVar[tuple[str, ...]] = ("coef", "intercept")

    @classmethod
    def fitted(
        cls,
        summaries: NDArray[np.float32],
        n_means: int,
        y: Floats,
        judged: FoldRows,
        folds: Integers,
    ) -> tuple[Self, Floats]:
        """Return a ridge on standardised summaries (n, m), and its out-of-fold predictions.

        The first ``n_means`` columns are the means. The ridge has the means alone, unless that of
        all summaries has a smaller out-of-fold error by more than one standard error. With more
        than 5,000 bags or 512 summaries, it has the means. The penalty minimises the squared error
        over the ``folds`` (n,). Labels ``y`` (n, k) have the units, weights and clusters of
        ``judged``.
        """
        n, m = summaries.shape
        of_means = cls._of_columns(summaries[:, :n_means], y, judged, folds, bounded=False)
        if m == n_means or n > MAX_SUMMARISED or m > MAX_SUMMARIES:
            return of_means
        both = of_means, cls._of_columns(summaries, y, judged, folds, bounded=True)
        losses = [((predicted - y) ** 2 / judged.units).mean(axis=1) for _, predicted in both]
        return both[simplest_within(losses, weights=judged.weights, clusters=judged.clusters)]

    @classmethod
    def _of_columns(
        cls,
        columns: NDArray[np.float32],
        y: Floats,
        judged: FoldRows,
        folds: Integers,
        bounded: bool,
    ) -> tuple[Self, Floats]:
        """Return the ridge with the best penalty, and its out-of-fold predictions.

        If it is ``bounded``, rows of a fold are moved to the range of the other rows.
        """
        x, weights = np.asarray(columns, np.float64), judged.weights
        low, high = (x.min(axis=0).tolist(), x.max(axis=0).tolist()) if bounded else ((), ())
        scaler = StandardScaler().fit(x, sample_weight=weights)
        x, turned = scaler.transform(x), None
        if not bounded and x.shape[1] > len(x):  # as many directions as bags hold what they say
            rotations, sizes, turned = np.linalg.svd(x, full_matrices=False)
            x = rotations * sizes
        each = _out_of_fold(x, y, weights, folds, bounded)
        losses = [weights @ ((predicted - y) ** 2 / judged.units).sum(axis=1) for predicted in each]
        best = int(np.argmin(losses))
        ridge = _ridge(HEAD_PENALTIES[best]).fit(x, y, weights)
        coef = np.reshape(ridge.coef_, (y.shape[1], -1))  # of one label scikit-learn drops the axis
        coef = (coef if turned is None else coef @ turned) / scaler.scale_
        intercept = np.reshape(ridge.intercept_, -1) - coef @ scaler.mean_
        return cls(coef, intercept, low=low, high=high), each[best]

    def predict(self, summaries: NDArray[np.float32]) -> Floats:
        """Return predictions for summaries of bags, of which the means are first, shape (n, k)."""
        columns = np.asarray(summaries[:, : self.coef.shape[1]], np.float64)
        if len(self.low):
            columns = np.clip(columns, self.low, self.high)
        return np.asarray(columns @ self.coef.T + self.intercept)

    def in_units(self, exponents: Integers) -> Self:
        """Return the model of labels divided by 2^``exponents``, shape (k,)."""
        intercept = in_units(self.intercept, exponents)
        return replace(self, coef=in_units(self.coef.T, exponents).T, intercept=intercept)

    @override
    def state(self) -> ModelState:
        state = super().state()
        if not len(self.low):  # as versions without a range save it
            del state.attributes[self.key]["low"], state.attributes[self.key]["high"]
        return state

    @override
    def check(self, n_targets: int, n_features: int) -> None:
        if self.coef.ndim != 2 or (len(self.coef), *self.intercept.shape) != (n_targets,) * 2:
            raise ValueError(f"the linear head has coefficients of shape {self.coef.shape}")
        if not 0 <= self.weight <= 1:
            raise ValueError(f"the linear head has weight {self.weight}")
        if not {len(self.low), len(self.high)} <= {0, self.coef.shape[1]}:
            raise ValueError("the linear head has a range of other columns")


def _ridge(penalty: float) -> Ridge:
    from sklearn.linear_model import Ridge  # noqa: PLC0415 - most fits have no linear head

    return Ridge(penalty)


def _out_of_fold(x: Floats, y: Floats, weights: Floats, folds: Integers, bounded: bool) -> Floats:
    """Return out-of-fold predictions of the ridge by each penalty, shape (penalties, n, k).

    See `LinearHead` for ``bounded``.
    """
    predicted = np.empty((len(HEAD_PENALTIES), *y.shape))
    for j in np.unique(folds):
        out = folds == j
        known, new = x[~out], x[out]
        new = np.clip(new, known.min(axis=0), known.max(axis=0)) if bounded else new
        for penalty, by_penalty in zip(HEAD_PENALTIES, predicted, strict=True):
            ridge = _ridge(penalty).fit(known, y[~out], weights[~out])
            by_penalty[out] = ridge.predict(new).reshape(-1, y.shape[1])
    return predicted


def best_shares(
    members: Sequence[Floats], y: Floats, weights: Floats, clusters: Integers
) -> Floats:
    """Return the weights of members with the least squared error, each at least 0, 1 in all.

    ``members`` are out-of-fold predictions, each of the shape (n, k) of ``y``. Rows have
    ``weights`` (n,), and rows with one number in ``clusters`` (n,) count as one row. With few bags,
    errors say little about weights, and equal weights are better (Bates and Granger 1969; Smith and
    Wallis 2009). Therefore the weights have a normal prior with equal means and the deviation
    `SPREAD`; the noise of errors has the variance of the errors of the best mixture. A member
    that errs much less than the others has the weight 1.
    """
    roots, m = np.sqrt(weights)[:, None], len(members)
    # as shares sum to one, the error of a mixture is the mixture of errors
    residuals = np.column_stack([(roots * (member - y)).ravel() for member in members])
    gram, equal = residuals.T @ residuals, np.full(m, 1 / m)
    total = float(np.trace(gram))
    if not total > 0:
        return equal
    gram[np.diag_indices(m)] += ERROR_TOLERANCE * total
    free = _least(gram, np.zeros(m))
    noise = float(free @ gram @ free) / (y.shape[1] * len(np.unique(clusters)))
    gram[np.diag_indices(m)] += noise / SPREAD**2
    return _least(gram, noise / SPREAD**2 * equal)


def _least(gram: Floats, pull: Floats) -> Floats:
    """Return the shares s ≥ 0 with sum 1 and the least sᵀ gram s − 2 pullᵀ s.

    It is the least over the minima of all faces, each face being the members with a share.
    """
    m, mixtures = len(gram), []
    for members in chain.from_iterable(combinations(range(m), size) for size in range(1, m + 1)):
        shares, of_kept = np.zeros(m), list(members)
        ones = np.ones(len(members))
        free, weights = np.linalg.solve(
            gram[np.ix_(of_kept, of_kept)], np.column_stack([pull[of_kept], ones])
        ).T
        shares[of_kept] = free + weights * (1 - free.sum()) / weights.sum()
        if (shares >= 0).all():
            mixtures.append((float(shares @ gram @ shares - 2 * pull @ shares), shares))
    return np.clip(min(mixtures, key=lambda pair: pair[0])[1], 0.0, 1.0)  # rounding
