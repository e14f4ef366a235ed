"""`tune`: successive halving over a growing number of bags, then one fit to all of them.

Every rung compares the remaining candidates by their errors on a held-out tenth (Sutherland et al.
2016, §5), for all penalties from one pass. The best candidates go on to the next rung, which has
more bags. For densities, the error is the squared error of the coefficients, by Parseval the
squared L2 distance from the predicted to the projected density (Oliva 2018, §3.4).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
from sklearn.base import clone

from ...core import Instance, TextOrList, UrlOrPath, checked
from ...core.arrays import Floats
from ...core.errors import DataError, ParameterError, one_warning_each
from ...data.labelled.column_splits import GroupFolds, GroupSplit
from ...data.labelled.holdout import HoldoutLike
from ...data.labelled.inputs import LabelsLike
from ...data.labelled.labelled import LabelledBags
from ...data.labelled.weights import SampleWeight
from ...data.storage.files import discard_empty
from ...data.storage.urls import normalize_url
from ...embeddings.registered import spec_to_dict
from ...execution.notebook import watched
from ...execution.progress import Progress, part_of, silent
from ...execution.worker_threads import kernel_threads
from ..base import DoubleBasis, fit_parameters_of
from ..fitting.accumulate import FitStatistics
from ..fitting.choice.automatic import choose_embedding
from ..fitting.label_limits import ignoring_outliers
from ..fitting.problem import Groups, Problem, TrainingBags, pose_problem
from ..fitting.solving import leave_baseline
from ..outcomes.kinds import identify_outcome
from ..ridge.penalties import Penalties
from ..ridge.ridge import score_validation, solve
from ..ridge.summary import Summary
from .cache import RowCache, discard_others, identity_of
from .candidates import Candidate, digest, resolve_candidates
from .few_bags import TUNED_AT_ONCE, tune_few, widths_with
from .joining import Joining
from .last_fit import (
    fit_winner,
    judge_winner,
    keep_groups_whole,
    penalty_that_costs,
    warn_of_penalty,
)
from .leads import Losses, difference, held_out_losses
from .order import Rung, RunOrder, first_rung, plan_rungs, run_order
from .records import Lead, Records, Score, Tuning
from .scoring import CachedBags, score_statistics
from .search import Search

HELD_STATISTICS_BYTES = 2**30  # of statistics kept between rungs; others are accumulated again
SCORES = "scores.json"  # in the folder of checkpoints
MIN_HELD_OUT = 10  # bags: with fewer bags, differences between candidates are chance


@checked
def tune(
    estimator: DoubleBasis,
    X: TrainingBags,
    y: LabelsLike = None,
    *,
    search: Annotated[Search, Instance()] | None = None,
    target: TextOrList | None = None,
    sample_weight: SampleWeight = None,
    holdout: HoldoutLike = 0.0,
    groups: Groups = None,
    checkpoints: UrlOrPath | None = None,
    keep_cache: bool = False,
    progress: Progress | None = None,
) -> Tuning:
    """Compare embeddings, kernel widths and penalties, and fit the best model to all bags.

    The search uses successive halving: many candidates are compared on few bags, and the best of
    them on more bags. With a holdout, the winner is judged on bags that no candidate has seen.

    The coefficients of an embedding are computed once per bag, and kept next to the store, or in a
    temporary folder for bags in memory. A rung is a comparison on the first n bags. It adds only
    its new bags to the statistics of the previous rung.

    The best λ per bag falls with the number of bags. Therefore the last fit chooses λ again on all
    bags, by the rule ``estimator.alpha``. With groups, it uses five folds of whole groups, never
    GCV. A numeric penalty applies to all bags; each rung scales it by its fraction of the bags.

    Parameters
    ----------
    estimator : DoubleBasisRegressor, DoubleBasisClassifier or TripleBasisRegressor, not fitted
        Estimator to tune. All candidates share its other parameters, such as
        ``response_embedding``.
    X : Bags, list of arrays, groupby or BagStore
        Labelled bags, as in `fit`.
    y : optional
        Labels of bags in memory: targets, classes, or responses for a TripleBasisRegressor.
    search : Search, optional
        Candidates to compare. Default: ``Search.auto`` for the number of coordinates of a point.
    target, sample_weight, holdout
        As in `fit`. No candidate sees the bags of the holdout, on which the winner is judged. A
        TripleBasisRegressor has no target.
    groups : str or array, shape (n_bags,), optional
        Groups of bags that are not independent: a column of the store, or one value per bag. Bags
        of a group stay together in each split. Default: the groups of the holdout.
    checkpoints : URL or path, optional
        Folder for the scores and the coefficients, from which an interrupted search continues.
        Default: scores are not kept, and coefficients are in ``<store>.cache``, or in a temporary
        folder for bags in memory.
    keep_cache : bool
        Whether to keep the coefficients of the winner and the targets in this folder. Coefficients
        of other embeddings are deleted. Bags in memory then need ``checkpoints``.
    progress : callable (bags done, bags in all), optional
        Function that is called with the progress. It starts again at 0 with each rung, and for the
        last fit.

    Raises
    ------
    DataError
        If there are not enough labelled bags, responses are missing, or bags cannot be embedded.
    ParameterError
        If the search, an embedding or the estimator refuses a value; raised before any pass.
    StoreError
        If the scores or the coefficients cannot be written.

    See Also
    --------
    cross_val_score : Scores of one model over folds.
    bagbasis.models.Search : The candidates.

    Examples
    --------
    >>> import numpy as np
    >>> from bagbasis import DoubleBasisRegressor, tune
    >>> rng = np.random.default_rng(0)
    >>> spread = rng.uniform(0.5, 2.0, 120)
    >>> bags = [rng.normal(0, s, (30, 1)) for s in spread]
    >>> tuned = tune(DoubleBasisRegressor(), bags, spread)
    >>> tuned.model.predict([rng.normal(0, 1.0, (30, 1))]).shape
    (1,)
    """
    folder = None if checkpoints is None else normalize_url(checkpoints)
    scores = None if folder is None else f"{folder}/{SCORES}"
    columns = {
        "target": target,
        "sample_weight": sample_weight,
        "holdout": holdout,
        "groups": groups,
    }
    return tune_in(folder, scores, estimator, X, y, search, keep_cache, progress, **columns)


@one_warning_each()
def tune_in(
    folder: str | None,
    scores: str | os.PathLike[str] | None,
    estimator: DoubleBasis,
    X: TrainingBags,
    y: LabelsLike,
    search: Search | None,
    keep_cache: bool,
    progress: Progress | None,
    **options: Any,  # noqa: ANN401 - of `pose_problem`
) -> Tuning:
    """Run `tune`, with coefficients in a folder, and scores in a file or in memory for None."""
    if isinstance(X, DoubleBasis):
        raise ParameterError(
            "tune takes the estimator first, as cross_val_score does: "
            "tune(estimator, X, y, search=...)"
        )
    Instance("DoubleBasis", "DoubleBasisRegressor()").check("estimator", estimator)
    parameters = fit_parameters_of(estimator)  # which all candidates share
    if search is not None:
        search.check()
    problem = ignoring_outliers(pose_problem(parameters, X, y, **options), parameters)
    source, seen = problem.source, watched(progress)
    if source.in_memory and keep_cache and folder is None:
        raise ParameterError("keep_cache of bags in memory: give checkpoints, the folder to keep")
    search = search or Search.auto(source.n_dims)
    if search.choose:
        choice = choose_embedding(problem, parameters.random_features, seen)
        if source.n_bags <= TUNED_AT_ONCE:
            return tune_few(problem, estimator, search, choice, seen)
        estimator = clone(estimator).set_params(random_features=choice.compared)
        tried, widths = [choice.embedding, *search.embeddings], widths_with(search, choice)
        search = replace(search, embeddings=tried, scale_multipliers=widths)
    with _cache_folder(source, folder) as place:
        tuner = Tuner(problem, estimator, search, scores, place)
        result = tuner.run(seen)
        tuner.clean(result.winner if keep_cache else None)
    return result


@contextmanager
def _cache_folder(source: LabelledBags, cache: str | None) -> Iterator[str]:
    """Yield the folder for coefficients: as given, next to the store, or a temporary one."""
    if cache is not None:
        yield cache
    elif source.url is not None:
        yield f"{source.url}.cache"
    else:
        with TemporaryDirectory(prefix="bagbasis-tune-") as folder:
            yield folder


class Tuner:
    """State of one search: choices before the first pass, and statistics held between passes."""

    def __init__(
        self,
        problem: Problem,
        estimator: DoubleBasis,
        search: Search,
        scores: str | os.PathLike[str] | None,
        folder: str,
    ) -> None:
        self.parameters, self.problem = fit_parameters_of(estimator), problem
        self.source = problem.fitted
        self.compared = replace(self.problem, source=self.source)
        self.outcome = self.problem.outcome
        self.estimator, self.search, self.groups = estimator, search, problem.groups
        self.embeddings = [*search.embeddings, *search.linear]
        self.candidates = resolve_candidates(self.compared, estimator, search)
        for candidate in self.candidates:
            self.check_memory(candidate)
        lengths = {c.embedding: c.features.n_embedded for c in self.candidates}
        n_bags = self.source.n_bags
        longest = sum(lengths.values()) if search.join else max(lengths.values())
        first = first_rung(n_bags, len(self.candidates), search.eta, search.first_bags)
        row_bytes = 4 * longest + 8 * self.outcome.n_targets
        self.order: RunOrder = run_order(n_bags, first, row_bytes, search.seed)
        self.rungs = plan_rungs(self.order, first, len(self.candidates), search.eta)
        validation = problem.validation(replace(self.parameters, alpha="validation", alphas=None))
        assert validation is not None
        if isinstance(validation, GroupSplit):  # asked of every block of every candidate
            validation = replace(validation, column=validation.column.held())
        self.validation = validation
        self.identity = identity_of(problem.source)
        self.folder = folder
        self.records = Records(scores, self.identity)
        self._held: dict[int, tuple[int, FitStatistics]] = {}  # by candidate: rung, statistics

    def run(self, progress: Progress) -> Tuning:
        """Return the result of the search, with the last fit of the winner."""
        discard_others(self.folder, self.identity)
        surviving = list(range(len(self.candidates)))
        scores: list[dict[int, Score]] = []
        for r in range(len(self.rungs)):
            scores.append(self._compare(r, surviving, progress))
            surviving = sorted(surviving, key=lambda c: (scores[-1][c].error, c))[
                : self.rungs[r].n_kept
            ]
            self._discard(range(len(self.candidates)) if self.search.join else surviving)
        self._held.clear()
        winner = surviving[0]
        leads: list[Lead] = []
        if self.search.join:
            winner, leads = Joining(self, scores, progress).run()
        self._held.clear()
        made = keep_groups_whole(self.problem, self.candidates[winner].estimator(self.estimator))
        model = fit_winner(self.problem, made, self.search.heads, progress)
        self._warn_of_penalty(winner, scores[-1][winner], model)
        judged = judge_winner(model, self.problem, progress)
        return Tuning(
            embeddings=self.embeddings,
            candidates=self.candidates,
            rungs=self.rungs,
            scores=scores,
            winner=winner,
            model=model,
            leads=leads,
            judged=judged,
        )

    def clean(self, survivor: int | None) -> None:
        """Delete all caches except those of one candidate and the targets; None deletes all."""
        self._discard([] if survivor is None else [survivor])
        if survivor is None:
            self._targets.remove()
        discard_empty(self.folder)

    def _compare(self, r: int, candidates: Sequence[int], progress: Progress) -> dict[int, Score]:
        """Score the candidates of a rung; hold the statistics of the best for the next one."""
        scores: dict[int, Score] = {}
        rung = self.rungs[r]
        before = self.rungs[r - 1].n_bags if r else 0
        new = rung.n_bags - before
        for done, c in enumerate(candidates):
            scores[c] = self.score(c, r, part_of(progress, done * new, len(candidates) * new))
            self._hold_best(scores, rung.n_kept)
        return scores

    def score(self, c: int, r: int, progress: Progress) -> Score:
        """Compare a candidate on the bags of a rung, unless the records have its score."""
        key = self._record_key(c, self.rungs[r])
        score = self.records.get(key)
        if score is None:
            score = self._score(c, r, progress)
            self.records.put(key, score)
        return score

    def losses(self, c: int, score: Score) -> Losses:
        """Return the loss of each bag, whose mean is the score of the last rung."""
        statistics = self._statistics(c, len(self.rungs) - 1, silent)
        held_out, weights = statistics.validation, self.problem.weights
        assert held_out is not None
        units = self._units(held_out)
        if units is None:
            variance = np.ldexp(held_out.centred_yy() / held_out.weight, 2 * held_out.exponents)
            units = np.where(variance > 0, variance, 1.0)
        with kernel_threads():
            residual = self._beside(c, statistics)
            solution = solve(residual.train, score.alpha, self.parameters.rounding)
        self._held.pop(c, None)
        blocks = (0, self.rungs[-1].n_blocks)
        return held_out_losses(self._cached(c), self.validation, solution, units, blocks, weights)

    def check_memory(self, candidate: Candidate) -> None:
        """Refuse a candidate that this process cannot solve for."""
        n_bags, features = self.problem.source.n_bags, candidate.features
        few = self.parameters.keeps_rows(n_bags, features)
        n_targets = self.outcome.n_targets
        self.parameters.check_memory(features, n_bags if few else None, n_targets, 2)

    def _score(self, c: int, r: int, progress: Progress) -> Score:
        begun = time.perf_counter()
        statistics = self._statistics(c, r, progress)
        train, held_out = statistics.train, statistics.validation
        assert held_out is not None
        rung, share = self.rungs[r], self.parameters.validation_fraction
        if held_out.n < MIN_HELD_OUT or train.n < MIN_HELD_OUT:
            raise DataError(
                f"{self.source.url or 'X'}: of {rung.n_bags} bags {train.n + held_out.n} are "
                f"labelled, {held_out.n} of them in the held-out fraction of {share:g}; comparing "
                f"candidates needs {MIN_HELD_OUT}: label more bags, or take more with first_bags"
            )
        with kernel_threads():
            penalties = self._penalties(train, rung)
            units, residual = self._units(held_out), self._beside(c, statistics)
            rounding = self.parameters.rounding
            path = score_validation(residual.train, held_out, penalties, rounding, units)
        return Score(
            error=float(path.scores.min()),
            n_bags=rung.n_bags,
            n_train=train.n,
            n_held_out=held_out.n,
            alpha=path.best,
            alphas=tuple(path.alphas.tolist()),
            errors=tuple(path.scores.tolist()),
            seconds=time.perf_counter() - begun,
        )

    def _warn_of_penalty(self, c: int, score: Score, model: DoubleBasis) -> None:
        """Warn if the penalty of the last fit has a clearly larger error on the held-out bags."""
        nearest = penalty_that_costs(score, model)
        if nearest is None:
            return
        best, last = (self.losses(c, replace(score, alpha=a)) for a in (score.alpha, nearest))
        groups = None if self.groups is None else self.groups.held().at(best.index)
        warn_of_penalty(score, model, *difference(best, last, groups))

    def _statistics(self, c: int, r: int, progress: Progress) -> FitStatistics:
        """Return the statistics of a rung: its new blocks added to those of the previous rung."""
        held = self._held.get(c)
        if held is not None and held[0] == r:
            return held[1]
        before = self._statistics(c, r - 1, progress) if r else None
        blocks = (self.rungs[r - 1].n_blocks if r else 0, self.rungs[r].n_blocks)
        bags = self._cached(c)
        keeps_rows = self.parameters.keeps_rows(self.rungs[r].n_bags, self.candidates[c].features)
        statistics = score_statistics(
            bags,
            self.validation,
            self.parameters.precision,
            blocks,
            progress,
            keeps_rows=keeps_rows,
            weights=self.problem.weights,
        )
        if before is not None:
            statistics = (before if keeps_rows else before.summed()) + statistics
        self._held[c] = (r, statistics)
        return statistics

    def _beside(self, c: int, statistics: FitStatistics) -> FitStatistics:
        features = self.candidates[c].features
        return leave_baseline(statistics, features, self.outcome, self.parameters)

    def _cached(self, c: int) -> CachedBags:
        coefficients, features = self._coefficients(c), self.candidates[c].features
        for cache in (coefficients, self._targets):
            cache.open()  # so that workers find it, and only one process makes it
        return CachedBags(
            self.source, self.order, coefficients, self._targets, features, self.outcome
        )

    def _hold_best(self, scores: dict[int, Score], n_kept: int) -> None:
        """Drop the statistics of candidates that are eliminated, or that do not fit in memory."""
        free = HELD_STATISTICS_BYTES
        best = sorted(scores, key=lambda c: (scores[c].error, c))
        for place, c in enumerate(best):
            if c not in self._held:
                continue
            free -= self._held[c][1].n_bytes
            if place >= n_kept or free < 0:
                del self._held[c]

    def _units(self, held_out: Summary) -> Floats | None:
        """Return the outcome's units, scaled so that the held-out mean has an error of 1."""
        units = self.outcome.units()
        if units is None:
            return None
        variance = np.ldexp(held_out.centred_yy() / held_out.weight, 2 * held_out.exponents)
        scaled: Floats = units * (np.mean(variance / units) or 1.0)
        return scaled

    def _penalties(self, train: Summary, rung: Rung) -> Penalties:
        penalties = self.parameters.penalties(train)
        if self.parameters.has_default_grid:
            return penalties
        return penalties.times(rung.n_bags / self.order.n_bags)

    def _record_key(self, c: int, rung: Rung) -> str:
        base = self.parameters
        settings = {
            "features": self.candidates[c].features.to_dict(),
            "penalties": base.given_penalties().tolist(),
            "penalties_a_bag": base.has_default_grid,
            "validation_fraction": float(base.validation_fraction),
            "precision": base.precision,
            "outcome": identify_outcome(self.outcome),
        }
        return digest([self._data_key(), settings, rung.n_bags])

    def _data_key(self) -> list[Any]:
        order = [self.order.run_length, self.order.seed]
        weights = [self.problem.weights.to_dict()] if self.problem.weights else []
        names = list(self.source.target_names)
        groups = [] if self.groups is None else [GroupFolds.of_column(self.groups).to_dict()]
        return [self.identity, names, self.problem.holdout.saved, order, *weights, *groups]

    def _coefficients(self, c: int) -> RowCache:
        features = self.candidates[c].features
        key: object = spec_to_dict(features.embedding)
        if features.beside is not None and features.beside.spec is not None:
            key = [key, spec_to_dict(features.beside.spec)]
        return self._cache(key, features.n_embedded, "float32")

    @property
    def _targets(self) -> RowCache:
        return self._cache(identify_outcome(self.outcome), self.outcome.n_targets, "float64")

    def _cache(self, key: object, n_columns: int, dtype: str) -> RowCache:
        url = f"{self.folder}/{self.identity}-{digest([self._data_key(), key])}.zarr"
        return RowCache(url, self.order.n_bags, n_columns, self.order.block_length, dtype)

    def _discard(self, candidates: Iterable[int]) -> None:
        """Delete the caches of embeddings that none of these candidates has."""
        urls = {self._coefficients(c).url for c in candidates}
        caches = map(self._coefficients, range(len(self.candidates)))
        for cache in {cache.url: cache for cache in caches}.values():
            if cache.url not in urls:
                cache.remove()
