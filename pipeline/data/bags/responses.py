"""`Responses`: response bags, at most one per bag."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ...core import Integer, checked
from ...core.arrays import Integers, check_dtype
from ...core.errors import DataError, shown
from .bags import Bags, Ragged, in_one_order, offsets_of
from .box import MAX_DIMS
from .checks import IdsLike, as_bag
from .coordinates import Names
from .frames import names_of_table
from .ids import as_ids
from .precision import IntegerRange, check_array_apart

_MAX_BAGS = 2**28  # made at once: their offsets take 2 GiB


class Responses(Ragged):
    """Response bags: one for each bag, which is empty if the response is missing.

    The response of bag i is rows ``offsets[i]:offsets[i + 1]`` of ``points``.

    Parameters
    ----------
    points : array_like, shape (n_points, n_dims)
        Finite coordinates, in the units of the data. float32 and float64 are kept; any other real
        dtype becomes float64.
    offsets : array_like of int, shape (n_bags + 1,)
        Start of each response, then n_points. Offsets start at 0 and do not decrease.
    ids : sequence of int or str, optional
        Names of the bags in messages. Default: their positions.

    Raises
    ------
    DataError
        If shapes are wrong, offsets decrease, or a coordinate is NaN or infinite. The message names
        the bag and the row.

    See Also
    --------
    as_responses : Check and align response bags.
    TripleBasisRegressor : Predict densities from bags.

    Examples
    --------
    >>> import numpy as np
    >>> from bagbasis import Responses
    >>> responses = Responses(np.ones((5, 1)), offsets=[0, 2, 2, 5])
    >>> responses.sizes
    array([2, 0, 3])
    """

    __slots__ = ()

    OWNER: ClassVar[str] = "the response of "

    @classmethod
    @checked
    def none(
        cls,
        n_bags: Annotated[int, Integer(0, _MAX_BAGS)],
        n_dims: Annotated[int, Integer(1, MAX_DIMS)],
        *,
        dtype: DTypeLike = np.float32,
    ) -> Responses:
        """Make the empty responses of bags without any response."""
        dtype = check_dtype("dtype", dtype)
        return cls.trusted(np.empty((0, n_dims), dtype), np.zeros(n_bags + 1, dtype=np.int64))

    @property
    def positions(self) -> Integers:
        """Indices of the bags that have a response, ascending, shape (n_present,)."""
        return np.flatnonzero(self.sizes)

    @property
    def present(self) -> Bags:
        """The responses that are not empty, in the order of `positions`."""
        offsets = np.append(0, self.offsets[1:][self.sizes > 0])
        return Bags.trusted(self.points, offsets, names=self.coordinate_names)

    def of(self, rows: Integers) -> Bags:
        """Return the responses of the bags at these positions, all of which have a response."""
        chosen = self[rows]
        return Bags.trusted(chosen.points, chosen.offsets, names=self.coordinate_names)

    def __repr__(self) -> str:
        """Describe the counts and the precision, not the data."""
        return (
            f"Responses(n_bags={len(self)}, n_present={len(self.positions)}, "
            f"n_points={self.n_points}, n_dims={self.n_dims}, dtype={self.points.dtype})"
        )

    def _check_sizes(self) -> None:
        falling = np.flatnonzero(self.sizes < 0)
        if len(falling):
            raise DataError(
                f"{self.OWNER}bag {falling[0]} ends before it begins: the offsets decrease"
            )


@checked
def as_responses(
    data: Responses | Bags | Sequence[ArrayLike | None],
    n_bags: int,
    *,
    n_dims: int | None = None,
    ids: IdsLike | None = None,
    dtype: DTypeLike | None = None,
) -> Responses:
    """Make `Responses` from arrays, one for each of ``n_bags`` bags.

    Parameters
    ----------
    data : Responses, Bags, or sequence with one item per bag
        An item is an array of shape (m_i, n_dims), or of shape (m_i,) in one dimension. None or an
        array without rows marks a bag without a response. With Bags, every bag has a response.
    n_dims : int, optional
        Number of coordinates of a response point. Default: as in the first response.
    ids : sequence of int or str, optional
        Names of the bags in messages.
    dtype : float32 or float64, optional
        Data type of the points. Default: as given.

    Raises
    ------
    DataError
        If the number of bags or the dimension is wrong, a value is not a finite number, or there is
        no response and ``n_dims`` is not given. The message names the bag and the row.

    See Also
    --------
    Responses : Bags as responses.
    TripleBasisRegressor : Predict densities from bags.
    as_bags : Make bags from a list of arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from bagbasis import as_responses
    >>> as_responses([np.zeros((3, 1)), None], n_bags=2).sizes
    array([3, 0])
    """
    if isinstance(data, np.ndarray) and data.ndim != 3 and data.dtype != object:
        are_numbers = data.ndim == 1 or data.shape[1:] == (1,)
        hint = "; to learn one number per bag, use DoubleBasisRegressor" if are_numbers else ""
        raise DataError(
            f"expected responses, got one array of shape {data.shape}; pass a list with one "
            f"(n_points, n_dims) array per bag, None for a bag without{hint}"
        )
    if not isinstance(data, Sequence | np.ndarray) or isinstance(data, str | bytes):
        raise DataError(f"expected one response per bag, or None, got {shown(data)}")
    if len(data) != n_bags:
        raise DataError(f"{len(data)} responses for {n_bags} bags; use None for a bag without")
    ids = None if ids is None else as_ids(ids, n_bags)[0]
    if not isinstance(data, (Responses, Bags)):
        data = _join_responses(data, n_dims, ids)
    elif n_dims not in (None, data.n_dims):
        raise DataError(f"responses have dimension {data.n_dims}, expected {n_dims}")
    dtype = None if dtype is None else check_dtype("dtype", dtype)
    with np.errstate(over="ignore"):  # an overflow is infinite, and refused as such
        points = data.points if dtype is None else data.points.astype(dtype, copy=False)
    return Responses(points, data.offsets, ids=ids).named(data.coordinate_names)


def as_response(item: ArrayLike | None, name: str) -> NDArray[Any] | None:
    """Return the points of one response, shape (m, n_dims), m > 0; None for a missing one.

    ``name`` is the name of the bag in messages.
    """
    check_array_apart(f"{Responses.OWNER}{name}", item, is_whole=False)
    points = None if item is None else as_bag(item, f"{Responses.OWNER}{name}", empty=True)
    return None if points is None or not len(points) else points


def _join_responses(
    items: Sequence[ArrayLike | None], n_dims: int | None, ids: IdsLike | None
) -> Responses:
    names = (
        range(len(items)) if ids is None else [f"with id {i!r}" for i in np.asarray(ids).tolist()]
    )
    parts, sizes = list[NDArray[Any]](), np.zeros(len(items), dtype=np.int64)
    of_each, owners = list[Names](), list[str]()
    integers = IntegerRange("responses")
    for i, item in enumerate(items):
        part = as_response(item, f"bag {names[i]}")
        if part is None:
            continue
        n_dims = part.shape[1] if n_dims is None else n_dims
        if part.shape[1] != n_dims:
            raise DataError(
                f"{Responses.OWNER}bag {names[i]} has dimension {part.shape[1]}, expected {n_dims}"
            )
        integers.add(item, part)
        parts.append(part)
        of_each.append(names_of_table(item))
        owners.append(f"{Responses.OWNER}bag {names[i]}")
        sizes[i] = len(part)
    if n_dims is None:
        raise DataError("no bag has a response, so their dimension is not known")
    if not parts:
        return Responses.none(len(items), n_dims)
    integers.check()
    parts, columns = in_one_order(parts, of_each, owners.__getitem__)
    return Responses.trusted(np.concatenate(parts), offsets_of(sizes), names=columns)
