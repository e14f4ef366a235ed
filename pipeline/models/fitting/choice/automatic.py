"""`embedding="auto"`: the first basis, and the width of the second, chosen from the data.

A sample of labelled bags is read once. Each embedding of a short list, with a few widths, is judged
by K-fold errors of kernel ridge regression (`fold_errors`), by folds of whole groups where groups
are known. First all embeddings on one scale of the points, then, where labels depend on some
coordinates alone, all of these coordinates, then the best two on other scales, then
sums of the best kernel and another one, the average with a kernel of ranks, and, if bags differ
much in size, the best embedding with shrinkage by bag size. The model that is linear in means is
chosen if its error is about as small as the least. The choice is a pure function of the data.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from ....core.arrays import Floats
from ....core.errors import BagbasisError, BagError
from ....core.held_out_choice import error_of_best, simplest_within
from ....data.bags.bags import Bags
from ....data.bags.box import Box, column_blocks
from ....data.labelled.splits import PlacedFolds
from ....data.store.sampling import spread_rows
from ....embeddings.base import ChoiceSample, Embedding
from ....embeddings.composed.point_maps import PointMap
from ....embeddings.composed.point_transformer import PointScales
from ....embeddings.composed.union import EmbeddingUnion
from ....embeddings.kernels.by_arrays import by_arrays, is_small
from ....embeddings.random_features.base import Blocks, RandomFeatures
from ....embeddings.random_features.fourier import RandomFourierFeatures
from ....embeddings.random_features.nystroem import NystroemFeatures
from ....embeddings.remembering import remembering
from ....execution.progress import Progress, note
from ....execution.worker_threads import kernel_threads, reusing_memory
from ..fit_parameters import MAX_LANDMARKS
from ..fold_errors import FoldErrors, FoldJudge, median_of, squared_distances
from ..problem import Problem
from .coordinates import stable_sets
from .sample import LabelledSample, read_sample
from .short_list import (
    AS_THEY_ARE,
    LINEAR_IN_MEANS,
    ROOTS,
    STANDARDISED,
    Choosable,
    View,
    linear_list,
    others_of,
    ranks_beside,
    short_list,
    size_beside,
    transformer_of_view,
)

MIN_LABELLED = 4  # fewer bags cannot be split into folds
FIRST_WIDTHS = (0.7, 1.4, 2.8)  # times the median distance
WIDTH_STEPS = (2**-0.5, 2**0.5)  # the best width is tried times these, as long as that helps
_MAX_STEPS = 4
MAX_SETS = 2  # sets of coordinates that are tried alone, the largest first
BEST = 2  # embeddings that are tried on other scales
# standard errors by which the best candidate is worse on a scale that others are not tried on
ERRORS_WORSE = 2.0
N_SUMMED = 3  # embeddings that are added to the best
AVERAGED_BAGS = 1024  # labelled bags; more tell kernels apart
AVERAGED_DIMS = 2048  # coordinates; the ranks of more take as long as all that is tried before
RANKS_SHARE = 0.3  # share of ranks in the average with the best kernel
N_SIZED = 4  # embeddings that are joined to the number of points by one kernel
UNEQUAL_SIZES = 3.0  # ratio of a large to a small bag from which embeddings are shrunk by size
SIZE_QUANTILES = 0.05, 0.95  # a small and a large bag: a few bags do not count
LINE_TOLERANCE = 0.1  # of the least error by which a model that is linear in means may be behind
MAX_DECADES = 1.0  # normal numbers spread over .6, Cauchy's over 1.8
_MAX_POINTS = 2**16  # points by which the decades are measured
# Fraction of a side by which the edges of two boxes may differ that count as one.
BOX_TOLERANCE = 0.1

logger = logging.getLogger(__name__)

Second = RandomFeatures | Literal[False]


@dataclass(frozen=True)
class Choice:
    """Result of ``embedding="auto"``: the chosen embedding and random features.

    Attributes
    ----------
    embedding : Embedding
        Chosen embedding, not fitted.
    random_features : RandomFeatures or False
        Random features with the chosen width, not fitted.
    compared : RandomFeatures or False
        Random features without a width, for the comparison of other embeddings, not fitted.
    n_labelled : int
        Number of labelled bags, see `LabelledSample`.
    folds : PlacedFolds or None
        Folds for the penalty, which do not depend on the order of bags; None: folds by position.
    report : dict
        Candidates that were tried, in types that JSON knows; see `choose_embedding`.
    """

    embedding: Embedding[Any]
    random_features: Second
    compared: Second
    n_labelled: int
    folds: PlacedFolds | None
    report: dict[str, Any]


@dataclass(frozen=True, eq=False)
class JudgedCandidate:
    """A candidate with its errors.

    Attributes
    ----------
    of : Choosable
        Embedding of the candidate.
    width : float or None
        Multiplier of the median distance; None if σ is given, or the candidate is linear.
    errors : FoldErrors
        Errors of the candidate over the folds.
    parts : tuple of arrays (n, m)
        Squared distances of each part, in units of the median of the part. For a linear candidate,
        its centred features alone, (n, s).
    """

    of: Choosable
    width: float | None
    errors: FoldErrors
    parts: tuple[Floats, ...]

    @property
    def error(self) -> float:
        """The mean over all folds."""
        return self.errors.error


def choose_embedding(
    problem: Problem,
    random_features: RandomFeatures | Literal[False] | None,
    progress: Progress | None,
) -> Choice:
    """Choose the embedding, and the width of the random features, by errors over folds.

    If ``random_features`` is None, they are `NystroemFeatures` with all labelled bags as landmarks,
    at most 1,024. Models without random features are compared, too: linear in means, in means and
    covariances, or in extremes. A ``scale_multiplier`` other than 1 and a numeric ``scale`` are
    kept. If ``random_features`` is False, embeddings are compared by ridge regression on them.

    The report has ``n_bags``, ``n_folds``, ``by`` (bags or groups), ``seconds`` of CPU time,
    ``error``, that of the chosen candidate corrected for being the least of several, and
    ``tried``, the candidates with the chosen one first. Each candidate has a ``name``, ``width``,
    ``error`` (mean squared error over the variance of the labels), ``standard_error``, ``behind``
    (difference to the error of the chosen candidate) with ``standard_error_behind``, and ``alpha``
    per bag, and a sum whose kernels differ in weight has their ``weights``. ``coordinates`` names
    the embedded coordinates, if others are left out.

    Raises
    ------
    DataError
        If there are no labelled bags, or no embedding accepts them.
    """
    begun = time.process_time()
    candidates = short_list(problem.source.n_dims)
    if _is_default(random_features):  # others are kept
        candidates += linear_list(problem.source.n_dims)
    sample = read_sample(problem)
    second: Second = random_features if random_features is not None else _second_of(sample)
    if len(sample) < MIN_LABELLED:
        report = {"n_bags": len(sample), "tried": [], "chosen": candidates[0].label}
        first = candidates[0].made()
        return Choice(first, _with_width(second, None), second, sample.n_labelled, None, report)
    note(progress, "choosing the embedding")
    with kernel_threads(), reusing_memory():  # what the search has is free before the block ends
        best, width, report = _run_search(candidates, sample, second, problem.source.box, progress)
    note(progress, f"by {best.label}")
    report["seconds"] = time.process_time() - begun
    chosen = _with_width(False if best.linear else second, width)
    folds = sample.placed_folds
    return Choice(best.made(), chosen, second, sample.n_labelled, folds, report)


def _run_search(
    candidates: Sequence[Choosable],
    sample: LabelledSample,
    second: Second,
    box: Box,
    progress: Progress | None,
) -> tuple[Choosable, float | None, dict[str, Any]]:
    """Return the best candidate, its width, and the report of the search."""
    small = is_small(sample.bags.n_points, sample.bags.n_dims)
    with by_arrays(small), remembering():
        search = _Search(sample, second, box, progress)
        best = search.run(candidates)
    return best.of, best.width, search.report(best)


def _second_of(sample: LabelledSample) -> RandomFeatures:
    """Return the default random features of a fit."""
    if len(sample) < MIN_LABELLED:
        return RandomFourierFeatures()
    return NystroemFeatures(n_features=min(sample.n_labelled, MAX_LANDMARKS))


def _is_default(random_features: Second | None) -> bool:
    """Return whether random features are those of an estimator without any."""
    if random_features is None:
        return True
    default = RandomFourierFeatures()
    return (
        type(random_features) is type(default)
        and random_features.get_params() == default.get_params()
    )


def _with_width(second: Second, width: float | None) -> Second:
    """Return random features with a multiplier of the median distance; None leaves it."""
    if second is False:
        return False
    made: RandomFeatures = clone(second)
    return made if width is None else made.set_params(scale_multiplier=width)


class _Search:
    """The candidates judged so far on one sample."""

    def __init__(
        self, sample: LabelledSample, second: Second, box: Box, progress: Progress | None
    ) -> None:
        self._sample, self._second, self._progress = sample, second, progress
        self._landmarks, self._judge_of = sample.rows.landmarks, FoldJudge(sample.rows)
        self._views: dict[View, tuple[Bags, Box]] = {(AS_THEY_ARE, None): (sample.bags, box)}
        self._points = PointScales(sample.bags)
        self._alike: set[View] = set()
        self._judged: list[JudgedCandidate] = []
        self._beside: list[JudgedCandidate] = []  # not better by enough to be chosen
        self._left_out: dict[str, str] = {}
        self._error: BagbasisError | None = None

    def run(self, candidates: Sequence[Choosable]) -> JudgedCandidate:
        """Judge the candidates and the variants of the best ones; return the best candidate."""
        self._try_each(candidates)
        if not self._judged:
            assert self._error is not None
            raise self._error
        self._select(with_lines=any(candidate.linear for candidate in candidates))
        kernels, lines = self._of_columns(self._best.of.columns)
        self._try_scales((*kernels[:BEST], *lines[:1]))
        if _decades(self._sample.bags) > MAX_DECADES:
            for scale in ROOTS:
                before = self._best
                moved = [judged.of.on(scale) for judged in (*kernels[:BEST], *lines[:1])]
                self._if_better(partial(self._try_each, moved))
                if self._best is before:
                    break
        if kernels:
            self._join()
            if self._sample.n_labelled <= AVERAGED_BAGS:
                self._average()
        if np.ptp(self._sample.bags.sizes) > 0:
            self._if_better(self._add_size)
        if self._sizes_differ:
            self._shrink(self._best)
        self._compare_with_line()
        return self._best

    def _try_scales(self, candidates: Sequence[JudgedCandidate]) -> None:
        """Judge candidates on other scales, except scales on which the first one is worse."""
        worse: set[str] = set()
        for judged in candidates:
            for scale in others_of(judged.of.scale):
                if scale in worse or not self._differs((scale, judged.of.columns)):
                    continue
                moved = self._try(judged.of.on(scale), (judged.width,))
                if moved is None or judged is not candidates[0]:
                    continue
                if not self._is_near(moved, judged, ERRORS_WORSE):
                    worse.add(scale)

    def _select(self, with_lines: bool) -> None:
        """Judge embeddings of the best-ranked coordinates, ever fewer while the error falls."""
        sets = stable_sets(self._sample.bags, self._sample.rows)
        for columns in sets[: -1 - MAX_SETS : -1]:
            candidates = short_list(len(columns))
            candidates += linear_list(len(columns)) if with_lines else []
            before = self._best
            if before.of.columns is not None:  # what is best of more coordinates
                kernels, lines = self._of_columns(before.of.columns)
                names = {judged.of.name for judged in (*kernels[:BEST], *lines[:1])}
                candidates = [candidate for candidate in candidates if candidate.name in names]
            self._if_better(
                partial(self._try_each, [candidate.of(columns) for candidate in candidates])
            )
            if self._best is before and before.of.columns is not None:
                break

    def _try_each(self, candidates: Sequence[Choosable]) -> None:
        for candidate in candidates:
            self._try(self._on_own_scale(candidate))

    def _of_columns(
        self, columns: tuple[int, ...] | None
    ) -> tuple[Sequence[JudgedCandidate], Sequence[JudgedCandidate]]:
        """Return the best kernel and the best line of each name on coordinates, the best first."""
        each = _best_of_each_name(j for j in self._judged if j.of.columns == columns)
        kernels = [judged for judged in each if not judged.of.linear]
        return kernels, [judged for judged in each if judged.of.linear]

    def _if_better(self, step: Callable[[], None]) -> None:
        """Judge more candidates, and keep them if the best is better by over a standard error."""
        before, n = self._best, len(self._judged)
        step()
        if self._best is before:
            return
        losses = np.stack([before.errors.losses, self._best.errors.losses])
        rows = self._sample.rows
        chosen = simplest_within(
            losses,
            weights=rows.weights,
            clusters=rows.clusters,
            n_folds=int(rows.folds.max()) + 1,
        )
        if chosen == 0:
            self._beside += self._judged[n:]
            del self._judged[n:]

    def _add_size(self) -> None:
        """Judge the number of points alone, and joined to the best kernel and linear candidate.

        If it helps neither the best kernel nor the best single embedding, it is not joined to
        other embeddings.
        """
        lines, n = [judged for judged in self._judged if judged.of.linear], len(self._judged)
        if lines:
            line = min(lines, key=lambda judged: judged.error).of
            self._try(line.plus(size_beside(line)))
        if len(lines) == n:
            return
        best = self._best_kernel
        size = self._try(size_beside(best.of), (best.width,))
        if size is None:
            return
        first, *others = _best_of_each_name(filter(_is_single, self._judged[:n]))[:N_SIZED]
        joined = self._sum(best, size), self._try(first.of.times(size.of), (first.width,))
        helps = [j.error < alone.error for j, alone in zip(joined, (best, first), strict=True) if j]
        if not any(helps):
            return
        for judged in others:
            self._try(judged.of.times(size.of), (judged.width,))
        self._refine(min(self._judged[n:], key=lambda judged: judged.error))

    @property
    def _sizes_differ(self) -> bool:
        small, large = np.quantile(self._sample.bags.sizes, SIZE_QUANTILES)
        return bool(large > UNEQUAL_SIZES * small)

    def _shrink(self, best: JudgedCandidate) -> None:
        """Judge the best candidate shrunk by bag size; if it is not behind, also next widths."""
        shrunk = self._try(best.of.shrunk(), (best.width,))
        if shrunk is None or best.of.linear:
            return
        if self._is_near(shrunk, best):
            self._refine(shrunk)

    def _join(self) -> None:
        """Judge sums of the best kernel and other kernels, and widths next to the best width."""
        best = self._best_kernel
        rest = [j for j in self._judged if j.of.name != best.of.name and not j.of.linear]
        for other in _best_of_each_name(rest)[:N_SUMMED]:
            self._sum(best, other)
        self._refine(self._best_kernel)

    def _average(self) -> None:
        """Judge the best kernel averaged with the kernel of ranks, and choose it if not behind.

        Few bags do not tell kernels apart, and the average of two different kernels errs less than
        the one of least error. It is chosen unless it is behind by more than a standard error. Each
        kernel is in units of its penalty, so that the average is about that of the predictions.
        """
        best = self._best
        n_dims = self._sample.bags.n_dims if best.of.columns is None else len(best.of.columns)
        if best.of.linear or self._second is False or n_dims > AVERAGED_DIMS:
            return
        ranks = self._try(ranks_beside(best.of), (best.width,))
        if ranks is None:
            return
        signals = np.array([1 - RANKS_SHARE, RANKS_SHARE]) / (best.errors.alpha, ranks.errors.alpha)
        weight = float(signals[1] / signals.sum())
        parts = *best.parts, *ranks.parts
        near = 1 / float(signals.sum())
        averaged = self._judge(best.of.plus(ranks.of, weight), best.width, parts, near)
        if self._is_near(averaged, best):
            self._put_first(averaged)

    def _compare_with_line(self) -> None:
        """Choose the model that is linear in means, if its error is about as small as the least.

        The best of dozens of candidates is ahead by chance, most so if bags come in few groups. The
        simplest model is chosen if it is behind by at most a standard error, and by little: where a
        few labels are extreme, standard errors are large.
        """
        lines = [judged for judged in self._judged if judged.of.name == LINEAR_IN_MEANS]
        if not lines:
            return
        line = min(lines, key=lambda judged: judged.error)
        best = self._best
        if line.error <= (1 + LINE_TOLERANCE) * best.error and self._is_near(line, best):
            self._put_first(line)

    def _is_near(
        self, judged: JudgedCandidate, best: JudgedCandidate, n_errors: float = 1.0
    ) -> bool:
        """Return whether a candidate is behind the best by at most so many standard errors."""
        gaps = judged.errors.losses - best.errors.losses
        return judged.error - best.error <= n_errors * self._sample.rows.standard_error(gaps)

    def _put_first(self, chosen: JudgedCandidate) -> None:
        """Put candidates of less error beside, so that the chosen one is the best."""
        self._beside += [judged for judged in self._judged if judged.error < chosen.error]
        self._judged = [judged for judged in self._judged if judged.error >= chosen.error]

    @property
    def _best(self) -> JudgedCandidate:
        """Candidate with the least error; among equal candidates the first, the cheapest."""
        return min(self._judged, key=lambda judged: judged.error)

    @property
    def _best_kernel(self) -> JudgedCandidate:
        """Candidate with the least error that is not linear."""
        return min((j for j in self._judged if not j.of.linear), key=lambda judged: judged.error)

    @property
    def _widths(self) -> Sequence[float | None]:
        second = self._second
        if second is False or isinstance(second.scale, str) is False:
            return (None,)
        return FIRST_WIDTHS if second.scale_multiplier == 1 else (second.scale_multiplier,)

    def _on_own_scale(self, candidate: Choosable) -> Choosable:
        return candidate if self._differs(candidate.view) else candidate.on(AS_THEY_ARE)

    def _differs(self, view: View) -> bool:
        """Whether this scale changes the points that an embedding sees.

        Embeddings see points as fractions of a box. Standardising has no effect if it does not
        change the measured box.
        """
        if view[0] != STANDARDISED:
            return True
        try:
            self._put_on(view)
        except BagbasisError:
            return True  # said where an embedding is tried
        return view in self._views

    def _try(
        self, candidate: Choosable, widths: Sequence[float | None] = ()
    ) -> JudgedCandidate | None:
        """Judge an embedding with some widths; None for one that cannot embed these bags."""
        note(self._progress, f"choosing the embedding, {len(self._judged)} tried")
        try:
            rows, blocks = self._embedded(candidate)
        except BagbasisError as error:
            self._error = error
            self._left_out[candidate.label] = str(error)
            return None
        if candidate.linear or self._second is False:
            return self._judge(candidate, None, (_centred(rows),))
        ends = np.cumsum([n for n, _ in blocks])[:-1]
        weights = [weight for _, weight in blocks] or [1.0]
        parts = tuple(
            squared_distances(part, self._landmarks) for part in np.split(rows, ends, axis=1)
        )
        for part, weight in zip(parts, weights, strict=True):
            part /= weight
        scale = self._second.scale
        if isinstance(scale, str):  # as `RandomFeatures.resolve_scale`
            scale = float(np.prod([median_of(part) for part in parts])) ** (1 / len(parts))
        for part in parts:
            part /= scale**2
        return self._over_widths(candidate, parts, widths or self._widths)

    def _sum(self, best: JudgedCandidate, other: JudgedCandidate) -> JudgedCandidate | None:
        """Judge the sum of the kernels of two embeddings, of points on the scale of the best."""
        if self._second is False:
            return None
        if other.of.view != best.of.view:
            moved = other.of.on(best.of.scale).of(best.of.columns)
            same = [j for j in self._judged if j.of == moved]
            on_view = same[0] if same else self._try(moved, (best.width,))
            if on_view is None:
                return None
            other = on_view
        parts = *best.parts, *other.parts
        return self._judge(best.of.plus(other.of), best.width, parts, best.errors.alpha)

    def _refine(self, best: JudgedCandidate) -> None:
        """Judge widths next to the best width."""
        if best.width is None or len(self._widths) == 1:
            return
        for factor in WIDTH_STEPS:
            least, width = best.error, best.width
            for _ in range(_MAX_STEPS):
                width *= factor
                error = self._judge(best.of, width, best.parts).error
                if not error < least:
                    break
                least = error

    def _over_widths(
        self, candidate: Choosable, parts: tuple[Floats, ...], widths: Sequence[float | None]
    ) -> JudgedCandidate:
        """Judge a kernel with the width of the best kernel, and with other widths while it helps.

        A kernel that is far behind with the first width is not judged with other widths.
        """
        kernels = [judged for judged in self._judged if not judged.of.linear]
        rival = min(kernels, key=lambda judged: judged.error) if kernels else None
        at = len(widths) // 2
        if rival is not None and rival.width in widths:
            at = widths.index(rival.width)
        best = self._judge(candidate, widths[at], parts)
        if rival is not None and self._judge_of.is_behind(best.errors.losses, rival.errors):
            return best
        for step in (1, -1):
            following = widths[at + 1 :] if step > 0 else widths[:at][::-1]
            before = best
            for width in following:
                judged = self._judge(candidate, width, parts)
                if not judged.error < best.error:
                    break
                best = judged
            if best is not before:
                break
        return best

    def _judge(
        self,
        candidate: Choosable,
        width: float | None,
        parts: tuple[Floats, ...],
        near: float | None = None,
    ) -> JudgedCandidate:
        """Judge one width; the search for the penalty begins at ``near``, if it is given."""
        features_of = self._judge_of.landmark_features
        if not (candidate.linear or self._second is False):
            kernel = self._judge_of.gaussian(parts, width or 1.0, candidate.weights)
            z = features_of(kernel)
        elif parts[0].shape[1] <= len(self._landmarks):
            z = parts[0]
        else:
            z = features_of(parts[0] @ parts[0][self._landmarks].T)
        rival = self._best.errors if self._judged else None
        near = near or self._penalty_near(candidate, width)
        errors = self._judge_of.errors(z, near, rival)
        self._judged.append(JudgedCandidate(candidate, width, errors, parts))
        return self._judged[-1]

    def _penalty_near(self, candidate: Choosable, width: float | None) -> float | None:
        """Return the penalty at which the search for the best one begins; None if not known.

        It is the penalty of the same embedding with another width, or of the last candidate with
        the nearest width. Wide Gaussians are about 1 − d² / 2 width², so penalties are scaled by
        1 / width².
        """
        judged = [j for j in self._judged if j.of.linear == candidate.linear]
        if not judged:
            return None
        if width is None or judged[-1].of == candidate:
            nearest = judged[-1]
        else:
            nearest = min(
                reversed(judged), key=lambda j: abs(float(np.log(width / (j.width or width))))
            )
        ratio = 1.0 if width is None or nearest.width is None else nearest.width / width
        return nearest.errors.alpha * ratio**2

    def _embedded(self, candidate: Choosable) -> tuple[Floats, Blocks]:
        """Return the rows of the sample's bags, in double, and the blocks of a sum of kernels."""
        self._put_on(candidate.view)
        bags, box = self._views[candidate.view]
        spec = clone(candidate.embedding).resolve(bags.n_dims, box, ChoiceSample.whole(bags))
        rows = np.empty((len(bags), spec.n_features))
        spec.embed(bags, rows)
        bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
        if len(bad):
            raise BagError(int(bad[0]), "its embedding is not finite")
        return rows, spec.blocks

    def _put_on(self, view: View) -> None:
        """Compute the points of a view, unless embeddings would see no difference."""
        if view in self._views or view in self._alike:
            return
        mapped, bags, box = self._points.put(transformer_of_view(view))
        if view[0] == STANDARDISED:
            plain = AS_THEY_ARE, view[1]
            self._put_on(plain)
            if _is_alike(mapped, box, self._views[plain][1]):
                self._alike.add(view)
                return
        self._views[view] = bags, box

    def report(self, best: JudgedCandidate) -> dict[str, Any]:
        """Return the candidates that were tried, the best first."""
        rows, least = self._sample.rows, best.errors.losses
        every = sorted([*self._judged, *self._beside], key=lambda judged: judged.error)
        order = [best, *(judged for judged in every if judged is not best)]
        tried = []
        for judged in order:
            losses, weights = judged.errors.losses, judged.of.weights
            tried.append(
                {
                    "name": judged.of.label,
                    "width": judged.width,
                    **({"weights": weights} if weights else {}),
                    "error": judged.error,
                    "standard_error": rows.standard_error(losses),
                    "behind": judged.error - best.error,
                    "standard_error_behind": rows.standard_error(losses - least),
                    "alpha": judged.errors.alpha,
                }
            )
        every_loss = [judged.errors.losses for judged in self._judged]
        report = {
            "chosen": best.of.label,
            "error": error_of_best(every_loss, weights=rows.weights, clusters=rows.clusters),
            "n_bags": len(self._sample),
            "n_points": self._sample.bags.n_points,
            "n_folds": int(rows.folds.max()) + 1,
            "by": "groups" if self._sample.grouped else "bags",
            "tried": tried,
        }
        if best.of.columns is not None:
            names = self._sample.bags.coordinate_names
            named = [f"x{j}" if names is None else names[j] for j in best.of.columns]
            report["coordinates"] = named
        return {**report, "left_out": self._left_out} if self._left_out else report


def _decades(bags: Bags) -> float:
    """Return the number of decades from the median to the 99 % quantile of the coordinates.

    Only absolute values of nonzero numbers are used. The result is the largest of all coordinates.
    """
    points = spread_rows(bags.points, _MAX_POINTS)
    decades = [0.0]
    for block in column_blocks(points):
        sizes = np.sort(np.abs(block.T), axis=1)
        sizes = sizes[sizes[:, -1] > 0]
        ends = _quantile_of_positive(sizes, 0.99) / _quantile_of_positive(sizes, 0.5)
        decades.append(float(np.log10(ends).max(initial=0.0)))
    return max(decades)


def _quantile_of_positive(rows: Floats, level: float) -> Floats:
    """Return the quantile of the positive numbers of sorted rows, each of which has one."""
    n_zeros = (rows == 0).sum(axis=1)
    place = n_zeros + level * (rows.shape[1] - n_zeros - 1)
    below = np.floor(place).astype(np.int64)
    above = np.ceil(place).astype(np.int64)
    every = np.arange(len(rows))
    low, high = rows[every, below], rows[every, above]
    quantiles: Floats = low + (high - low) * (place - below)
    return quantiles


def _best_of_each_name(judged: Iterable[JudgedCandidate]) -> list[JudgedCandidate]:
    """Return the candidate of each name with the least error, the best first."""
    firsts: dict[str, JudgedCandidate] = {}
    for candidate in sorted(judged, key=lambda candidate: candidate.error):
        firsts.setdefault(candidate.of.name, candidate)
    return [*firsts.values()]


def _is_single(judged: JudgedCandidate) -> bool:
    """Return whether a candidate is one kernel, not a sum of kernels."""
    return not (judged.of.linear or isinstance(judged.of.embedding, EmbeddingUnion))


def _is_alike(mapped: PointMap, measured_box: Box, own_box: Box) -> bool:
    """Return whether standardising leaves the box of the points about the same."""
    step = mapped.steps[-1]
    center, scale = np.array(step.center), np.array(step.scale)
    measured, bounds = np.array(measured_box.bounds), np.array(own_box.bounds)
    sides = bounds[:, 1] - bounds[:, 0]
    moved = np.abs(measured * scale[:, None] + center[:, None] - bounds)
    return bool((moved <= BOX_TOLERANCE * sides[:, None]).all())


def _centred(rows: Floats) -> Floats:
    """Return centred rows of mean square 1."""
    rows = rows - rows.mean(axis=0)
    return np.asarray(rows / (np.sqrt((rows**2).sum(axis=1).mean()) or 1.0))
