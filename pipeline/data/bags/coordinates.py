"""Names of coordinates, and their comparison wherever two sets of bags meet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ...core.arrays import Integers
from ...core.errors import BagbasisError, DataError, closest

Names = Sequence[str] | None
"""Names of coordinates, in order; None if the data have no names."""


def checked_names(names: Iterable[object] | None, n_dims: int) -> tuple[str, ...] | None:
    """Return names of coordinates; None unless there is a text for each coordinate."""
    texts = tuple(names) if isinstance(names, Iterable) and not isinstance(names, str) else ()
    if len(texts) != n_dims or not all(isinstance(name, str) for name in texts):
        return None
    return tuple(str(name) for name in texts)


def order_of(
    names: Names,
    expected: Names,
    what: str,
    reference: str,
    error: type[BagbasisError] = DataError,
) -> Integers | None:
    """Return the positions in ``names`` of the expected names; None if the order is the same.

    None is also returned if one side has no names: coordinates then correspond by position.

    Parameters
    ----------
    names : sequence of str, optional
        Names of the data's coordinates.
    expected : sequence of str, optional
        Names in the expected order.
    what, reference : str
        Words for the data and for their reference in messages, such as "these bags" and "the model
        was fitted".
    error : subclass of BagbasisError
        Class of the exception.

    Raises
    ------
    BagbasisError
        If the names differ, or if repeated names are in another order.
    """
    if names is None or expected is None or tuple(names) == tuple(expected):
        return None
    missing = [name for name in expected if name not in names]
    extra = [name for name in names if name not in expected]
    both = f"{what}: the coordinates are {list(names)}, and {reference} {list(expected)}"
    if missing or extra:
        hints = [f"{name!r} is missing{closest(name, extra)}" for name in missing]
        hints += [f"{name!r} is extra" for name in extra]
        raise error(f"{both}: {', '.join(hints)}; rename the columns, or choose the same")
    if len(names) != len(expected) or len(set(names)) < len(names):
        raise error(f"{both}: a name occurs twice, so that their order is not known; rename it")
    return np.array([list(names).index(name) for name in expected], dtype=np.int64)
