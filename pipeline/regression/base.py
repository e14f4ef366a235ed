"""What the Double-Basis estimators share: fitting from one pass, and raw prediction."""

from __future__ import annotations

import os
import time
from abc import abstractmethod
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ..bags import Bags, BagStore, as_bags
from ..bags.labelled import LabelledBags, with_targets
from ..bags.plan import Range
from ..bags.splits import VALIDATION_SEED, Split, holdout_split
from ..embeddings import ProjectionEmbedding
from ..errors import ModelError, ParameterError
from ..execution import Progress, lane
from ..random_features import RandomFourierFeatures
from ..sklearn_bases import BaseEstimator
from .accumulate import FitPass, FitStatistics
from .checkpoints import Checkpoints, CheckpointsLike, checkpoints_of
from .feature_map import FeatureMap, resolve_features
from .outcomes import OUTCOMES, Outcome, Prediction
from .prediction import lazy_predictions
from .ridge import RidgeSolution, default_alphas, solve, solve_gcv, solve_validation
from .saving import ModelState, params_from_dict, params_to_dict, save_model
from .statistics import MANY_TARGETS
from .statistics_kernels import linear_predictions


@dataclass(frozen=True)
class Problem:
    """What an estimator is fitted to.

    Attributes
    ----------
    source : LabelledBags
        The labelled bags.
    outcome : Outcome
        What their labels are, as far as these alone decide it.
    """

    source: LabelledBags
    outcome: Outcome


class ScoringModel(Protocol):
    """A fitted estimator, as far as its errors need to know it."""

    @property
    def outcome_(self) -> Outcome: ...
    @property
    def features_(self) -> FeatureMap: ...

    def decision_rows(self, bags: Bags) -> NDArray[np.float64]:
        """Raw rows of bags in memory, shape (n_bags, k), which the outcome reads."""
        ...


class FittedModel(ScoringModel, Protocol):
    """A fitted estimator, as far as prediction and evaluation need to know it."""

    @property
    def holdout_(self) -> float:
        """Share of the bags that were left out of the fit, by `holdout_split`."""
        ...

    def predicted(self, bags: Bags) -> Prediction:
        """Everything that is predicted for bags in memory."""
        ...


class DoubleBasis(BaseEstimator):
    """What the Double-Basis regressor and classifier share: parameters, fit and raw prediction.

    A subclass says which `Outcome` its labels have.

    A fit is the steps `check_parameters`, `problem`, `resolve`, `task` and `learn`, which
    retraining and tuning take one by one.
    """

    outcome_: Outcome
    versions_: dict[str, str]  # of a loaded model: what it was saved with
    outcome_kind: ClassVar[Any]  # a class of `OUTCOMES`
    saved_arrays: ClassVar[tuple[str, ...]] = ("coef_", "intercept_", "alphas_", "alpha_scores_")

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

    def labelled(self, X: Any, labels: Any, target: Any) -> LabelledBags:
        """Return the labelled bags that `fit` is given.

        Parameters
        ----------
        X : BagStore, Bags, or list of arrays (n_i, n_dims)
        labels : array, list or None
            Of bags in memory: targets, or responses.
        target : str, list of str or None
            Of a store.

        Raises
        ------
        DataError
            No bags or no labels, or labels that do not fit the bags.
        ParameterError
            Labels beside a store, or a target beside bags in memory.
        """
        return with_targets(X, labels, target)[0]

    @abstractmethod
    def problem(self, X: Any, labels: Any, target: Any, bags: Range | None = None) -> Problem:
        """Return what `fit` is given, see `labelled`; ``bags`` are those of a store, None: all."""

    def fit_problem(
        self,
        problem: Problem,
        holdout: float,
        progress: Progress | None,
        checkpoints: CheckpointsLike = None,
    ) -> None:
        """Fit to these bags; checkpoints given by their URL are removed when all is done."""
        with checkpoints_of(checkpoints) as kept:
            self._fit_keeping(problem, holdout, progress, kept)

    def _fit_keeping(
        self,
        problem: Problem,
        holdout: float,
        progress: Progress | None,
        checkpoints: Checkpoints | None,
    ) -> None:
        self.check_parameters(holdout)
        clock = time.perf_counter()
        features = self.resolve(problem.source)
        resolved = time.perf_counter()
        task = self.task(problem, features, holdout)
        keeper = checkpoints.keeper(task) if checkpoints else None
        n_bags_resumed = keeper.n_bags_kept(task.ranges) if keeper else 0
        statistics = task.run(progress, keeper)
        accumulated = time.perf_counter()
        self.learn(problem, features, holdout, statistics)
        self.report_["n_bags_resumed"] = n_bags_resumed
        self.report_["seconds"] = {
            "choose": resolved - clock,
            "accumulate": accumulated - resolved,
            "solve": time.perf_counter() - accumulated,
        }

    def task(self, problem: Problem, features: FeatureMap, holdout: float) -> FitPass:
        """The pass over the problem's bags."""
        source = replace(problem.source, left_out=holdout_split(holdout))
        return FitPass(source, features, problem.outcome, self._validation, self.precision)

    @property
    def _validation(self) -> Split | None:
        """The bags that the penalty is chosen on."""
        chosen = isinstance(self.alpha, str) and self.alpha in self._on_held_out
        return Split(self.validation_fraction, VALIDATION_SEED) if chosen else None

    def learn(
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
        self.outcome_ = problem.outcome
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

    def resolve(self, source: LabelledBags) -> FeatureMap:
        """Both bases for this data; parameters are cloned, so that a fit never uses an old one."""
        embedding = clone(self.embedding) if self.embedding is not None else ProjectionEmbedding()
        second = self.random_features
        random_features = clone(second) if second is not None else RandomFourierFeatures()
        with lane():
            return resolve_features(source, embedding, random_features)

    def _solve(
        self, problem: Problem, features: FeatureMap, holdout: float, statistics: FitStatistics
    ) -> RidgeSolution:
        train, units = statistics.train, problem.outcome.units()
        grid = self.alpha_grid(train.n)
        if self.alpha == "validation":
            if statistics.validation is None:
                raise ModelError("no validation statistics")
            return solve_validation(train, statistics.validation, grid, self.rounding, units)
        if len(grid) > 1 or self.alpha == "gcv":
            return solve_gcv(train, grid, units)
        return solve(train, float(grid[0]), self.rounding)

    def alpha_grid(self, n_rows: int) -> NDArray[np.float64]:
        """The penalties that are tried for so many rows, shape (n,)."""
        if isinstance(self.alpha, str):
            values = default_alphas(max(1, n_rows)) if self.alphas is None else self.alphas
        else:
            values = self.alpha
        try:
            return np.asarray(values, dtype=np.float64).reshape(-1)
        except (TypeError, ValueError):
            raise ParameterError(f"penalties are {values!r}; expected numbers ≥ 0") from None

    @property
    def rounding(self) -> float:
        """Eigenvalues below this share of the trace of ZᵀZ are rounding of the products."""
        return 1e-7 if self.precision == "float32" else 1e-14

    def check_parameters(self, holdout: float) -> None:
        """Raise ParameterError for a parameter that no fit accepts; nothing is read."""
        named = ("gcv", *self._on_held_out)
        names = " or ".join(f"'{name}'" for name in named)
        if isinstance(self.alpha, str) and self.alpha not in named:
            raise ParameterError(f"alpha is {self.alpha!r}; expected a number ≥ 0, a list, {names}")
        if self.alphas is not None and not isinstance(self.alpha, str):
            raise ParameterError(f"alphas is the grid of alpha={names}")
        grid = self.alpha_grid(1)
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

    def predict(self, X: Any) -> Any:
        """Predictions of bags: numpy for bags in memory, a lazy dask.array for a BagStore."""
        return self._predict(X)

    @property
    def target_names_(self) -> tuple[str, ...]:
        """Names of the store's targets; empty for labels in memory, and for responses."""
        return self.outcome_.names

    def predicted(self, bags: Bags) -> Prediction:
        """Everything that is predicted for bags in memory."""
        return self.outcome_.predict(self.decision_rows(bags))

    def values(self, bags: Bags) -> NDArray[Any]:
        """Targets, classes or coefficients of bags in memory, shape (n_bags,) or (n_bags, k)."""
        return self.predicted(bags).values

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
        state = super().__getstate__().copy()
        state.pop("_typed_coef", None)
        return state

    def _predict(self, X: Any, array: str = "predictions") -> Any:
        """An array of `Prediction`: of bags in memory, or lazily of a store, chunked by bags."""
        check_is_fitted(self, "coef_")
        if not isinstance(X, BagStore):
            return self.predicted(as_bags(X)).arrays()[array]
        column = self.outcome_.stored()[array]
        method = "values" if array == "predictions" else array
        return self._lazy(X, method, (), column.tail, column.dtype)

    def _lazy(
        self,
        store: BagStore,
        method: str,
        arguments: tuple[Any, ...],
        tail: tuple[int, ...],
        dtype: Any,
    ) -> Any:
        """`method(bags, *arguments)` of a store, a dask.array of rows of shape `tail`."""
        if store.n_dims != self.features_.n_dims:
            raise ModelError(
                f"the model was fitted on bags of dimension {self.features_.n_dims}, "
                f"{store.url} holds dimension {store.n_dims}"
            )
        return lazy_predictions(self, store, method, arguments, tail, dtype)

    # ------------------------------------------------------------------ saving

    def save(self, url: str | os.PathLike[str], overwrite: bool = False) -> None:
        """Save as Zarr and JSON; see `save_model`."""
        save_model(self, url, overwrite)

    def state(self) -> ModelState:
        """Everything that the fit has left, for `save_model`.

        Raises
        ------
        ModelError
            Not fitted, or an embedding that is not registered.
        """
        if not hasattr(self, "coef_"):
            raise ModelError("the model is not fitted; call fit before save")
        attributes = {
            "estimator": type(self).__name__,
            **params_to_dict(self.get_params(deep=False)),
            "features": self.features_.to_dict(),
            "alpha": self.alpha_,
            "holdout": self.holdout_,
            "target_names": list(self.outcome_.names),
            "report": self.report_,
            **self.outcome_.to_dict(),
        }
        arrays = {name.rstrip("_"): getattr(self, name) for name in self.saved_arrays}
        return ModelState(attributes, arrays)

    @classmethod
    def from_state(cls, state: ModelState) -> Self:
        """The fitted estimator that had this state.

        Raises
        ------
        Exception
            A state that is incomplete, or whose parts do not fit together.
        """
        values = state.attributes
        model = cls(**params_from_dict(values))
        for name in cls.saved_arrays:
            setattr(model, name, state.arrays[name.rstrip("_")])
        model.features_ = FeatureMap.from_dict(values["features"])
        model.alpha_ = values["alpha"]
        model.holdout_ = values["holdout"]
        model.report_ = values["report"]
        model.versions_ = values["versions"]
        kind = cls.outcome_kind
        foreign = [other.key for other in OUTCOMES if other is not kind and other.key in values]
        if foreign:
            raise ValueError(f"a {cls.__name__} has no {foreign[0]!r}")
        names = tuple(values["target_names"])
        model.outcome_ = kind.from_dict(values, names, len(model.intercept_))
        model.check_shapes()
        return model

    def check_shapes(self) -> None:
        """Raise ValueError unless the arrays of a loaded model fit together."""
        first, second = self.features_.embedding, self.features_.fourier
        if second is not None and second.n_inputs != first.n_features:
            raise ValueError("the random features do not fit the embedding")
        expected = (len(self.intercept_), self.features_.n_features)
        if self.coef_.shape != expected or self.intercept_.ndim != 1:
            raise ValueError(f"coefficients have shape {self.coef_.shape}; expected {expected}")
        if not (np.isfinite(self.coef_).all() and np.isfinite(self.intercept_).all()):
            raise ValueError("a chunk of the coefficients is missing")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")


def check_share(holdout: float) -> None:
    """Raise ParameterError for a ``holdout`` that is no share."""
    if not (isinstance(holdout, Real) and 0 <= holdout < 1):
        raise ParameterError(f"holdout is {holdout!r}; expected a share, 0 ≤ holdout < 1")
