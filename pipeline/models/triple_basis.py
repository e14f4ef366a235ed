"""`TripleBasisRegressor`: distribution to distribution regression."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Any, ClassVar, overload

from numpy.typing import NDArray

from ..core import (
    NameIn,
    None_,
    OneOf,
    checked,
    component,
)
from ..data.bags.bags import BagsInMemory
from ..data.labelled.holdout import HoldoutLike
from ..data.labelled.inputs import BagsLike, LabelsLike
from ..data.labelled.weights import SampleWeight
from ..data.store.store import BagStore
from ..embeddings.base import Embedding
from ..embeddings.kinds import EMBEDDINGS
from ..embeddings.projection import ProjectionEmbedding
from ..embeddings.random_features.fourier import RandomFourierFeatures
from ..execution.lazy_dask import LazyArray
from ..execution.progress import Progress
from .base import EMBEDDING, PENALTIES, DoubleBasis
from .fitted_model import PredictionArray
from .fitting.checkpoints import CheckpointsLike
from .fitting.fit_parameters import AUTO, PenaltiesLike
from .fitting.problem import Groups, TrainingBags
from .judging import score_of
from .outcomes.densities import DensityOutcome
from .predictions.densities import DensityPrediction
from .ridge_model import RidgeModel


@component
class TripleBasisRegressor(DensityPrediction[RidgeModel], DoubleBasis):
    """Predict a density from each bag: the Triple-Basis estimator.

    The response of a bag is itself a sample of points, and its density is predicted. The density
    is expanded in an orthonormal basis, and ridge regression on the features of the bag predicts
    each coefficient. All coefficients share one pass, one matrix ZᵀZ and one penalty.

    Parameters
    ----------
    embedding : embedding, a name, "auto" or None
        The first basis. Names and "auto" are those of `DoubleBasisRegressor`; "auto" compares
        candidates by squared L2 distances of densities. None is `ProjectionEmbedding()`.
    random_features, validation_fraction, precision, solver, rank, uncertainty
        As in `DoubleBasisRegressor`.
    response_embedding : ProjectionEmbedding
        The third basis, for the response densities. It must have no marginals, so that its
        coefficients are those of a density. Default: cosines with indices in a ball, whose radius
        minimises the leave-one-out score of up to 256 responses. A regression averages over
        responses, so with more than 100 pairs only a part of their noise counts, 1/3 from 300 pairs
        on. The basis has at least 10 functions per dimension and at most 1,024 in all.
    alpha, alphas
        As in `DoubleBasisRegressor`, but "auto" is "gcv" unless ``embedding="auto"``. Scores are
        squared L2 distances on the unit cube, from the predicted to the projected response density.
        By Parseval, this distance is the sum of the squared errors of the coefficients. "projected"
        holds bags out as "validation" does, up to 5,120. It scores the nearest valid density p at
        the m points y of a held-out response, by the mean of ∫p² − 2/m Σ p(y). Up to a constant,
        this is the squared distance ‖p − q‖² to the true density q, without the error of projecting
        q.
    baseline
        "own" adds an affine function of the bag's own coefficients, so that the random features
        need not learn the identity. Use it if bags and responses lie in the same box, such as an
        initial and a final state. Its slopes are fitted in the same pass. The bag's own
        coefficients are those in the basis of the responses, whatever the embedding. Not with "cg".

    Attributes
    ----------
    coef_ : float64, shape (r, n_features)
        Regression coefficients for the r coefficients of a response density. With a baseline, the
        slopes of the r own coefficients follow those of the random features.
    intercept_ : float64, shape (r,)
        Intercepts, which are not penalised.
    response_spec_ : ProjectionSpec
        The fitted third basis.
    mean_coefficients_ : float64, shape (r,)
        Coefficients of the average response density of the bags fitted.
    features_, alpha_, alphas_, alpha_scores_, report_
        As in `DoubleBasisRegressor`.

    See Also
    --------
    KernelSmoother : The exact estimator, which passes over all bags for a prediction.
    DoubleBasisRegressor : Predicts numbers.

    Notes
    -----
    Oliva, Distribution and Histogram (DisH) Learning, 2018, section 3.4, equations 3.24 to 3.26.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import TripleBasisRegressor
    >>> responses = [x[:, :1] + 1 for x in X]  # a bag of points for each bag
    >>> model = TripleBasisRegressor('moments').fit(X, responses)
    >>> model.predict_density(X[:2], at=[[0.5], [1.0], [1.5]]).shape
    (2, 3)
    """

    embedding: Annotated[
        Embedding | str | None, EMBEDDING | None_ | NameIn(EMBEDDINGS) | OneOf(AUTO)
    ] = field(default=None, kw_only=False)
    response_embedding: Annotated[Embedding, EMBEDDING] | None = None
    alpha: Annotated[
        str | float | PenaltiesLike,
        PENALTIES | OneOf(AUTO, "gcv", "folds", "validation", "projected"),
    ] = AUTO
    baseline: Annotated[str, OneOf("own")] | None = None
    _defaults: ClassVar[dict[str, Any]] = {
        "embedding": ProjectionEmbedding,
        "random_features": RandomFourierFeatures,
        "response_embedding": ProjectionEmbedding,
    }
    _learns = DensityOutcome

    @checked
    def fit(
        self,
        X: TrainingBags,
        responses: LabelsLike = None,
        *,
        sample_weight: SampleWeight = None,
        holdout: HoldoutLike = 0.0,
        groups: Groups = None,
        progress: Progress | None = None,
        checkpoints: CheckpointsLike = None,
    ) -> TripleBasisRegressor:
        """Fit in one pass over the bags, on a cluster if one is connected and X is a store.

        Parameters
        ----------
        X : BagStore with responses, Bags, or list of arrays (n_i, n_dims)
        responses : list of arrays (m_i, k), Bags or Responses
            Responses of bags in memory, one per bag; None or an array without rows if there is
            none. Bags without a response are left out and counted.
        sample_weight, holdout, groups, progress, checkpoints
            As in `DoubleBasisRegressor.fit`.
        """
        return self._fit(X, responses, None, sample_weight, holdout, groups, progress, checkpoints)

    @overload
    def predict(self, X: BagStore) -> LazyArray: ...
    @overload
    def predict(self, X: BagsInMemory) -> NDArray[Any]: ...
    def predict(self, X: BagsLike) -> PredictionArray:
        """Predict the coefficients of densities, shape (n_bags, r), float64.

        The result is a numpy array for bags in memory, and a lazy dask.array for a BagStore.

        Raises
        ------
        ModelError
            If the bags have another dimension than the bags fitted.
        """
        return self._fitted.predict(X)

    @checked
    def score(
        self, X: TrainingBags, responses: LabelsLike = None, *, sample_weight: SampleWeight = None
    ) -> float:
        """Return R² of the response densities: 1 − Σ ‖f̂(X) − q̂‖² / Σ ‖q̄ − q̂‖².

        q̂ is the projection of a response, and q̄ the average density of the bags fitted. If all
        responses equal that average, the score is 1 for a model that predicts the average, else 0.
        The bags of a store that are scored, and their weights, are chosen as in
        `DoubleBasisRegressor.score`.
        """
        return score_of(self._fitted, X, responses, sample_weight)
