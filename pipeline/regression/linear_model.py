"""Models that are linear in the features: predicting, and saving."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.utils.validation import check_is_fitted

from ..arrays import Integers
from ..bags import Bags, BagStore, as_bags
from ..errors import ModelError
from ..execution import lane
from ..execution.products import multiply
from ..params import checked
from ..sklearn_bases import BaseEstimator
from ..units import units_of
from .conformal import Calibration
from .feature_map import FeatureMap
from .fitted_model import NO_COLUMNS, Array, BagsLike, MoreColumns
from .moments import MANY_TARGETS
from .outcomes import OUTCOMES, Outcome, Prediction
from .posterior import BagScores, Posterior
from .prediction import lazy_predictions
from .saving import ModelState, OptionalPart, params_from_dict, params_to_dict, save_model
from .statistics_kernels import linear_predictions
from .summary import Floats

NOT_FINITE = "the model's parameters, or its targets, are too large or too small for numbers"

OUTSIDE = "outside"  # the column of the share of a bag's points outside the box
OF_POSTERIOR = ("std", *BagScores._fields)  # columns that need it


class LinearModel(BaseEstimator):
    """An estimator whose predictions are linear in the features: it predicts and is saved.

    Attributes
    ----------
    outcome_ : Outcome
        What was learnt; its class is ``outcome_kind``.
    features_ : FeatureMap
        Both bases with everything decided.
    coef_ : float64, shape (k, n_features)
    intercept_ : float64, shape (k,)
    alpha_ : float
        The penalty.
    holdout_ : float or dict
        The share of bags left out, or what else `Holdout` keeps.
    weights_ : dict or None
        What `Weights` keeps of ``sample_weight``: the column, and weights of classes.
    report_ : dict
    posterior_ : Posterior or None
        Of a fit with ``uncertainty=True``.
    calibration_ : Calibration or None
        Of a regressor with bags held out.
    versions_ : dict
        Of a loaded model: the packages that saved it.
    """

    outcome_: Outcome
    features_: FeatureMap
    coef_: Floats
    intercept_: Floats
    precision: str
    alpha_: float
    holdout_: float | dict[str, Any]
    weights_: dict[str, Any] | None
    report_: dict[str, Any]
    posterior_: Posterior | None = None
    calibration_: Calibration | None = None
    versions_: dict[str, str]

    outcome_kind: ClassVar[type[Outcome]]
    saved_arrays: ClassVar[tuple[str, ...]] = ("coef_", "intercept_", "alphas_", "alpha_scores_")
    optional_parts: ClassVar[tuple[type[OptionalPart], ...]] = (Posterior, Calibration)

    # ------------------------------------------------------------------ predicting

    def predict(self, X: BagsLike) -> Array:
        """Predict bags in memory as numpy arrays, a BagStore as a lazy dask.array."""
        return self._predict(X)

    @property
    def target_names_(self) -> tuple[str, ...]:
        """Names of the store's targets; empty for labels in memory, and for responses."""
        return self.outcome_.names

    def predicted(self, bags: Bags, columns: MoreColumns = NO_COLUMNS) -> Prediction:
        """Return everything that is predicted for bags in memory, with some of `more_columns`."""
        scored = not {*columns.names}.isdisjoint(OF_POSTERIOR)
        found = self.with_columns(*self._rows(bags, scored), columns)
        if OUTSIDE in found.more and len(bags):
            found.more[OUTSIDE][:] = self.features_.embedding.count_outside(bags) / bags.sizes
        return found

    def with_columns(self, rows: Floats, scores: Floats, columns: MoreColumns) -> Prediction:
        """Return predictions of raw rows (n, k) and rows of scores, with more columns."""
        more = {
            name: self.more_column(name, rows, scores, columns.coverage) for name in columns.names
        }
        return replace(self.outcome_.predict(rows), more=more)

    def more_column(self, name: str, rows: Floats, scores: Floats, coverage: float) -> Floats:
        """Return one of the columns beside the predictions.

        Parameters
        ----------
        name : {"leverage", "mahalanobis", "outside"}
        rows : shape (n, k)
            What `decision_rows` gives.
        scores : shape (n, 2)
            What `score_rows` gives; without rows where no column is of the posterior.
        coverage : float in (0, 1)
            Of intervals.

        Raises
        ------
        ModelError
            A column that this kind of model does not have.
        """
        if name == OUTSIDE:
            return np.zeros(len(rows))  # `predicted` has the bags that it is of
        if name not in BagScores._fields:
            raise ModelError(f"a {type(self).__name__} has no column {name!r}")
        self.needed_posterior()
        return scores[:, BagScores._fields.index(name)]

    def values(self, bags: Bags) -> NDArray[Any]:
        """Predict targets, classes or coefficients for bags in memory."""
        return self.predicted(bags).values

    @checked
    def bag_scores(self, X: BagsLike) -> BagScores:
        """Return how unlike the bags fitted each bag is: leverage and Mahalanobis distance.

        Parameters
        ----------
        X : BagStore, Bags, or list of arrays (n_i, n_dims)

        Raises
        ------
        ModelError
            The model was fitted without ``uncertainty=True``, or bags of another dimension.
        """
        self.needed_posterior()
        if isinstance(X, BagStore):
            scores = self._lazy(X, "score_rows", (), (2,), np.float64)
        else:
            scores = self.score_rows(as_bags(X))
        return BagScores(scores[:, 0], scores[:, 1])

    def needed_posterior(self) -> Posterior:
        """Return what `predict` with ``return_std`` and `bag_scores` need.

        Raises
        ------
        ModelError
            The model does not have it.
        """
        check_is_fitted(self, "coef_")
        if self.posterior_ is None:
            raise ModelError(
                "the model keeps no posterior: fit it with uncertainty=True (model.uncertainty: "
                "true), which keeps up to D x D numbers"
            )
        return self.posterior_

    def score_rows(self, bags: Bags) -> Floats:
        """Return leverage and Mahalanobis distance of bags in memory, shape (n_bags, 2)."""
        return self._rows(bags, scored=True)[1]

    def decision_rows(self, bags: Bags) -> Floats:
        """Compute z(A(X))ᵀψ + intercept, shape (n_bags, k) (004, eq. 3.15)."""
        return self._rows(bags, scored=False)[0]

    def _rows(self, bags: Bags, scored: bool) -> tuple[Floats, Floats]:
        check_is_fitted(self, "coef_")
        if bags.n_dims != self.features_.n_dims:
            raise ModelError(
                f"the model was fitted on bags of dimension {self.features_.n_dims}, these have "
                f"{bags.n_dims}"
            )
        out = np.empty((len(bags), len(self.intercept_)))
        posterior = self.needed_posterior() if scored else None
        scores = np.empty((len(bags) if scored else 0, 2))
        with lane():
            for start, features, _ in self.features_.blocks(bags, self.precision):
                stop = start + len(features)
                self._combine(features, out[start:stop])
                if posterior is not None:
                    posterior.score(features, scores[start:stop])
        self.outcome_.check_finite(out, "a prediction", NOT_FINITE)
        return out, scores

    def _combine(self, features: NDArray[Any], out: Floats) -> None:
        """Multiply: by sums in float64 for a few targets, by a matrix product for many."""
        if len(self.intercept_) < MANY_TARGETS:
            linear_predictions(features, self.coef_, self.intercept_, out)
        else:
            coef, exponents = self._coef_in_precision()
            np.ldexp(multiply(features, coef.T).astype(np.float64), exponents, out=out)
            out += self.intercept_

    def _coef_in_precision(self) -> tuple[NDArray[Any], Integers]:
        """Return the coefficients in working precision and their units, converted once per fit."""
        kept = getattr(self, "_typed_coef", None)
        if kept is None or kept[0] is not self.coef_:
            exponents = units_of(self.coef_.T)
            coef = np.ldexp(self.coef_, -exponents[:, None]).astype(self.precision)
            kept = self._typed_coef = (self.coef_, coef, exponents)
        return kept[1], kept[2]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the copy in working precision, which would double what travels."""
        state = super().__getstate__().copy()
        state.pop("_typed_coef", None)
        return state

    def _predict(self, X: BagsLike, array: str = "predictions") -> Array:
        """Return one of the arrays of `Prediction`; that of a store is lazy, chunked by bags."""
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
        dtype: DTypeLike,
    ) -> Array:
        """Return ``method(bags, *arguments)`` of a store: a dask.array with rows of shape tail."""
        if store.n_dims != self.features_.n_dims:
            raise ModelError(
                f"the model was fitted on bags of dimension {self.features_.n_dims}, "
                f"{store.url} holds dimension {store.n_dims}"
            )
        return lazy_predictions(self, store, method, arguments, tail, dtype)

    # ------------------------------------------------------------------ saving

    @checked
    def save(self, url: str | os.PathLike[str], overwrite: bool = False) -> None:
        """Save the model as Zarr arrays and JSON; see `save_model`."""
        save_model(self, url, overwrite)

    def state(self) -> ModelState:
        """Return everything that the fit has left, for `save_model`.

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
        if self.weights_ is not None:
            attributes["weights"] = self.weights_
        arrays = {name.rstrip("_"): getattr(self, name) for name in self.saved_arrays}
        arrays |= self.features_.arrays()
        for kind in self.optional_parts:
            part = getattr(self, f"{kind.key}_")
            if part is not None:
                attributes |= part.state().attributes
                arrays |= part.state().arrays
        return ModelState(attributes, arrays)

    @classmethod
    def array_names(cls, attributes: dict[str, Any]) -> list[str]:
        """Return the names of the arrays of a saved model with these attributes."""
        own = [name.rstrip("_") for name in cls.saved_arrays]
        own += FeatureMap.array_names(attributes["features"])
        return own + [n for kind in cls.optional_parts for n in kind.array_names(attributes)]

    @classmethod
    def from_state(cls, state: ModelState) -> Self:
        """Return the fitted estimator that had this state.

        Raises
        ------
        Exception
            A state that is incomplete, or whose parts do not fit together.
        """
        values = state.attributes
        model = cls(**params_from_dict(values))
        for name in cls.saved_arrays:
            setattr(model, name, state.arrays[name.rstrip("_")])
        model.features_ = FeatureMap.from_dict(values["features"], state.arrays)
        model.alpha_ = values["alpha"]
        model.holdout_ = values["holdout"]
        model.weights_ = values.get("weights")
        model.report_ = values["report"]
        model.versions_ = values["versions"]
        kind = cls.outcome_kind
        foreign = [other.key for other in OUTCOMES if other is not kind and other.key in values]
        if foreign:
            raise ValueError(f"a {cls.__name__} has no {foreign[0]!r}")
        names = tuple(values["target_names"])
        model.outcome_ = kind.from_dict(values, names, len(model.intercept_))
        model.check_shapes()
        for part in cls.optional_parts:
            found = part.from_state(state, len(model.intercept_), model.features_.n_features)
            setattr(model, f"{part.key}_", found)
        return model

    def check_shapes(self) -> None:
        """Raise ValueError unless the arrays of a loaded model fit together."""
        first, second = self.features_.embedding, self.features_.second
        if second is not None and second.n_inputs != first.n_features:
            raise ValueError("the random features do not fit the embedding")
        expected = (len(self.intercept_), self.features_.n_features)
        if self.coef_.shape != expected or self.intercept_.ndim != 1:
            raise ValueError(f"coefficients have shape {self.coef_.shape}; expected {expected}")
        if not (np.isfinite(self.coef_).all() and np.isfinite(self.intercept_).all()):
            raise ValueError("a chunk of the coefficients is missing")

    def __sklearn_is_fitted__(self) -> bool:
        """Tell `check_is_fitted`, which otherwise takes any attribute ending in _."""
        return hasattr(self, "coef_")
