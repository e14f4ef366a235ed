"""Interfaces of checkpoint stores, from which restarted work continues."""

from __future__ import annotations

from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

_R = TypeVar("_R")


class CheckpointStore(Protocol[_R]):
    """Store for the results of groups of tasks; small, picklable, safe for concurrent use.

    ``every`` is the number of tasks in a group; the last group may have fewer.
    """

    @property
    def every(self) -> int:
        """Number of tasks in a group."""
        ...

    def load(self, group: int) -> _R | None:
        """Return the result of a group; None if the result is missing or damaged."""
        ...

    def save(self, group: int, value: _R) -> None:
        """Store the result of a group, atomically."""
        ...


class StateCheckpoints(Protocol):
    """Store for the arrays of a computation with several passes."""

    @property
    def seconds(self) -> float:
        """Seconds between two checkpoints."""
        ...

    def load(self, name: str) -> dict[str, NDArray[Any]] | None:
        """Return the arrays stored under a name; None if they are missing or damaged."""
        ...

    def save(self, name: str, arrays: dict[str, NDArray[Any]]) -> None:
        """Store arrays, atomically."""
        ...


class CheckpointedState:
    """Base of dataclasses of arrays and numbers that a `StateCheckpoints` stores."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the fields as arrays."""
        return {name: np.asarray(value) for name, value in vars(self).items()}

    @classmethod
    def of(cls, arrays: dict[str, NDArray[Any]]) -> Self:
        """Return the state with these `arrays`."""
        return cls(**{k: v if v.ndim else v.item() for k, v in arrays.items()})
