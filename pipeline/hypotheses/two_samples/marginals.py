"""Differences of each coordinate between two samples, by polynomials of its ranks.

The ranks of the points in a coordinate are scaled to [−1, 1]. Legendre polynomials of uniform ranks
are uncorrelated. Their means differ between two samples if the samples differ in location (degree
1), spread (2), skewness (3), or tails and modes (4). This is a smooth test in the sense of Neyman
(1937) for each coordinate. It needs no bandwidth and does not depend on units of measurement.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.polynomial.legendre import legvander

from ...core.arrays import Floats
from ...data.labelled.labelled import ROWS_PER_BLOCK
from ...execution.pool import run_parts
from ..kernels.scales import MAX_UNITS
from ..nulls.permutation import split_blocks
from .comparison import TwoSamples
from .unit_sums import bucket_labels, choose_rows, plan_units

ASPECTS = ("location", "spread", "skewness", "tails")  # by degree, from 1
N_RANKED = 512  # rows among which ranks are taken: an error of .02 of a rank, read from a cache
_CONSTANT = 1e-9  # of a variance of ranks between −1 and 1: less is rounding


@dataclass(frozen=True, eq=False)
class RankPolynomials:
    """Legendre polynomials of degrees 1 to 4 of the ranks of each coordinate.

    Attributes
    ----------
    ranked : shape (d, n)
        Sorted values of each coordinate, of rows of both samples. Ranks of equal values are alike:
        half-way between the numbers of smaller values and of values that are not larger.
    """

    ranked: Floats

    @classmethod
    def of(cls, rows: Floats) -> RankPolynomials:
        """Return the polynomials of ranks among rows, shape (n, d)."""
        return cls(np.sort(rows.T, axis=1))

    def __call__(self, rows: Floats) -> Floats:
        """Return the polynomials, shape (n, 4 d): the four of a coordinate, then of the next."""
        n_dims, n_ranked = self.ranked.shape
        out = np.empty((len(rows), n_dims, len(ASPECTS)))

        def fill(j: int) -> None:
            column = np.ascontiguousarray(rows[:, j])
            below = np.searchsorted(self.ranked[j], column, side="left")
            up_to = np.searchsorted(self.ranked[j], column, side="right")
            ranks = (below + up_to) / n_ranked - 1
            out[:, j] = legvander(ranks, len(ASPECTS))[:, 1:]

        run_parts(fill, n_dims)
        return out.reshape(len(rows), -1)


@dataclass(frozen=True, eq=False)
class MarginalDifferences:
    """Differences of the samples in each coordinate, in standard deviations over permutations.

    Attributes
    ----------
    scores : shape (d, 4)
        Scores of the samples, by coordinate and degree.
    largest : shape (1 + n_permutations,)
        The largest absolute score: of the samples first, then of each permutation.
    """

    scores: Floats
    largest: Floats

    @classmethod
    def of(cls, samples: TwoSamples, most: int = MAX_UNITS) -> MarginalDifferences:
        """Compare the samples with the permutations of their units that `UnitSums` has.

        Parameters
        ----------
        samples : TwoSamples
            Samples of points in memory.
        most : int
            See `UnitSums.of`.
        """
        sums, n_first = _residual_sums(samples, most)
        n = len(sums)
        centred = sums - sums.mean(axis=0)
        # the variance of a sum of n_first units that are drawn without replacement
        variances = n_first * (n - n_first) / (n * max(1, n - 1)) * (centred**2).sum(axis=0)
        rows_per_unit = (len(samples.first) + len(samples.second)) / n
        varies = variances > _CONSTANT * n * rows_per_unit**2
        scaled = centred / np.sqrt(np.where(varies, variances, np.inf))
        is_first = np.arange(n) < n_first
        scores = scaled[is_first].sum(axis=0)
        largest = [[np.abs(scores).max()]]
        splits = split_blocks(is_first, samples.n_permutations, samples.seed, scaled.shape[1])
        largest += [np.abs(block.astype(np.float64) @ scaled).max(axis=1) for block in splits]
        return cls(scores.reshape(-1, len(ASPECTS)), np.concatenate(largest))

    @property
    def described(self) -> str:
        """Return the coordinate that differs most, and in which aspect, for a report."""
        coordinate, degree = np.unravel_index(np.abs(self.scores).argmax(), self.scores.shape)
        score = abs(self.scores[coordinate, degree])
        return f"coordinate {coordinate}, {ASPECTS[degree]}: {score:.1f} standard deviations"


def _residual_sums(samples: TwoSamples, most: int) -> tuple[Floats, int]:
    """Return the sums over each unit that moves of polynomials less their pooled means.

    Those of the first sample come first; their number is returned, too. Units are those of
    `UnitSums.of`, from the same seed.
    """
    both = samples.first, samples.second
    polynomials = RankPolynomials.of(choose_rows(samples, N_RANKED))
    length, counts = plan_units(both[0].n_units, both[1].n_units, most)
    parts, sizes = [], []
    for i, (sample, count) in enumerate(zip(both, counts, strict=True)):
        labels = bucket_labels(sample, length, count, samples.seed + i)
        sums = np.zeros((count + 1, samples.n_dims * len(ASPECTS)))
        for start in range(0, len(sample), ROWS_PER_BLOCK):
            block = slice(start, start + ROWS_PER_BLOCK)
            _add_rows(sums, polynomials(sample.rows[block]), labels[block])
        parts.append(sums)
        sizes.append(np.bincount(labels, minlength=count + 1))
    mean = sum(sums.sum(axis=0) for sums in parts) / sum(of.sum() for of in sizes)
    moving = [s[:-1] - of[:-1, None] * mean for s, of in zip(parts, sizes, strict=True)]
    return np.concatenate(moving), counts[0]


def _add_rows(sums: Floats, rows: Floats, labels: np.ndarray) -> None:
    """Add rows to the sums of their units, in the order of the rows."""
    order = np.argsort(labels, kind="stable")
    units, firsts = np.unique(labels[order], return_index=True)
    sums[units] += np.add.reduceat(rows[order], firsts, axis=0)
