"""`ModelState`, the content of a saved model, and its optional parts."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class ModelState:
    """The content of a saved model.

    Attributes
    ----------
    attributes : dict
        Values in types that JSON knows.
    arrays : dict
        float64 arrays by name.
    """

    attributes: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class OptionalPart:
    """A part of a fitted model that not all models have, for example not those of older versions.

    A part is a dataclass of float64 arrays, whose names are in ``arrays``, and of plain numbers.
    """

    key: ClassVar[str]
    arrays: ClassVar[tuple[str, ...]]

    def check(self, n_targets: int, n_features: int) -> None:
        """Raise ValueError unless the part fits a model of these sizes."""
        raise NotImplementedError

    def state(self) -> ModelState:
        """Return the items of this part in the state of a model."""
        plain = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in self.arrays}
        arrays = {f"{self.key}_{name}": getattr(self, name) for name in self.arrays}
        return ModelState({self.key: plain}, arrays)

    @classmethod
    def array_names(cls, attributes: dict[str, Any]) -> list[str]:
        """Return the names of its arrays in a saved model; empty if the model lacks the part."""
        return [f"{cls.key}_{name}" for name in cls.arrays] if cls.key in attributes else []

    @classmethod
    def from_state(cls, state: ModelState, n_targets: int, n_features: int) -> Self | None:
        """Return the part from the state of a model that has it.

        Raises
        ------
        ValueError
            If the part does not fit the model, or a chunk is missing.
        """
        if cls.key not in state.attributes:
            return None
        arrays = {name: state.arrays[f"{cls.key}_{name}"] for name in cls.arrays}
        if any(np.isnan(array).any() for array in arrays.values()):
            raise ValueError(f"a chunk of its {cls.key} is missing")
        part = cls(**state.attributes[cls.key], **arrays)
        part.check(n_targets, n_features)
        return part
