"""Ridge regression without ZᵀZ: every step of conjugate gradients is one pass over the bags.

A first pass computes the moments and a sample of the embeddings, for the preconditioner. Each later
pass sends directions out and brings M times them back, one vector per target (and penalty). The
penalties of a path are solved together, in groups of as many columns as fit. The next group, of
smaller penalties, starts from the solution of the one before. Memory is O(D (rank + columns)) and a
block of rows.
"""

from __future__ import annotations

import logging
import operator
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Floats
from ...core.errors import ParameterError, warn
from ...data.labelled.splits import Split
from ...execution.affinity import WorkerAffinity
from ...execution.checkpoint_stores import StateCheckpoints
from ...execution.passes import FEWER_FEATURES, Collector, Reduction, check_memory, run_pass
from ...execution.progress import Progress, note
from ...execution.worker_threads import kernel_threads
from ..ridge.conjugate_gradients import MAX_CG_STEPS, ConjugateGradients, Iterate, Preconditioner
from ..ridge.moments import RidgeMoments
from ..ridge.penalties import Path, Penalties
from ..ridge.ridge import RidgeSolution, as_solution, check_held_out, check_rows, relative_error
from ..ridge.summary import Summary
from .accumulate import FitStatistics
from .feature_rows import FeatureRows, Keeping, discard_everywhere
from .plan import FitPlan
from .product_passes import FirstPass, FirstSums, Product, ProductSums, block_rows, product_cost

MAX_RANK = 2048  # rows of the preconditioner: factoring them takes a tenth of a second
RANK_BYTES = 2**30  # these rows in double
COLUMN_BYTES = 2**27  # coefficients of a group of penalties
MIN_IMPROVEMENT = 1e-3  # a score that falls by less than this in a step cannot become the best
_SAMPLE_SEED = 3  # of the hash that samples rows

_R = TypeVar("_R")

logger = logging.getLogger(__name__)


def default_rank(n_bags: int, n_features: int) -> int:
    """Return the default number of rows of a preconditioner."""
    return max(1, min(n_bags, n_features // 4, MAX_RANK, RANK_BYTES // (8 * n_features)))


@dataclass
class MatrixFreeFit:
    """A fit by conjugate gradients.

    Parameters
    ----------
    plan : FitPlan
        The bags, features, outcome, validation bags and precision.
    penalties : callable
        From what is known of the rows to those to try; one alone where nothing is chosen.
    rank : int, optional
        Rows of the preconditioner; by default `default_rank`.
    progress : Progress, optional
        Progress reporter of each pass.
    checkpoint_store : StateCheckpoints, optional
    """

    plan: FitPlan
    penalties: Callable[[Summary], Penalties]
    rank: int | None
    progress: Progress | None = None
    checkpoint_store: StateCheckpoints | None = None
    n_passes: int = 0
    _token: str = field(default_factory=lambda: uuid.uuid4().hex)
    _affinity: WorkerAffinity = field(default_factory=WorkerAffinity)
    _saved: float = field(default_factory=time.perf_counter)

    def run(self) -> tuple[RidgeSolution, FitStatistics]:
        """Return the solution, and the moments and counts of the rows.

        Raises
        ------
        ParameterError
            If the fit does not fit in memory, or the rank is above the number of labelled bags.
        DataError
            If no bag has a label, or features are not finite.
        """
        try:
            self._check_memory()
            first = self._first()
            statistics = _in_one_unit(first.statistics)
            return self._solve(statistics, first.sample), statistics
        finally:
            discard_everywhere(self._token, self.plan.bags.in_memory)

    # ------------------------------------------------------------------ the solution

    def _solve(self, statistics: FitStatistics, sample: NDArray[Any]) -> RidgeSolution:
        train, held = cast(RidgeMoments, statistics.train), statistics.validation
        everything = train if held is None else train + cast(RidgeMoments, held)
        check_rows(cast(Summary, train))
        if self.rank is not None and self.rank > train.n:
            raise ParameterError(f"rank is {self.rank}, and {train.n} bags are fitted: lower it")
        penalties = self.penalties(cast(Summary, train)).values
        with kernel_threads():
            self._precondition = self._preconditioner(train, sample, float(penalties.min()))
        path, start, best = None, None, float(penalties[0])
        if held is not None:
            check_held_out(held)
            path, start = self._path(train, cast(RidgeMoments, held), np.sort(penalties))
            best = path.best
        final = self._gradients(everything, None, np.array([best]))
        now = self._steps(final, "solution", start)
        return as_solution(cast(Summary, everything), now.psi, best, path)

    def _path(
        self, train: RidgeMoments, held: RidgeMoments, penalties: Floats
    ) -> tuple[Path, Floats]:
        """Score penalties on held-out rows; return the scores and the best one's coefficients."""
        k = train.n_targets
        most = max(1, COLUMN_BYTES // (8 * train.n_features * k))
        scores: list[Floats] = []
        best: tuple[float, Floats] | None = None
        psi = None
        for stop in range(len(penalties), 0, -most):
            group = penalties[max(0, stop - most) : stop]
            gradients = self._gradients(train, held, group)
            start = None if psi is None else np.tile(psi[:, :k], (1, len(group)))
            name = f"path-{stop}"
            now = self._steps(gradients, name, start)
            errors, psi = _by_penalty(now.scores[0], k), now.psi
            scores.insert(0, errors)
            i = int(np.argmin(errors))
            if best is None or errors[i] < best[0]:
                best = float(errors[i]), psi[:, i * k : (i + 1) * k].copy()
        assert best is not None
        return Path(penalties, np.concatenate(scores)), best[1]

    def _steps(self, gradients: ConjugateGradients, name: str, start: Floats | None) -> Iterate:
        """Step until no penalty is active, starting from stored steps if there are any."""
        k = self.plan.outcome.n_targets
        stored = self.checkpoint_store.load(name) if self.checkpoint_store else None
        now = gradients.begin(start) if stored is None else Iterate.of(stored)
        while (active := _active(now, k)).any() and now.step < MAX_CG_STEPS:
            now = gradients.step(now, np.repeat(active, k))
            text = f"step {now.step}, objective lower by {_largest(now):.1g}"
            if np.isfinite(now.scores[0]).all():
                text += f", error held out {now.scores[0].min():.5g}"
            logger.info("%s: %s", name, text)
            note(self.progress, text)
            if (
                self.checkpoint_store
                and time.perf_counter() - self._saved >= self.checkpoint_store.seconds
            ):
                self._keep(name, now)
        if now.step >= MAX_CG_STEPS:
            warn(
                f"conjugate gradients stopped after {now.step} steps, the last of which lowered "
                f"the objective by {_largest(now):.1g}: take a larger penalty or rank, or "
                "solver='cholesky'"
            )
        if self.checkpoint_store and now.step:
            self._keep(name, now)
        return now

    def _keep(self, name: str, now: Iterate) -> None:
        assert self.checkpoint_store is not None
        self.checkpoint_store.save(name, now.arrays())
        self._saved = time.perf_counter()

    def _preconditioner(
        self, train: RidgeMoments, sample: NDArray[Any], alpha: float
    ) -> Preconditioner:
        z = np.empty((len(sample), train.n_features), self.plan.precision)
        for start in range(0, len(z), self._block_rows):
            block = slice(start, start + self._block_rows)
            self.plan.features.features_of(sample[block], z[block])
        rows = z.astype(np.float64)
        rows -= train.sum_z / train.weight
        return Preconditioner(rows, train.weight, alpha)

    def _gradients(
        self, fitted: RidgeMoments, held: RidgeMoments | None, penalties: Floats
    ) -> ConjugateGradients:
        """Return the problem of all penalties, one after the other, for all targets each."""
        tiles = (1, len(penalties))
        return ConjugateGradients(
            partial(self._multiply, fitted, held),
            self._precondition,
            np.repeat(penalties, fitted.n_targets),
            np.tile(fitted.centred_cross(), tiles),
            np.tile(fitted.centred_yy(), tiles[1]),
        )

    # ------------------------------------------------------------------ passes

    @cached_property
    def rows(self) -> FeatureRows:
        """The bags as rows, kept as far as there is memory."""
        plan = self.plan
        itemsize = np.dtype(plan.precision).itemsize
        narrow = itemsize * plan.features.n_embedded + 8 * plan.outcome.n_targets
        wide = narrow + itemsize * plan.features.n_features
        here = plan.bags.in_memory
        keeping = Keeping.of(self._token, plan.bags.n_bags, wide, narrow, here)
        return FeatureRows.of(plan, keeping)

    @property
    def _block_rows(self) -> int:
        return block_rows(self.plan.features.n_features, self.plan.precision)

    def _first(self) -> FirstPass:
        """Return the moments and the sample, kept ones if there are any."""
        stored = self.checkpoint_store.load("moments") if self.checkpoint_store else None
        if stored is not None:
            return FirstPass.of(stored)
        n, rank = self.plan.bags.n_bags, self._rank
        sampled = Split(min(1.0, (1.25 * rank + 32) / max(1, n)), _SAMPLE_SEED)
        first = self._run(partial(FirstSums, self.rows, sampled), rank, self.plan.outcome.n_targets)
        first = first.thinned(rank)
        if self.checkpoint_store:
            self.checkpoint_store.save("moments", first.arrays())
        return first

    def _multiply(
        self, fitted: RidgeMoments, held: RidgeMoments | None, directions: Floats, psi: Floats
    ) -> tuple[Floats, Floats | None]:
        mean = fitted.sum_z / fitted.weight
        k, columns = fitted.n_targets, directions.shape[1]
        by = self.plan.features.completion
        shift = mean @ directions
        product = Product(by.coefficients(directions).astype(self.plan.precision), shift)
        if held is not None:
            constants = np.tile(fitted.sum_y / fitted.weight, columns // k) - mean @ psi
            product = product.judging(by.coefficients(psi), constants, held.exponents)
        takes_all = held is None
        passed = self._run(partial(ProductSums, self.rows, product, takes_all), 0, columns)
        products: Floats = by.sums(passed.products) - np.outer(mean, passed.sums)
        if held is None:
            return products, None
        squares = (passed.squares / held.weight).reshape(-1, k)
        units = self.plan.outcome.units()
        scores = [relative_error(cast(Summary, held), errors, units) for errors in squares]
        return products, np.concatenate(scores)

    def _run(self, collector: Callable[[], Collector[Any, _R]], rank: int, columns: int) -> _R:
        """Run a pass over the rows; each task runs where its rows are kept."""
        cost = product_cost(self.plan, rank, columns)
        reduction: Reduction[_R] = Reduction(
            collector, operator.add, cost, self._block_rows, "first" if rank else "product"
        )
        ranges = self.plan.ranges
        preferred_workers = [] if self.plan.bags.in_memory else self._affinity(len(ranges))
        self.n_passes += 1
        return run_pass(
            self.rows,
            reduction,
            ranges=ranges,
            progress=self.progress,
            preferred_workers=preferred_workers,
        )

    @property
    def _rank(self) -> int:
        n = self.plan.bags.n_bags
        if self.rank is not None and self.rank > n:
            raise ParameterError(f"rank is {self.rank}, and there are {n} bags: lower it")
        return self.rank or default_rank(n, self.plan.features.n_features)

    def _check_memory(self) -> None:
        d = self.plan.features.n_features
        needed = cg_bytes(d, self._rank, self.plan.outcome.n_targets)
        check_memory(f"conjugate gradients for {d:,} features", needed, FEWER_FEATURES)


def _in_one_unit(statistics: FitStatistics) -> FitStatistics:
    exponents = statistics.largest_exponents
    train, held = statistics.train.in_units(exponents), statistics.validation
    held = None if held is None else held.in_units(exponents)
    return replace(statistics, train=train, validation=held)


def cg_bytes(n_features: int, rank: int, n_targets: int) -> int:
    """Return what conjugate gradients need in addition to the rows that are kept."""
    columns = max(n_targets, COLUMN_BYTES // (8 * n_features))
    return 8 * (3 * rank * n_features // 2 + 3 * rank**2 + 8 * n_features * columns)


def _by_penalty(scores: Floats, n_targets: int) -> Floats:
    means: Floats = scores.reshape(-1, n_targets).mean(axis=1)
    return means


def _active(now: Iterate, n_targets: int) -> NDArray[np.bool_]:
    """Return which penalties to go on with, shape (c,).

    Those that have converged stop, and so do those that are worse than another and hardly improve.
    """
    going: NDArray[np.bool_] = ~np.all(now.converged.reshape(-1, n_targets), axis=1)
    if np.isfinite(now.scores).all():
        score, before = (_by_penalty(scores, n_targets) for scores in now.scores)
        going &= (score <= score.min()) | (before - score >= MIN_IMPROVEMENT * score)
    return going


def _largest(now: Iterate) -> float:
    """Return the largest relative fall of an objective in the last step."""
    positive = now.objective > 0
    falls = np.divide(now.falls[0], now.objective, out=np.zeros_like(now.objective), where=positive)
    return float(falls.max())
