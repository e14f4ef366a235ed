"""`DoubleBasis`: base class of the regressor, the classifier and the Triple-Basis regressor."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ..core import (
    ChoiceOf,
    False_,
    Fraction,
    Instance,
    Integer,
    ListOf,
    NameIn,
    None_,
    OneOf,
    Precision,
    Real,
    UrlOrPath,
    checked,
    component,
    constraints_of,
)
from ..core.arrays import Floats
from ..core.errors import needing_extra
from ..core.moved import GONE
from ..core.sklearn_bases import BaseEstimator, of_bags
from ..data.bags.bags import BagsInMemory
from ..data.labelled.holdout import HoldoutLike
from ..data.labelled.inputs import BagsLike, LabelsLike
from ..data.labelled.weights import SampleWeight
from ..data.store.store import BagStore
from ..embeddings.base import Embedding
from ..embeddings.kinds import EMBEDDINGS
from ..embeddings.projection import ProjectionEmbedding
from ..embeddings.random_features.base import RandomFeatures
from ..embeddings.random_features.fourier import RandomFourierFeatures
from ..embeddings.random_features.registered import RANDOM_FEATURES, named_features
from ..embeddings.registered import named_embedding
from ..execution.lazy_dask import LazyArray
from ..execution.progress import Progress
from .fit import fit_ridge
from .fit_summary import FitSummary, chosen_name, summary_of
from .fitted_model import FRAME_COLUMNS, PredictionArray
from .fitting.checkpoints import CheckpointsLike
from .fitting.feature_map import FeatureMap
from .fitting.fit_parameters import AUTO, FitParameters, PenaltiesLike
from .fitting.problem import Groups, TrainingBags, pose_problem
from .fitting.solver import SOLVERS
from .intervals.calibration import Calibration
from .intervals.fold_calibration import FoldCalibration
from .outcomes.base import Outcome, Target
from .posterior import BagScores
from .ridge_model import RidgeModel
from .saving import save_model
from .verdict import targets_in_words, verdict_of

if TYPE_CHECKING:
    from pandas import DataFrame

EMBEDDING = Instance("Embedding", "ProjectionEmbedding()")
PENALTIES = Real(ge=0) | ListOf(Real(ge=0), 1)
Head = Annotated[str, OneOf("ridge", "trees", "stack")]


@component
class DoubleBasis(BaseEstimator):
    """Base class of the Double-Basis estimators: their parameters and fitted attributes.

    Attributes
    ----------
    model_ : RidgeModel
        The fitted model; the other attributes are its parts.
    """

    embedding: Annotated[
        Embedding | str | None, EMBEDDING | None_ | NameIn(EMBEDDINGS) | OneOf(AUTO)
    ] = field(default=AUTO, kw_only=False)
    random_features: Annotated[
        RandomFeatures | Literal[False] | str | None,
        Instance("RandomFeatures", "RandomFourierFeatures()")
        | None_
        | False_
        | NameIn(RANDOM_FEATURES),
    ] = field(default=None, kw_only=False)
    alpha: Annotated[
        str | float | PenaltiesLike, PENALTIES | OneOf(AUTO, "gcv", "folds", "validation")
    ] = AUTO
    alphas: Annotated[float | PenaltiesLike, PENALTIES] | None = None
    validation_fraction: Annotated[float, Fraction] = 0.1
    precision: Precision = "float32"
    solver: Annotated[str, ChoiceOf(SOLVERS, "choice", ("auto",))] = "auto"
    rank: Annotated[int, Integer(1)] | None = None
    uncertainty: bool = False
    baseline: Annotated[str, OneOf("linear")] | None = None
    model_: RidgeModel = field(init=False)
    _learns: ClassVar[type[Outcome]]
    _defaults: ClassVar[dict[str, Any]] = {
        "embedding": ProjectionEmbedding,
        "random_features": RandomFourierFeatures,
    }

    @overload
    def predict(self, X: BagStore) -> LazyArray: ...
    @overload
    def predict(self, X: BagsInMemory) -> NDArray[Any]: ...
    def predict(self, X: BagsLike) -> PredictionArray:
        """Return the predictions of bags: a numpy array, or a lazy dask.array for a BagStore.

        A classifier returns the class with the largest score, shape (n_bags,).
        """
        return self._fitted.predict(X)

    def bag_scores(self, X: BagsLike) -> BagScores:
        """Return the leverage and the Mahalanobis distance of each bag.

        Both are large for bags that are unlike the bags fitted.

        Parameters
        ----------
        X : BagStore, Bags, or list of arrays (n_i, n_dims)

        Raises
        ------
        ModelError
            If the model was fitted without ``uncertainty=True``, or the bags have another dimension
            than the bags fitted.
        """
        model = self._fitted
        model.require_posterior()
        scores = model.apply(X, model.score_rows, tail=(2,))
        return BagScores(scores[:, 0], scores[:, 1])

    @checked
    def save(self, url: UrlOrPath, *, overwrite: bool = False) -> None:
        """Save the model as Zarr arrays and JSON; see `save_model`."""
        save_model(self, url, overwrite=overwrite)

    def summary(self, X: BagsLike | None = None, y: LabelsLike = None) -> FitSummary:
        """Return a summary of the fit: the embedding, errors next to rivals, and the next step.

        The summary prints as text, and is a table in a notebook.

        Parameters
        ----------
        X, y : optional
            Labelled bags, as for `report`. With them, the summary begins with a verdict: the error
            on held-out bags, or by folds. The verdict compares the model with a random forest,
            ridge regression on the bag means and the best constant. Default: no verdict.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        DataError
            If the labels do not fit the bags.

        Examples
        --------
        >>> import numpy as np
        >>> from bagbasis import DoubleBasisRegressor
        >>> rng = np.random.default_rng(0)
        >>> spread = rng.uniform(0.5, 2.0, 100)
        >>> bags = [rng.normal(0, s, (20, 1)) for s in spread]
        >>> model = DoubleBasisRegressor("moments").fit(bags, spread)
        >>> print(model.summary())  # doctest: +ELLIPSIS
        DoubleBasisRegressor, fitted
          learned    numbers
          bags       100 fitted (2,000 points)
          embedding  moments; ... features
          penalty    ... (alpha='auto')
          next       cross_val_score(model, X, y), or fit with holdout=0.2, then evaluate
        """
        check_is_fitted(self)
        model = self.model_
        penalty = f"{self.alpha_:.3g} (alpha={self.alpha!r})"
        name = type(self).__name__
        summary = summary_of(name, model.features, model.outcome, penalty, model.report)
        if X is None:
            return summary
        from .evaluation.baselines import judge_given  # noqa: PLC0415 - of models, as this is

        _, judged, errors = judge_given(self, X, y)
        if judged is None:
            assert errors[0] is not None  # those of the model
            return summary.beginning_with(errors[0].verdict())
        return summary.beginning_with(
            verdict_of(targets_in_words(model.outcome.scored_names), judged)
        )

    @checked
    def report(self, url: UrlOrPath, X: BagsLike | None = None, y: LabelsLike = None) -> None:
        """Write an HTML report of the fitted model, the same as that of ``bags fit``.

        The report begins with a verdict. It shows errors next to baselines, charts, the bags with
        the largest errors, the candidates that were compared, and a model card.

        Parameters
        ----------
        url : str or path
            Place of the HTML file; an older report is replaced.
        X, y : optional
            Labelled bags, as for `evaluate`. If these are the data of the fit, the model is judged
            on the bags that were held out, or by the folds of the fit if none were. On other data,
            it is judged on all bags. Default: a report without errors of bags.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        DataError
            If the labels do not fit the bags, or the extras ``cli`` and ``plots`` are not
            installed.
        StoreError
            If the file at the URL is not a report.

        Examples
        --------
        >>> import numpy as np
        >>> from bagbasis import DoubleBasisRegressor
        >>> rng = np.random.default_rng(0)
        >>> spread = rng.uniform(0.5, 2.0, 100)
        >>> bags = [rng.normal(0, s, (20, 1)) for s in spread]
        >>> model = DoubleBasisRegressor("moments").fit(bags, spread, holdout=0.3)
        >>> model.report("fit.html", bags, spread)
        """
        from ..jobs.reports import write_model_page  # noqa: PLC0415 - an extra

        check_is_fitted(self)
        write_model_page(self, url, X, y)

    def __repr__(self, **options: Any) -> str:  # noqa: ANN401 - as scikit-learn has it
        """Return the parameters and, after a fit, the choices that it made."""
        parameters: str = super().__repr__(**options)
        chosen = chosen_name(self.model_.report) if hasattr(self, "model_") else None
        return parameters if chosen is None else f"{parameters}  # chosen: {chosen}"

    # ------------------------------------------------------------------ what a fit leaves

    @property
    def choice_(self) -> DataFrame:
        """The candidates of ``embedding="auto"`` as a pandas data frame, the chosen one first.

        The columns are ``name``; ``width`` of the random features, NaN for linear candidates;
        ``weights`` of the kernels, if a candidate is a sum with different ones;
        ``error``, the squared error by folds relative to that of a constant (`summary` shows the
        root), and its ``standard_error``; ``behind``, the difference to the best error, and its
        ``standard_error_behind``; and ``alpha``, the penalty per bag. Without
        ``embedding="auto"`` the attribute does not exist: AttributeError is raised.
        """
        choice = self.model_.report.get("choice")
        if choice is None:
            raise AttributeError(
                "choice_ needs embedding='auto'; the embedding of this model was not chosen"
            )
        with needing_extra("tables", "choice_"):
            from pandas import DataFrame  # noqa: PLC0415 - an extra
        return DataFrame(choice["tried"])

    @property
    def features_(self) -> FeatureMap:
        """The fitted embedding and random-feature map."""
        return self.model_.features

    @property
    def outcome_(self) -> Outcome:
        """The outcome that was learnt: numbers, classes or densities."""
        return self.model_.outcome

    @property
    def coef_(self) -> Floats:
        """Coefficients of the features, shape (k, n_features); (n_features,) for one target."""
        coef = self.model_.solution.coef
        return coef[0] if self.outcome_.single else coef

    @property
    def intercept_(self) -> Floats | float:
        """Intercepts, which are not penalised, shape (k,); a float for one target."""
        intercept = self.model_.solution.intercept
        return float(intercept[0]) if self.outcome_.single else intercept

    @property
    def n_features_in_(self) -> int:
        """Number of coordinates of a point."""
        return self.model_.features.n_dims

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Names of the coordinates, if the bags fitted had names: those of a table or of frames."""
        names = self.model_.report.get("coordinates")
        if names is None:
            raise AttributeError("the coordinates of the bags fitted had no names")
        return np.array(names, dtype=object)

    @property
    def alpha_(self) -> float:
        """The penalty λ of the fit."""
        return self.model_.solution.alpha

    @property
    def alphas_(self) -> Floats:
        """The penalties that were tried."""
        return self.model_.solution.alphas

    @property
    def alpha_scores_(self) -> Floats:
        """Scores of the penalties in ``alphas_``; lower is better."""
        return self.model_.solution.scores

    @property
    def holdout_(self) -> float | dict[str, Any]:
        """The fraction of bags held out, or the resolved ``holdout`` that was given to ``fit``."""
        return self.model_.holdout

    @property
    def weights_(self) -> dict[str, Any] | None:
        """Column of ``sample_weight`` and weights of the classes; None without weights."""
        return self.model_.weights

    @property
    def calibration_(self) -> Calibration | FoldCalibration | None:
        """Errors on held-out bags or over folds, from which intervals are computed."""
        return self.model_.calibration

    @property
    def report_(self) -> dict[str, Any]:
        """Report of the fit: counts of bags and points, the solver, and seconds."""
        return self.model_.report

    @property
    def versions_(self) -> dict[str, str]:
        """Versions of the packages that saved a loaded model."""
        return self.model_.versions

    @property
    def target_names_(self) -> tuple[str, ...]:
        """Names of the targets of a store, Series or table; empty without names."""
        return self.model_.outcome.names

    if not TYPE_CHECKING:  # which would take any name for an attribute

        def __getattr__(self, name: str) -> Any:  # noqa: ANN401
            """Raise AttributeError, naming the new place of an attribute of earlier versions."""
            if name in GONE["DoubleBasis"]:
                place = GONE["DoubleBasis"][name].instead
                raise AttributeError(f"{type(self).__name__} has no {name!r}; it is {place}")
            return object.__getattribute__(self, name)

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn that X are bags."""
        return of_bags(super().__sklearn_tags__())

    def __sklearn_is_fitted__(self) -> bool:
        """Tell `check_is_fitted`, which otherwise takes any attribute ending in _."""
        return hasattr(self, "model_")

    # ------------------------------------------------------------------ fitting

    def _fit(
        self,
        X: TrainingBags,
        labels: LabelsLike,
        target: Target,
        sample_weight: SampleWeight,
        holdout: HoldoutLike,
        groups: Groups,
        progress: Progress | None,
        checkpoints: CheckpointsLike,
    ) -> Self:
        parameters = fit_parameters_of(self)
        problem = pose_problem(
            parameters,
            X,
            labels,
            target,
            sample_weight=sample_weight,
            holdout=holdout,
            groups=groups,
        )
        self.model_ = fit_ridge(problem, parameters, progress, checkpoints)
        if problem.columns:
            self.model_.report[FRAME_COLUMNS] = list(problem.columns)
        return self

    @property
    def _fitted(self) -> RidgeModel:
        """The fitted model; raises scikit-learn's NotFittedError before a fit."""
        check_is_fitted(self)
        return self.model_


_Estimator = TypeVar("_Estimator", bound=DoubleBasis)


def fit_parameters_of(estimator: DoubleBasis) -> FitParameters:
    """Return the parameters of an estimator, and what it learns, as a value.

    Raises
    ------
    ParameterError
        If no embedding or no random features are registered under the given name.
    """
    values = estimator.get_params(deep=False)
    made = {"embedding": named_embedding, "random_features": named_features}
    for name, named in made.items():
        value = values[name]
        if isinstance(value, str) and value != AUTO:
            constraints_of(type(estimator))[name].check(name, value)
            values[name] = named(value)
    learns = estimator._learns  # noqa: SLF001 - the same class
    return FitParameters(learns, constraints_of(type(estimator)), **values)


def with_model(estimator: _Estimator, model: RidgeModel) -> _Estimator:
    """Return an estimator with the same parameters whose fit has made ``model``."""
    made: _Estimator = clone(estimator)
    made.model_ = model
    return made
