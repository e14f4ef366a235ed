"""Sums of features over exchangeable units of two samples, and MMD² of all ways to split them.

Permutations move units, and many rows are joined to few units: so a permutation costs as little for
a million rows as for a thousand. Units that move have as many rows (or groups) each; what is left
over stays in its sample. Each permutation that leaves it there is as likely as the data's own split
where there is no difference, and so the test stays exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Floats, Integers
from ...execution.pool import run_parts
from ...execution.products import multiply
from ..kernels.scales import MAX_UNITS, Scales
from ..kernels.split_kernels import sum_over_sets
from ..nulls.draws import generator_of
from ..nulls.permutation import split_blocks
from ..samples.row_sources import EmbeddedRows, bucket_of
from ..samples.samples import Sample
from .comparison import TwoSamples
from .unit_grams import unit_grams

_ROWS_PER_READ = 4096  # of an array, converted at a time
SPLITS_PER_BLOCK = 1000  # whose sums of one scale are in memory: some MiB


@dataclass(frozen=True, eq=False)
class UnitSums:
    """What the splits of two samples are computed of, per scale.

    The last two units are the rows of either sample that stay in it; they may be none.

    Attributes
    ----------
    blocks : shape (K, n_units + 2, w)
        Sums of features over each unit; or sums of kernel values between units, w = n_units + 2.
    is_gram : bool
        Which of the two.
    sizes : shape (n_units + 2,)
        Rows of each unit.
    own : shape (n_units + 2, K)
        Sums of the pairs in ‖sum‖² that are left out: those of a row with itself, or of a group
        with itself, whose rows are alike.
    own_pairs : shape (n_units + 2,)
        Their number.
    is_first : shape (n_units,)
        Which of the units that move are in the first set.
    n_independent : int
        Rows, or groups, of the smaller sample.
    """

    blocks: Floats
    is_gram: bool
    sizes: Floats
    own: Floats
    own_pairs: Floats
    is_first: NDArray[np.bool_]
    n_independent: int

    @classmethod
    def of(
        cls, samples: TwoSamples, scales: Scales, exact: bool, most: int = MAX_UNITS
    ) -> UnitSums:
        """Sum over the rows of both samples, joined to at most so many units."""
        both = samples.first, samples.second
        grouped = samples.first.unit == "group"
        length, counts = plan_units(both[0].n_units, both[1].n_units, most)
        if exact:
            labels = [bucket_labels(s, length, n, samples.seed + i)
                      for i, (s, n) in enumerate(zip(both, counts, strict=True))]  # fmt: skip
            return cls.of_gram(_grams(both, labels, counts, scales), both, labels, counts, grouped)
        parts = [
            _unit_sums(sample, scales, length, n, samples.seed + i)
            for i, (sample, n) in enumerate(zip(both, counts, strict=True))
        ]
        (first, sizes), (second, other_sizes) = parts
        blocks = np.concatenate(
            [first[:, :-1], second[:, :-1], first[:, -1:], second[:, -1:]], axis=1
        )
        sizes = np.concatenate([sizes[:-1], other_sizes[:-1], sizes[-1:], other_sizes[-1:]])
        is_first = np.arange(len(sizes) - 2) < first.shape[1] - 1
        return cls.of_blocks(blocks, sizes, is_first, min(s.n_units for s in both), grouped)

    @classmethod
    def of_blocks(
        cls,
        blocks: Floats,
        sizes: Floats,
        is_first: NDArray[np.bool_],
        n_independent: int,
        grouped: bool = False,
    ) -> UnitSums:
        """Make them of sums of features of norm 1, and the rows of each unit."""
        if grouped:
            own = np.einsum("kij,kij->ik", blocks, blocks)
            pairs = sizes**2
        else:
            own, pairs = np.repeat(sizes[:, None], len(blocks), axis=1), sizes
        return cls(blocks, False, sizes, own, pairs, is_first, n_independent)

    @classmethod
    def of_gram(
        cls,
        grams: Floats,
        both: tuple[Sample, Sample],
        labels: list[Integers],
        counts: tuple[int, int],
        grouped: bool,
    ) -> UnitSums:
        """Make them of sums of kernel values between units."""
        n, m = counts
        of_first, of_second = (
            np.bincount(of, minlength=k + 1) for of, k in zip(labels, counts, strict=True)
        )
        sizes = np.concatenate(
            [of_first[:-1], of_second[:-1], of_first[-1:], of_second[-1:]]
        ).astype(np.float64)
        if grouped:
            own, pairs = np.einsum("kii->ik", grams), sizes**2
        else:
            own, pairs = np.repeat(sizes[:, None], len(grams), axis=1), sizes
        is_first = np.arange(n + m) < n
        return cls(grams, True, sizes, own, pairs, is_first, min(s.n_units for s in both))

    def mmd(self, splits: NDArray[np.bool_]) -> Floats:
        """Return MMD_u² of each split and scale, shape (n_splits, K).

        Parameters
        ----------
        splits : shape (n_splits, n_units)
            Which of the units that move are in the first sample.
        """
        n = len(splits)
        V = np.hstack([splits, np.ones((n, 1)), np.zeros((n, 1))])
        m, own, pairs = V @ self.sizes, V @ self.own, V @ self.own_pairs
        rest = self.sizes.sum() - m
        other, other_pairs = self.own.sum(axis=0) - own, self.own_pairs.sum() - pairs
        parts = self._of_pairs(splits, V) if self.is_gram else self._of_features(V)
        inner, crossed, whole = parts
        second = whole - 2 * crossed + inner
        squares: Floats = (
            (inner - own) / (m**2 - pairs)[:, None]
            + (second - other) / (rest**2 - other_pairs)[:, None]
            - 2 * (crossed - inner) / (m * rest)[:, None]
        )
        return squares

    @cached_property
    def _totals(self) -> Floats:
        """Sums over all units, shape (K, w)."""
        totals: Floats = self.blocks.sum(axis=1)
        return totals

    def _of_features(self, V: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the sums of products within the first sample, with all units, and of all."""
        inner, crossed = np.empty((2, len(V), len(self.blocks)))
        for k, (block, total) in enumerate(zip(self.blocks, self._totals, strict=True)):
            sums = multiply(V, block)
            inner[:, k], crossed[:, k] = np.einsum("ij,ij->i", sums, sums), sums @ total
        return inner, crossed, np.einsum("ij,ij->i", self._totals, self._totals)

    def _of_pairs(self, splits: NDArray[np.bool_], V: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the same of kernel values; units that move are added, never multiplied."""
        bits = np.ascontiguousarray(np.packbits(splits, axis=1, bitorder="little").T)
        pair_sums, sets = np.empty((len(self.blocks), len(splits))), splits.astype(np.float64)

        def sum_block(k: int) -> None:
            sum_over_sets(self.blocks[k, :-2, :-2], sets, bits, pair_sums[k])

        run_parts(sum_block, len(pair_sums))
        stays = self.blocks[:, -2]
        beside = multiply(sets, np.ascontiguousarray(2 * stays[:, :-2].T))
        crossed = multiply(V, np.ascontiguousarray(self._totals.T))
        return pair_sums.T + beside + stays[:, -2], crossed, self._totals.sum(axis=1)

    def observed(self) -> Floats:
        """Return MMD_u² of the samples, shape (K,)."""
        observed: Floats = self.mmd(self.is_first[None])[0]
        return observed

    def permuted(self, n_permutations: int, seed: int) -> Iterator[Floats]:
        """Yield MMD_u² of random splits in blocks, shapes (m, K)."""
        width = max(len(self.is_first), 2**24 // SPLITS_PER_BLOCK)
        for splits in split_blocks(self.is_first, n_permutations, seed, width):
            yield self.mmd(splits)

    def spread_within(self) -> Floats:
        """Return E‖φ(x) − μ‖² within the samples of each scale, pooled, shape (K,)."""
        V = np.zeros((2, len(self.sizes)))
        V[0, :-2], V[1, :-2] = self.is_first, ~self.is_first
        V[0, -2] = V[1, -1] = 1.0
        means = []
        for block in self.blocks:
            sums = V @ block
            norms = ((sums * V) if self.is_gram else sums**2).sum(axis=1)
            means.append((norms - V @ self.sizes) / (V @ self.sizes - 1))
        spread: Floats = 1 - np.array(means).sum(axis=1) / self.sizes.sum()
        return spread

    def witness(self, weights: Floats) -> Floats:
        """Sum over each unit's rows the difference of the mean features, weighted by scale.

        Returns
        -------
        shape (n_units + 2,)
        """
        first = np.append(self.is_first, [True, False])
        share = first / (self.sizes @ first) - ~first / (self.sizes @ ~first)
        out = np.zeros(len(self.sizes))
        for weight, block in zip(weights, self.blocks, strict=True):
            out += weight * (block @ (share if self.is_gram else share @ block))
        return out

    def standard_error(self, weights: Floats, chance: float) -> float:
        """Return the standard error of Σ weight · MMD²; see `TwoSamples.standard_error`.

        Parameters
        ----------
        weights : shape (K,)
        chance : float
            Its variance without a difference.
        """
        values, linear = self.witness(weights), 0.0
        for chosen, n in self._sides():
            sums, sizes = values[:-2][chosen], self.sizes[:-2][chosen]
            deviations = sums - sizes * (sums.sum() / sizes.sum())
            per_row = float((deviations**2).sum()) / sizes.sum() * len(sums) / max(1, len(sums) - 1)
            linear += 4 * per_row / n
        return float(max(linear - chance, chance / 4) ** 0.5)

    def _sides(self) -> Iterator[tuple[NDArray[np.bool_], float]]:
        """Yield which units that move are of a sample, and all its rows."""
        yield self.is_first, float(self.sizes[:-2][self.is_first].sum() + self.sizes[-2])
        yield ~self.is_first, float(self.sizes[:-2][~self.is_first].sum() + self.sizes[-1])


def plan_units(n_first: int, n_second: int, most: int) -> tuple[int, tuple[int, int]]:
    """Return how many exchangeable units are joined to one, and how many there are per sample.

    Those of the smaller sample are at least an eighth of the most, if it has as many; of the
    larger one, units beyond the most that there may be stay where they are.
    """
    small = min(n_first, n_second)
    length = max(1, min(-(-(n_first + n_second) // most), small // (most // 8)))
    few = min(small // length, most // 2)
    counts = [min(n // length, most - few) if n > small else few for n in (n_first, n_second)]
    return length, (counts[0], counts[1])


def bucket_labels(sample: Sample, length: int, count: int, seed: int) -> Integers:
    """Return the bucket of each row, from 0 to ``count``, the last being those that stay.

    Units are dealt to buckets at random: neighbours of sorted data would be alike.
    """
    n_units = sample.n_units
    if length == 1 and count == n_units:
        return sample.units
    order = generator_of(seed, "buckets").permutation(n_units)
    of_unit = np.full(n_units, count)
    of_unit[order[: count * length]] = np.arange(count * length) // length
    return of_unit[sample.units]


def choose_rows(samples: TwoSamples, n_rows: int) -> Floats:
    """Draw rows of both samples without regard to which sample they are of."""
    both = samples.first, samples.second
    generator = generator_of(samples.seed, "scales")
    if any(isinstance(sample.data, EmbeddedRows) for sample in both):
        rows = samples.sampled_rows
        if len(rows) <= n_rows:
            return rows
        return rows[np.sort(generator.choice(len(rows), n_rows, replace=False))]
    m, n = len(both[0]), len(both[0]) + len(both[1])
    if n <= n_rows:
        return samples.rows
    drawn = np.sort(generator.choice(n, n_rows, replace=False))
    return np.concatenate([both[0].rows[drawn[drawn < m]], both[1].rows[drawn[drawn >= m] - m]])


def _unit_sums(
    sample: Sample, scales: Scales, length: int, count: int, seed: int
) -> tuple[Floats, Floats]:
    """Return sums (K, n + 1, 2 R) and sizes (n + 1,) of units; the last one is of what is left."""
    if sample.unit != "group" and isinstance(sample.data, EmbeddedRows):
        return _stored_sums(sample, scales, length, count)
    labels = bucket_labels(sample, length, count, seed)
    sums = np.zeros((len(scales.kernels), count + 1, 2 * scales.n_frequencies))
    for start in range(0, len(sample), _ROWS_PER_READ):
        part = slice(start, start + _ROWS_PER_READ)
        scales.add(sample.rows[part], labels[part], sums)
    return sums, np.bincount(labels, minlength=count + 1).astype(np.float64)


def _stored_sums(sample: Sample, scales: Scales, length: int, count: int) -> tuple[Floats, Floats]:
    """`_unit_sums` of bags by one pass; buckets are neighbours, evenly spread if some bags stay."""
    data = sample.data
    assert isinstance(data, EmbeddedRows)
    stride = max(length, data.bags.n_bags // count)
    places = sample.positions
    bucket_sums = data.bucket_sums(scales, length, stride)
    places = bucket_of(places, length, stride)
    sizes = np.bincount(places, minlength=len(bucket_sums)).astype(np.float64)
    moves = (sizes > 0) & (np.arange(len(bucket_sums)) < (count if stride == length else 2 * count))
    if stride > length:
        moves &= np.arange(len(bucket_sums)) % 2 == 0
    sums = np.vstack([bucket_sums[moves], bucket_sums[~moves].sum(axis=0)])
    shape = len(sums), len(scales.kernels), -1
    return (
        np.ascontiguousarray(sums.reshape(shape).transpose(1, 0, 2)),
        np.append(sizes[moves], sizes[~moves].sum()),
    )


def _grams(
    both: tuple[Sample, Sample], labels: list[Integers], counts: tuple[int, int], scales: Scales
) -> Floats:
    """Return the sums of kernel values between units, shape (K, n_units + 2, n_units + 2)."""
    n, m = counts
    units = np.concatenate([
        np.where(labels[0] < n, labels[0], n + m),
        np.where(labels[1] < m, n + labels[1], n + m + 1),
    ])  # fmt: skip
    rows = np.concatenate([sample.rows for sample in both])
    return unit_grams(rows, units, n + m + 2, scales.kernels)
