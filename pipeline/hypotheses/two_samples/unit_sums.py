"""Sums of features over exchangeable units of two samples, and MMD² of all ways to split them.

Permutations move units. Many rows are joined to few units, so that a permutation costs as little
for a million rows as for a thousand. All units that move have equal numbers of rows (or groups);
the remaining rows stay in their sample. Without a difference, each permutation that leaves them
there is as likely as the split of the data. The test is therefore exact.
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

_ROWS_PER_READ = 4096  # rows of an array that are converted at a time
SPLITS_PER_BLOCK = 1000  # splits whose sums of one scale are in memory: some MiB


@dataclass(frozen=True, eq=False)
class UnitSums:
    """Sums from which MMD² of every split of two samples is computed, per scale.

    The last two units are the rows that stay in the first and in the second sample; there may be
    no such rows.

    Attributes
    ----------
    blocks : shape (K, n_units + 2, w)
        Sums of features over each unit; or sums of kernel values between units, w = n_units + 2.
    is_gram : bool
        Whether ``blocks`` are sums of kernel values.
    sizes : shape (n_units + 2,)
        Number of rows of each unit.
    own : shape (n_units + 2, K)
        Sums of the pairs in ‖sum‖² that are left out: pairs of a row with itself, or of rows of
        the same group, which are alike.
    own_pairs : shape (n_units + 2,)
        Number of the pairs that are left out.
    is_first : shape (n_units,)
        Whether each unit that moves is in the first sample.
    n_independent : int
        Number of rows, or groups, of the smaller sample.
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
        """Sum over the rows of both samples, joined to at most ``most`` units that move."""
        both = samples.first, samples.second
        length, counts = plan_units(both[0].n_units, both[1].n_units, most)
        seeded = [(both[i], counts[i], samples.seed + i) for i in (0, 1)]
        if exact:
            labels = [bucket_labels(sample, length, n, seed) for sample, n, seed in seeded]
            blocks = _grams(both, labels, counts, scales)
            first, second = (_unit_sizes(*part) for part in zip(labels, counts, strict=True))
        else:
            (sums, first), (other_sums, second) = (
                _unit_sums(sample, scales, length, n, seed) for sample, n, seed in seeded
            )
            blocks = _moving_first(sums, other_sums, axis=1)
        sizes = _moving_first(first, second)
        is_first = np.arange(len(sizes) - 2) < len(first) - 1
        n_independent, grouped = min(s.n_units for s in both), both[0].unit == "group"
        return cls.of_blocks(blocks, sizes, is_first, n_independent, grouped, is_gram=exact)

    @classmethod
    def of_blocks(
        cls,
        blocks: Floats,
        sizes: Floats,
        is_first: NDArray[np.bool_],
        n_independent: int,
        grouped: bool = False,
        is_gram: bool = False,
    ) -> UnitSums:
        """Return the sums with the pairs that are left out; features have norm 1."""
        if not grouped:
            own, pairs = np.repeat(sizes[:, None], len(blocks), axis=1), sizes
        elif is_gram:
            own, pairs = np.einsum("kii->ik", blocks), sizes**2
        else:
            own, pairs = np.einsum("kij,kij->ik", blocks, blocks), sizes**2
        return cls(blocks, is_gram, sizes, own, pairs, is_first, n_independent)

    def mmd(self, splits: NDArray[np.bool_]) -> Floats:
        """Return MMD_u² of each split and scale, shape (n_splits, K).

        Parameters
        ----------
        splits : shape (n_splits, n_units)
            Whether each unit that moves is in the first sample.
        """
        n = len(splits)
        V = np.hstack([splits, np.ones((n, 1)), np.zeros((n, 1))])
        m, own, pairs = V @ self.sizes, V @ self.own, V @ self.own_pairs
        rest = self.sizes.sum() - m
        other, other_pairs = self.own.sum(axis=0) - own, self.own_pairs.sum() - pairs
        inner, crossed, whole = self._of_pairs(splits, V) if self.is_gram else self._of_features(V)
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
        """Return the sums of products within the first sample, of it with all units, and of all."""
        inner, crossed = np.empty((2, len(V), len(self.blocks)))
        for k, (block, total) in enumerate(zip(self.blocks, self._totals, strict=True)):
            sums = multiply(V, block)
            inner[:, k], crossed[:, k] = np.einsum("ij,ij->i", sums, sums), sums @ total
        return inner, crossed, np.einsum("ij,ij->i", self._totals, self._totals)

    def _of_pairs(self, splits: NDArray[np.bool_], V: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the sums of kernel values for the same pairs as `_of_features`."""
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
        """Return the sums over each unit's rows of the witness function, weighted by scale.

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
            Variance of Σ weight · MMD² without a difference.
        """
        values, linear = self.witness(weights), 0.0
        for chosen, n in self._sides():
            sums, sizes = values[:-2][chosen], self.sizes[:-2][chosen]
            deviations = sums - sizes * (sums.sum() / sizes.sum())
            per_row = float((deviations**2).sum()) / sizes.sum() * len(sums) / max(1, len(sums) - 1)
            linear += 4 * per_row / n
        return float(max(linear - chance, chance / 4) ** 0.5)

    def _sides(self) -> Iterator[tuple[NDArray[np.bool_], float]]:
        """Yield, for each sample, which units that move are in it, and its number of rows."""
        yield self.is_first, float(self.sizes[:-2][self.is_first].sum() + self.sizes[-2])
        yield ~self.is_first, float(self.sizes[:-2][~self.is_first].sum() + self.sizes[-1])


def plan_units(n_first: int, n_second: int, most: int) -> tuple[int, tuple[int, int]]:
    """Return how many exchangeable units are joined to one, and the number of joined units.

    The smaller sample gets at least ``most`` / 8 joined units if it has as many units. Units of the
    larger sample beyond ``most`` in all stay where they are.
    """
    small = min(n_first, n_second)
    length = max(1, min(-(-(n_first + n_second) // most), small // (most // 8)))
    few = min(small // length, most // 2)
    counts = [min(n // length, most - few) if n > small else few for n in (n_first, n_second)]
    return length, (counts[0], counts[1])


def bucket_labels(sample: Sample, length: int, count: int, seed: int) -> Integers:
    """Return the bucket of each row, from 0 to ``count``; rows of the last bucket stay.

    Units are assigned to buckets at random, because neighbours in sorted data are alike.
    """
    n_units = sample.n_units
    if length == 1 and count == n_units:
        return sample.units
    order = generator_of(seed, "buckets").permutation(n_units)
    of_unit = np.full(n_units, count)
    of_unit[order[: count * length]] = np.arange(count * length) // length
    return of_unit[sample.units]


def choose_rows(samples: TwoSamples, n_rows: int) -> Floats:
    """Draw rows of both samples, independently of the sample to which a row belongs."""
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
    """Return sums (K, n + 1, 2 R) and sizes (n + 1,) of units; the rows of the last one stay."""
    if sample.unit != "group" and isinstance(sample.data, EmbeddedRows):
        return _stored_sums(sample, scales, length, count)
    labels = bucket_labels(sample, length, count, seed)
    sums = np.zeros((len(scales.kernels), count + 1, 2 * scales.n_frequencies))
    for start in range(0, len(sample), _ROWS_PER_READ):
        part = slice(start, start + _ROWS_PER_READ)
        scales.add(sample.rows[part], labels[part], sums)
    return sums, _unit_sizes(labels, count)


def _unit_sizes(labels: Integers, count: int) -> Floats:
    """Return the number of rows of each bucket of `bucket_labels`, shape (count + 1,)."""
    return np.bincount(labels, minlength=count + 1).astype(np.float64)


def _moving_first(first: Floats, second: Floats, axis: int = 0) -> Floats:
    """Join the units of two samples, with the last unit of each, which stays, at the end."""
    (a, a_stays), (b, b_stays) = (np.split(part, [-1], axis=axis) for part in (first, second))
    return np.concatenate([a, b, a_stays, b_stays], axis=axis)


def _stored_sums(sample: Sample, scales: Scales, length: int, count: int) -> tuple[Floats, Floats]:
    """Return `_unit_sums` of a store's bags in one pass.

    A bucket has neighbouring bags; buckets are evenly spread if some bags stay.
    """
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
