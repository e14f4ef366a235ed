"""`KernelSmoother`: the Nadaraya-Watson estimator over bags; one prediction costs O(N)."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..arrays import Floats, Integers
from ..bags import Bags, BagStore, as_bags
from ..bags.holdout import Holdout, HoldoutLike
from ..bags.inputs import BagsLike, LabelsLike, with_responses, with_targets
from ..bags.labelled import LabelledBags, with_missing
from ..bags.labels import Targets
from ..bags.sampling import DISTANCE_SAMPLE, median_distance
from ..embeddings import Embedding, ProjectionEmbedding
from ..errors import DataError, ModelError, ParameterError
from ..execution import Progress, lane
from ..execution.passes import Reduction, check_memory, run_pass
from ..parameters import check_parameters
from ..parameters.regression import TABLES
from ..params import checked
from ..sklearn_bases import BaseEstimator, fresh
from ..units import units_of
from .density_prediction import DensityPrediction, resolve_response
from .feature_map import resolve_features
from .linear_model import NOT_FINITE
from .outcomes import Densities, Outcome, Reals, refuse_classes
from .scoring import r_squared
from .smoother_sums import (
    ROWS_PER_BLOCK,
    QuerySums,
    RowsInMemory,
    SmootherSums,
    StreamedRows,
    TrainingBlock,
    TrainingRows,
    smoothing_cost,
)

CANDIDATES = np.geomspace(0.02, 2.0, 21)  # times the median distance
QUERIES_AT_ONCE = 4096  # bags predicted by one pass over the training bags


class KernelSmoother(DensityPrediction, BaseEstimator):
    """The kernel smoother over distributions: Σ w_i Y_i / Σ w_i, w_i = exp(−Δ²(p̂_i, p̂) / 2h²).

    The Kernel-Kernel estimator for reals (004, eq. 3.4) and, on coefficients of response
    densities, for distribution to distribution regression (004, eq. 3.22). Exact, and every
    prediction costs a pass over the training bags: the baseline of the basis estimators.

    Parameters
    ----------
    embedding : embedding, default `ProjectionEmbedding()`
        Δ is the Euclidean distance of embeddings: L2 of the density estimates by default.
    bandwidth : float from 1e-18 to 1e+18 or "loo", default "loo"
        h, in the units of Δ. "loo": of 21 multiples of the median distance, 0.02 to 2, the one
        of least squared leave-one-out error over up to 1,024 training bags.
    response_embedding : ProjectionEmbedding, default `ProjectionEmbedding()`
        As in `TripleBasisRegressor`.
    precision : {"float32", "float64"}, default "float32"
        Of embeddings and products. Sums over blocks of bags are float64 always.
    in_memory : bool, default False
        Keep a store's embeddings and targets in this process, N · (s + k) numbers, so that
        predictions read nothing.

    Attributes
    ----------
    bandwidth_ : float
    bandwidths_, bandwidth_scores_ : float64
        Those tried, and their leave-one-out errors (mean squared error over target variance;
        squared L2 distance for densities).
    features_ : FeatureMap
        The embedding with everything decided.
    response_spec_, mean_coefficients_
        As in `TripleBasisRegressor`, when fitted to responses.

    Notes
    -----
    Bags given in memory are embedded once and kept. Of a store nothing is kept, unless
    ``in_memory`` asks for it: a prediction reads it again, at the counts of the fit, on the open
    cluster if there is one.
    """

    _defaults: ClassVar[dict[str, Any]] = {
        "embedding": ProjectionEmbedding,
        "response_embedding": ProjectionEmbedding,
    }

    PARAMETERS = TABLES["KernelSmoother"]

    def __init__(
        self,
        embedding: Embedding | None = None,
        bandwidth: float | str = "loo",
        response_embedding: Embedding | None = None,
        precision: str = "float32",
        in_memory: bool = False,
    ) -> None:
        self.embedding = embedding
        self.bandwidth = bandwidth
        self.response_embedding = response_embedding
        self.precision = precision
        self.in_memory = in_memory

    @checked
    def fit(
        self,
        X: BagsLike | LabelledBags,
        y: LabelsLike = None,
        *,
        target: str | Sequence[str] | None = None,
        responses: LabelsLike = None,
        holdout: HoldoutLike = 0.0,
        progress: Progress | None = None,
    ) -> KernelSmoother:
        """Decide the embedding and the bandwidth.

        Parameters
        ----------
        X : BagStore, Bags, or list of arrays (n_i, n_dims)
            A store with responses is fitted to these, unless ``target`` is given.
        y, target
            As in `DoubleBasisRegressor.fit`, or
        responses
            as in `TripleBasisRegressor.fit`, for bags in memory.
        holdout : float in [0, 1) or dict
            Bags left out, the same as in the basis estimators.
        progress : callable (bags done, bags in all), optional

        Raises
        ------
        DataError, ParameterError, StoreError
        """
        self._check_parameters(holdout)
        if isinstance(X, BagStore):
            X = copy(X)  # stays at these counts when X is appended to
        source, self.outcome_ = self._encoded(X, y, target, responses)
        embedding = fresh("embedding", self.embedding, Embedding, ProjectionEmbedding)
        with lane():
            self.features_ = resolve_features(source, embedding, None)
            bags = replace(source, left_out=Holdout.of(holdout).split(source))
            rows = StreamedRows(bags, self.features_, self.outcome_, self.precision)
            sample = _sampled(rows)
            self.centre_ = sample.embeddings.mean(axis=0).astype(self.precision)
            self.exponents_ = units_of(sample.targets)
            rows = replace(rows, centre=self.centre_, exponents=self.exponents_)
            kept = self.in_memory or source.in_memory
            self.training_: TrainingRows = self._keep(rows) if kept else rows
        self._choose(progress)
        return self

    @checked
    def predict(self, X: BagsLike, progress: Progress | None = None) -> Floats:
        """Smoothed targets, shape (n_bags,) or (n_bags, n_targets), or (n_bags, r) coefficients.

        Parameters
        ----------
        X : Bags, list of arrays, or BagStore
            A store's predictions are computed at once and returned in memory.
        progress : callable (training bags done, training bags in all), optional
        """
        check_is_fitted(self, "bandwidth_")
        if isinstance(X, BagStore):
            bags = LabelledBags(X)
            parts = [self._smooth(batch.bags, progress) for batch in bags.batches() if len(batch)]
            rows = np.concatenate(parts) if parts else np.empty((0, self.n_targets_))
            return with_missing(self.outcome_.predict(rows).values, bags.present())
        return self.outcome_.predict(self._smooth(as_bags(X), progress)).values

    def decision_rows(self, bags: Bags) -> Floats:
        """Smoothed rows of encoded labels for bags in memory, shape (n_bags, k)."""
        return self._smooth(bags, None)

    def coefficients(self, bags: Bags) -> Floats:
        """Smoothed coefficients of densities for bags in memory, shape (n_bags, r)."""
        return self.decision_rows(bags)

    @checked
    def score(
        self,
        X: BagsLike,
        y: LabelsLike = None,
        *,
        responses: LabelsLike = None,
        target: str | Sequence[str] | None = None,
    ) -> float:
        """Return the determination: R² of the targets, or of the response densities in L2.

        Raises
        ------
        DataError
            No labels, or an R² that is not finite.
        """
        check_is_fitted(self, "bandwidth_")
        if self.outcome_.key == Densities.key:
            return self.determination(with_responses(X, responses))
        source, _ = with_targets(X, y, target)
        found = [(start + rows, labels) for (start, _), rows, labels in source.label_blocks()]
        known, truth = (np.concatenate(parts) for parts in zip(*found, strict=True))
        if not len(truth):
            raise DataError("no bag has a label to score against")
        predicted = self.predict(X).reshape(source.n_bags, -1)
        return r_squared(self.outcome_, truth, predicted[known])

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
            source, single = with_targets(X, y, target)
            refuse_classes(source)
            given = source.labels.values if isinstance(source.labels, Targets) else None
            n_targets = len(source.target_names) if given is None else given.shape[1]
            return source, Reals(n_targets, single, source.target_names)
        pairs = with_responses(X, responses)
        return pairs, Densities(resolve_response(self.response_embedding, pairs))

    def _keep(self, rows: StreamedRows) -> RowsInMemory:
        """Return all rows in memory, which needs twice their size while they are joined."""
        n_columns = self.features_.n_features + self.outcome_.n_targets + 1
        needed = 2 * np.dtype(self.precision).itemsize * rows.n_bags * n_columns
        advice = "leave in_memory out, take an embedding of fewer coefficients"
        check_memory(f"keeping {rows.n_bags:,} embeddings", needed, advice)
        return RowsInMemory.of(rows)

    def _choose(self, progress: Progress | None) -> None:
        with lane():
            sample = _sampled(self.training_)
        if len(sample.index) < 2:
            raise DataError("a kernel smoother needs two labelled bags")
        targets = sample.targets.astype(np.float64)
        self.n_targets_ = self.outcome_.n_targets
        self.mean_coefficients_ = np.ldexp(targets.mean(axis=0), self.exponents_)
        if self.bandwidth != "loo":
            self.bandwidth_ = float(self.bandwidth)
            self.bandwidths_, self.bandwidth_scores_ = (
                np.array([self.bandwidth_]),
                np.full(1, np.nan),
            )
            return
        self.bandwidths_ = CANDIDATES * median_distance(sample.embeddings)
        sums = self._pass(sample.embeddings, self.bandwidths_, sample.index, progress)
        errors = ((sums.predictions - targets) ** 2).mean(axis=1)
        units = self.outcome_.units()
        if units is None:
            variance = targets.var(axis=0)
            units = np.where(variance > 0, variance, 1.0)
        else:
            errors = np.ldexp(errors, 2 * self.exponents_)
        self.bandwidth_scores_ = (errors / units).mean(axis=1)
        self.outcome_.check_finite(errors, "the leave-one-out error", NOT_FINITE)
        self.bandwidth_ = float(self.bandwidths_[int(np.argmin(self.bandwidth_scores_))])

    def _smooth(self, bags: Bags, progress: Progress | None) -> Floats:
        if bags.n_dims != self.features_.n_dims:
            raise ModelError(
                f"the smoother was fitted on bags of dimension {self.features_.n_dims}, these "
                f"have {bags.n_dims}"
            )
        bandwidth = np.array([self.bandwidth_])
        out = np.empty((len(bags), self.n_targets_))
        for start in range(0, len(bags), QUERIES_AT_ONCE):
            block = bags[start : start + QUERIES_AT_ONCE]
            with lane():
                queries = self.features_.embed(block, self.precision)[0] - self.centre_
            sums = self._pass(queries, bandwidth, None, progress)
            out[start : start + len(block)] = np.ldexp(sums.predictions[0], self.exponents_)
        self.outcome_.check_finite(out, "a prediction", NOT_FINITE)
        return out

    def _pass(
        self,
        queries: NDArray[Any],
        bandwidths: Floats,
        own: Integers | None,
        progress: Progress | None,
    ) -> SmootherSums:
        rows = self.training_
        sizes = (len(queries), len(bandwidths), queries.shape[1], self.n_targets_)
        sums = partial(QuerySums, queries, bandwidths, self.n_targets_, own)
        cost = rows.cost + smoothing_cost(*sizes)
        smoothing = Reduction(sums, operator.add, cost, ROWS_PER_BLOCK, "smooth")
        return run_pass(rows, smoothing, progress=progress)

    def _check_parameters(self, holdout: HoldoutLike) -> None:
        Holdout.of(holdout)
        fresh("response_embedding", self.response_embedding, Embedding, ProjectionEmbedding)
        check_parameters(self)


def _sampled(training: TrainingRows) -> TrainingBlock:
    """Labelled bags of evenly spread runs."""
    runs = DISTANCE_SAMPLE.ranges(training.start, training.start + training.n_bags)
    blocks = [block for run in runs for block in training.batches(*run)]
    if not blocks:
        raise DataError("no labelled bags among those sampled to choose the bandwidth")
    return TrainingBlock(
        np.concatenate([block.index for block in blocks]),
        np.concatenate([block.embeddings for block in blocks]),
        np.concatenate([block.halves for block in blocks]),
        np.concatenate([block.targets for block in blocks]),
        blocks[-1].stop,
    )
