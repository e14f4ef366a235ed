"""`plan_fit`: fits both bases, and decides which bags choose the penalty and what is kept."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import cast

from ...core.errors import ParameterError
from ...core.sklearn_bases import fresh
from ...data.labelled.splits import IndexFolds
from ...data.store.sampling import MEDIAN_ROWS
from ...embeddings.base import Embedding
from ...embeddings.projection import ProjectionEmbedding
from ...embeddings.random_features.base import FeatureSpec, RandomFeatures, SampleRows
from ...embeddings.random_features.fourier import RandomFourierFeatures
from ...embeddings.remembering import remembering
from ...execution.progress import Progress
from ..outcomes.densities import DensityOutcome
from ..ridge.linear_columns import OWN, LinearColumns
from ..ridge.partial_regression import PartialSummary, RidgeSums
from .accumulate import FitStatistics
from .checkpoints import Checkpoints
from .choice.automatic import Choice, choose_embedding
from .choice.placing import place_folds
from .choice.sample import count_labelled
from .feature_map import FeatureMap, resolve_features, sampled_embeddings
from .fit_parameters import FitParameters
from .learning_passes import LearningPasses
from .plan import FitPlan
from .problem import Problem
from .solving import leave_baseline


def plan_fit(
    problem: Problem,
    parameters: FitParameters,
    progress: Progress | None = None,
    checkpoints: Checkpoints | None = None,
) -> FitPlan:
    """Return the plan of a fit, with both bases fitted to samples of the bags.

    Random features that learn use the labels of bags that are not held out. Their passes report
    ``progress`` and save each sweep in ``checkpoints``. The plan keeps rows if there are no more
    bags than features, because solving from rows is then faster and more accurate.
    """
    parameters, choice = decide_automatic(problem, parameters, progress)
    features = choose_features(problem, parameters, progress, checkpoints)
    plan = plan_of(problem, parameters, features)
    keeps_rows = parameters.keeps_rows(plan.bags.n_bags, features)
    if isinstance(plan.folds, IndexFolds):
        placed = choice.folds if choice is not None else None
        if placed is None:
            placed = place_folds(plan.bags, plan.outcome, plan.folds.n_folds)
        plan = replace(plan, folds=placed or plan.folds)
    return replace(plan, keeps_rows=keeps_rows, choice=choice.report if choice else None)


def decide_automatic(
    problem: Problem, parameters: FitParameters, progress: Progress | None = None
) -> tuple[FitParameters, Choice | None]:
    """Return the parameters without "auto", and the choice of the embedding, if there was one."""
    if not parameters.is_automatic:
        if parameters.has_automatic_penalty:
            n_labelled = count_labelled(problem.fitted)
            parameters = replace(parameters, alpha=parameters.alpha_for(n_labelled))
        return parameters, None
    choice = choose_embedding(problem, parameters.random_features, progress)
    decided = replace(
        parameters,
        embedding=choice.embedding,
        random_features=choice.random_features,
        alpha=parameters.alpha_for(choice.n_labelled),
    )
    return decided, choice


def plan_of(problem: Problem, parameters: FitParameters, features: FeatureMap) -> FitPlan:
    """Return the plan of a fit with features that are decided; its sums can be added to others."""
    return FitPlan(
        problem.fitted,
        features,
        problem.outcome,
        problem.validation(parameters),
        parameters.precision,
        weights=problem.weights,
        holdout=problem.holdout,
        folds=problem.folds(parameters),
    )


# -------------------------------------------------------------------------- both bases


def choose_features(
    problem: Problem,
    parameters: FitParameters,
    progress: Progress | None = None,
    checkpoints: Checkpoints | None = None,
) -> FeatureMap:
    """Return both bases, decided from samples of the bags.

    The embedding and the random features are cloned: a second fit does not use the decisions of
    the first.
    """
    assert not isinstance(parameters.embedding, str)  # "auto" is decided by now
    embedding = fresh("embedding", parameters.embedding, Embedding, ProjectionEmbedding)
    second = None
    if parameters.random_features is not False:
        second = fresh(
            "random_features", parameters.random_features, RandomFeatures, RandomFourierFeatures
        )
    beside = partial(choose_columns, problem, parameters.baseline)
    learn = partial(_learn, problem, parameters, progress, checkpoints)
    with remembering():
        return resolve_features(problem.source, embedding, second, beside, learn, progress)


def choose_columns(
    problem: Problem, baseline: str | None, first: FeatureMap, sample: SampleRows
) -> LinearColumns | None:
    """Return the columns of a baseline; ``sample`` gives rows of the embedding ``first``.

    Raises
    ------
    ParameterError
        If ``baseline="own"`` is set, and bags and responses have different boxes.
    """
    if baseline is None:
        return None
    if baseline != OWN:
        return LinearColumns.of(None, sample(MEDIAN_ROWS))
    response, box = cast(DensityOutcome, problem.outcome).spec, first.embedding.box
    if box != response.box:
        raise ParameterError(
            "baseline='own' copies a bag's own coefficients; its points lie in the box "
            f"{box.bounds}, those of the responses in {response.box.bounds}: give both "
            "embeddings one box, or leave baseline out"
        )
    own = FeatureMap(response, None)
    return LinearColumns.of(response, sampled_embeddings(problem.source, own, MEDIAN_ROWS))


def _learn(
    problem: Problem,
    parameters: FitParameters,
    progress: Progress | None,
    checkpoints: Checkpoints | None,
    random_features: RandomFeatures,
    first: FeatureMap,
    sample: SampleRows,
) -> FeatureSpec:
    """Return random features that passes over the labelled bags have learnt."""

    def remainder(rows: RidgeSums, features: FeatureMap) -> RidgeSums | PartialSummary:
        sums = FitStatistics(rows, None)
        train = leave_baseline(sums, features, problem.outcome, parameters).train
        return cast(RidgeSums | PartialSummary, train)

    plan = replace(plan_of(problem, parameters, first), precision="float64", folds=None)
    settings = random_features.get_params()
    checkpoint_store = checkpoints.steps(plan, random_features=settings) if checkpoints else None
    with LearningPasses(plan, remainder, progress, checkpoint_store) as passes:
        spec = first.embedding
        return random_features.resolve(spec.n_features, sample, spec.blocks, passes)
