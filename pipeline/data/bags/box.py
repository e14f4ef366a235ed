"""The box that is scaled to the unit cube [0, 1]^d before projection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core import Integer, ListOf, Pair, Real, checked, keep_checked
from ...core.arrays import Floats, Integers, as_array, refuse_not_numbers
from ...core.errors import DataError, ParameterError, shown

BOUNDS = ListOf(Pair(Real(), Real()), 1)
MAX_DIMS = 100_000  # all genes of an organism; a box then has 200,000 numbers in JSON
_MARGIN = 0.01  # fraction of the data's range, on each side of a measured box
QUANTILE = 0.001  # fraction of the points on each side of the central range of a measured box
MAX_REACH = 0.25  # largest reach of a box beyond the quantiles, as a fraction of their distance
SAMPLE_VALUES = 2**18  # coordinates from which quantiles are estimated: some MiB …
TIMES_OTHER_UNIT = 300.0  # so much larger values have another unit, by a factor of 1,000
SHOWN_DIMS = 3  # coordinates of a box in a message
NUMBERS_AT_ONCE = 2**17  # numbers of a block of columns: a MiB
VECTOR_LENGTH = 512  # numbers of a row that are compared at once, by vector instructions
SAMPLE_ROWS = 2**13  # … but no fewer points: a quantile of .001 is then right to .0004


@dataclass(frozen=True)
class Box:
    """An axis-aligned box in the units of the data, which is scaled to [0, 1]^d.

    See Also
    --------
    ProjectionEmbedding : Projection coefficients of a density.
    BagStore : Bags on disk or in object storage.

    Examples
    --------
    >>> import numpy as np
    >>> from bagbasis import Box
    >>> box = Box((0.0, -1.0), (1.0, 1.0))
    >>> box.n_dims, box.bounds
    (2, [[0.0, 1.0], [-1.0, 1.0]])
    >>> points = np.array([[0.5, 0.0], [2.0, 0.0]])
    >>> box.count_outside(points)  # Box.around(points) would hold both
    1
    >>> box.to_unit(points)  # from_unit undoes it
    array([[0.5, 0.5],
           [2. , 0.5]])
    >>> Box.unit(2).bounds
    [[0.0, 1.0], [0.0, 1.0]]
    """

    lo: Annotated[tuple[float, ...], ListOf(Real())]
    hi: Annotated[tuple[float, ...], ListOf(Real())]

    def __post_init__(self) -> None:
        """Refuse ranges that are not finite with lo < hi."""
        keep_checked(self)
        if len(self.lo) != len(self.hi) or not self.lo:
            raise DataError(f"box has {len(self.lo)} lower and {len(self.hi)} upper bounds")
        _check_ranges(self.lo, self.hi, "box")

    @classmethod
    @checked
    def unit(cls, n_dims: Annotated[int, Integer(1, MAX_DIMS)]) -> Box:
        """Return the unit cube [0, 1]^d; ParameterError for n_dims beyond `MAX_DIMS`."""
        return cls((0.0,) * n_dims, (1.0,) * n_dims)

    @classmethod
    @checked
    def of(
        cls,
        box: Box | Sequence[Sequence[float]] | None,
        n_dims: Annotated[int, Integer(1)] | None,
        *,
        name: str = "box",
    ) -> Box:
        """Return the box with the given (lo, hi) of each dimension; the unit cube for None.

        ``name`` is the name of the box in messages. ``n_dims`` None accepts any number of
        dimensions.

        Raises
        ------
        DataError
            If the number of dimensions is wrong, or a range is not finite with lo < hi.
        ParameterError
            If there is no box and ``n_dims`` is beyond `MAX_DIMS`.
        """
        if box is None and n_dims is not None:
            return cls.unit(n_dims)
        if not isinstance(box, Box):
            refuse_not_numbers(name, box)
            try:
                bounds = np.asarray(box)
                if np.iscomplexobj(bounds):
                    raise TypeError
                bounds = bounds.astype(np.float64)
                bounds = bounds.reshape(len(bounds), 2)
            except (TypeError, ValueError):
                raise DataError(f"{name} {shown(box)} is not one (lo, hi) per dimension") from None
            lo, hi = bounds.T.tolist()
            _check_ranges(lo, hi, name)
            box = cls(tuple(lo), tuple(hi))
        if n_dims is not None and box.n_dims != n_dims:
            raise DataError(f"{name} has {box.n_dims} dimensions, the points have {n_dims}")
        return box

    @classmethod
    @checked
    def around(
        cls,
        lo: ArrayLike,
        hi: ArrayLike,
        *,
        sample: NDArray[Any] | None = None,
        quantile: Annotated[float, Real(ge=0, lt=0.5)] = QUANTILE,
    ) -> Box:
        """Return the measured range [lo, hi], widened by 1 % of it on each side.

        A ``sample`` of the points, shape (n, d), limits the box, so that a few outliers do not
        stretch it. The box then ends at most a quarter of the quantiles' distance beyond the
        quantiles ``quantile`` and 1 - ``quantile``. Rows with NaN are left out.

        A dimension without range (lo = hi) is widened by half a unit (or by its own magnitude times
        1e-3, if that is more), so that its points lie in the middle of the box.
        """
        low, high = as_array("lo", lo, np.float64), as_array("hi", hi, np.float64)
        if low.ndim != 1 or low.shape != high.shape:
            raise DataError(f"lo and hi have shapes {low.shape} and {high.shape}; expected (d,)")
        if sample is not None:
            values = as_array("sample", sample)
            sample = values if values.dtype.kind in "fiu" else as_array("sample", values, float)
            if sample.shape[1:] != low.shape:
                raise DataError(f"sample is {shown(sample)}; expected an array (n, {len(low)})")
        if sample is not None and quantile and len(sample := _without_nan(sample)):
            first, last = _quantiles(sample, [quantile, 1 - quantile])
            reach = MAX_REACH * (last - first)
            cut = reach > 0  # else nearly all points are equal: nothing is cut
            low = np.where(cut, np.maximum(low, first - reach), low)
            high = np.where(cut, np.minimum(high, last + reach), high)
        flat = np.maximum(0.5, 1e-3 * np.abs(low))
        margin = np.where(high > low, _MARGIN * (high - low), flat)
        return cls(tuple((low - margin).tolist()), tuple((high + margin).tolist()))

    def in_order(self, order: Integers | None) -> Box:
        """Return the box with its dimensions in another order; None: the box itself."""
        if order is None:
            return self
        return Box(tuple(self.lo[j] for j in order), tuple(self.hi[j] for j in order))

    @staticmethod
    def sample_size(n_dims: int) -> int:
        """Return the size of the sample from which `around` should estimate quantiles."""
        n_dims = Integer(1).check("n_dims", n_dims)
        return max(SAMPLE_ROWS, SAMPLE_VALUES // n_dims)

    @property
    def n_dims(self) -> int:
        """Number of dimensions of the box."""
        return len(self.lo)

    def count_outside(self, points: NDArray[Any]) -> int:
        """Return the number of points, shape (n, d), that lie outside the box."""
        return int(((points < self.lo) | (points > self.hi)).any(axis=1).sum())

    @property
    def bounds(self) -> list[list[float]]:
        """One [lo, hi] per dimension, for JSON."""
        return [list(pair) for pair in zip(self.lo, self.hi, strict=True)]

    def to_unit(self, points: ArrayLike) -> Floats:
        """Scale points to float64 coordinates that lie in [0, 1] inside the box."""
        lo, hi = np.array(self.lo), np.array(self.hi)
        unit: Floats = (self._points(points) - lo) / (hi - lo)
        return unit

    def from_unit(self, points: ArrayLike) -> Floats:
        """Undo `to_unit`."""
        lo, hi = np.array(self.lo), np.array(self.hi)
        scaled: Floats = lo + self._points(points) * (hi - lo)
        return scaled

    def _points(self, points: ArrayLike) -> Floats:
        array = as_array("points", points, np.float64)
        if array.shape[-1:] != (self.n_dims,):
            raise DataError(f"points have shape {array.shape}; expected (…, {self.n_dims})")
        return array


def range_of(points: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the minimum and the maximum of each coordinate of points, shape (n ≥ 1, d).

    Many rows are compared as one wide row, because NumPy is slow for rows of few coordinates.
    """
    rows = max(1, VECTOR_LENGTH // points.shape[1])
    whole = len(points) // rows * rows
    if whole:
        wide = points[:whole].reshape(len(points) // rows, -1)
        ends = (end.reshape(rows, -1) for end in (wide.min(axis=0), wide.max(axis=0)))
        points = np.concatenate([*ends, points[whole:]])
    return points.min(axis=0), points.max(axis=0)


def _without_nan(points: NDArray[Any]) -> NDArray[Any]:
    has_nan = np.isnan(points).any(axis=1)
    return points[~has_nan] if has_nan.any() else points


def _quantiles(points: NDArray[Any], levels: Sequence[float]) -> Floats:
    blocks = column_blocks(points)
    return np.concatenate([np.quantile(block, levels, axis=0) for block in blocks], axis=1)


def column_blocks(points: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield views of columns, so few that copies of them stay in a core's cache."""
    width = max(1, NUMBERS_AT_ONCE // max(1, len(points)))
    for j in range(0, points.shape[1], width):
        yield points[:, j : j + width]


def measured_box(lo: ArrayLike, hi: ArrayLike) -> Box:
    """Return the unit cube if it holds the range [lo, hi], else the range with a margin of 1 %."""
    if (np.asarray(lo) >= 0).all() and (np.asarray(hi) <= 1).all():
        return Box.unit(len(np.asarray(lo)))
    return Box.around(lo, hi)


def box_or_quantile(box: object, n_dims: int, name: str = "box") -> Box | float:
    """Return the given box, or the quantile with which `Box.around` measures a box.

    Raises
    ------
    DataError, ParameterError
        If the argument is neither None, nor a box (see `Box.of`), nor {"quantile": fraction}.
    """
    if box is None:
        return QUANTILE
    if not isinstance(box, Mapping):
        return Box.of(box, n_dims, name=name)  # type: ignore[arg-type]  # which it checks
    if set(box) != {"quantile"}:
        raise ParameterError(
            f'{name} is {dict(box)}; expected one (lo, hi) per dimension, or {{"quantile": share}}'
        )
    return Real(ge=0, lt=0.5).check(f"{name}'s quantile", box["quantile"])


def _check_ranges(lo: Sequence[float], hi: Sequence[float], name: str) -> None:
    for j, (a, b) in enumerate(zip(lo, hi, strict=True)):
        if not (np.isfinite(a) and np.isfinite(b) and a < b):
            raise DataError(f"{name}, dimension {j}: [{a}, {b}] is not a finite range, lo < hi")
