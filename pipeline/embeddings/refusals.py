"""Checks of bags before they are embedded: their dimension, and points outside the box."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.arrays import Integers
from ..core.errors import BagError, DataError
from ..data.bags.bags import Bags
from ..data.bags.box import Box
from ..data.labelled.labelled import LabelledBags


def check_dims(bags: Bags | LabelledBags, n_dims: int) -> None:
    """Raise DataError if bags do not have the dimension of the embedding."""
    if bags.n_dims != n_dims:
        raise DataError(f"bags have dimension {bags.n_dims}, the embedding was made for {n_dims}")


def refuse_outside(
    outside: Integers, embeddings: NDArray[Any], out_of_box: str, box: Box, first: int = 0
) -> None:
    """Raise BagError for the first bag that ``out_of_box`` does not allow.

    Parameters
    ----------
    outside : int64, shape (n_bags,)
        Number of points of each bag outside the box.
    embeddings : shape (n_bags, s)
        Embeddings, which are NaN if "drop" removes all points. With marginals, only the columns of
        the empty marginal are NaN.
    first : int
        Position of the first of these bags, for the message.
    """
    if out_of_box == "error" and outside.any():
        bag = int(np.flatnonzero(outside)[0])
        raise outside_error(first + bag, int(outside[bag]), box)
    if out_of_box == "drop":
        suspects = np.flatnonzero(outside)
        empty = suspects[~np.isfinite(embeddings[suspects]).all(axis=1)]
        if len(empty):
            raise BagError(first + int(empty[0]), f"no point lies inside the box {box.bounds}")


def outside_error(bag: int, n_outside: int, box: Box) -> BagError:
    """Return the error that out_of_box="error" raises for a bag."""
    return BagError(bag, f"{n_outside} points lie outside the box {box.bounds}")
