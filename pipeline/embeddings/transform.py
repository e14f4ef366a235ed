"""What embeddings share as scikit-learn transformers over bags."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bags import Bags, BagStore, Box, as_bags
from ..bags.labelled import LabelledBags, box_of_bags
from ..bags.sampling import CHOICE_SAMPLE
from ..errors import BagError, DataError, ParameterError
from .spec import EmbeddingSpec, Sample

OUT_OF_BOX = ("clip", "drop", "error")


class BagTransformer:
    """`fit` and `transform` of an embedding with the parameters box, out_of_box and dtype.

    Attributes
    ----------
    spec_ : EmbeddingSpec
        What was decided at `fit`.
    """

    box: Any
    out_of_box: str
    dtype: str

    def resolve(self, n_dims: int, box: Box, sample: Sample) -> EmbeddingSpec:
        """The spec for points in R^n_dims."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None) -> Any:
        """Decide dimension, box and what is left open. X: Bags, list of arrays, or BagStore."""
        if isinstance(X, BagStore):
            store = X
            self.spec_ = self.resolve(
                store.n_dims, store.box, lambda: LabelledBags(store).sample(CHOICE_SAMPLE)
            )
        else:
            bags = as_bags(X)
            if len(bags) == 0:
                raise DataError("no bags to fit")
            self.spec_ = self.resolve(bags.n_dims, box_of_bags(bags), lambda: [bags])
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Embeddings, shape (n_bags, s), of Bags or a list of arrays.

        Without a `fit` before, a box that is not given is the unit cube, and points outside of
        it are refused. For a BagStore there is `bagbasis.features`.
        """
        if isinstance(X, BagStore):
            raise DataError(
                f"{X.url}: a store's features are lazy; use bagbasis.features(store, …)"
            )
        bags = as_bags(X)
        spec = getattr(self, "spec_", None)
        if spec is None:
            if self.box is None and box_of_bags(bags) != Box.unit(bags.n_dims):
                raise DataError("points lie outside the unit cube; call fit first or give box=")
            spec = self.resolve(bags.n_dims, Box.unit(bags.n_dims), lambda: [bags])
        out = np.empty((len(bags), spec.n_features), dtype=self.dtype)
        spec.embed(bags, out)
        return out

    def check_common(self) -> None:
        """Raise ParameterError for an out_of_box or a dtype that is not there."""
        if self.out_of_box not in OUT_OF_BOX:
            raise ParameterError(
                f"out_of_box is {self.out_of_box!r}; expected one of {list(OUT_OF_BOX)}"
            )
        if self.dtype not in ("float32", "float64"):
            raise ParameterError(f"dtype is {self.dtype!r}; expected 'float32' or 'float64'")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "spec_")


def check_dims(bags: Bags, n_dims: int) -> None:
    """Raise DataError for bags of another dimension than an embedding's."""
    if bags.n_dims != n_dims:
        raise DataError(f"bags have dimension {bags.n_dims}, the embedding was made for {n_dims}")


def check_outside(
    outside: NDArray[np.int64],
    embeddings: NDArray[Any],
    out_of_box: str,
    box: Box,
    first: int = 0,
) -> None:
    """Raise BagError for the first bag that ``out_of_box`` refuses.

    Parameters
    ----------
    outside : int64, shape (n_bags,)
        Points of each bag outside the box.
    embeddings : shape (n_bags, s)
        NaN where "drop" left no point, with marginals in the columns of the marginal.
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
    """What out_of_box="error" says of a bag."""
    return BagError(bag, f"{n_outside} points lie outside the box {box.bounds}")
