"""`DoubleBasisRegressor`: distribution to real regression."""

from __future__ import annotations

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ..bags import BagStore
from ..bags.inputs import with_targets
from ..bags.labelled import take_range
from ..bags.plan import Range
from ..parameters.regression import TABLES
from ..sklearn_bases import RegressorMixin
from .fitted_model import BagsLike
from .outcomes import Reals, refuse_classes
from .problem import Labels, Problem, Target, TrainingBags
from .real_prediction import RealPrediction
from .scoring import predictions_of_store, r_squared, refusing_labels
from .training_labels import n_targets_of
from .weights import SampleWeight


class DoubleBasisRegressor(RegressorMixin, RealPrediction):
    """The (ridge) Double-Basis estimator, bag → real vector (004, §3.2, eq. 3.16-3.20).

    Parameters
    ----------
    embedding : embedding, default `ProjectionEmbedding()`
        The first basis.
    random_features : `RandomFourierFeatures`, `NystroemFeatures` or False, default the first
        The second basis. False: the model is linear in the embedding (001, §5.2).
    alpha : float ≥ 0 or list of float ≥ 0 or {"gcv", "validation"}, default "gcv"
        The penalty λ on ‖ψ‖₂², in units of the sum of squares (as in scikit-learn's Ridge);
        0 is least squares, of least norm where ZᵀZ is singular. A list is searched by
        generalised cross-validation. "gcv" and "validation" search ``alphas``.
    alphas : float ≥ 0 or list of float ≥ 0, optional
        The grid of "gcv" and "validation". By default half decades from n · 10^−12 (in float32
        10^−9, or 10^−7 where bags are more than features) to n · 10², of which with many
        features only those about the best one are tried. A best one at the edge is warned of.
    validation_fraction : float in (0, 1), default 0.1
        Share of the bags that alpha="validation" holds out, by a hash of their index. They have
        their own statistics, so the path takes one pass, and the final fit uses all bags.
    precision : {"float32", "float64"}, default "float32"
        Of features and products. Sums are float64 always, and products too where bags are no
        more than features. float32 resolves penalties down to about n · 10^−6.
    solver : {"auto", "cholesky", "cg"}, default "auto"
        "cholesky" solves exactly, from the sums of one pass. "cg" takes conjugate gradients, a
        pass a step over features that are kept as far as there is memory: for many features, and
        with a number or "validation" as alpha. "auto" is "cg" where that is at least as fast, or
        where D² numbers do not fit, unless checkpoints keep the sums.
    rank : int ≥ 1, optional
        Bags that the preconditioner of "cg" is made from; default D / 4, at most 2,048.
    uncertainty : bool, default False
        Keep the spread of the bags fitted, for ``return_std`` and `bag_scores`: up to D × D
        numbers in memory and in the saved model, and an eigendecomposition more (a second for
        2,048 features, some ten for 4,096). Not with "cg".
    baseline : "linear", optional
        Beside the random features, a ridge on the embedding itself, solved together with them:
        they then learn what is not linear in it. Its penalty is the best one of a ridge on the
        embedding alone, not ``alpha``; where the embedding explains nothing by itself, nothing is
        left of it. Helps where much is linear, and D or the bags are few. Not with "cg".

    Attributes
    ----------
    coef_ : float64, shape (n_targets, n_features)
        Of the random features, then of the baseline's columns.
    intercept_ : float64, shape (n_targets,)
        Not penalised.
    alpha_ : float
        The penalty used; ``alphas_`` and ``alpha_scores_`` those tried and their scores (mean
        squared error over target variance; lower is better).
    features_ : FeatureMap
        Both bases with everything decided.
    target_names_ : tuple of str
        Empty for targets given as an array.
    report_ : dict
        Counts of bags (fitted, unlabelled, held out) and points (outside the box), seconds; the
        penalty of a baseline.
    posterior_ : Posterior or None
        With ``uncertainty``: spread of the features and the noise of each target.
    calibration_ : Calibration or None
        With ``holdout``: errors of up to 10,000 bags held out, for `predict_interval`.
    """

    PARAMETERS = TABLES["DoubleBasisRegressor"]
    outcome_: Reals
    outcome_kind = Reals

    def problem(
        self, X: TrainingBags, labels: Labels, target: Target, bags: Range | None = None
    ) -> Problem:
        """See `DoubleBasis.problem`."""
        source, single = with_targets(X, labels, target)
        refuse_classes(source)
        outcome = Reals(n_targets_of(source), single, source.target_names)
        return Problem(take_range(source, bags), outcome)

    def score(
        self, X: BagsLike, y: ArrayLike | None = None, sample_weight: SampleWeight = None
    ) -> float:
        """Return R², mean of the targets; of the store that was fitted on the bags held out.

        Parameters
        ----------
        X : BagStore, Bags, or list of arrays (n_i, n_dims)
        y : array, shape (n_bags,) or (n_bags, n_targets)
            None: the store's, whose bags without one are left out.
        sample_weight : array, shape (n_bags,), or str, optional
            Of ``y``, or of the bags of a store, or a column of it.

        Raises
        ------
        DataError
            No labels, weights that are missing, negative or all 0, or an R² that is not finite.
        """
        check_is_fitted(self, "coef_")
        if y is not None or not isinstance(X, BagStore):
            with refusing_labels(y, sample_weight):
                return r_squared(self.outcome_, y, self.predict(X), sample_weight)
        return r_squared(self.outcome_, *predictions_of_store(self, X, sample_weight))

    @property
    def single_target_(self) -> bool:
        """Whether predictions have shape (n_bags,)."""
        return self.outcome_.single
