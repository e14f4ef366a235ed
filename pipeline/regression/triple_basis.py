"""`TripleBasisRegressor`: distribution to distribution regression."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ..arrays import Floats
from ..bags import Bags, BagStore
from ..bags.holdout import HoldoutLike
from ..bags.inputs import with_responses
from ..bags.labelled import LabelledBags, take_range
from ..bags.plan import Range
from ..bags.sampling import MEDIAN_ROWS
from ..embeddings import Embedding, ProjectionEmbedding
from ..errors import ParameterError
from ..execution import Progress
from ..parameters.regression import TABLES
from ..params import checked
from ..random_features import RandomFeatures, RandomFourierFeatures
from ..random_features.base import Sample
from .accumulate import FitStatistics
from .base import DoubleBasis
from .checkpoints import CheckpointsLike
from .density_prediction import DensityPrediction, ProjectedScore, resolve_response, where
from .feature_map import FeatureMap, sampled_embeddings
from .fitted_model import Array, BagsLike
from .linear_columns import LinearColumns
from .outcomes import Densities
from .problem import Labels, Problem, Target, TrainingBags
from .ridge import RidgeSolution, solve_judged
from .ridge_parameters import PenaltiesLike
from .weights import SampleWeight


class TripleBasisRegressor(DensityPrediction, DoubleBasis):
    """The (ridge) Triple-Basis estimator, bag → density (004, §3.4, eq. 3.24-3.26).

    Each projection coefficient of the response densities is regressed as the Double-Basis
    estimator regresses a number; all share one ZᵀZ, one penalty and one pass.

    Parameters
    ----------
    embedding, random_features, validation_fraction, precision, solver, rank, uncertainty
        As in `DoubleBasisRegressor`.
    response_embedding : ProjectionEmbedding, default `ProjectionEmbedding()`
        The third basis, of the response densities: without marginals, so that its coefficients
        are a density's. "auto" sizes are chosen by the leave-one-out score of the responses.
    alpha, alphas
        As in `DoubleBasisRegressor`, but scores are the squared L2 distance of densities on the
        unit cube, predicted to projected: by Parseval the sum of the coefficients' squared
        errors. Also "projected": as "validation", but scored at the points of the held-out
        responses alone (up to 5,120 bags are looked at), by the nearest valid densities p: the
        mean of ∫p² − 2/m Σ p(y), which is ‖p − q‖² up to a constant of the true q, without
        projecting it.
    baseline : "own", optional
        Where bags and responses live in one box, as an initial and a final state do: learn what
        each coefficient of the response is beyond an affine copy of the bag's own. Slopes come
        from the sums of the same pass; the random features need not learn the identity. The bag's
        own coefficients are on the responses' basis, whatever the embedding. Not with "cg".

    Attributes
    ----------
    coef_ : float64, shape (r, n_features)
        r coefficients of a response density; with a baseline the slopes of the r own coefficients
        follow those of the random features.
    intercept_ : float64, shape (r,)
    response_spec_ : ProjectionSpec
        The third basis with everything decided.
    mean_coefficients_ : float64, shape (r,)
        Of the average response density of the bags fitted.
    features_, alpha_, alphas_, alpha_scores_, report_
        As in `DoubleBasisRegressor`.
    """

    _defaults: ClassVar[dict[str, Any]] = {
        "embedding": ProjectionEmbedding,
        "random_features": RandomFourierFeatures,
        "response_embedding": ProjectionEmbedding,
    }

    PARAMETERS = TABLES["TripleBasisRegressor"]
    outcome_: Densities
    outcome_kind = Densities
    saved_arrays = (*DoubleBasis.saved_arrays, "mean_coefficients_")
    _on_held_out = ("validation", "projected")

    def __init__(
        self,
        embedding: Embedding | None = None,
        random_features: RandomFeatures | Literal[False] | None = None,
        response_embedding: Embedding | None = None,
        alpha: str | float | PenaltiesLike = "gcv",
        alphas: PenaltiesLike | None = None,
        validation_fraction: float = 0.1,
        precision: str = "float32",
        solver: str = "auto",
        rank: int | None = None,
        uncertainty: bool = False,
        baseline: str | None = None,
    ) -> None:
        ridge = (alpha, alphas, validation_fraction, precision, solver, rank, uncertainty, baseline)
        super().__init__(embedding, random_features, *ridge)
        self.response_embedding = response_embedding

    @checked
    def fit(
        self,
        X: TrainingBags,
        responses: Labels = None,
        *,
        sample_weight: SampleWeight = None,
        holdout: HoldoutLike = 0.0,
        progress: Progress | None = None,
        checkpoints: CheckpointsLike = None,
    ) -> TripleBasisRegressor:
        """Fit from one pass over the bags; on a cluster if one is connected and X is a store.

        Parameters
        ----------
        X : BagStore with responses, Bags, or list of arrays (n_i, n_dims)
        responses : list of arrays (m_i, k), Bags or Responses
            For bags in memory, one per bag; None or an array without rows where there is none.
            Bags without a response are left out and counted.
        sample_weight, holdout, progress, checkpoints
            As in `DoubleBasisRegressor.fit`.

        Raises
        ------
        DataError, ParameterError, StoreError
        """
        problem = self.weighed(self.problem(X, responses, None), sample_weight, holdout)
        self.fit_problem(problem, holdout, progress, checkpoints)
        return self

    def labelled(self, X: TrainingBags, labels: Labels, target: Target) -> LabelledBags:
        """See `DoubleBasis.labelled`."""
        if target is not None:
            raise ParameterError(
                f"target is {target!r}; a TripleBasisRegressor learns responses: leave it out"
            )
        return with_responses(X, labels)

    def problem(
        self, X: TrainingBags, labels: Labels, target: Target, bags: Range | None = None
    ) -> Problem:
        """See `DoubleBasis.problem`."""
        pairs = take_range(self.labelled(X, labels, target), bags)
        return Problem(pairs, Densities(resolve_response(self.response_embedding, pairs)))

    def columns_beside(
        self, problem: Problem, first: FeatureMap, sample: Sample
    ) -> LinearColumns | None:
        """See `DoubleBasis.columns_beside`: the bag's own coefficients.

        Raises
        ------
        ParameterError
            Bags and responses have no box in common.
        """
        if self.baseline is None:
            return None
        response, box = cast(Densities, problem.outcome).spec, first.embedding.box
        if box != response.box:
            raise ParameterError(
                "baseline='own' copies a bag's own coefficients; its points lie in the box "
                f"{box.bounds}, those of the responses in {response.box.bounds}: give both "
                "embeddings one box, or leave baseline out"
            )
        own = FeatureMap(response, None)
        return LinearColumns.of(response, sampled_embeddings(problem.source, own, MEDIAN_ROWS))

    def weighed(
        self, problem: Problem, sample_weight: SampleWeight, holdout: HoldoutLike = 0.0
    ) -> Problem:
        """See `DoubleBasis.weighed`; ParameterError for alpha="projected" with weights."""
        if sample_weight is not None and self.alpha == "projected":
            raise ParameterError("alpha='projected' takes no sample_weight: use 'validation'")
        return super().weighed(problem, sample_weight, holdout)

    def _solve(
        self,
        problem: Problem,
        features: FeatureMap,
        holdout: HoldoutLike,
        statistics: FitStatistics,
        near: float | None = None,
    ) -> RidgeSolution:
        held_out = statistics.validation
        if held_out is None or self.alpha != "projected":
            return super()._solve(problem, features, holdout, statistics, near)
        source, validation = self.parts(problem.source, holdout)
        assert validation is not None
        score = ProjectedScore.of(
            source,
            cast(Densities, problem.outcome).spec,
            features,
            self.precision,
            validation,
        )
        penalties = self.penalties(statistics.train)
        return solve_judged(statistics.train, held_out, penalties, self.rounding, score)

    def learn(
        self,
        problem: Problem,
        features: FeatureMap,
        holdout: HoldoutLike,
        statistics: FitStatistics,
        solution: RidgeSolution | None = None,
        near: float | None = None,
    ) -> None:
        """See `DoubleBasis.learn`."""
        super().learn(problem, features, holdout, statistics, solution, near)
        self.mean_coefficients_ = statistics.mean_targets
        self.report_["n_response_points_outside_box"] = statistics.n_responses_outside

    def check_shapes(self) -> None:
        """Raise ValueError unless the arrays of a loaded model fit together."""
        super().check_shapes()
        if self.mean_coefficients_.shape != self.intercept_.shape:
            raise ValueError("the average response does not fit the response basis")

    def predict(self, X: BagsLike) -> Array:
        """Predict the coefficients of densities, shape (n_bags, r), float64.

        numpy for bags in memory, a lazy dask.array for a BagStore.

        Raises
        ------
        ModelError
            Bags of another dimension.
        """
        return self._predict(X)

    def coefficients(self, bags: Bags) -> Floats:
        """Return what `predict` gives for bags in memory."""
        return self.decision_rows(bags)

    @checked
    def predict_density(
        self,
        X: BagsLike,
        at: ArrayLike | None = None,
        *,
        grid: int | None = None,
        project: bool = False,
    ) -> Array:
        """See `DensityPrediction.predict_density`; of a BagStore a lazy dask.array."""
        if not isinstance(X, BagStore):
            return super().predict_density(X, at, grid=grid, project=project)
        check_is_fitted(self, "coef_")
        points, grid = where(at, grid)
        tail = (
            (len(points),) if points is not None else (int(grid or 0),) * self.response_spec_.n_dims
        )
        return self._lazy(X, "density_values", (points, grid, project), tail, np.float64)

    def score(self, X: TrainingBags, responses: Labels = None) -> float:
        """Return determination of the response densities in L2; see `determination`."""
        check_is_fitted(self, "coef_")
        return self.determination(with_responses(X, responses))
