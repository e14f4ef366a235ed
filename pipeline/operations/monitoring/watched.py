"""The data that a detector watches: arrays, frames and bags as rows, read in blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ...core.arrays import Floats, Integers, as_array
from ...core.errors import DataError, closest, plural
from ...core.sums import Sums
from ...data.bags.bags import concatenate
from ...data.bags.frames import is_frame, names_of_table, warn_of_row_numbers
from ...data.labelled.labelled import Batch
from ...data.store.sampling import CHOICE_SAMPLE
from ...embeddings.base import Embedding, EmbeddingSpec
from ...execution.passes import batch_reduction, run_pass
from ...hypotheses.kernels.scales import Scales
from ...hypotheses.samples.row_sources import EmbedBags, EmbeddedRows
from ...hypotheses.samples.samples import (
    as_sample_points,
    column_error,
    is_bags,
    resolve_embedding,
    thinned_size,
)
from ...hypotheses.samples.thinning import as_bag_set, in_same_order
from .random_buckets import RandomBuckets

ROWS_PER_READ = 8192  # converted at a time: 2 MiB of 32 columns
BAGS_IN_MEMORY = 2**16  # bags whose embeddings are held: 134 MB of 256 numbers each


@dataclass(frozen=True, eq=False)
class WatchedRows:
    """Points of an array or a frame, or embeddings of bags in memory; read in blocks."""

    values: Any
    columns: tuple[str, ...] = ()
    n_left_out: int = 0  # bags that are too small

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.values)

    def block(self, chosen: Any) -> Floats:  # noqa: ANN401 - a slice or positions
        """Return some rows as numbers.

        Raises
        ------
        DataError
            If a value is missing or infinite. The message names its row and its column.
        """
        part = self.values.iloc[chosen] if self.columns else self.values[chosen]
        if self.columns:
            block: Floats = part.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            block = np.asarray(part, dtype=np.float64)
        bad = ~np.isfinite(block)
        if bad.any():
            row, column = np.argwhere(bad)[0]
            at = np.arange(len(self))[chosen][row]
            name = repr(self.columns[column]) if self.columns else str(column)
            raise DataError(f"row {at}, column {name} is NaN or infinite: fill it or leave it out")
        return block

    def sums(
        self, scales: Scales, assignment: RandomBuckets, unit: Floats
    ) -> tuple[Floats, Floats]:
        """Return the sums of features over buckets, (K, count + 1, 2 R), and the rows of each."""
        out = np.zeros((len(scales.kernels), assignment.count + 1, 2 * scales.n_frequencies))
        sizes = np.zeros(assignment.count + 1)
        for start in range(0, len(self), ROWS_PER_READ):
            stop = min(start + ROWS_PER_READ, len(self))
            buckets = assignment.buckets(np.arange(start, stop))
            scales.add(self.block(slice(start, stop)) / unit, buckets, out)
            sizes += np.bincount(buckets, minlength=assignment.count + 1)
        return out, sizes


@dataclass(frozen=True, eq=False)
class StoredBags:
    """Embeddings of very many bags, which are computed in each pass and not kept."""

    rows: EmbeddedRows
    n_left_out: int = 0  # bags that are too small

    def __len__(self) -> int:
        """Return the number of bags."""
        return self.rows.bags.n_bags

    def sums(
        self, scales: Scales, assignment: RandomBuckets, unit: Floats
    ) -> tuple[Floats, Floats]:
        """Return the sums of features over buckets, (K, count + 1, 2 R), and the rows of each.

        Bags that are too small are in no bucket.
        """
        data = self.rows
        embed = EmbedBags(data.spec, data.size, data.seed)
        per_batch = partial(_sum_batch, embed, scales, assignment, data.bags.start)
        total = run_pass(
            data.bags, batch_reduction("features", per_batch, data.spec.cost + scales.cost)
        )
        if total is None:
            raise DataError(f"no bag has {data.size} points, to which bags are thinned")
        return total.features, total.sizes

    def first_embeddings(self, assignment: RandomBuckets, n: int) -> Floats:
        """Return the embeddings of the first ``n`` bags of the order that are large enough."""
        data = self.rows
        embed = EmbedBags(data.spec, data.size, data.seed)
        per_batch = partial(_keep, embed, assignment, n, data.bags.start)
        rows = batch_reduction("kept embeddings", per_batch, data.spec.cost, _stack)
        embeddings = run_pass(data.bags, rows)
        assert embeddings is not None
        return embeddings


WatchedSource = WatchedRows | StoredBags


@dataclass(frozen=True, eq=False)
class Watched:
    """Reader that turns the watched data (frames, arrays or bags) into rows.

    Attributes
    ----------
    kind : {"points", "bags"}
        Unit of the data.
    n_dims : int
        Number of coordinates of a point.
    columns : tuple of str
        Names of the columns of a frame, or of the coordinates of bags that have names; empty for an
        array.
    spec : EmbeddingSpec or None
        Specification of the embedding of bags.
    size : int or None
        Number of points to which bags are thinned.
    seed : int
        Random seed of the embedding and of thinning.
    """

    kind: str
    n_dims: int
    columns: tuple[str, ...] = ()
    spec: EmbeddingSpec | None = None
    size: int | None = None
    seed: int = 0

    @classmethod
    def of(
        cls,
        data: Any,  # noqa: ANN401 - whatever is watched
        embedding: Embedding | EmbeddingSpec | None,
        thin: bool | int,
        seed: int,
    ) -> Watched:
        """Return the reader for a reference and later data of the same kind."""
        if is_bags(data):
            bag_sets = {"reference": as_bag_set(data, "reference")}
            bags = in_same_order(bag_sets, embedding)["reference"].bags
            names = tuple(bags.coordinate_names or ())
            sampled = concatenate([*bags.sample(CHOICE_SAMPLE)])
            spec = resolve_embedding(embedding, sampled, seed)
            size = thinned_size([bags.sizes([(bags.start, bags.end)])], thin)
            return cls("bags", bags.n_dims, names, spec, size, seed)
        if embedding is not None:
            raise DataError("embedding is for bags; rows of numbers are compared as they are")
        rows = _table(data, "reference")
        warn_of_row_numbers(data, "reference")
        columns = rows.columns or tuple(names_of_table(data) or ())
        return cls("points", rows.block(slice(0, 1)).shape[1], columns, seed=seed)

    def read(self, data: Any, name: str) -> WatchedSource:  # noqa: ANN401 - whatever is watched
        """Return the rows of the reference, or of later data.

        Raises
        ------
        DataError
            If the data are of another kind than the reference, or have other columns or another
            dimension.
        """
        if is_bags(data) != (self.kind == "bags"):
            raise DataError(f"{name} is not {self.kind}, as the reference is")
        if self.kind == "points":
            return self._points(data, name)
        assert self.spec is not None
        bags = as_bag_set(data, name).bags.in_order_of(
            self.columns or None, "the reference has", what=name
        )
        if bags.n_dims != self.n_dims:
            raise DataError(
                f"{name} bags have dimension {bags.n_dims}, the reference {self.n_dims}"
            )
        rows = EmbeddedRows(bags, self.spec, self.size, self.seed)
        is_large = bags.sizes([(bags.start, bags.end)]) >= (self.size or 1)
        n_left_out = int((bags.present() & ~is_large).sum())
        if bags.n_bags > BAGS_IN_MEMORY:
            return StoredBags(rows, n_left_out)
        if is_large.sum() < 2:
            raise DataError(
                f"{name}: {is_large.sum()} of {bags.n_bags} bags have {self.size} points, to which "
                "bags are thinned; two are needed"
            )
        return WatchedRows(rows.all(), n_left_out=n_left_out)

    def _points(self, data: Any, name: str) -> WatchedRows:  # noqa: ANN401 - an array or a frame
        names = None if is_frame(data) else names_of_table(data)
        if self.columns and (names is not None or is_frame(data)):
            named = {str(column): column for column in names or data.columns}
            missing = [column for column in self.columns if column not in named]
            if missing:
                raise DataError(
                    f"{name} has no column {missing[0]!r}, which the reference has"
                    f"{closest(missing[0], named)}; there are {list(named)}, and the reference has "
                    f"{list(self.columns)}"
                )
            if is_frame(data):
                data = data[[named[column] for column in self.columns]]
            elif tuple(names or ()) != self.columns:
                places = [(names or []).index(column) for column in self.columns]
                data = as_sample_points(data, name)[:, places]
        rows = _table(data, name)
        n_dims = rows.block(slice(0, 1)).shape[1]
        if n_dims != self.n_dims:
            raise DataError(f"{name} has {n_dims} columns, the reference {self.n_dims}")
        return rows


def _table(data: Any, name: str) -> WatchedRows:  # noqa: ANN401 - an array, a list of rows or a frame
    """Return the rows of a frame unchanged, and of any other data as an array."""
    if not is_frame(data):
        is_array = isinstance(data, np.ndarray)
        values = as_array(name, data) if is_array else as_sample_points(data, name)
        if values.ndim == 1:
            values = values[:, None]
        if values.ndim != 2 or values.dtype.kind not in "fiub":
            values = as_sample_points(data, name)
        rows = WatchedRows(values)
    else:
        _check_length(len(data), name)
        for column, kind in data.dtypes.items():
            if getattr(kind, "kind", "O") not in "fiub":
                raise column_error(name, column, kind)
        rows = WatchedRows(data, tuple(map(str, data.columns)))
        if list(data.columns) != list(rows.columns):
            rows = replace(rows, values=data.set_axis(list(rows.columns), axis=1))
    _check_length(len(rows), name)
    return rows


def _check_length(n_rows: int, name: str) -> None:
    if n_rows < 2:
        noun = plural("row", n_rows)
        raise DataError(f"{name} has {n_rows} {noun}; a comparison takes two")


@dataclass(frozen=True, eq=False)
class _BucketSums(Sums):
    """Sums of features over buckets, (K, count + 1, 2 R), and the number of rows of each bucket."""

    features: Floats
    sizes: Floats


def _sum_batch(
    embed: EmbedBags, scales: Scales, assignment: RandomBuckets, start: int, batch: Batch
) -> _BucketSums | None:
    used = batch.index[batch.bags.sizes >= (embed.size or 1)]
    if not len(used):
        return None
    buckets = assignment.buckets(used - start)
    out = np.zeros((len(scales.kernels), assignment.count + 1, 2 * scales.n_frequencies))
    scales.add(embed(batch.bags), buckets, out)
    sizes = np.bincount(buckets, minlength=assignment.count + 1).astype(np.float64)
    return _BucketSums(out, sizes)


def _keep(
    embed: EmbedBags, assignment: RandomBuckets, n: int, start: int, batch: Batch
) -> Floats | None:
    chosen: Integers = np.flatnonzero(
        (assignment.ranks(batch.index - start) < n) & (batch.bags.sizes >= (embed.size or 1))
    )
    return embed(batch.bags[chosen]) if len(chosen) else None


def _stack(rows: Floats, other: Floats) -> Floats:
    return np.concatenate([rows, other])
