"""Samples of points, and samples of bags with one vector per bag, as input of tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from ...core import None_, OneOf
from ...core.arrays import Floats, Integers, as_array, missing_in
from ...core.errors import DataError, ParameterError, plural, shown
from ...data.bags.alignment import has_index
from ...data.bags.bags import Bags, concatenate
from ...data.bags.box import Box
from ...data.bags.coordinates import Names, order_of
from ...data.bags.frames import is_groups, is_table, names_of_table
from ...data.bags.precision import check_array_apart, check_labels_apart
from ...data.labelled.labelled import LabelledBags, box_of_bags
from ...data.store.sampling import CHOICE_SAMPLE, spread_rows
from ...data.store.store import BagStore
from ...embeddings.base import ChoiceSample, Embedding, EmbeddingSpec
from ...embeddings.mean_map import MeanMapEmbedding
from ...execution.passes import check_memory
from ..kernels.features import RowFeatures
from .row_sources import ArrayRows, EmbeddedRows
from .thinning import BagSet, as_bag_set, in_same_order, thinning_size

SampleLike = ArrayLike | Sequence[ArrayLike] | Bags | BagStore | tuple[BagStore, int, int]
"""An array or frame (n, d) or (n,) is a sample of points; anything else, as a groupby, of bags."""

# The default embedding's box has these quantiles of each coordinate as edges.
CENTRAL_QUANTILES = (0.001, 0.999)
CENTRAL_SAMPLE = 2**18  # points from which the quantiles are computed
FEATURE_ROWS = 4096  # rows whose features are computed at a time: some tens of MiB
UNIT = OneOf("bag", "point")
POOLING = (
    "points of one bag are alike, so a test that takes each of them for a unit of its own finds a "
    "difference in most samples without any; give bags for every sample, or say unit='point' for "
    "a test that pools them all the same"
)


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of a sample with their units.

    Attributes
    ----------
    name : str
        Name of the sample in messages.
    data : ArrayRows or EmbeddedRows
        Source of the rows.
    units : int64, shape (n,)
        Exchangeable unit of each row, from 0 to n_units − 1.
    n_units : int
        Number of units.
    unit : {"point", "bag", "group"}
        Kind of the units.
    positions : int64, shape (n,)
        Position of each row among the given points or bags.
    n_left_out : int
        Number of bags that are too small, and of pairs that lack one of their variables.
    bucket_length : int
        Number of neighbouring points or bags that form a unit; 0 if units are not such buckets.
    names : tuple of str
        Names of the columns of rows; empty if they are not known.
    """

    name: str
    data: ArrayRows | EmbeddedRows
    units: NDArray[np.int64]
    n_units: int
    unit: str
    positions: NDArray[np.int64]
    n_left_out: int
    bucket_length: int = 0
    names: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.units)

    @cached_property
    def rows(self) -> Floats:
        """Points, or embeddings of bags, shape (n, d)."""
        return self.data.all()

    def feature_sums(self, features: RowFeatures) -> Floats:
        """Return the sums of features over the rows of each unit, shape (n_units, k).

        Rows are added in blocks. For bags of a store in buckets, see `in_buckets`, the sums are
        computed in a pass.
        """
        if self.bucket_length and isinstance(self.data, EmbeddedRows):
            sums = self.data.bucket_sums(features, self.bucket_length)
            return sums[np.unique(self.positions // self.bucket_length)]
        total: Floats = np.empty(0)
        is_each = np.array_equal(self.units, np.arange(len(self)))  # a unit has one row
        for start in range(0, len(self), FEATURE_ROWS):
            columns = features(self.rows[start : start + FEATURE_ROWS])
            if is_each:
                if not len(total):
                    total = np.empty((self.n_units, columns.shape[1]))
                total[start : start + len(columns)] = columns
                continue
            units = self.units[start : start + len(columns)]
            own_units, of = np.unique(units, return_inverse=True)
            members = csr_array((np.ones(len(of)), (of, np.arange(len(of)))))
            if not len(total):
                total = np.zeros((self.n_units, columns.shape[1]))
            total[own_units] += members @ columns
        return total

    def in_buckets(self, length: int) -> Sample:
        """Return the sample with units of ``length`` neighbouring points or bags."""
        buckets, units = np.unique(self.positions // length, return_inverse=True)
        return replace(self, units=units, n_units=len(buckets), bucket_length=length)

    def of_rows(self, rows: NDArray[np.int64]) -> Sample:
        """Return the sample of ``rows``, all rows of some units, which must fit in memory."""
        units = np.unique(self.units[rows], return_inverse=True)[1]
        return replace(
            self,
            data=ArrayRows(self.rows[rows]),
            units=units,
            n_units=int(units.max()) + 1,
            positions=self.positions[rows],
        )

    @property
    def with_names(self) -> Sample:
        """The sample with names of the columns of its embedding, as the coordinates give them."""
        if not isinstance(self.data, EmbeddedRows):
            return self
        spec, names = self.data.spec, self.data.bags.coordinate_names
        coordinates = names or [str(j) for j in range(spec.n_dims)]
        return replace(self, names=tuple(spec.feature_names(coordinates)))

    @property
    def unit_sizes(self) -> NDArray[np.int64]:
        """Rows of each unit, shape (n_units,)."""
        return np.bincount(self.units, minlength=self.n_units)


def is_bags(data: object) -> bool:
    """Whether data are a sample of bags, not of points."""
    if isinstance(data, (BagStore, Bags)) or is_groups(data):
        return True
    if isinstance(data, np.ndarray):
        if data.dtype == object and data.ndim == 1:
            return len(data) > 0 and all(np.ndim(_first([element])) > 0 for element in data[:1])
        return data.ndim == 3
    if isinstance(data, tuple) and data and isinstance(data[0], BagStore):
        return True
    if has_index(data) and data.ndim == 1:  # type: ignore[attr-defined]  # a Series
        return is_bags(data.to_numpy()) if data.dtype == object else False  # type: ignore[attr-defined]
    if isinstance(data, Mapping) and not is_table(data):  # from ids to bags, or names to columns
        return is_bags([*data.values()][:1])
    if not isinstance(data, (list, tuple)) or not data:
        return False
    if all(isinstance(array, np.ndarray) and array.ndim == 1 for array in data):
        # rows of points are equally long, bags of points of one coordinate are not
        return len(set(map(len, data))) > 1
    return np.ndim(_first(data)) == 2


def read_samples(
    data: Mapping[str, SampleLike],
    *,
    unit: str | None = None,
    groups: Mapping[str, ArrayLike] | None = None,
    embedding: Embedding | EmbeddingSpec | None = None,
    thin: bool | int = True,
    seed: int = 0,
) -> list[Sample]:
    """Return samples of the same kind, by name.

    All bags are thinned to one size and embedded by the same embedding. The rows of a store are
    computed when they are needed, by a pass on the open cluster.

    Parameters
    ----------
    unit : {None, "point", "bag"}
        None: points of arrays, bags of bags. Independent unit of the test. "point" pools the points
        of bags.
    groups : mapping of str to shape (n,), optional
        Label of each point or bag of each sample. Points or bags with the same label are permuted
        together.
    embedding, thin, seed
        Parameters for samples of bags; see `two_sample_test`.

    Raises
    ------
    DataError
        If one sample has points and another bags, dimensions differ, a value cannot be used, or a
        sample has fewer than two units.
    """
    (UNIT | None_).check("unit", unit)
    kinds = {name: is_bags(sample) for name, sample in data.items()}
    if unit == "bag" and not all(kinds.values()):
        name = next(name for name, bags in kinds.items() if not bags)
        raise DataError(f"{name} is a sample of points; unit='bag' needs a list of arrays per bag")
    if len(set(kinds.values())) > 1 and unit is None:
        raise DataError(f"points are compared with bags: {POOLING}")
    if all(kinds.values()) and unit != "point":
        sets = {k: as_bag_set(v, k) for k, v in data.items()}  # type: ignore[arg-type]
        rows = _embedded(in_same_order(sets, embedding), embedding, thin, seed)
        names: tuple[str, ...] = ()
    else:
        if embedding is not None:
            raise DataError("embedding is for bags; samples of points are compared as they are")
        rows, names = _pooled(data, kinds)
    dims = {name: values.n_dims for name, (values, *_) in rows.items()}
    if len(set(dims.values())) > 1:
        raise DataError(
            "samples of different dimensions: " + ", ".join(f"{k} {v}" for k, v in dims.items())
        )
    kind = "bag" if all(kinds.values()) and unit != "point" else "point"
    return [
        replace(as_sample(name, values, kind, (groups or {}).get(name), positions, n), names=names)
        for name, (values, positions, n) in rows.items()
    ]


def as_sample(
    name: str,
    rows: Floats | ArrayRows | EmbeddedRows,
    unit: str,
    groups: ArrayLike | None = None,
    positions: NDArray[np.int64] | None = None,
    n_given: int | None = None,
) -> Sample:
    """Return the sample of some rows; at most one unit per row, at least two.

    Parameters
    ----------
    groups : shape (n_given,), optional
        A label per point or bag that was given.
    positions : shape (n,), optional
        Positions of the rows among these; default 0, 1, ….
    n_given : int, optional
        Default n.
    """
    data = ArrayRows(rows) if isinstance(rows, np.ndarray) else rows
    where = np.arange(len(data.all())) if positions is None else positions
    n_given = len(where) if n_given is None else n_given
    units, n_units = np.arange(len(where)), len(where)
    if groups is not None:
        units = label_codes(f"groups of {name}", groups, where, n_given, unit)
        unit, n_units = "group", int(units.max(initial=-1)) + 1
    if n_units < 2:
        raise DataError(
            f"{n_units} {plural(unit, n_units)} in {name}; a test compares at least two"
        )
    return Sample(name, data, units, n_units, unit, where, n_given - len(where))


def label_codes(
    what: str, labels: ArrayLike, where: NDArray[np.int64], n_given: int, unit: str
) -> NDArray[np.int64]:
    """Return the number of the label of each row, from 0 on, shape (n,).

    Parameters
    ----------
    what : str
        Name of the labels in errors.
    labels : shape (n_given,)
        Labels of all points or bags that were given.
    where : shape (n,)
        Those of them that the rows are of.

    Raises
    ------
    DataError
        Another number of labels, or missing ones.
    """
    values = as_array(what, labels)
    if values.shape != (n_given,):
        raise DataError(
            f"{what} have shape {values.shape}; expected a label for each of the {n_given} {unit}s"
        )
    refuse_missing(what, values[where], unit)
    if values.dtype.kind == "f":
        check_labels_apart(what, values)
    codes: NDArray[np.int64]
    try:
        codes = np.unique(values[where], return_inverse=True)[1]
    except TypeError:  # texts among numbers have no order
        numbers: dict[Any, int] = {}
        try:
            codes = np.array([numbers.setdefault(label, len(numbers)) for label in values[where]])
        except TypeError as error:
            raise DataError(f"{what} are not texts, numbers or times ({error})") from error
    return codes


def refuse_missing(what: str, labels: NDArray[Any], unit: str) -> None:
    """Raise DataError for labels that are missing: NaN, NaT, None, NA, or empty text."""
    missing = labels[missing_in(labels)]
    if n_missing := len(missing):
        are_texts = any(isinstance(label, (str, bytes)) for label in missing.tolist())
        raise DataError(
            f"{what} are missing ({'empty text' if are_texts else 'NaN'}) for {n_missing:,} "
            f"{plural(unit, n_missing)}: give each a label, or leave these out"
        )


def as_sample_points(data: ArrayLike, name: str) -> Floats:
    """Return points as an array (n, d) of finite numbers; (n,) are points in R^1."""
    check_array_apart(name, as_array(name, data), is_whole=True)
    points = _as_numbers(name, data)
    points = points[:, None] if points.ndim == 1 else points
    if points.ndim != 2 or points.shape[1] == 0:
        raise DataError(f"{name} has shape {points.shape}; expected points (n, d), or bags")
    finite = np.isfinite(points).all(axis=1)
    if not finite.all():
        raise DataError(
            f"{name}: point {int(np.argmin(finite))} holds NaN or infinity; leave such points out, "
            "or fill their coordinates"
        )
    return points


def _as_numbers(name: str, data: ArrayLike) -> Floats:
    """Return data as float64; an error of a frame names the column."""
    try:
        return as_array(name, data, np.float64)
    except DataError as error:
        if not (is_table(data) and hasattr(data, "dtypes")):
            raise
        frame: Any = data
        values = as_array(name, data).T
        for column, kind, of_column in zip(frame.columns, frame.dtypes, values, strict=True):
            try:
                as_array(name, of_column, np.float64)
            except DataError:
                raise column_error(name, column, kind) from error
        raise


def column_error(name: str, column: object, kind: object) -> DataError:
    """Return the error for a column of a frame that does not hold numbers."""
    return DataError(
        f"{name}: column {column!r} holds {kind}, not numbers; leave it out, or encode it "
        "(pandas.get_dummies)"
    )


def resolve_embedding(
    embedding: Embedding | EmbeddingSpec | None, bags: Bags, seed: int
) -> EmbeddingSpec:
    """Return the embedding fitted to bags of all samples.

    A fitted embedding, or a spec, is used unchanged. The default is a `MeanMapEmbedding` in a box
    with the central 99.8 % of each coordinate's points, so that a single outlier does not compress
    the rest.

    Raises
    ------
    ParameterError
        If ``embedding`` is not an embedding.
    """
    box = None
    if embedding is None:
        embedding = MeanMapEmbedding(seed=seed)
        points = spread_rows(bags.points, CENTRAL_SAMPLE)
        box = Box.around(*np.quantile(points, CENTRAL_QUANTILES, axis=0))
    if isinstance(embedding, EmbeddingSpec):
        return embedding
    if hasattr(embedding, "spec_"):
        spec: EmbeddingSpec = embedding.spec_
        return spec
    if isinstance(embedding, Embedding):
        resolved: EmbeddingSpec = embedding.resolve(
            bags.n_dims, box or box_of_bags(bags), ChoiceSample.whole(bags)
        )
        return resolved
    raise ParameterError(
        f"embedding is {shown(embedding)}; expected an embedding such as MeanMapEmbedding(), or "
        "the spec of one"
    )


RowsByName = dict[str, tuple[ArrayRows | EmbeddedRows, NDArray[np.int64], int]]
"""Each sample by name: its rows, their positions in the data, and how many were given."""


def _pooled(
    data: Mapping[str, SampleLike], kinds: Mapping[str, bool]
) -> tuple[RowsByName, tuple[str, ...]]:
    """Return the points of each sample, in the order of the first names, and these names."""
    expected: Names = None
    reference = ""
    rows: RowsByName = {}
    for name, sample in data.items():
        bags = as_bag_set(sample, name).bags if kinds[name] else None  # type: ignore[arg-type]
        names = names_of_table(sample) if bags is None else bags.coordinate_names
        order = order_of(names, expected, name, reference)
        rows[name] = _points(sample, name, bags, order)
        if expected is None and names is not None:
            expected, reference = names, f"{name} has"
    return rows, tuple(expected or ())


def _points(
    data: SampleLike, name: str, labelled: LabelledBags | None, order: Integers | None
) -> tuple[ArrayRows, NDArray[np.int64], int]:
    if labelled is not None:
        check_memory(f"all points of {name}", 8 * labelled.n_points * labelled.n_dims, "take fewer")
        parts = [batch.bags.points.astype(np.float64) for batch in labelled.batches()]
        points = np.concatenate(parts)
    else:
        points = as_sample_points(data, name)  # type: ignore[arg-type]
    points = points if order is None else np.take(points, order, axis=1)
    return ArrayRows(points), np.arange(len(points)), len(points)


def _embedded(
    sets: dict[str, BagSet],
    embedding: Embedding | EmbeddingSpec | None,
    thin: bool | int,
    seed: int,
) -> RowsByName:
    sizes = [s.bags.sizes([(s.bags.start, s.bags.end)]) for s in sets.values()]
    size = thinned_size(sizes, thin)
    sampled = [part for s in sets.values() for part in s.bags.sample(CHOICE_SAMPLE)]
    if len({part.n_dims for part in sampled}) > 1:
        dims = ", ".join(f"{name} {s.bags.n_dims}" for name, s in sets.items())
        raise DataError(f"bags of different dimensions: {dims}")
    spec = resolve_embedding(embedding, concatenate(sampled), seed)
    rows: RowsByName = {}
    for (name, bag_set), of_set in zip(sets.items(), sizes, strict=True):
        bags = bag_set.bags
        positions = np.flatnonzero(of_set >= (size or 1))
        rows[name] = EmbeddedRows(bags, spec, size, seed), positions, bags.n_bags
    return rows


def thinned_size(sizes: Sequence[NDArray[np.int64]], thin: bool | int) -> int | None:
    """Return the points that bags of these sizes are thinned to; None if they are not."""
    if isinstance(thin, (bool, np.bool_)):
        return thinning_size(sizes) if thin else None
    return int(thin)


def _first(data: Sequence[Any]) -> Any:  # noqa: ANN401
    try:
        return np.asarray(data[0])
    except (TypeError, ValueError):  # ragged: no bag, and no point either
        return data[0]
