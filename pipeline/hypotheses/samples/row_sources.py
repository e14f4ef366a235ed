"""Sources of the rows of a sample: an array, or bags that are embedded in a pass."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from ...core.arrays import Floats, Integers
from ...data.bags.bags import Bags
from ...data.labelled.labelled import Batch, LabelledBags
from ...data.store.sampling import RunSample, spread_rows
from ...embeddings.base import EmbeddingSpec
from ...execution.passes import batch_reduction, check_memory, rows_of, run_pass
from ..kernels.features import RowFeatures
from ..kernels.scales import Scales
from .thinning import thin_bags


@dataclass(frozen=True, eq=False)
class ArrayRows:
    """Rows in memory."""

    values: Floats

    @property
    def n_dims(self) -> int:
        """Numbers in a row."""
        return int(self.values.shape[1])

    def all(self) -> Floats:
        """Return all rows, shape (n, d)."""
        return self.values

    def some(self, n: int) -> Floats:
        """Return up to ``n`` evenly spread rows."""
        return spread_rows(self.values, n)


@dataclass(frozen=True, eq=False)
class EmbeddedRows:
    """Embeddings of bags, recomputed by each pass that needs them, on the open cluster.

    Attributes
    ----------
    size : int or None
        Number of points to which bags are thinned; smaller bags have no row.
    """

    bags: LabelledBags
    spec: EmbeddingSpec
    size: int | None
    seed: int

    @property
    def n_dims(self) -> int:
        """Numbers in a row."""
        return int(self.spec.n_features)

    def all(self) -> Floats:
        """Return all rows, shape (n, d)."""
        needed = 16 * self.n_dims * self.bags.n_bags
        what = f"embeddings of {self.bags.n_bags:,} bags"
        check_memory(what, needed, "take the statistic 'fourier', which holds none")
        embed = EmbedBags(self.spec, self.size, self.seed)
        return run_pass(self.bags, rows_of("embeddings", embed.of_batch, self.spec.cost))

    def some(self, n: int) -> Floats:
        """Return the rows of about ``n`` evenly spread bags."""
        embed = EmbedBags(self.spec, self.size, self.seed)
        return np.concatenate([embed(bags) for bags in self.bags.sample(RunSample.of_about(n))])

    def bucket_sums(self, features: RowFeatures, length: int, stride: int = 0) -> Floats:
        """Return the sums of features over each bucket of bags (`bucket_of`), in one pass.

        What a task holds is the buckets of its own bags; sums of tasks add up in any order.
        """
        embed = EmbedBags(self.spec, self.size, self.seed)
        per_batch = partial(
            _sum_batch, embed, features, (length, stride or length), self.bags.start
        )
        cost = self.spec.cost + features.cost
        total = run_pass(self.bags, batch_reduction("features", per_batch, cost))
        assert total is not None
        last = bucket_of(np.array([self.bags.n_bags]), length, stride or length)[0]
        sums = np.zeros((max(int(last) + 1, total.start + len(total.sums)), total.sums.shape[1]))
        sums[total.start : total.start + len(total.sums)] = total.sums
        return sums


@dataclass(frozen=True, eq=False)
class Span:
    """Sums of consecutive buckets, from number ``start`` on."""

    start: int
    sums: Floats

    def __add__(self, other: Span) -> Span:
        """Return the sums over both spans; buckets between the spans are 0."""
        start = min(self.start, other.start)
        stop = max(span.start + len(span.sums) for span in (self, other))
        sums = np.zeros((stop - start, self.sums.shape[1]))
        for span in (self, other):
            sums[span.start - start :][: len(span.sums)] += span.sums
        return Span(start, sums)


def bucket_of(positions: Integers, length: int, stride: int) -> Integers:
    """Return the bucket of positions: runs of ``length``, each before what is left of a stride."""
    if stride == length:
        return positions // length
    return 2 * (positions // stride) + (positions % stride >= length)


@dataclass(frozen=True)
class EmbedBags:
    """Thins and embeds bags; those that are too small have no row."""

    spec: EmbeddingSpec
    size: int | None
    seed: int

    def __call__(self, bags: Bags) -> Floats:
        """Return a row per bag that is large enough."""
        thinned = thin_bags(bags, self.size, self.seed)
        out = np.empty((len(thinned), self.spec.n_features))
        self.spec.embed(thinned, out)
        return out

    def of_batch(self, batch: Batch) -> Floats:
        """Return the rows of a batch."""
        return self(batch.bags)


def _sum_batch(
    embed: EmbedBags, features: RowFeatures, cut: tuple[int, int], start: int, batch: Batch
) -> Span | None:
    places_of_large = batch.index[batch.bags.sizes >= (embed.size or 1)]
    if not len(places_of_large):
        return None
    places = bucket_of(places_of_large - start, *cut)
    if isinstance(features, Scales):
        n_buckets = int(places[-1] - places[0]) + 1
        return Span(int(places[0]), features.sums(embed(batch.bags), places - places[0], n_buckets))
    values = features(embed(batch.bags))
    buckets, firsts = np.unique(places, return_index=True)
    sums = np.zeros((int(buckets[-1] - buckets[0]) + 1, values.shape[1]))
    sums[buckets - buckets[0]] = np.add.reduceat(values, firsts, axis=0, dtype=np.float64)
    return Span(int(buckets[0]), sums)
