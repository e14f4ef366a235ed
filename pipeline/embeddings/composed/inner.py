"""`InnerSpec`: base class of embeddings that transform the features of another embedding."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from typing_extensions import override

from ...core import Instance
from ...core.arrays import Floats
from ...core.errors import ParameterError, shown
from ..base import EmbeddingSpec
from ..kinds import is_below, with_name
from ..transforms import NO_ARRAYS, Arrays

ITEM = 8  # bytes of a number in double


@dataclass(frozen=True)
class InnerSpec(EmbeddingSpec):
    """An embedding made of another one's numbers.

    Arrays are stored as bytes of float64, with rows of the length s of the inner embedding; the
    first array has one row. Bytes are compared, hashed and pickled faster than long tuples.

    Attributes
    ----------
    embedding : EmbeddingSpec
        The inner embedding.
    """

    embedding: Annotated[EmbeddingSpec, Instance()]
    described: ClassVar[tuple[str, ...]] = ("digest",)
    """Attributes that stand for the arrays in a description."""
    made: ClassVar[str]
    """What messages call its numbers."""

    @override
    def check_together(self) -> None:
        inner = self.embedding
        if not is_below(type(inner), self.nesting):
            raise ParameterError(f"there are no {self.made} of a {type(inner).__name__}")
        if (inner.box, inner.out_of_box) != (self.box, self.out_of_box):
            raise ParameterError(f"{self.made} have the box and the out_of_box of their embedding")
        row = ITEM * inner.n_features
        for name in self.array_names:
            stored = getattr(self, name)
            is_long = isinstance(stored, bytes) and len(stored) >= row and not len(stored) % row
            if not is_long or (name == self.array_names[0] and len(stored) != row):
                raise ParameterError(f"{name} is {shown(stored)}; expected rows of {row} bytes")

    @property
    @override
    def seconds_per_point(self) -> float:
        return self.embedding.seconds_per_point

    @override
    def with_margin(self) -> Self:
        return replace(self, embedding=self.embedding.with_margin())

    @property
    def digest(self) -> str:
        """Digest of the arrays."""
        joined = b"".join(getattr(self, name) for name in self.array_names)
        return hashlib.sha256(joined).hexdigest()[:32]

    @override
    def arrays(self) -> dict[str, Floats]:
        # those of several rows have shape (k, s)
        s = self.embedding.n_features
        return {
            **self.embedding.arrays(),
            **{name: self._array(name, s) for name in self.array_names},
        }

    def _array(self, name: str, s: int) -> Floats:
        flat = np.frombuffer(getattr(self, name))
        return flat if name == self.array_names[0] else flat.reshape(-1, s)

    @override
    def to_dict(self) -> dict[str, Any]:
        # the digest stands for the arrays
        return {
            "embedding": with_name(self.embedding),
            **{name: getattr(self, name) for name in self.described},
            "out_of_box": self.out_of_box,
            "box": self.box.bounds,
        }

    @classmethod
    @override
    def from_dict(cls, values: Mapping[str, Any], arrays: Arrays = NO_ARRAYS) -> Self:
        # ParameterError for arrays of another spec
        fields = {name: value for name, value in values.items() if name not in cls.described}
        packed: dict[str, Any] = {
            name: np.ascontiguousarray(array, np.float64).tobytes()
            for name, array in arrays.items()
            if name in cls.array_names and isinstance(array, np.ndarray)
        }
        if set(cls.described) - set(values):
            raise ParameterError(f"the fields {sorted(values)} are not those of a {cls.__name__}")
        spec = super().from_dict(fields, packed)
        if [values[name] for name in cls.described] != [getattr(spec, n) for n in cls.described]:
            raise ParameterError(f"the {cls.made} are not those that the description is of")
        return spec
