"""`StreamingRidge`: ridge regression of plain rows that arrive in batches."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from functools import reduce
from numbers import Real as RealNumber
from operator import add
from typing import Annotated, Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from typing_extensions import override

from ..core import (
    Integer,
    ListOf,
    OneOf,
    Real,
    check_parameters,
    checked,
    component,
    constraints_of,
)
from ..core.arrays import Floats, as_array, missing_in
from ..core.errors import DataError, shown
from ..core.sklearn_bases import BaseEstimator, RegressorMixin, validated, validated_pair
from ..core.units import in_units, units_of
from ..data.bags.alignment import in_order_of_rows
from ..data.bags.frames import numbers_of_frame
from ..data.bags.ids import EXACT
from ..data.bags.precision import check_array_apart
from ..data.labelled.inputs import label_names
from .ridge.gram_products import add_upper
from .ridge.penalties import Path, Penalties, warn_at_edge
from .ridge.ridge import RidgeSolution, solve, solve_each, solve_gcv
from .ridge.sums import RidgeStatistics, StatisticsBuilder

_TRACE_ROUNDING = 1e-14  # of sums in double, relative to their trace
_LARGEST, _SMALLEST = 1e150, 1e-150  # numbers whose squares have sums in double


@dataclass(frozen=True)
class _ShiftedStatistics(RidgeStatistics):
    """Sums of rows minus an origin, so that a column far from 0 keeps its digits.

    The sum of two statistics with different origins has the origin of the first.
    """

    origin_z: Floats = field(kw_only=True)
    origin_y: Floats = field(kw_only=True)

    KEPT: ClassVar[tuple[str, ...]] = ("origin_z", "origin_y")

    @classmethod
    def of(cls, sums: RidgeStatistics) -> _ShiftedStatistics:
        """Return statistics with their origin; sums of earlier versions have the origin 0."""
        if isinstance(sums, cls):
            return sums
        values = {item.name: getattr(sums, item.name) for item in fields(sums)}
        origins = np.zeros(sums.n_features), np.zeros(sums.n_targets)
        return cls(**values, origin_z=origins[0], origin_y=origins[1])

    @override
    def combined(self, other: Self, combine: Callable[[Any, Any], Any]) -> Self:
        moved = type(self).of(other).about(self.origin_z, self.origin_y)
        return super().combined(moved, combine)  # type: ignore[arg-type]  # no class below

    def about(self, origin_z: Floats, origin_y: Floats) -> _ShiftedStatistics:
        """Return the sums of the same rows less another origin."""
        z, y = self.origin_z - origin_z, self.origin_y - origin_y
        if not z.any() and not y.any():
            return self
        sums = self.in_units(np.maximum(self.exponents, units_of(y[None])))
        y, n = in_units(y, sums.exponents), self.weight
        gram = sums.gram.copy()
        both = np.outer(sums.sum_z, z)
        add_upper(gram, both + both.T + n * np.outer(z, z))
        crossed = np.outer(sums.sum_y, z) + np.outer(y, sums.sum_z) + n * np.outer(y, z)
        return replace(
            sums,
            gram=gram,
            sum_z=sums.sum_z + n * z,
            sum_y=sums.sum_y + n * y,
            cross=sums.cross + crossed,
            sum_yy=sums.sum_yy + 2 * y * sums.sum_y + n * y**2,
            origin_z=origin_z,
            origin_y=origin_y,
        )


@component
class StreamingRidge(RegressorMixin, BaseEstimator):
    """Ridge regression on rows that arrive in batches; memory grows with D², not with the rows.

    For each fold, only sufficient statistics are kept, in double precision. Penalties can be
    compared afterwards, by generalised cross-validation or by folds, without reading a row again.
    The solution equals that of scikit-learn's ``Ridge`` on all rows, up to rounding. The mean of
    the first batch is subtracted from all rows, so that timestamps and other columns far from 0
    keep their digits. Directions in which the rows are constant up to rounding get no coefficient.

    Parameters
    ----------
    alpha : float ≥ 0, "gcv" or "folds"
        Penalty, as in ``Ridge``, or the rule that chooses it from ``alphas``.
    alphas
        Penalties to try. Default: two values per decade, up to 100 times the number of rows or, if
        larger, the mean sum of squares of a centred feature.
    n_folds
        Number of folds. Rows are assigned to folds in turn, or by their groups.

    Attributes
    ----------
    coef_ : shape (n_features,) or (n_targets, n_features)
        Coefficients of the features.
    intercept_ : float, or shape (n_targets,)
        Intercept, which is not penalised.
    alpha_ : float
        Penalty of the solution.

    See Also
    --------
    DoubleBasisRegressor : Predict numbers from bags.
    features : Compute the features of every bag.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> from bagbasis import StreamingRidge
    >>> model = StreamingRidge(alpha=1e-3)
    >>> for _ in range(3):
    ...     X = rng.normal(size=(50, 2))
    ...     model = model.partial_fit(X, X @ [1.0, -2.0])
    >>> print(model.coef_.round(2))
    [ 1. -2.]
    """

    alpha: Annotated[float | str, Real(ge=0) | OneOf("gcv", "folds")] = field(
        default=1.0, kw_only=False
    )
    alphas: Annotated[Sequence[float], ListOf(Real(gt=0))] = ()
    n_folds: Annotated[int, Integer(2, 1000)] = 5

    @checked
    def fit(self, X: ArrayLike, y: ArrayLike, *, groups: ArrayLike | None = None) -> StreamingRidge:
        """Fit to these rows alone, without rows of earlier calls; see `partial_fit`."""
        vars(self).pop("folds_", None)
        return self.partial_fit(X, y, groups=groups).solve()

    @checked
    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, *, groups: ArrayLike | None = None
    ) -> StreamingRidge:
        """Add a batch of rows.

        Parameters
        ----------
        X : shape (n, n_features)
        y : shape (n,) or (n, n_targets)
            Targets. Rows of pandas are put in the order of the index of X, and named columns in the
            order of the columns of the first batch.
        groups : shape (n,), optional
            Group of each row: a number, text or time. Rows of one group are in one fold, in all
            batches and for all types of the values: 7 and 7.0 are the same group.

        Raises
        ------
        DataError
            If the shapes do not fit, values or their squares are not finite, or a group is missing;
            if values are masked, have a unit, or are texts, dates or durations; if the columns of y
            have other names than before, or an index of pandas shares some labels only with X's.
        ParameterError
            If a parameter is out of range.
        """
        check_parameters(self)
        folds = [_ShiftedStatistics.of(fold_sums) for fold_sums in getattr(self, "folds_", [])]
        y, groups = in_order_of_rows(y, X, "y", "X"), in_order_of_rows(groups, X, "groups", "X")
        own = label_names(y)
        known = getattr(self, "_target_names", ()) if folds else own  # earlier versions have none
        if len(own) > 1 and known and set(own) != set(known):
            raise DataError(
                f"y has the columns {shown(list(own))}, the rows before had {shown(list(known))}; "
                "name them alike, or give y.to_numpy() in the order of the rows before"
            )
        if len(own) > 1 and known and own != known:
            y = numbers_of_frame(y, "y")[:, [own.index(name) for name in known]]
        check_array_apart("X", X, is_whole=False)
        rows, targets = validated_pair(
            self, X, y, dtype=np.float64, multi_output=True, y_numeric=True, reset=not folds
        )
        targets = targets.astype(np.float64, copy=False)
        columns = targets.reshape(len(targets), -1)
        if folds and len(folds[0].cross) != columns.shape[1]:
            raise DataError(f"y has {columns.shape[1]} targets; there were {len(folds[0].cross)}")
        if folds and len(folds) != self.n_folds:
            raise DataError(
                f"n_folds is {self.n_folds}, and the rows before are in {len(folds)} folds; call "
                "fit to begin again"
            )
        fold = self._folds_of(groups, len(rows), sum(fold_sums.n for fold_sums in folds))
        origin = (folds[0].origin_z, folds[0].origin_y) if folds else (_mean(rows), _mean(columns))
        with np.errstate(over="ignore"):  # refused by name
            rows, columns = rows - origin[0], columns - origin[1]
        self._check_sizes(rows, columns)
        new = [_sums(rows[fold == i], columns[fold == i], *origin) for i in range(self.n_folds)]
        self.folds_ = [a + b for a, b in zip(folds, new, strict=True)] if folds else new
        self._target_names = known or own
        self._is_single = targets.ndim == 1
        vars(self).pop("solution_", None)
        return self

    def solve(self, alpha: float | str | None = None) -> StreamingRidge:
        """Solve with a penalty or a rule that chooses it; None is ``alpha`` of the estimator."""
        check_is_fitted(self, "folds_")
        chosen = (
            self.alpha
            if alpha is None
            else constraints_of(type(self))["alpha"].check("alpha", alpha)
        )
        total = self._total()
        if isinstance(chosen, str):
            penalties = self._penalties(total)
            if chosen == "gcv":
                solution = solve_gcv(total, penalties, noise=_TRACE_ROUNDING)
                path = Path(solution.alphas, solution.scores)
            else:
                if sum(part.n > 0 for part in self.folds_) < 2:
                    where = f"n_samples={total.n} in one fold"
                    raise DataError(f"{where}; alpha='folds' needs two folds")
                path = Path(penalties.values, self._fold_errors(total, penalties.values))
                solution = solve(total, path.best, _TRACE_ROUNDING)
                path = replace(path, scores=path.scores / (_variation(total) or 1.0))
            if len(path.alphas) > 1:
                warn_at_edge(path, penalties, "float64", True)
        else:
            solution = solve(total, float(chosen), _TRACE_ROUNDING)
        if not np.isfinite(solution.coef).all() or not np.isfinite(solution.intercept).all():
            raise DataError(
                "y has too large numbers for finite coefficients; divide y by a constant"
            )
        self._intercept = solution.intercept + total.origin_y  # of rows less their origin
        intercept = self._intercept - solution.coef @ total.origin_z
        self.solution_ = replace(solution, intercept=intercept)
        return self

    @property
    def coef_(self) -> Floats:
        """Coefficients of the features, as in ``Ridge``."""
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
            If the rows have another number of features, or values are not finite.
        """
        solution = self._solved()
        rows = validated(self, X, dtype=np.float64, reset=False)
        origin = self.folds_[0].origin_z if hasattr(self, "_intercept") else 0.0
        intercept = getattr(self, "_intercept", solution.intercept)  # earlier versions have none
        predicted: Floats = (rows - origin) @ solution.coef.T + intercept
        return predicted[:, 0] if self._is_single else predicted

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
        default = Penalties.default(total.n, "float64", True)
        squares = np.maximum(0.0, total.diagonal - total.sum_z**2 / total.n)
        beyond = int(np.ceil(2 * np.log10(max(1.0, float(squares.mean()) / total.n))))
        more = default.values[-1] * 10.0 ** (0.5 * np.arange(1, beyond + 1))
        return replace(default, values=np.append(default.values, more))

    def _total(self) -> _ShiftedStatistics:
        return reduce(add, [_ShiftedStatistics.of(fold) for fold in self.folds_])

    def _fold_errors(self, total: RidgeStatistics, alphas: Iterable[float]) -> Floats:
        """Return squared errors over all folds, each predicted from the other folds.

        They are in the square of the largest unit of the targets, as `_variation`.
        """
        alphas = [float(alpha) for alpha in alphas]
        errors, units = np.zeros(len(alphas)), total.exponents
        for part in self.folds_:
            if part.n:
                judge = part.in_units(units).judge()
                for i, solution in enumerate(solve_each(total - part, alphas, _TRACE_ROUNDING)):
                    squares = judge(*solution.in_units(units))
                    errors[i] += part.n * np.mean(np.ldexp(squares, 2 * (units - units.max())))
        return errors

    def _check_sizes(self, rows: Floats, columns: Floats) -> None:
        """Raise DataError for numbers whose squares cannot be summed."""
        largest, spread = np.abs(rows).max(axis=0), np.ptp(rows, axis=0)
        names = getattr(self, "feature_names_in_", range(rows.shape[1]))
        for j in np.flatnonzero(~(largest <= _LARGEST))[:1]:
            raise DataError(
                f"X: column {shown(names[j])} has numbers {largest[j]:g} from their mean, whose "
                "squares are too large; divide the column by a constant"
            )
        for j in np.flatnonzero((spread > 0) & (spread < _SMALLEST))[:1]:
            raise DataError(
                f"X: numbers of column {shown(names[j])} differ by at most {spread[j]:g}, whose "
                "square is 0; multiply the column by a constant"
            )
        if not np.isfinite(columns).all():
            raise DataError("y has numbers too large to be centred; divide y by a constant")

    def _folds_of(self, groups: ArrayLike | None, n: int, before: int) -> NDArray[np.int64]:
        if groups is None:
            return np.arange(before, before + n) % self.n_folds
        values = as_array("groups", groups)
        if values.shape != (n,):
            raise DataError(f"groups have shape {values.shape}, there are {n} rows")
        names = _group_names(values)
        digests = {
            name: hashlib.blake2b(name.encode(), digest_size=8).digest() for name in set(names)
        }
        folds = {
            name: int.from_bytes(code, "little") % self.n_folds for name, code in digests.items()
        }
        return np.array([folds[name] for name in names], dtype=np.int64)


def _group_names(values: NDArray[Any]) -> list[str]:
    """Return a text per group, the same for equal numbers and times of any type.

    Raises
    ------
    DataError
        If a group is missing, or is a float too large to be a unique integer; names the row.
    """
    missing = np.flatnonzero(missing_in(values))
    if len(missing):
        raise DataError(
            f"groups: {len(missing)} of {len(values)} rows have no group, such as row {missing[0]} "
            f"({values[missing[0]]}); give each row a group, or leave these rows out"
        )
    if values.dtype.kind == "M":  # of any unit
        values = values.astype("datetime64[ns]")
    if values.dtype.kind in "iuUM":
        names: list[str] = np.asarray(values.astype(str)).tolist()
        return names
    return [_group_name(value, row) for row, value in enumerate(values.tolist())]


def _group_name(value: object, row: int) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, np.datetime64) or hasattr(value, "isoformat"):
        return _time_name(value)
    if isinstance(value, RealNumber | Decimal) and not isinstance(value, bool | np.bool_):
        if not np.isfinite(float(value)):
            raise DataError(f"groups: row {row} is {value}; give each row a group")
        if value == (whole := int(cast("float", value))):
            if isinstance(value, float | np.floating) and abs(value) > EXACT:
                raise DataError(
                    f"groups: row {row} is {value!r}, a float that stands for several whole "
                    "numbers; give whole numbers or texts"
                )
            return str(whole)
    return str(value)


def _time_name(value: object) -> str:
    """Return the name of a time, the same for numpy's nanoseconds and other types."""
    import pandas as pd  # noqa: PLC0415 - an extra

    try:
        moment = pd.Timestamp(value)  # type: ignore[arg-type]  # what cannot be one is refused
    except (TypeError, ValueError):
        return str(value)
    if moment.tzinfo is not None:
        return f"{moment.tz_convert('UTC').tz_localize(None).to_datetime64()}Z"
    return str(moment.to_datetime64().astype("datetime64[ns]"))


def _mean(columns: Floats) -> Floats:
    mean: Floats = (columns / len(columns)).sum(axis=0)  # no sum is too large
    return mean


def _variation(total: RidgeStatistics) -> float:
    """Return the sum of the squares of y about its mean, the mean over targets."""
    units = total.exponents
    return float(np.mean(np.ldexp(total.centred_yy(), 2 * (units - units.max()))))


def _sums(rows: Floats, targets: Floats, origin_z: Floats, origin_y: Floats) -> _ShiftedStatistics:
    """Return the sums of rows that are less the origin."""
    builder = StatisticsBuilder(rows.shape[1], targets.shape[1], np.float64)
    builder.add(rows, targets)
    sums = vars(builder.finish())
    return _ShiftedStatistics(**sums, origin_z=origin_z, origin_y=origin_y)
