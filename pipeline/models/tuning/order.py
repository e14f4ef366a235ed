"""The order in which tuning sees the bags, and how many of them each rung takes.

Pure functions of numbers: the same on every machine, so that a killed tune can go on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ...core.arrays import Integers
from ...core.errors import ParameterError
from ...data.store.plan import Range

RUNS_PER_BLOCK = 4  # a block thus mixes several places of the store
RUNS_PER_RUNG = 64  # a rung thus represents the whole store
MIN_RUN, MAX_RUN = 8, 1024  # shorter ones spend their time on opening chunks
MAX_BLOCK_BYTES = 2**26  # of a block's coefficients and targets, which a task holds
FIRST_RUNG_BAGS = 2000  # size of the first rung: a tenth of it has to tell candidates apart


@dataclass(frozen=True)
class RunOrder:
    """All bags in a fixed random order of runs of consecutive ones.

    Runs are read from few chunks of the store; single bags would need a chunk each. Their random
    order makes a prefix representative even if the store is sorted. ``RUNS_PER_BLOCK`` runs are a
    block, which is computed, cached and read at a time. A shorter run at the end comes last.
    """

    n_bags: int
    run_length: int
    seed: int

    @property
    def block_length(self) -> int:
        """Number of bags in a block; the last block may have fewer."""
        return RUNS_PER_BLOCK * self.run_length

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return -(-self.n_bags // self.block_length)

    def bags_before(self, block: int) -> int:
        """Return the number of bags in the blocks before this one."""
        return min(self.n_bags, block * self.block_length)

    def runs(self, block: int) -> list[Range]:
        """Return the bags of a block, as ranges of the store."""
        order = _permutation(self.n_bags // self.run_length, self.seed)
        first, stop = block * RUNS_PER_BLOCK, (block + 1) * RUNS_PER_BLOCK
        starts = [int(run) * self.run_length for run in order[first:stop]]
        if block == self.n_blocks - 1 and self.n_bags % self.run_length:
            starts.append(self.n_bags - self.n_bags % self.run_length)
        return [(start, min(start + self.run_length, self.n_bags)) for start in starts]


@dataclass(frozen=True, kw_only=True)
class Rung:
    """A comparison of candidates on the first ``n_blocks`` blocks, which have ``n_bags`` bags.

    See Also
    --------
    Search : The candidates to compare.
    Tuning : Result of `tune`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import DoubleBasisRegressor, MomentsEmbedding, tune
    >>> from bagbasis.models import Search
    >>> search = Search([MomentsEmbedding()], heads=['ridge'])
    >>> rung = tune(DoubleBasisRegressor(), X, y, search=search).rungs[0]
    >>> rung.n_candidates, rung.n_bags
    (5, 80)
    """

    n_blocks: int
    n_bags: int
    n_candidates: int
    n_kept: int


def run_order(n_bags: int, first_bags: int, row_bytes: int, seed: int) -> RunOrder:
    """Choose the longest runs for which the first rung has enough runs, and a block fits in memory.

    Parameters
    ----------
    first_bags : int
        Number of bags in the first rung.
    row_bytes : int
        Bytes that the longest embedding keeps for a bag.
    """
    fits = MAX_BLOCK_BYTES // (RUNS_PER_BLOCK * row_bytes)
    wanted = min(max(MIN_RUN, first_bags // RUNS_PER_RUNG), MAX_RUN)
    return RunOrder(n_bags, max(1, min(wanted, fits, n_bags)), seed)


def first_rung(n_bags: int, n_candidates: int, eta: int, first_bags: int | None) -> int:
    """Return the number of bags in the first rung: as given, or such that one candidate is left.

    Raises
    ------
    ParameterError
        If the given number is larger than the number of bags.
    """
    if first_bags is not None:
        if first_bags > n_bags:
            raise ParameterError(f"first_bags is {first_bags}; there are {n_bags} bags")
        return first_bags
    share = 1
    while share < n_candidates:
        share *= eta
    return min(n_bags, max(FIRST_RUNG_BAGS, -(-n_bags // share)))


def plan_rungs(order: RunOrder, first_bags: int, n_candidates: int, eta: int) -> list[Rung]:
    """Return rungs of ``first_bags`` bags, then ``eta`` times as many; each keeps the best 1/eta.

    The last rung leaves one candidate, or has all bags.
    """
    rungs: list[Rung] = []
    wanted, n_left = first_bags, n_candidates
    while not rungs or n_left > 1:
        n_blocks = min(order.n_blocks, -(-wanted // order.block_length))
        n_kept = 1 if n_blocks == order.n_blocks else -(-n_left // eta)
        rungs.append(
            Rung(
                n_blocks=n_blocks,
                n_bags=order.bags_before(n_blocks),
                n_candidates=n_left,
                n_kept=n_kept,
            )
        )
        wanted, n_left = rungs[-1].n_bags * eta, n_kept
    return rungs


@lru_cache(maxsize=4)
def _permutation(n_runs: int, seed: int) -> Integers:
    """Return a permutation from a counter-based generator, equal for all versions of numpy."""
    bits = np.random.Philox(key=np.array([seed, 0], np.uint64)).random_raw(n_runs)
    return np.argsort(bits, kind="stable")
