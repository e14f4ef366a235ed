"""What the Double-Basis estimators share: parameters, and fitting from one pass."""

from __future__ import annotations

import time
from abc import abstractmethod
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, cast

import numpy as np

from ..bags.holdout import Holdout, HoldoutLike
from ..bags.inputs import with_targets
from ..bags.labelled import LabelledBags
from ..bags.plan import Range
from ..bags.sampling import MEDIAN_ROWS
from ..bags.splits import Membership
from ..embeddings import Embedding, ProjectionEmbedding
from ..errors import ModelError, ParameterError
from ..execution import Progress, lane
from ..random_features import FeatureSpec, RandomFeatures, RandomFourierFeatures
from ..random_features.base import Sample
from ..sklearn_bases import fresh
from .accumulate import FitPass, FitStatistics
from .checkpoints import Checkpoints, CheckpointsLike, checkpoints_of
from .feature_map import FeatureMap, resolve_features, warn_of_outside, warn_of_scale
from .learning_passes import LearningPasses
from .linear_columns import LINEAR, LinearColumns
from .linear_model import LinearModel
from .matrix_free import MatrixFreeFit
from .outcomes import Outcome
from .partial_regression import PartialSummary, Rows, beside_linear, beside_own, choose_linear
from .penalties import Path, Penalties, warn_at_edge
from .posterior import Posterior
from .problem import Labels, Problem, Target, TrainingBags
from .ridge import RidgeSolution, solve, solve_gcv, solve_validation
from .ridge_parameters import RidgeParameters, is_summed
from .solver_choice import LEAST_PENALTY, fits_exactly, gradients_pay
from .weights import SampleWeight, Weights

TOO_LARGE = "its values are too large: divide them by a constant, as 1e100, and fit again"


class DoubleBasis(RidgeParameters, LinearModel):
    """Parameters and fit of the Double-Basis regressor, classifier and Triple-Basis regressor.

    A subclass decides which `Outcome` its labels have. A fit has the steps `check_parameters`,
    `problem`, `resolve`, `task` and `learn`, which retraining and tuning call one by one.
    """

    _defaults: ClassVar[dict[str, Any]] = {
        "embedding": ProjectionEmbedding,
        "random_features": RandomFourierFeatures,
    }

    # ------------------------------------------------------------------ fitting

    def labelled(self, X: TrainingBags, labels: Labels, target: Target) -> LabelledBags:
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
    def problem(
        self, X: TrainingBags, labels: Labels, target: Target, bags: Range | None = None
    ) -> Problem:
        """Return the bags given to `fit`, see `labelled`, and what kind of labels they have.

        ``bags`` is a range of a store's bags; None means all of them.
        """

    def weighed(
        self, problem: Problem, sample_weight: SampleWeight, holdout: HoldoutLike = 0.0
    ) -> Problem:
        """Return the problem with the weights of its bags, see `fit`; ``holdout`` as there."""
        return replace(problem, weights=Weights.of_bags(problem.source.data, sample_weight))

    def fit_problem(
        self,
        problem: Problem,
        holdout: HoldoutLike,
        progress: Progress | None,
        checkpoints: CheckpointsLike = None,
    ) -> None:
        """Fit to these bags.

        Checkpoints that are given by their URL are removed when the fit has ended.
        """
        with checkpoints_of(checkpoints) as kept:
            self.check_parameters(holdout)
            holdout = Holdout.of(holdout).resolve(problem.source)
            clock = time.perf_counter()
            features = self.resolve(problem, holdout, progress, kept)
            resolved = time.perf_counter()
            solution, n_bags_resumed, n_passes = None, 0, 1
            exact = kept is not None or bool(self.of_sums)
            if self.is_matrix_free(problem, features, exact):
                fit = self._matrix_free(problem, features, holdout, progress, kept)
                solution, statistics = fit.run()
                n_passes = fit.n_passes
            else:
                task = self.task(problem, features, holdout, keeps_rows=True)
                keeper = kept.keeper(task) if kept else None
                n_bags_resumed = keeper.n_bags_kept(task.ranges) if keeper else 0
                statistics = task.run(progress, keeper)
            accumulated = time.perf_counter()
            self.learn(problem, features, holdout, statistics, solution)
        self.report_["n_passes"] = n_passes
        self.report_["n_bags_resumed"] = n_bags_resumed
        self.report_["seconds"] = {
            "choose": resolved - clock,
            "accumulate": accumulated - resolved,
            "solve": time.perf_counter() - accumulated,
        }

    def task(
        self, problem: Problem, features: FeatureMap, holdout: HoldoutLike, keeps_rows: bool = False
    ) -> FitPass:
        """Return the pass over the problem's bags, not yet started.

        With ``keeps_rows`` the rows are kept if there are no more bags than features: solving from
        the rows is then faster and rounds less. Sums are needed where bags are added later.
        """
        if self.solver == "cg":
            raise ParameterError("solver='cg' keeps no sums: choose solver='auto' or 'cholesky'")
        source, validation = self.parts(problem.source, holdout)
        keeps_rows = keeps_rows and self.keeps_rows(source.n_bags, features)
        self.check_memory(features, source.n_bags if keeps_rows else None)
        given = (problem.outcome, validation, self.precision, keeps_rows, problem.weights)
        return FitPass(source, features, *given)

    def is_matrix_free(self, problem: Problem, features: FeatureMap, exact: bool = False) -> bool:
        """Return whether `fit` uses conjugate gradients.

        If ``exact`` sums are needed, it does so only when the solver says so.
        """
        if self.solver != "auto":
            return self.solver == "cg"
        n, d = problem.source.n_bags, features.n_features
        chosen = self.alpha if isinstance(self.alpha, str) else None
        if exact or self.is_path != (chosen == "validation"):
            return False
        if chosen is None and self.given_penalties().min() < LEAST_PENALTY * n:
            return False
        pays = gradients_pay(n, d, self.is_path, problem.outcome.n_targets)
        return pays or not fits_exactly(n, d, self.is_path)

    def _matrix_free(
        self,
        problem: Problem,
        features: FeatureMap,
        holdout: HoldoutLike,
        progress: Progress | None,
        checkpoints: Checkpoints | None,
    ) -> MatrixFreeFit:
        source, validation = self.parts(problem.source, holdout)
        given = (problem.outcome, validation, self.precision, False, problem.weights)
        fit = FitPass(source, features, *given)
        settings = {"alphas": self.given_penalties().tolist(), "rank": self.rank}
        keeper = checkpoints.steps(fit, **settings) if checkpoints else None
        return MatrixFreeFit(fit, self.penalties, self.rank, progress, keeper)

    def parts(
        self, source: LabelledBags, holdout: HoldoutLike
    ) -> tuple[LabelledBags, Membership | None]:
        """Return the bags that are not held out, and those that the penalty is chosen on."""
        out = Holdout.of(holdout)
        chosen = isinstance(self.alpha, str) and self.alpha in self._on_held_out
        validation = out.validation(self.validation_fraction, source) if chosen else None
        return replace(source, left_out=out.split(source)), validation

    def learn(
        self,
        problem: Problem,
        features: FeatureMap,
        holdout: HoldoutLike,
        statistics: FitStatistics,
        solution: RidgeSolution | None = None,
        near: float | None = None,
    ) -> None:
        """Solve, unless ``solution`` is given, and set every fitted attribute.

        ``statistics`` are those of the problem's bags; the search of penalties begins at ``near``,
        per bag.
        """
        solver, train = "cholesky" if solution is None else "cg", statistics.train
        if solution is None:
            with lane():
                left = self.beside(statistics, features, problem.outcome)
                solution = self._solve(problem, features, holdout, left, near)
        if np.isfinite(solution.scores).any():
            path = Path(solution.alphas, solution.scores)
            warn_at_edge(path, self.penalties(train), self.precision, is_summed(train))
        warn_of_scale(features, train.sum_z / train.weight, train.n)
        warn_of_outside(features, statistics.n_outside, statistics.n_points)
        solved = np.column_stack([solution.coef, solution.intercept]).T
        problem.outcome.check_finite(solved, "the solution", TOO_LARGE)
        self.features_ = features
        self.coef_ = solution.coef
        self.intercept_ = solution.intercept
        self.alpha_ = solution.alpha
        self.alphas_ = solution.alphas
        self.alpha_scores_ = solution.scores
        self.holdout_ = Holdout.of(holdout).saved
        self.outcome_ = problem.outcome
        self.weights_ = problem.weights.to_dict() if problem.weights else None
        self.posterior_ = self._posterior(statistics, solution) if self.uncertainty else None
        self.calibration_ = None
        self.report_: dict[str, Any] = {
            "data_url": problem.source.url,
            "solver": solver,
            "n_bags": problem.source.n_bags,
            "n_points": problem.source.n_points,
            "n_bags_fitted": statistics.train.n
            + (statistics.validation.n if statistics.validation else 0),
            "n_bags_unlabelled": statistics.n_unlabelled,
            "n_bags_held_out": statistics.n_held_out,
            "n_points_seen": statistics.n_points,
            "n_points_outside_box": statistics.n_outside,
        }
        if problem.weights is not None:
            self.report_["weight_fitted"] = statistics.weight
        if self.baseline == LINEAR:
            self.report_["baseline_alpha"] = cast(PartialSummary, left.train).alpha
        if problem.source.snapshot is not None:
            self.report_["data_snapshot"] = problem.source.snapshot

    def _posterior(self, statistics: FitStatistics, solution: RidgeSolution) -> Posterior:
        fitted, held = statistics.train, statistics.validation
        with lane():
            whole = fitted if held is None else fitted + held
            return Posterior.of(whole, solution, self.rounding)

    def beside(
        self, statistics: FitStatistics, features: FeatureMap, outcome: Outcome
    ) -> FitStatistics:
        """Return the statistics to solve from: what the baseline leaves, if there is one."""
        if features.beside is None:
            return statistics
        train, held_out = cast(Rows, statistics.train), cast(Rows | None, statistics.validation)
        if features.beside.spec is not None:
            return replace(statistics, train=beside_own(train, features.n_penalized))
        penalties = Penalties.default(train.weight, self.precision, is_summed(train))
        given = (features.n_penalized, penalties, outcome.units())
        alpha = choose_linear(train, held_out, *given)
        return replace(statistics, train=beside_linear(train, features.n_penalized, alpha))

    def columns_beside(
        self, problem: Problem, first: FeatureMap, sample: Sample
    ) -> LinearColumns | None:
        """Return the columns of the baseline; ``sample`` gives rows of the embedding ``first``."""
        return None if self.baseline is None else LinearColumns.of(None, sample(MEDIAN_ROWS))

    def resolve(
        self,
        problem: Problem,
        holdout: HoldoutLike | None = None,
        progress: Progress | None = None,
        checkpoints: Checkpoints | None = None,
    ) -> FeatureMap:
        """Return both bases, decided from samples of the bags.

        The embedding and the random features are cloned: a second fit does not use the decisions of
        the first. Random features that learn are given labels of bags that are not held out, and
        save each sweep in ``checkpoints``; where no labels may be used, they are refused.
        """
        embedding = fresh("embedding", self.embedding, Embedding, ProjectionEmbedding)
        given, random_features = self.random_features, None
        if given is not False:
            given_or_default = (given, RandomFeatures, RandomFourierFeatures)
            random_features = fresh("random_features", *given_or_default)
        learn = None
        if holdout is not None:
            passes = (problem, holdout, progress, checkpoints)
            learn = partial(self._learn_by_passes, *passes)
        beside = partial(self.columns_beside, problem)
        return resolve_features(problem.source, embedding, random_features, beside, learn, progress)

    def _learn_by_passes(
        self,
        problem: Problem,
        holdout: HoldoutLike,
        progress: Progress | None,
        checkpoints: Checkpoints | None,
        random_features: RandomFeatures,
        first: FeatureMap,
        sample: Sample,
    ) -> FeatureSpec:
        def left(found: Rows, features: FeatureMap) -> Rows | PartialSummary:
            kept = self.beside(FitStatistics(found, None), features, problem.outcome).train
            return cast(Rows | PartialSummary, kept)

        source, validation = self.parts(problem.source, holdout)
        given = (problem.outcome, validation, "float64", False, problem.weights)
        fit = FitPass(source, first, *given)
        settings = random_features.get_params()
        keeper = checkpoints.steps(fit, random_features=settings) if checkpoints else None
        with LearningPasses(fit, left, progress, keeper) as passes:
            spec = first.embedding
            return random_features.resolve(spec.n_features, sample, spec.blocks, passes)

    def _solve(
        self,
        problem: Problem,
        features: FeatureMap,
        holdout: HoldoutLike,
        statistics: FitStatistics,
        near: float | None = None,
    ) -> RidgeSolution:
        train, units = statistics.train, problem.outcome.units()
        penalties = self.penalties(train)
        if near is not None:
            penalties = replace(penalties, near=near * train.weight)
        chosen = self.alpha if isinstance(self.alpha, str) else ""
        if chosen == "validation":
            if statistics.validation is None:
                raise ModelError("no validation statistics")
            given = (penalties, self.rounding, units)
            return solve_validation(train, statistics.validation, *given)
        if len(penalties) > 1 or chosen == "gcv":
            return solve_gcv(train, penalties, units)
        return solve(train, float(penalties.values[0]), self.rounding)
