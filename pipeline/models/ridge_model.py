"""`RidgeModel`: a fitted model, which predicts and is saved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..core import Function, Instance, Integer, ListOf, OneOf, Real, checked
from ..core.arrays import Bools, Floats, Integers
from ..core.errors import ModelError
from ..core.units import in_units, units_of
from ..data.bags.bags import Bags, BagsInMemory, as_bags
from ..data.bags.html import html_table
from ..data.labelled.frame_columns import from_frame
from ..data.labelled.inputs import BagsLike
from ..data.labelled.labelled import Batch
from ..data.labelled.weights import Weights
from ..data.store.store import BagStore
from ..execution.costs import SECONDS_PER_PRODUCT, Cost
from ..execution.pool import even_edges, run_kernel
from ..execution.products import multiply
from ..execution.worker_threads import one_blas_thread
from .fit_summary import embedding_in_words
from .fitted_model import (
    FRAME_COLUMNS,
    INTERVAL_COLUMNS,
    NO_COLUMNS,
    OUTSIDE_COLUMN,
    POSTERIOR_COLUMNS,
    SET,
    MoreColumns,
    PredictedRows,
    PredictionArray,
    check_names,
    in_fitted_order,
)
from .fitting.bag_noise import bag_variances
from .fitting.feature_map import MAPPED_ROWS, FeatureMap
from .heads.linear import LinearHead
from .heads.trees import TreeInputs, Trees
from .intervals.calibration import Calibration, SetCalibration
from .intervals.fold_calibration import FoldCalibration, FoldedModel, FoldSetCalibration
from .model_state import ModelState, OptionalPart
from .outcomes.base import Outcome, Prediction
from .outcomes.classes import Classes
from .outcomes.kinds import OUTCOMES
from .posterior import NO_NOISE, NO_POSTERIOR, BagScores, Posterior
from .predictions.features import lazy_predictions
from .predictions.outside import tell_outside, warning_of_outside
from .ridge.moments import MANY_TARGETS
from .ridge.ridge import RidgeSolution
from .ridge.statistics_kernels import linear_predictions

PREDICTED_ARRAYS = "predictions", "probabilities"
NOT_FINITE = "the model's parameters, or its targets, are too large or too small for numbers"
NO_CALIBRATION = (
    "the model has no calibration data; fit it with holdout=0.1, or call model.conformalize(X, y, "
    "cv=10) with the bags that it was fitted to, or conformalize(X, y) with other bags"
)

# arrays of a `RidgeSolution`, by their names in saved models
_ARRAYS = {"coef": "coef", "intercept": "intercept", "alphas": "alphas", "alpha_scores": "scores"}
MEAN_ARRAY = "mean_coefficients"  # the array of the mean of the encoded labels
CALIBRATIONS: tuple[type[Calibration | FoldCalibration], ...] = (
    Calibration,
    FoldCalibration,
    SetCalibration,
    FoldSetCalibration,
)
OPTIONAL_PARTS: tuple[type[OptionalPart], ...] = (Posterior, *CALIBRATIONS, Trees, LinearHead)


@dataclass(frozen=True, eq=False)
class RidgeModel:
    """A fitted model: linear in the features of bags, or trees, or a stack of both.

    Attributes
    ----------
    features : FeatureMap
        The fitted embedding and random-feature map.
    outcome : Outcome
        Outcome that was learnt.
    solution : RidgeSolution
        Coefficients, intercepts and penalty of the ridge regression.
    precision : {"float32", "float64"}
        Precision of features and products.
    report : dict
        Report of the fit, with its counts.
    holdout : float or dict
        Fraction of bags held out, or the saved form of another `Holdout`.
    weights : dict or None
        Saved form of `Weights`: the column of ``sample_weight``, and weights of classes.
    mean_targets : float64, shape (k,), or None
        Mean of the encoded labels fitted; None if the outcome does not keep it.
    posterior : Posterior or None
        Posterior of a fit with ``uncertainty=True``.
    calibration : Calibration, FoldCalibration or None
        Calibration of a regressor or classifier, by held-out bags or by folds.
    versions : dict
        Versions of the packages that saved a loaded model.
    trees : Trees or None
        Trees of a fit whose ``head`` has trees.
    line : LinearHead or None
        Linear model of a fit with ``head="stack"``.

    See Also
    --------
    bagbasis.DoubleBasisRegressor : Fit such a model, which is its ``model_``.
    bagbasis.load_model : Read a saved estimator.
    bagbasis.StreamingRidge : Ridge regression of plain rows.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import DoubleBasisRegressor
    >>> from bagbasis.models import RidgeModel
    >>> model = DoubleBasisRegressor('moments', alpha=1e-3).fit(X, y).model_
    >>> isinstance(model, RidgeModel), model.predict(X[:3]).shape
    (True, (3,))
    """

    features: FeatureMap
    outcome: Outcome
    solution: RidgeSolution
    precision: str
    report: dict[str, Any]
    holdout: float | dict[str, Any] = 0.0
    weights: dict[str, Any] | None = None
    mean_targets: Floats | None = None
    posterior: Posterior | None = None
    calibration: Calibration | FoldCalibration | None = None
    versions: dict[str, str] = field(default_factory=dict)
    trees: Trees | None = None
    line: LinearHead | None = None

    def __repr__(self) -> str:
        """Return the outcome, the embedding and the number of features, without the arrays."""
        embedding = embedding_in_words(self.features, self.report)
        return (
            f"RidgeModel({self.outcome.kind}; {embedding}; {self.features.n_features:,} features; "
            f"alpha={self.solution.alpha:.3g})"
        )

    def _repr_html_(self) -> str:
        """Show the same as a table in a notebook."""
        rows = {
            "learned": self.outcome.kind,
            "embedding": embedding_in_words(self.features, self.report),
            "features": self.features.n_features,
            "penalty": f"{self.solution.alpha:.3g}",
            "bags fitted": self.report.get("n_bags_fitted", 0),
        }
        return html_table("RidgeModel", rows)

    # ------------------------------------------------------------------ predicting

    @checked
    def predict(
        self, X: BagsLike, array: Annotated[str, OneOf(*PREDICTED_ARRAYS)] = "predictions"
    ) -> PredictionArray:
        """Return the predictions of bags, a row per bag; for a store they are a lazy dask.array.

        Parameters
        ----------
        X : BagStore, Bags, or list of arrays (n_i, n_dims)
        array : {"predictions", "probabilities"}, default "predictions"
            Array of the predictions: numbers, classes or coefficients of densities, or, of a
            classifier, the probabilities of its classes, shape (n_bags, n_classes).

        Raises
        ------
        ModelError
            If the bags have another dimension, or other names of coordinates, than the bags fitted,
            or bags were removed from a store, for which the classes leave no value.
        ParameterError
            If the model does not predict this array.
        """
        column = self.outcome.layout(array, X)
        of_bags = partial(_predicted_array, self, array)  # which travels to workers
        return self.apply(X, of_bags, tail=column.tail, dtype=column.dtype)

    @checked
    def apply(
        self,
        X: BagsLike,
        of_bags: Annotated[Callable[[Bags], NDArray[Any]], Function],
        *,
        tail: Annotated[Sequence[int], ListOf(Integer(0))],
        dtype: DTypeLike = np.float64,
        are_parts_alike: bool = False,
    ) -> PredictionArray:
        """Return the rows that ``of_bags`` computes for the bags ``X``, each of shape ``tail``.

        For a store, the result is a lazy dask.array, chunked by bags. A `BagbasisWarning` names
        bags with many points outside the box. For a store, each computation warns once; with
        ``are_parts_alike``, all computations of parts warn once together.

        Raises
        ------
        ModelError
            If the bags have another dimension, or other names of coordinates.
        """
        if not isinstance(X, BagStore):
            taken = from_frame(X, without=self.report.get(FRAME_COLUMNS, ()))
            bags = in_fitted_order(as_bags(taken.X), self.report)
            with warning_of_outside(bags):
                return of_bags(bags)
        check_names(self.report, X)
        self._check_dims(X.n_dims, f"{X.url} holds dimension {X.n_dims}")
        return lazy_predictions(
            of_bags, self.prediction_cost, X, tuple(tail), dtype, are_parts_alike
        )

    @checked
    def predicted(
        self, bags: BagsInMemory, columns: Annotated[MoreColumns, Instance()] = NO_COLUMNS
    ) -> Prediction:
        """Return the prediction for bags in memory, with more columns; see `with_columns`."""
        bags = in_fitted_order(as_bags(bags), self.report)
        scored = not {*columns.names}.isdisjoint(POSTERIOR_COLUMNS)
        folded = not {*columns.names}.isdisjoint((*INTERVAL_COLUMNS, SET))
        prediction = self.with_columns(self._rows(bags, scored, folded), columns)
        if OUTSIDE_COLUMN in prediction.more and len(bags):
            prediction.more[OUTSIDE_COLUMN][:] = (
                self.features.embedding.count_outside(bags) / bags.sizes
            )
        return prediction

    def with_columns(self, rows: PredictedRows, columns: MoreColumns) -> Prediction:
        """Return predictions of raw rows, with more columns.

        All models have the columns "leverage", "mahalanobis" and "outside". Models of numbers also
        have "std", and "lower" and "upper", the ends of intervals. Models of classes have "set",
        shape (n, n_classes).

        Raises
        ------
        ModelError
            If this kind of model does not have a column.
        """
        ends = cache(partial(self._ends, rows, columns.coverage))  # computes both ends at once
        more: dict[str, NDArray[Any]] = {
            name: self.sets_of(rows, columns.coverage)
            if name == SET
            else self._column(name, rows, ends)
            for name in columns.names
        }
        return replace(self.outcome.predict(rows.values), more=more)

    def _column(
        self, name: str, rows: PredictedRows, ends: Callable[[], tuple[Floats, Floats]]
    ) -> Floats:
        if name == OUTSIDE_COLUMN:
            return np.zeros(len(rows.values))  # `predicted` fills it in, which has the bags
        if name in BagScores._fields:
            self.require_posterior()
            return rows.scores[:, BagScores._fields.index(name)]
        if not self.outcome.has_intervals:
            hint = f"; its prediction sets are the column {SET!r}" if self.outcome.has_sets else ""
            raise ModelError(f"a model of {self.outcome.kind} has no column {name!r}{hint}")
        if name == "std":
            return self.outcome.predict(self._deviations(rows)).values
        return self.outcome.predict(ends()[INTERVAL_COLUMNS.index(name)]).values

    def _ends(self, rows: PredictedRows, coverage: float) -> tuple[Floats, Floats]:
        calibration = self.require_calibration()
        return calibration.ends(rows.values, rows.of_folds, coverage, rows.scales)

    def sets_of(self, rows: PredictedRows, coverage: float) -> Bools:
        """Return which classes are in the set of each bag, shape (n, n_classes).

        The predicted class is always in the set.

        Raises
        ------
        ModelError
            If the model does not predict classes, or is not calibrated.
        ParameterError
            If there are too few calibration bags for the coverage.
        """
        outcome, calibration = self.outcome, self.require_calibration()
        if not isinstance(outcome, Classes):
            raise ModelError(f"a model of {outcome.kind} has no column {SET!r}")
        assert isinstance(calibration, SetCalibration | FoldSetCalibration)
        calibration.rank(coverage)
        if not len(rows.values):
            return np.empty(rows.values.shape, np.bool_)
        by_fold = np.moveaxis(rows.of_folds, 2, 0)
        of_folds = [1.0 - outcome.probabilities(scores) for scores in by_fold]
        folds = np.stack(of_folds, axis=2) if of_folds else np.empty((*rows.values.shape, 0))
        unlikely = 1.0 - outcome.probabilities(rows.values)
        sets = calibration.sets(unlikely, folds, coverage)
        sets[np.arange(len(sets)), rows.values.argmax(axis=1)] = True
        return sets

    def _deviations(self, rows: PredictedRows) -> Floats:
        posterior = self.require_posterior()
        if not np.isfinite(posterior.noise).all():
            raise ModelError(NO_NOISE)
        deviations = posterior.deviations(rows.scores[:, 0], rows.spread)
        self.outcome.check_finite(deviations, "a standard deviation", NOT_FINITE)
        return deviations

    def require_calibration(self) -> Calibration | FoldCalibration:
        """Return the calibration of the model; ModelError if it has none."""
        if self.calibration is None:
            raise ModelError(NO_CALIBRATION)
        return self.calibration

    def require_posterior(self) -> Posterior:
        """Return the posterior; ModelError if the fit did not keep it."""
        if self.posterior is None:
            raise ModelError(NO_POSTERIOR)
        return self.posterior

    def score_rows(self, bags: BagsInMemory) -> Floats:
        """Return leverage and Mahalanobis distance of bags in memory, shape (n_bags, 2)."""
        return self._rows(bags, scored=True).scores

    def interval_rows(self, bags: BagsInMemory) -> PredictedRows:
        """Return the rows from which intervals are computed, for bags in memory."""
        return self._rows(bags, folded=True)

    @property
    def prediction_cost(self) -> Cost:
        """Cost of a prediction: that of `features`, and of other inputs of the model.

        Trees have further columns for each bag.
        """
        if self.trees is None:
            return self.features.cost
        return self.features.cost + TreeInputs(self.features).cost + self.trees.cost

    def decision_rows(self, bags: BagsInMemory) -> Floats:
        """Compute z(A(X))ᵀψ + intercept, shape (n_bags, k) (Oliva 2018, eq. 3.15)."""
        return self._rows(bags).values

    @checked
    def folded(self, rounding: Annotated[float, Real(gt=0)]) -> FoldedModel:
        """Return the `FoldedModel` of this model, with penalties per unit of weight fitted."""
        weight = float(self.report.get("weight_fitted", self.report["n_bags_fitted"]))
        alpha = self.solution.alpha / weight
        beside = self.report.get("baseline_alpha", 0.0) / weight
        features, outcome = self.features, self.outcome
        return FoldedModel(features, outcome, self.precision, rounding, alpha, beside)

    def _check_dims(self, n_dims: int, other: str) -> None:
        """Raise ModelError unless bags have the dimension of those fitted."""
        if n_dims != self.features.n_dims:
            raise ModelError(
                f"the model was fitted on bags of dimension {self.features.n_dims}, {other}"
            )

    def _rows(
        self, bags: BagsInMemory, scored: bool = False, folded: bool = False
    ) -> PredictedRows:
        bags = in_fitted_order(as_bags(bags), self.report)
        self._check_dims(bags.n_dims, f"these have {bags.n_dims}")
        n, k = len(bags), len(self.solution.intercept)
        out, posterior = np.empty((n, k)), self.require_posterior() if scored else None
        calibration = self.calibration if folded else None
        folds = calibration if isinstance(calibration, FoldCalibration) else None
        scores = np.empty((n if scored else 0, 2))
        spread = np.zeros((len(scores), k))
        of_folds = np.empty((n, k, len(folds.sizes)) if folds else (0, k, 0))
        scale, scales = None, None
        if calibration is not None and calibration.scale is not None:
            scale, scales = calibration.scale, np.empty((n, k, calibration.n_scales))
        outside = np.zeros(n, np.int64)
        with (
            one_blas_thread()
        ):  # `kernel_threads`, which sets OpenMP's threads too, takes longer than a bag
            buffer = np.empty((min(MAPPED_ROWS, n), self.features.n_features), self.precision)
            for start, embeddings, _ in self.features.embedded(bags, self.precision, outside):
                stop = start + len(embeddings)
                features = buffer[: len(embeddings)]
                self.features.features_of(embeddings, features)
                self._combine(features, out[start:stop])
                if posterior is not None:
                    posterior.score(features, scores[start:stop])
                    if self.features.embedding.is_uncertain:
                        block = bags[start:stop]
                        spread[start:stop] = bag_variances(
                            self.features, block, embeddings, self._combined
                        )
                if folds is not None:
                    of_folds[start:stop] = folds.of_folds(features)
                if scale is not None and scales is not None:
                    scales[start:stop] = scale.of(features, bags.sizes[start:stop])
        tell_outside(outside, bags, self.report, self.features.embedding)
        if self.trees is not None:
            out = self._joined(out, bags, self.trees)
        self.outcome.check_finite(out, "a prediction", NOT_FINITE)
        return PredictedRows(out, scores, spread, of_folds, scales)

    def knowing_bags(self, labelled: Iterable[Batch], weights: Weights | None) -> Self:
        """Return the model whose posterior separates the noise of labels from the noise of bags.

        ``labelled`` are some of the bags fitted; bags of weight 0 are ignored.
        """
        if self.posterior is None or not self.features.embedding.is_uncertain:
            return self
        blocks = []
        for batch in labelled:
            if len(batch):
                rows = self._rows(batch.bags, scored=True)
                targets = self.outcome.encode(batch.labels)[0]
                part = targets - rows.values, rows.scores[:, 0], rows.spread
                counts = slice(None) if weights is None else weights.of(batch.index, targets) > 0
                blocks.append(tuple(values[counts] for values in part))
        joined = [np.concatenate(part) for part in zip(*blocks, strict=True)]
        return replace(self, posterior=self.posterior.shared(*joined)) if len(joined[0]) else self

    def _combined(self, features: NDArray[Any]) -> Floats:
        out = np.empty((len(features), len(self.solution.intercept)))
        self._combine(features, out)
        return out

    def _combine(self, features: NDArray[Any], out: Floats) -> None:
        """Multiply features and coefficients: with float64 sums for few targets, else by BLAS."""
        coef, intercept = self.solution.coef, self.solution.intercept
        if len(intercept) < MANY_TARGETS:
            edges = even_edges(len(out), SECONDS_PER_PRODUCT * coef.size)
            run_kernel(linear_predictions, edges, features, coef, intercept, out)
        else:
            typed, exponents = self._coef_in_precision
            np.ldexp(multiply(features, typed.T).astype(np.float64), exponents, out=out)
            out += intercept

    def _joined(self, of_ridge: Floats, bags: Bags, trees: Trees) -> Floats:
        """Return the weighted sum of the predictions of ridge, trees and linear head."""
        inputs = TreeInputs(self.features)
        rows = inputs.of(bags)
        out = trees.predict(rows)
        if trees.weight == 1:
            return out
        out = of_ridge + trees.weight * (out - of_ridge)
        if self.line is not None:
            out += self.line.weight * (self.line.predict(inputs.summaries(rows)) - of_ridge)
        return out

    @cached_property
    def _coef_in_precision(self) -> tuple[NDArray[Any], Integers]:
        """The coefficients in working precision, and their units."""
        coef = self.solution.coef
        exponents = units_of(coef.T)
        return in_units(coef.T, exponents).T.astype(self.precision), exponents

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the copy in working precision, which would double the pickled size."""
        return {name: value for name, value in vars(self).items() if name != "_coef_in_precision"}

    # ------------------------------------------------------------------ saving

    def state(self) -> ModelState:
        """Return the state of the model, without the parameters of its estimator."""
        attributes = {
            "features": self.features.to_dict(),
            "alpha": self.solution.alpha,
            "holdout": self.holdout,
            "target_names": list(self.outcome.names),
            "report": self.report,
            **self.outcome.to_dict(),
        }
        if self.weights is not None:
            attributes["weights"] = self.weights
        arrays = {name: getattr(self.solution, own) for name, own in _ARRAYS.items()}
        if self.mean_targets is not None:
            arrays[MEAN_ARRAY] = self.mean_targets
        arrays |= self.features.arrays()
        for part in (self.posterior, self.calibration, self.trees, self.line):
            own = ModelState({}, {}) if part is None else part.state()
            attributes, arrays = attributes | own.attributes, arrays | own.arrays
        return ModelState(attributes, arrays)

    @staticmethod
    def array_names(attributes: dict[str, Any], learns: type[Outcome]) -> list[str]:
        """Return the names of the arrays of a saved model with these attributes."""
        own = [*_ARRAYS, MEAN_ARRAY] if learns.keeps_mean else [*_ARRAYS]
        own += FeatureMap.array_names(attributes["features"])
        return own + [name for part in OPTIONAL_PARTS for name in part.array_names(attributes)]

    @classmethod
    def from_state(cls, state: ModelState, learns: type[Outcome], precision: str) -> Self:
        """Return the model with this state.

        Raises
        ------
        Exception
            If the state is incomplete, or its parts do not fit together.
        """
        values, arrays = state.attributes, state.arrays
        coef, intercept = arrays["coef"], arrays["intercept"]
        path = arrays["alphas"], arrays["alpha_scores"]
        solution = RidgeSolution(coef, intercept, values["alpha"], *path)
        foreign = [
            outcome.key for outcome in OUTCOMES if outcome is not learns and outcome.key in values
        ]
        if foreign:
            raise ValueError(f"a model of {learns.kind} has no {foreign[0]!r}")
        k = len(solution.intercept)
        features = FeatureMap.from_dict(values["features"], arrays)
        sizes = k, features.n_features
        calibrations: list[Calibration | FoldCalibration | None] = [
            kind.from_state(state, *sizes) for kind in CALIBRATIONS
        ]
        model = cls(
            features,
            learns.from_dict(values, tuple(values["target_names"]), k),
            solution,
            precision,
            values["report"],
            values["holdout"],
            values.get("weights"),
            arrays[MEAN_ARRAY] if learns.keeps_mean else None,
            Posterior.from_state(state, *sizes),
            next((part for part in calibrations if part is not None), None),
            values["versions"],
            Trees.from_state(state, *sizes),
            LinearHead.from_state(state, *sizes),
        )
        model.check_shapes()
        return model

    def check_shapes(self) -> None:
        """Raise ValueError unless the arrays of a loaded model fit together."""
        first, second = self.features.embedding, self.features.second
        if second is not None and second.n_inputs != first.n_features:
            raise ValueError("the random features do not fit the embedding")
        coef, intercept = self.solution.coef, self.solution.intercept
        expected = (len(intercept), self.features.n_features)
        if coef.shape != expected or intercept.ndim != 1:
            raise ValueError(f"coefficients have shape {coef.shape}; expected {expected}")
        if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
            raise ValueError("a chunk of the coefficients is missing")
        inputs = TreeInputs(self.features)
        if self.trees is not None and self.trees.n_inputs != inputs.n_features:
            raise ValueError("the trees do not fit the embedding")
        widths = self.features.n_dims, inputs.n_features - inputs.n_embedded
        if self.line is not None and self.line.coef.shape[1] not in widths:
            raise ValueError("the linear head does not fit the embedding")
        if self.mean_targets is not None and self.mean_targets.shape != intercept.shape:
            raise ValueError("the average response does not fit the response basis")


def _predicted_array(model: RidgeModel, name: str, bags: Bags) -> NDArray[Any]:
    return model.predicted(bags).arrays()[name]
