"""What keeps results and states outside of a process, so that work started again goes on."""

from __future__ import annotations

from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

R = TypeVar("R")


class CheckpointStore(Protocol[R]):
    """Where results of groups are stored; small, picklable, used by many processes at once.

    ``every`` is the number of tasks in a group (fewer in the last one).
    """

    @property
    def every(self) -> int:
        """Tasks in a group."""
        ...

    def load(self, group: int) -> R | None:
        """Return the result of a group; None if there is none, or only a damaged one."""
        ...

    def save(self, group: int, value: R) -> None:
        """Store the result of a group, atomically."""
        ...


class StateCheckpoints(Protocol):
    """Where arrays are kept between the passes of what takes several."""

    @property
    def seconds(self) -> float:
        """Between two checkpoints."""
        ...

    def load(self, name: str) -> dict[str, NDArray[Any]] | None:
        """Return what was kept under a name; None where there is nothing, or damaged."""
        ...

    def save(self, name: str, arrays: dict[str, NDArray[Any]]) -> None:
        """Keep arrays, atomically."""
        ...


class CheckpointedState:
    """Base of dataclasses of arrays and numbers that a `StateCheckpoints` keeps."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the fields as arrays."""
        return {name: np.asarray(value) for name, value in vars(self).items()}

    @classmethod
    def of(cls, arrays: dict[str, NDArray[Any]]) -> Self:
        """Return the state that had these `arrays`."""
        return cls(**{k: v if v.ndim else v.item() for k, v in arrays.items()})
