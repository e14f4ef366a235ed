"""`DoubleBasisRegressor`: distribution to real regression."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from ..core import (
    Integer,
    checked,
    component,
)
from ..core.arrays import Floats
from ..core.sklearn_bases import RegressorMixin
from ..data.bags.bags import Bags, BagsInMemory
from ..data.labelled.holdout import HoldoutLike
from ..data.labelled.inputs import BagsLike
from ..data.labelled.weights import SampleWeight
from ..data.store.store import BagStore
from ..execution.lazy_dask import LazyArray
from ..execution.progress import Progress
from .base import DoubleBasis, Head
from .conformal import conformalized
from .fitted_model import COVERAGE, INTERVAL_COLUMNS, MoreColumns, PredictionArray
from .fitting.checkpoints import CheckpointsLike
from .fitting.problem import MAX_FOLDS, Groups, TrainingBags
from .judging import score_of
from .outcomes.base import Target
from .outcomes.reals import Reals
from .ridge_model import RidgeModel


@component
class DoubleBasisRegressor(RegressorMixin, DoubleBasis):
    """Predict one number or several from each bag: the Double-Basis estimator.

    The embedding turns a bag into a vector, the first basis. Random features of the vector, the
    second basis, approximate a kernel between bags, and a ridge regression on them predicts. Use it
    where the label depends on how the points of a bag are distributed.

    Parameters
    ----------
    embedding : embedding, a name or "auto"
        The first basis. A name, such as "js" or "moments", is the registered embedding with its
        default parameters. "auto" chooses an embedding and the width of the random features by
        errors over folds of up to 2,000 labelled bags; ``report_["choice"]`` lists the candidates.
        The choice depends only on the data. None is `ProjectionEmbedding()`, the previous default.
    random_features : random features, a name or False
        The second basis: an object, or one of the names "fourier", "nystroem" and "learned". If
        False, the model is linear in the embedding (Sutherland et al. 2016, §5.2). Default: with
        ``embedding="auto"``, `NystroemFeatures` with all labelled bags as landmarks, at most 1,024;
        else `RandomFourierFeatures()`.
    alpha
        Penalty λ on ‖ψ‖₂², or the rule that chooses it. The unit is the sum of squares, as in
        scikit-learn's Ridge; 0 is the least-squares solution of smallest norm. A list is searched
        by generalised cross-validation. "gcv" (generalised cross-validation), "folds" (five folds)
        and "validation" (a held-out fraction) search ``alphas``. "auto" is "folds" with at most
        4,096 labelled bags, and "gcv" with more bags or with a ``baseline``. GCV chooses penalties
        that are too small if there are few bags and some are far noisier than others. With
        ``embedding="auto"``, "gcv" is the same as "auto". Folds keep groups whole, see `fit`. With
        at most 4,096 labelled bags, "auto" also ignores outliers among the labels: labels far from
        all others that their bags do not predict. A warning names these bags.
    alphas
        Penalties that "auto", "gcv", "folds" and "validation" compare. By default a logarithmic
        grid from n · 1e-12 (in float32 n · 1e-9, or n · 1e-7 with more bags than features) to n ·
        100, two values per decade. With many features, only values near the optimum are evaluated.
        A warning is issued if the optimum lies at the edge of the grid.
    validation_fraction
        Fraction of the bags that alpha="validation" holds out, by a hash of their index. Comparing
        the penalties takes one pass, and the final fit uses all bags.
    precision
        Precision of features and products. Sums are always float64, and so are products if there
        are no more bags than features. float32 resolves penalties down to about n · 10^−6.
    solver : {"auto", "cholesky", "cg"}
        How to solve the ridge regression. "cholesky" solves exactly from the sums of one pass. "cg"
        uses conjugate gradients, with one pass over the features per step; features are kept as far
        as there is memory. Use it for many features; alpha has to be a number or "validation".
        "auto" is "cg" if it is at least as fast, or if D² numbers do not fit into memory, unless
        checkpoints keep the sums.
    rank
        Number of bags from which the preconditioner of "cg" is made. Default: D / 4, at most 2,048.
    uncertainty
        Whether to keep the posterior, for ``return_std`` and `bag_scores`. It takes up to D × D
        numbers in memory and in the saved model, and an eigendecomposition. Not with "cg".
    baseline
        Linear part of the model: "linear" adds a ridge on the embedding, so that the random
        features learn only what is not linear in the embedding. Both are solved together. The
        penalty of the linear part is the best one of a ridge on the embedding alone, not ``alpha``.
        If the embedding alone has no predictive power, the linear part shrinks to zero. Useful when
        the relation is mostly linear and there are few bags or few random features. Not with "cg".
    head
        Model on the features: "ridge"; "trees", on moments, extremes and size of a bag; or
        "stack", a weighted average of both and a ridge on the means, or on moments and extremes.

        - "ridge": ridge regression on the features.
        - "trees": scikit-learn's trees on moments, extremes and size of a bag, and on the embedding
          if it has at most 256 features. With up to 5,000 bags, 200 extremely randomised trees;
          with more, 100 boosting iterations per target.
        - "stack": a weighted average of ridge, trees and a ridge on the bag means. With up to
          5,000 bags and 512 moments and extremes, the latter is on all moments and extremes if its
          out-of-fold error is smaller by more than one standard error; moments and extremes of new
          bags are moved to the range of the training bags. Weights come from out-of-fold
          predictions and are shrunk towards equal weights when there are few bags;
          ``report_["head"]`` has the errors and the weights.

        The rows of "trees" and "stack" have to fit in memory; neither takes ``uncertainty``.

    Attributes
    ----------
    coef_ : float64, shape (n_targets, n_features) or (n_features,)
        Coefficients of the random features, then of the baseline's columns; one-dimensional for one
        target.
    intercept_ : float64, shape (n_targets,), or float
        Intercept, which is not penalised.
    n_features_in_ : int
        Coordinates of a point.
    alpha_ : float
        The penalty used; ``alphas_`` and ``alpha_scores_`` those tried and their scores (mean
        squared error over target variance; lower is better).
    features_ : FeatureMap
        The fitted embedding and random-feature map.
    target_names_ : tuple of str
        Names of a store's targets, of a Series, or of a table's columns; empty for an array.
    report_ : dict
        Counts of bags (fitted, unlabelled, held out) and points (outside the box), seconds; the
        penalty of a baseline; with ``embedding="auto"`` what was tried, under "choice".
    calibration_ : Calibration, FoldCalibration or None
        Errors of up to 10,000 bags for `predict_interval`, after a fit with ``holdout`` or after
        `conformalize`.

    See Also
    --------
    DoubleBasisClassifier : Predicts classes.
    TripleBasisRegressor : Predicts densities.
    evaluate : Errors next to those of baselines.
    tune : Tries more than ``embedding="auto"``.

    Notes
    -----
    Oliva, Distribution and Histogram (DisH) Learning, 2018, section 3.2, equations 3.16 to 3.20.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import DoubleBasisRegressor
    >>> model = DoubleBasisRegressor('moments').fit(X, y)
    >>> model.predict([rng.normal(0, 1.5, (30, 2))]).shape
    (1,)
    >>> bool(model.score(X, y) > 0.8)
    True
    """

    head: Head = "ridge"
    _learns = Reals

    @checked
    def fit(
        self,
        X: TrainingBags,
        y: ArrayLike | None = None,
        *,
        target: Target = None,
        sample_weight: SampleWeight = None,
        holdout: HoldoutLike = 0.0,
        groups: Groups = None,
        progress: Progress | None = None,
        checkpoints: CheckpointsLike = None,
    ) -> Self:
        """Fit from one pass over the bags; on a cluster if one is connected and X is a store.

        Parameters
        ----------
        X : BagStore, Bags, or list of arrays (n_i, n_dims)
        y : array, shape (n_bags,) or (n_bags, n_targets)
            Labels of bags in memory, numbers or classes; NaN, None or "" if a bag has no label. A
            Series or DataFrame of pandas is aligned with the ids of a groupby or `Bags`, as are
            ``groups`` and ``sample_weight``.
        target : str or list of str
            Names of the targets of a store; may be omitted if the store has one target. For a
            groupby, the columns with the label, which are constant within a bag and are not
            coordinates.
        sample_weight : array, shape (n_bags,), or str, optional
            Weights of the bags, numbers ≥ 0, or the name of a column of the store. A bag of weight
            2 contributes like two identical bags, except that the degrees of freedom of "gcv" count
            it once.
        holdout : float in [0, 1) or dict, optional
            Bags that are left out of the fit, for evaluation. A number is a fraction of the bags,
            chosen by a hash of their index. {"fraction": .2, "groups": "patient"} holds out whole
            groups of equal values in a column of the store; alpha="validation" then uses the same
            groups. {"after": "2026-01-01", "time": "day"} holds out bags later than a date or
            number; dates are days since 1970-01-01 or names of classes, and ``time`` may be omitted
            if one column is not a target.
        groups : str or array, shape (n_bags,), optional
            Groups of bags that are not independent, such as the bags of one patient: a column of a
            store, or one value per bag. Embedding, width and penalty are chosen by errors on groups
            that are left out, and a fraction as ``holdout`` holds out whole groups.
        progress : callable (bags done, bags in all), optional
        checkpoints : URL, path or `Checkpoints`, optional
            URL at which the sums of a store's bags are kept while the pass runs. If the same fit is
            started again, it continues from them. They are removed when the fit has ended.
        """
        return self._fit(X, y, target, sample_weight, holdout, groups, progress, checkpoints)

    @overload
    def predict(self, X: BagStore, *, return_std: Literal[False] = False) -> LazyArray: ...
    @overload
    def predict(self, X: BagsInMemory, *, return_std: Literal[False] = False) -> NDArray[Any]: ...
    @overload
    def predict(
        self, X: BagsLike, *, return_std: Literal[True]
    ) -> tuple[PredictionArray, PredictionArray]: ...
    @checked
    def predict(self, X: BagsLike, *, return_std: bool = False) -> PredictionArray:
        """Predict targets, shape (n_bags,) or (n_bags, n_targets), float64.

        numpy for bags in memory, a lazy dask.array for a BagStore.

        Parameters
        ----------
        X : BagStore, Bags, or list of arrays (n_i, n_dims)
        return_std : bool
            Also return the standard deviation of a new bag's label, of the same shape, as
            scikit-learn's BayesianRidge does: √(σ² (1 + h)), see `Posterior`. The standard
            deviation combines label noise (assumed equal for all bags) with the uncertainty of
            the coefficients. It ignores the uncertainty from choosing λ, σ² and the two bases,
            and does not grow for small bags. For guaranteed coverage use `predict_interval`.

        Raises
        ------
        ModelError
            If the bags have another dimension than the bags fitted, or if ``return_std`` is set
            and the model has no posterior or no residuals.
        """
        model = self._fitted
        if not return_std:
            return model.predict(X)
        model.require_posterior()
        tail = (2, *model.outcome.stored()["predictions"].tail)
        both = model.apply(X, partial(_deviations, model), tail=tail, are_parts_alike=True)
        return both[:, 0], both[:, 1]

    @checked
    def conformalize(
        self,
        X: TrainingBags,
        y: ArrayLike | None = None,
        *,
        cv: Annotated[int, Integer(2, MAX_FOLDS)] | None = None,
        groups: str | ArrayLike | None = None,
        sample_weight: SampleWeight = None,
        progress: Progress | None = None,
    ) -> Self:
        """Calibrate the prediction intervals, on held-out bags or on folds.

        The errors on these bags are kept for `predict_interval`. A fit with ``holdout`` calibrates
        the model on its held-out bags by itself, with the groups of the holdout.

        Parameters
        ----------
        X : BagStore, Bags, or list of arrays (n_i, n_dims)
            Calibration data. Without ``cv``, the held-out bags are used if the model was fitted to
            these data with a holdout. All bags of any other data are used. With ``cv``, pass the
            bags to which the model was fitted. Calibration bags have to be like the bags that
            will be predicted; a holdout by time shows whether they are.
        y : array, shape (n_bags,) or (n_bags, n_targets)
            Labels of bags in memory.
        cv : int from 2 to 100, optional
            Number of folds, such as 10. No bag is lost to a holdout. One pass computes the sums of
            all folds. Each fold is predicted with coefficients from the sums of the other folds,
            with the bases and the penalty per bag of this model. The K sets of coefficients are
            kept and saved. If the embedding was chosen with at most 100 bags, the choice is
            repeated without each fold, which takes K fits, because errors on bags that the choice
            has seen are too small.
        groups : str or array, shape (n_bags,), optional
            Groups of bags, such as patients: a column of a store, or a value for each bag. Each
            group lies in one fold. One bag of each group is used, chosen by a hash. The coverage
            holds for a bag of a new group. Default with ``cv``: the groups of the model's holdout.
        sample_weight : array, shape (n_bags,), or str, optional
            Weights of the bags, used with ``cv`` only. Default: the column that ``fit`` used.
        progress : callable (bags done, bags in all), optional

        Raises
        ------
        DataError
            If no bag has a label, all labelled bags are in one fold, or the targets are not those
            of the model.
        ModelError
            If the model was fitted to these bags without a holdout, and ``cv`` is not given.
        ParameterError
            If the sums of all folds do not fit in memory, weights are given without ``cv``, or
            ``cv`` is given for a model with trees.
        """
        check_is_fitted(self)
        self.model_ = conformalized(self, X, y, cv, groups, sample_weight, progress)
        return self

    @checked
    def predict_interval(
        self, X: BagsLike, *, coverage: float = COVERAGE
    ) -> tuple[PredictionArray, PredictionArray]:
        """Return the lower and upper ends of prediction intervals for the labels of bags.

        With held-out bags, the method is split conformal prediction (Lei et al. 2018). The
        intervals contain the labels of at least the fraction ``coverage`` of new bags, on average
        over the held-out bags. This holds for any distribution, as long as new bags are
        exchangeable with the held-out bags.

        With folds, the method is CV+ (Barber et al. 2021). The coverage is about the requested
        fraction, and at least 1 − 2 (1 − coverage) less a small term, for any distribution. The
        intervals are usually narrower, because no bag is lost, and wider if the models of the folds
        differ. The prediction need not be in the middle of the interval.

        With 100 bags or more, the scale of the errors is learnt from the number of points and the
        features of a bag, if folds show that the scale explains the errors. Bags with larger
        expected errors then get wider intervals. Otherwise all intervals from held-out bags have
        the same width.

        For several targets, the guarantee holds for each target by itself. For groups, see
        `conformalize`.

        Parameters
        ----------
        X : BagStore, Bags, or list of arrays (n_i, n_dims)
        coverage : float in (0, 1)

        Raises
        ------
        ModelError
            If the model is not calibrated: no bags were held out, and `conformalize` was not
            called.
        ParameterError
            If there are too few calibration bags for the coverage.
        """
        model = self._fitted
        model.require_calibration().rank(coverage)
        tail = (2, *model.outcome.stored()["predictions"].tail)
        columns = MoreColumns(INTERVAL_COLUMNS, coverage)
        both = model.apply(
            X, partial(_stacked_columns, model, columns), tail=tail, are_parts_alike=True
        )
        return both[:, 0], both[:, 1]

    @checked
    def score(
        self, X: BagsLike, y: ArrayLike | None = None, *, sample_weight: SampleWeight = None
    ) -> float:
        """Return R², averaged over the targets.

        On the store that the model was fitted to, the held-out bags are scored. R² of a single bag
        is NaN, with a warning, as in scikit-learn.

        Parameters
        ----------
        X : BagStore, Bags, or list of arrays (n_i, n_dims)
        y : array, shape (n_bags,) or (n_bags, n_targets)
            Labels. Default: those of the store, whose unlabelled bags are left out.
        sample_weight : array, shape (n_bags,), or str, optional
            Weight of each bag, or a column of the store with the weights.

        Raises
        ------
        DataError
            If there are no labels, the weights are missing, negative or all 0, or R² is not finite.
        """
        return score_of(self._fitted, X, y, sample_weight)


def _deviations(model: RidgeModel, bags: Bags) -> Floats:
    """Return predictions and deviations, shape (n_bags, 2) or (n_bags, 2, n_targets)."""
    prediction = model.predicted(bags, MoreColumns(["std"]))
    return np.stack([prediction.values, prediction.more["std"]], axis=1)


def _stacked_columns(model: RidgeModel, columns: MoreColumns, bags: Bags) -> Floats:
    """Return columns of predictions, shape (n_bags, columns) or (n_bags, columns, n_targets)."""
    predicted = model.predicted(bags, columns).more
    return np.stack([predicted[name] for name in columns.names], axis=1)
