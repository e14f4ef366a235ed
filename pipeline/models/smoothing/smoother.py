"""`KernelSmoother`: the Nadaraya-Watson estimator over bags; one prediction costs O(N)."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import field, replace
from typing import Annotated, Any, ClassVar, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import RegressorTags, Tags
from sklearn.utils.validation import check_is_fitted

from ...core import (
    NameIn,
    None_,
    OneOf,
    Precision,
    Real,
    TextOrList,
    check_parameters,
    checked,
    component,
)
from ...core.arrays import Floats, Integers
from ...core.errors import DataError, ParameterError
from ...core.sklearn_bases import BaseEstimator, fresh, of_bags
from ...core.units import in_units, units_of
from ...data.bags.bags import BagsInMemory, as_bags
from ...data.labelled.holdout import Holdout, HoldoutLike
from ...data.labelled.inputs import BagsLike, LabelsLike
from ...data.labelled.labelled import LabelledBags
from ...data.labelled.labels import warn_of_alike, warn_of_few
from ...data.store.sampling import DISTANCE_SAMPLE, median_distance
from ...data.store.store import BagStore
from ...embeddings.base import Embedding
from ...embeddings.kinds import EMBEDDINGS
from ...embeddings.projection import ProjectionEmbedding
from ...embeddings.registered import named_embedding
from ...execution.lazy_dask import LazyArray
from ...execution.passes import check_memory
from ...execution.progress import Progress
from ...execution.worker_threads import kernel_threads
from ..base import EMBEDDING
from ..fitted_model import PredictionArray, digest_of_fitted
from ..fitting.feature_map import FeatureMap, in_embedded_order, resolve_features
from ..judging import score_of
from ..outcomes.base import Outcome
from ..outcomes.densities import DensityOutcome
from ..outcomes.reals import Reals
from ..predictions.densities import DensityPrediction
from ..predictions.outside import warning_of_outside
from ..ridge_model import NOT_FINITE
from .model import SmootherModel
from .sums import RowsInMemory, StreamedRows, TrainingBlock, TrainingRows

_FAR_MEAN = 1e3  # standard deviations of labels: float32 keeps four digits of their differences
_MEDIAN_FACTORS = np.geomspace(0.02, 2.0, 21)  # times the median distance


@component
class KernelSmoother(DensityPrediction[SmootherModel], BaseEstimator):
    """Predict the weighted average response of similar bags (kernel smoothing).

    The prediction is Σ w_i Y_i / Σ w_i, w_i = exp(−Δ²(p̂_i, p̂) / 2h²).

    This is the Kernel-Kernel estimator for real responses (Oliva 2018, eq. 3.4). With response
    densities, their coefficients are averaged: distribution to distribution regression (Oliva 2018,
    eq. 3.22). The kernel is not approximated, but each prediction costs a pass over the training
    bags. Use it as a baseline for the basis estimators.

    Parameters
    ----------
    embedding : embedding or its name, default `ProjectionEmbedding()`
        Embedding of the bags. Δ is the Euclidean distance between embeddings, by default the L2
        distance between density estimates.
    bandwidth
        Bandwidth h, in the units of Δ. "loo" compares 21 multiples of the median distance, from
        0.02 to 2, by their squared leave-one-out errors over up to 1,024 training bags.
    response_embedding : ProjectionEmbedding
        Basis of the response densities, as in `TripleBasisRegressor`.
    precision
        Precision of embeddings and products. Sums over blocks of bags are always float64.
    in_memory
        Whether to keep the embeddings and targets of a store in memory, N · (s + k) numbers, so
        that predictions do not read the store again.

    Attributes
    ----------
    bandwidth_ : float
        Bandwidth h that predictions use.
    bandwidths_, bandwidth_scores_ : float64
        Bandwidths that were tried, and their leave-one-out errors (mean squared error over target
        variance; squared L2 distance for densities).
    features_ : FeatureMap
        The fitted embedding.
    response_spec_, mean_coefficients_
        As in `TripleBasisRegressor`, after a fit to responses.
    model_ : SmootherModel
        The training bags and the bandwidth.

    See Also
    --------
    DoubleBasisRegressor : Predict numbers from bags.
    TripleBasisRegressor : Predict densities from bags.

    Notes
    -----
    Bags in memory are embedded once, and their embeddings are kept. A store is read again by each
    call of ``predict``, on the open cluster if there is one, unless ``in_memory`` is set. Bags that
    were appended after the fit are ignored.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import KernelSmoother
    >>> model = KernelSmoother('moments').fit(X, y)
    >>> model.predict(X[:3]).shape
    (3,)
    """

    embedding: Annotated[Embedding | str | None, EMBEDDING | None_ | NameIn(EMBEDDINGS)] = field(
        default=None, kw_only=False
    )
    bandwidth: Annotated[float, Real(ge=1e-18, le=1e18)] | Annotated[str, OneOf("loo")] = "loo"
    response_embedding: Annotated[Embedding, EMBEDDING] | None = None
    precision: Precision = "float32"
    in_memory: bool = False
    model_: SmootherModel = field(init=False)
    _defaults: ClassVar[dict[str, Any]] = {
        "embedding": ProjectionEmbedding,
        "response_embedding": ProjectionEmbedding,
    }

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn that X are bags, and that the smoother is a regressor."""
        tags = of_bags(super().__sklearn_tags__())
        tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        return tags

    @checked
    def fit(
        self,
        X: BagsLike | LabelledBags,
        y: LabelsLike = None,
        *,
        target: TextOrList | None = None,
        responses: LabelsLike = None,
        holdout: HoldoutLike = 0.0,
        progress: Progress | None = None,
    ) -> KernelSmoother:
        """Fit the embedding, and choose the bandwidth.

        Parameters
        ----------
        X : BagStore, Bags, or list of arrays (n_i, n_dims)
            Training bags. A store with responses is fitted to its responses, unless ``target`` is
            given.
        y, target
            Labels, as in `DoubleBasisRegressor.fit`.
        responses
            Responses of bags in memory, as in `TripleBasisRegressor.fit`; not together with y.
        holdout : float in [0, 1) or dict
            Bags that are left out of the fit, as in the basis estimators.
        progress : callable (bags done, bags in all), optional
        """
        self._check_parameters(holdout)
        if isinstance(X, BagStore):
            X = copy(X)  # stays at these counts when X is appended to
        source, outcome = self._encoded(X, y, target, responses)
        basis = self.embedding
        basis = named_embedding(basis) if isinstance(basis, str) else basis
        embedding = fresh("embedding", basis, Embedding, ProjectionEmbedding)
        source = in_embedded_order(source, embedding)
        with kernel_threads():
            features = resolve_features(source, embedding, None)
            out = Holdout.of(holdout).resolve(source)
            bags = replace(source, left_out=out.split(source))
            streamed = StreamedRows(bags, features, outcome, self.precision)
            sample = _sampled(streamed)
            centre = sample.embeddings.mean(axis=0).astype(self.precision)
            exponents = units_of(sample.targets)
            origin = _origin_of(sample.targets, exponents, outcome)
            streamed = replace(streamed, centre=centre, exponents=exponents, origin=origin)
            in_memory = self.in_memory or source.in_memory
            rows: TrainingRows = self._keep(streamed, features, outcome) if in_memory else streamed
            sample = _sampled(rows)
        if len(sample.index) < 2:
            raise DataError("a kernel smoother needs two labelled bags")
        mean = np.ldexp(sample.targets.astype(np.float64).mean(axis=0), exponents) + origin
        self._warn_of_labels(source, rows, sample, outcome, in_units(origin, exponents))
        decided = (self.precision, centre, exponents, mean, origin)
        model = SmootherModel(rows, features, outcome, *decided)
        bandwidth = self._choose(model, sample, progress)
        names = source.coordinate_names
        report = {"data_url": source.url, **digest_of_fitted(source)}
        report |= {} if names is None else {"coordinates": names}
        self.model_ = replace(model, bandwidth=bandwidth, holdout=out.saved, report=report)
        return self

    def _warn_of_labels(
        self,
        source: LabelledBags,
        rows: TrainingRows,
        sample: TrainingBlock,
        outcome: Outcome,
        origin: Floats,
    ) -> None:
        """Warn of labels that nothing can be learnt from; those of a large store are sampled.

        ``origin``, shape (k,), was subtracted from the labels, and is in their units.
        """
        is_whole = isinstance(rows, RowsInMemory)
        targets = rows.targets if isinstance(rows, RowsInMemory) else sample.targets
        if warn_of_few(len(targets), source.url) or not isinstance(outcome, Reals):
            return
        runs = DISTANCE_SAMPLE.ranges(rows.start, rows.start + rows.n_bags)
        if is_whole or sum(stop - start for start, stop in runs) == rows.n_bags:
            labels = targets.astype(np.float64)
            names = source.target_names
            mean = labels.mean(axis=0) + origin
            warn_of_alike(len(labels), labels.var(axis=0), mean, names)

    @overload
    def predict(self, X: BagStore) -> LazyArray: ...
    @overload
    def predict(self, X: BagsInMemory, *, progress: Progress | None = None) -> NDArray[Any]: ...
    @checked
    def predict(self, X: BagsLike, *, progress: Progress | None = None) -> PredictionArray:
        """Predict targets, shape (n_bags,) or (n_bags, n_targets), or (n_bags, r) coefficients.

        Parameters
        ----------
        X : Bags, list of arrays, or BagStore
            Bags to predict. The result is a numpy array for bags in memory, and a lazy dask.array
            for a BagStore, of which each block is a pass over the training bags.
        progress : callable (training bags done, training bags in all), optional
            Function that is called during the prediction of bags in memory.

        Raises
        ------
        ModelError
            If the bags have another dimension, or other names of coordinates, than the bags fitted.
        ParameterError
            If progress is given for a store, whose predictions are computed later.
        """
        check_is_fitted(self)
        model = self.model_
        if isinstance(X, BagStore):
            if progress is not None:
                raise ParameterError(
                    "predict: progress is given, and the predictions of a store are lazy; leave it "
                    "out, and take a progress bar of Dask for compute()"
                )
            column = model.outcome.stored()["predictions"]
            return model.apply(X, model.predict, tail=column.tail, dtype=column.dtype)
        new_bags = as_bags(X)
        with warning_of_outside(new_bags):
            return model.predict(new_bags, progress)

    @property
    def features_(self) -> FeatureMap:
        """The fitted embedding."""
        return self.model_.features

    @property
    def bandwidth_(self) -> float:
        """The bandwidth, in the units of the embedding's distances."""
        return self.model_.bandwidth

    def __sklearn_is_fitted__(self) -> bool:
        """Tell `check_is_fitted`, which otherwise takes any attribute ending in _."""
        return hasattr(self, "model_")

    @checked
    def score(
        self,
        X: BagsLike,
        y: LabelsLike = None,
        *,
        responses: LabelsLike = None,
        target: TextOrList | None = None,
    ) -> float:
        """Return R² of the targets, or R² of the response densities by their L2 distances.

        Raises
        ------
        DataError
            If there are no labels, or R² is not finite.
        """
        check_is_fitted(self)
        labels = y if responses is None else responses
        if target is None:
            return score_of(self.model_, X, labels)
        return score_of(self.model_, self.model_.outcome.label(X, labels, target))

    def _encoded(
        self,
        X: BagsLike | LabelledBags,
        y: LabelsLike,
        target: str | Sequence[str] | None,
        responses: LabelsLike,
    ) -> tuple[LabelledBags, Outcome]:
        stored = isinstance(X, BagStore) and X.response_dims is not None and target is None
        if responses is not None and (y is not None or target is not None):
            raise ParameterError("give targets or responses, not both")
        if responses is None and not stored:
            return Reals.from_labels(X, y, target, None, None)
        return DensityOutcome.from_labels(X, responses, None, None, self.response_embedding)

    def _keep(self, rows: StreamedRows, features: FeatureMap, outcome: Outcome) -> RowsInMemory:
        """Return all rows in memory; joining them needs twice their size."""
        n_columns = features.n_features + outcome.n_targets + 1
        needed = 2 * np.dtype(self.precision).itemsize * rows.n_bags * n_columns
        advice = "leave in_memory out, take an embedding of fewer coefficients"
        check_memory(f"keeping {rows.n_bags:,} embeddings", needed, advice)
        return RowsInMemory.of(rows)

    def _choose(
        self, model: SmootherModel, sample: TrainingBlock, progress: Progress | None
    ) -> float:
        """Return the bandwidth, and keep those that were tried."""
        if self.bandwidth != "loo":
            bandwidth = float(self.bandwidth)
            self.bandwidths_, self.bandwidth_scores_ = np.array([bandwidth]), np.full(1, np.nan)
            return bandwidth
        targets, outcome = sample.targets.astype(np.float64), model.outcome
        self.bandwidths_ = _MEDIAN_FACTORS * median_distance(sample.embeddings)
        sums = model.sums(sample.embeddings, self.bandwidths_, sample.index, progress)
        errors = ((sums.predictions - targets) ** 2).mean(axis=1)
        units = outcome.units()
        if units is None:
            variance = targets.var(axis=0)
            units = np.where(variance > 0, variance, 1.0)
        else:
            errors = np.ldexp(errors, 2 * model.exponents)
        self.bandwidth_scores_ = (errors / units).mean(axis=1)
        outcome.check_finite(errors, "the leave-one-out error", NOT_FINITE)
        return float(self.bandwidths_[int(np.argmin(self.bandwidth_scores_))])

    def _check_parameters(self, holdout: HoldoutLike) -> None:
        Holdout.of(holdout)
        fresh("response_embedding", self.response_embedding, Embedding, ProjectionEmbedding)
        check_parameters(self)


def _origin_of(targets: Floats, exponents: Integers, outcome: Outcome) -> Floats:
    """Return the mean of each column of numbers far from 0, whose digits float32 loses; else 0."""
    if not isinstance(outcome, Reals):
        return np.zeros(len(exponents))
    scaled = in_units(targets.astype(np.float64), exponents)
    mean, spread = scaled.mean(axis=0), scaled.std(axis=0)
    is_far = (spread > 0) & (np.abs(mean) > _FAR_MEAN * spread)
    return np.ldexp(np.where(is_far, mean, 0.0), exponents)


def _sampled(training: TrainingRows) -> TrainingBlock:
    """Return labelled bags from evenly spread runs."""
    runs = DISTANCE_SAMPLE.ranges(training.start, training.start + training.n_bags)
    blocks = [block for run in runs for block in training.batches(*run)]
    if not blocks:
        raise DataError("no labelled bags among those sampled to choose the bandwidth")
    return TrainingBlock.joined(blocks)
