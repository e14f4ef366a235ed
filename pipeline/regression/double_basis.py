"""What the Double-Basis estimators share: fitting from one pass, and raw prediction."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from ..bags import Bags, BagStore, as_bags
from ..bags.plan import Range
from ..bags.splits import VALIDATION_SEED, Split, holdout_split
from ..embeddings import ProjectionEmbedding
from ..errors import ModelError, ParameterError
from ..execution import Progress, lane, lazy_rows
from ..random_features import RandomFourierFeatures
from .accumulate import AccumulateTask, FitStatistics, accumulate, ranges_of
from .checkpoints import Checkpoints, CheckpointsLike, checkpoints_of
from .encoding import Encoding
from .feature_map import FeatureMap, resolve_features
from .prediction import PredictedRows, prediction_ranges
from .ridge import RidgeSolution, default_alphas, solve, solve_gcv, solve_validation
from .source import Source
from .statistics import MANY_TARGETS
from .statistics_kernels import linear_predictions


@dataclass(frozen=True)
class Problem:
    """What an estimator is fitted to.

    Attributes
    ----------
    source : Source
    encoding : Encoding
    attributes : dict
        Of the fitted estimator, as far as the labels alone decide them: ``target_names_``, …
    """

    source: Source
    encoding: Encoding
    attributes: dict[str, Any]


class DoubleBasis(BaseEstimator):
    """What the Double-Basis regressor and classifier share: parameters, fit and raw prediction.

    Subclasses say what the targets become and what a prediction is.
    """

    _on_held_out: tuple[str, ...] = ("validation",)  # alphas chosen by bags that are held out

    def __init__(
        self,
        embedding: Any = None,
        random_features: Any = None,
        alpha: Any = "gcv",
        alphas: Any = None,
        validation_fraction: float = 0.1,
        precision: str = "float32",
    ) -> None:
        self.embedding = embedding
        self.random_features = random_features
        self.alpha = alpha
        self.alphas = alphas
        self.validation_fraction = validation_fraction
        self.precision = precision

    # ------------------------------------------------------------------ fitting

    def _fit(
        self,
        problem: Problem,
        holdout: float,
        progress: Progress | None,
        checkpoints: CheckpointsLike = None,
    ) -> None:
        """Fit; checkpoints given by their URL are removed when all is done."""
        with checkpoints_of(checkpoints) as kept:
            self._fit_keeping(problem, holdout, progress, kept)

    def _fit_keeping(
        self,
        problem: Problem,
        holdout: float,
        progress: Progress | None,
        checkpoints: Checkpoints | None,
    ) -> None:
        self._check_parameters(holdout)
        clock = time.perf_counter()
        features = self._resolve(problem.source)
        resolved = time.perf_counter()
        task = self._task(problem, features, holdout)
        keeper = checkpoints.keeper(task) if checkpoints else None
        n_bags_resumed = keeper.n_bags_kept(ranges_of(task)) if keeper else 0
        statistics = accumulate(task, progress, keeper)
        accumulated = time.perf_counter()
        self._learn(problem, features, holdout, statistics)
        self.report_["n_bags_resumed"] = n_bags_resumed
        self.report_["seconds"] = {
            "choose": resolved - clock,
            "accumulate": accumulated - resolved,
            "solve": time.perf_counter() - accumulated,
        }

    def _task(self, problem: Problem, features: FeatureMap, holdout: float) -> AccumulateTask:
        """The pass over the problem's bags."""
        return AccumulateTask(
            problem.source,
            features,
            problem.encoding,
            holdout_split(holdout),
            self._validation,
            self.precision,
        )

    @property
    def _validation(self) -> Split | None:
        """The bags that the penalty is chosen on."""
        chosen = isinstance(self.alpha, str) and self.alpha in self._on_held_out
        return Split(self.validation_fraction, VALIDATION_SEED) if chosen else None

    def _learn(
        self, problem: Problem, features: FeatureMap, holdout: float, statistics: FitStatistics
    ) -> None:
        """Everything that a fit leaves, from the statistics of the problem's bags."""
        with lane():
            solution = self._solve(problem, features, holdout, statistics)
        self.features_ = features
        self.coef_ = solution.coef
        self.intercept_ = solution.intercept
        self.alpha_ = solution.alpha
        self.alphas_ = solution.alphas
        self.alpha_scores_ = solution.scores
        self.holdout_ = float(holdout)
        for name, value in problem.attributes.items():
            setattr(self, name, value)
        self.report_: dict[str, Any] = {
            "data_url": problem.source.url,
            "n_bags": problem.source.n_bags,
            "n_points": problem.source.n_points,
            "n_bags_fitted": statistics.train.n
            + (statistics.validation.n if statistics.validation else 0),
            "n_bags_unlabelled": statistics.n_unlabelled,
            "n_bags_held_out": statistics.n_held_out,
            "n_points_seen": statistics.n_points,
            "n_points_outside_box": statistics.n_outside,
        }
        if problem.source.snapshot is not None:
            self.report_["data_snapshot"] = problem.source.snapshot

    def _problem(self, X: Any, labels: Any, target: Any, bags: Range | None = None) -> Problem:
        """What `fit` was given; ``bags`` are those of a store that are taken, None: all."""
        raise NotImplementedError

    def _resolve(self, source: Source) -> FeatureMap:
        """Both bases for this data; parameters are cloned, so that a fit never uses an old one."""
        embedding = clone(self.embedding) if self.embedding is not None else ProjectionEmbedding()
        second = self.random_features
        random_features = clone(second) if second is not None else RandomFourierFeatures()
        with lane():
            return resolve_features(source, embedding, random_features)

    def _units(self, encoding: Encoding) -> NDArray[np.float64] | None:
        """Of each target's squared error where λ is chosen; None: its variance."""
        return None

    def _solve(
        self, problem: Problem, features: FeatureMap, holdout: float, statistics: FitStatistics
    ) -> RidgeSolution:
        train, units = statistics.train, self._units(problem.encoding)
        grid = self._alpha_grid(train.n)
        if self.alpha == "validation":
            if statistics.validation is None:
                raise ModelError("no validation statistics")
            return solve_validation(train, statistics.validation, grid, self._noise, units)
        if len(grid) > 1 or self.alpha == "gcv":
            return solve_gcv(train, grid, units)
        return solve(train, float(grid[0]), self._noise)

    def _alpha_grid(self, n_rows: int) -> NDArray[np.float64]:
        if isinstance(self.alpha, str):
            values = default_alphas(max(1, n_rows)) if self.alphas is None else self.alphas
        else:
            values = self.alpha
        try:
            return np.asarray(values, dtype=np.float64).reshape(-1)
        except (TypeError, ValueError):
            raise ParameterError(f"penalties are {values!r}; expected numbers ≥ 0") from None

    @property
    def _noise(self) -> float:
        """Eigenvalues below this share of the trace of ZᵀZ are rounding of the products."""
        return 1e-7 if self.precision == "float32" else 1e-14

    def _check_parameters(self, holdout: float) -> None:
        named = ("gcv", *self._on_held_out)
        names = " or ".join(f"'{name}'" for name in named)
        if isinstance(self.alpha, str) and self.alpha not in named:
            raise ParameterError(f"alpha is {self.alpha!r}; expected a number ≥ 0, a list, {names}")
        if self.alphas is not None and not isinstance(self.alpha, str):
            raise ParameterError(f"alphas is the grid of alpha={names}")
        grid = self._alpha_grid(1)
        if grid.size == 0 or not (np.isfinite(grid) & (grid >= 0)).all():
            given = self.alpha if self.alphas is None else self.alphas
            raise ParameterError(f"penalties are {given!r}; expected finite numbers ≥ 0")
        if grid.size > 1 and (grid == 0).any():
            raise ParameterError("a grid of alphas has only numbers > 0; alpha=0 alone is OLS")
        if self.precision not in ("float32", "float64"):
            raise ParameterError(f"precision is {self.precision!r}; 'float32' or 'float64'")
        share = self.validation_fraction
        if not (isinstance(share, Real) and 0 < share < 1):
            raise ParameterError(f"validation_fraction is {share!r}; expected a share, 0 < … < 1")
        check_share(holdout)

    # ------------------------------------------------------------------ predicting

    def decision_rows(self, bags: Bags) -> NDArray[np.float64]:
        """z(A(X))ᵀψ + intercept for bags in memory, shape (n_bags, k) (004, eq. 3.15)."""
        check_is_fitted(self, "coef_")
        if bags.n_dims != self.features_.n_dims:
            raise ModelError(
                f"the model was fitted on bags of dimension {self.features_.n_dims}, these have "
                f"{bags.n_dims}"
            )
        out = np.empty((len(bags), len(self.intercept_)))
        with lane():
            for start, features, _ in self.features_.blocks(bags, self.precision):
                self._combine(features, out[start : start + len(features)])
        return out

    def _combine(self, features: NDArray[Any], out: NDArray[np.float64]) -> None:
        """Rows of z into predictions: exact sums for a few targets, a matrix product for many."""
        if len(self.intercept_) < MANY_TARGETS:
            linear_predictions(features, self.coef_, self.intercept_, out)
        else:
            np.add(features @ self._coef_in_precision().T, self.intercept_, out=out)

    def _coef_in_precision(self) -> NDArray[Any]:
        kept = getattr(self, "_typed_coef", None)
        if kept is None or kept[0] is not self.coef_:
            kept = self._typed_coef = (self.coef_, self.coef_.astype(self.precision))
        return kept[1]

    def __getstate__(self) -> Any:
        """Without the copy in working precision, so that a model travels once."""
        state = dict(super().__getstate__())
        state.pop("_typed_coef", None)
        return state

    def _predict(self, X: Any, method: str, n_columns: int | None, dtype: Any) -> Any:
        """numpy for bags in memory; for a BagStore a lazy dask.array, a chunk a range of bags."""
        check_is_fitted(self, "coef_")
        if isinstance(X, BagStore):
            tail = () if n_columns is None else (n_columns,)
            return self._lazy(X, PredictedRows(self, X, method), tail, dtype)
        return getattr(self, method)(as_bags(X))

    def _lazy(self, store: BagStore, rows: PredictedRows, tail: tuple[int, ...], dtype: Any) -> Any:
        """A dask.array of one row of shape ``tail`` a bag of the store."""
        if store.n_dims != self.features_.n_dims:
            raise ModelError(
                f"the model was fitted on bags of dimension {self.features_.n_dims}, "
                f"{store.url} holds dimension {store.n_dims}"
            )
        row_bytes = 8 * int(np.prod(tail))
        return lazy_rows(rows, prediction_ranges(store, self.features_, row_bytes), tail, dtype)

    def save(self, url: str | os.PathLike[str], overwrite: bool = False) -> None:
        """Save as Zarr and JSON; see `models.save_model`."""
        from .saving import save_model

        save_model(self, url, overwrite)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")


def check_share(holdout: float) -> None:
    """Raise ParameterError for a ``holdout`` that is no share."""
    if not (isinstance(holdout, Real) and 0 <= holdout < 1):
        raise ParameterError(f"holdout is {holdout!r}; expected a share, 0 ≤ holdout < 1")
