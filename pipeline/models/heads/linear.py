"""`LinearHead`: a ridge on the means of bags, for stacks; and the best weights of a stack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler
from typing_extensions import override

from ...core.arrays import Floats, Integers
from ..model_state import OptionalPart

HEAD_PENALTIES = np.logspace(-2, 4, 7)  # of standardised means: from hardly any to all but all
# Spread of the shares about equal ones, before any error is seen. From .06 to .18 errors of sets of
# a hundred bags are about the same (`bags experiment real-bags`). More follows noise; 0 keeps what
# is bad.
SPREAD = 0.12
ERROR_TOLERANCE = 1e-12  # relative to all errors: below it, members differ only by rounding


@dataclass(frozen=True, eq=False)
class LinearHead(OptionalPart):
    """A linear model of the means of bags, and its weight in the predictions of a stack.

    Attributes
    ----------
    coef : float64, shape (k, d)
    intercept : float64, shape (k,)
    weight : float
        Weight in the predictions of the stack.
    """

    coef: Floats
    intercept: Floats
    weight: float = 0.0

    key: ClassVar[str] = "line"
    arrays: ClassVar[tuple[str, ...]] = ("coef", "intercept")

    @classmethod
    def fitted(
        cls,
        means: NDArray[np.float32],
        y: Floats,
        units: Floats,
        weights: Floats,
        folds: Integers,
    ) -> tuple[Self, Floats]:
        """Return a ridge on standardised means (n, d), and its out-of-fold predictions.

        The penalty minimises the squared error over the ``folds`` (n,). Labels ``y`` (n, k) have
        squares in ``units`` (k,), and rows have ``weights`` (n,).
        """
        x = np.asarray(means, np.float64)
        scaler = StandardScaler().fit(x, sample_weight=weights)
        x, turned = scaler.transform(x), None
        if x.shape[1] > len(x):  # as many directions as bags hold all that they say
            rotations, sizes, turned = np.linalg.svd(x, full_matrices=False)
            x = rotations * sizes
        each = [_out_of_fold(penalty, x, y, weights, folds) for penalty in HEAD_PENALTIES]
        losses = [weights @ ((predicted - y) ** 2 / units).sum(axis=1) for predicted in each]
        best = int(np.argmin(losses))
        ridge = Ridge(HEAD_PENALTIES[best]).fit(x, y, weights)
        coef = np.reshape(ridge.coef_, (y.shape[1], -1))  # of one label scikit-learn drops the axis
        coef = (coef if turned is None else coef @ turned) / scaler.scale_
        return cls(coef, np.reshape(ridge.intercept_, -1) - coef @ scaler.mean_), each[best]

    def predict(self, means: NDArray[np.float32]) -> Floats:
        """Return the linear head's predictions for means (n, d), shape (n, k)."""
        return np.asarray(means, np.float64) @ self.coef.T + self.intercept

    @override
    def check(self, n_targets: int, n_features: int) -> None:
        if self.coef.ndim != 2 or (len(self.coef), *self.intercept.shape) != (n_targets,) * 2:
            raise ValueError(f"the linear head has coefficients of shape {self.coef.shape}")
        if not 0 <= self.weight <= 1:
            raise ValueError(f"the linear head has weight {self.weight}")


def _out_of_fold(penalty: float, x: Floats, y: Floats, weights: Floats, folds: Integers) -> Floats:
    """Return out-of-fold predictions (n, k) of the ridge."""
    predicted = np.empty(y.shape)
    for j in np.unique(folds):
        out = folds == j
        ridge = Ridge(penalty).fit(x[~out], y[~out], weights[~out])
        predicted[out] = ridge.predict(x[out]).reshape(-1, y.shape[1])
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
