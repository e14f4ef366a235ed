"""`StreamingRidge`: ridge regression of plain rows that arrive in batches."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ..arrays import Floats
from ..errors import DataError
from ..parameters import Integer, ListOf, OneOf, Real, Table, check_parameters
from ..params import as_array
from ..sklearn_bases import BaseEstimator, RegressorMixin, validated, validated_pair
from ..solvers import Penalties, RidgeSolution, solve, solve_gcv
from ..statistics import RidgeStatistics, StatisticsBuilder

NOISE = 1e-14  # rounding of sums in double, relative to their trace


class StreamingRidge(RegressorMixin, BaseEstimator):
    """Ridge regression of rows that are seen once, in batches, in memory of D².

    What is kept are sums in double, of each fold. So any penalty can be tried afterwards, by
    generalised cross-validation or by folds, without seeing a row again. The solution is that of
    scikit-learn's ``Ridge`` on all rows, up to rounding: features whose mean is 10^m times their
    spread lose 2m digits.

    Parameters
    ----------
    alpha : float ≥ 0, "gcv" or "folds", default 1.0
        The penalty, as in ``Ridge``, or how it is chosen from ``alphas``.
    alphas : list of float > 0, optional
        Default: half decades up to 100 times the number of rows.
    n_folds : int ≥ 2, default 5
        Rows are dealt to folds in turn, or by their groups.

    Attributes
    ----------
    coef_ : shape (n_features,) or (n_targets, n_features)
    intercept_ : float, or shape (n_targets,)
    alpha_ : float
    """

    PARAMETERS: ClassVar[Table] = {
        "alpha": Real(ge=0) | OneOf("gcv", "folds"),
        "alphas": ListOf(Real(gt=0)),
        "n_folds": Integer(2, 1000),
    }

    def __init__(
        self,
        alpha: float | str = 1.0,
        alphas: Sequence[float] = (),
        n_folds: int = 5,
    ) -> None:
        self.alpha = alpha
        self.alphas = alphas
        self.n_folds = n_folds

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> StreamingRidge:
        """Forget the rows before, and learn from these; see `partial_fit`."""
        vars(self).pop("folds_", None)
        return self.partial_fit(X, y, groups).solve()

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None
    ) -> StreamingRidge:
        """Add a batch of rows.

        Parameters
        ----------
        X : shape (n, n_features)
        y : shape (n,) or (n, n_targets)
        groups : shape (n,), optional
            Rows of one group are of one fold, in whichever batch they come.

        Raises
        ------
        DataError
            Shapes that do not fit, or numbers that are not finite.
        ParameterError
            A parameter out of range.
        """
        check_parameters(self)
        kept: list[RidgeStatistics] = getattr(self, "folds_", [])
        rows, targets = validated_pair(
            self, X, y, dtype=np.float64, multi_output=True, y_numeric=True, reset=not kept
        )
        targets = targets.astype(np.float64, copy=False)
        columns = targets.reshape(len(targets), -1)
        if kept and len(kept[0].cross) != columns.shape[1]:
            raise DataError(f"y has {columns.shape[1]} targets; there were {len(kept[0].cross)}")
        fold = self._folds_of(groups, len(rows), sum(one.n for one in kept))
        new = [_sums(rows[fold == i], columns[fold == i]) for i in range(self.n_folds)]
        self.folds_ = [a + b for a, b in zip(kept, new, strict=True)] if kept else new
        self._is_single = targets.ndim == 1
        vars(self).pop("solution_", None)
        return self

    def solve(self, alpha: float | str | None = None) -> StreamingRidge:
        """Solve with a penalty, or with a rule that chooses one; None takes the estimator's."""
        check_is_fitted(self, "folds_")
        chosen = self.alpha if alpha is None else self.PARAMETERS["alpha"].check("alpha", alpha)
        total = reduce(add, self.folds_)
        if isinstance(chosen, str):
            penalties = self._penalties(total)
            if chosen == "gcv":
                self.solution_ = solve_gcv(total, penalties)
                return self
            if sum(part.n > 0 for part in self.folds_) < 2:
                raise DataError(f"n_samples={total.n} in one fold; alpha='folds' needs two folds")
            errors = [self._fold_error(total, one) for one in penalties.values.tolist()]
            chosen = float(penalties.values[int(np.argmin(errors))])
        self.solution_ = solve(total, float(chosen), NOISE)
        return self

    @property
    def coef_(self) -> Floats:
        """Coefficients of the features, as those of ``Ridge``."""
        coef = self._solved().coef
        return coef[0] if self._is_single else coef

    @property
    def intercept_(self) -> float | Floats:
        """The intercept, or one per target."""
        intercept = self._solved().intercept
        return float(intercept[0]) if self._is_single else intercept

    @property
    def alpha_(self) -> float:
        """The penalty of the solution."""
        return self._solved().alpha

    def predict(self, X: ArrayLike) -> Floats:
        """Return the predictions of rows, shape (n,) or (n, n_targets).

        Parameters
        ----------
        X : shape (n, n_features)

        Raises
        ------
        DataError
            Rows of another number of features, or numbers that are not finite.
        """
        solution = self._solved()
        rows = validated(self, X, dtype=np.float64, reset=False)
        found: Floats = rows @ solution.coef.T + solution.intercept
        return found[:, 0] if self._is_single else found

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn that there may be several targets."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output, tags.target_tags.single_output = True, True
        return tags

    def _solved(self) -> RidgeSolution:
        if not hasattr(self, "solution_"):
            self.solve()
        return self.solution_

    def _penalties(self, total: RidgeStatistics) -> Penalties:
        if len(self.alphas):
            return Penalties(np.sort(np.asarray(self.alphas, dtype=np.float64)))
        return Penalties.default(total.n, "float64", True)

    def _fold_error(self, total: RidgeStatistics, alpha: float) -> float:
        """Return the squared error over all folds, each by what is learnt from the others."""
        found = 0.0
        for part in self.folds_:
            if part.n:
                solution = solve(total - part, alpha, NOISE)
                errors = part.judge()(solution.coef.T, solution.intercept)
                found += part.n * float(np.mean(errors))
        return found

    def _folds_of(self, groups: ArrayLike | None, n: int, before: int) -> NDArray[np.int64]:
        if groups is None:
            return np.arange(before, before + n) % self.n_folds
        names = as_array("groups", groups)
        if names.shape != (n,):
            raise DataError(f"groups have shape {names.shape}, there are {n} rows")
        found, codes = np.unique(names.astype(str), return_inverse=True)
        digests = [hashlib.blake2b(one.encode(), digest_size=8).digest() for one in found.tolist()]
        folds = np.array([int.from_bytes(one, "little") % self.n_folds for one in digests])
        return folds[codes]


def _sums(rows: Floats, targets: Floats) -> RidgeStatistics:
    builder = StatisticsBuilder(rows.shape[1], targets.shape[1], np.float64)
    builder.add(rows, targets)
    return builder.finish()
