"""Groups of tasks whose merged results are kept outside: a run started again loads them.

A group is a run of consecutive tasks, done one after the other in one lane, and kept by it as soon
as the last is merged. So each lane loses at most the group it is in, whether a worker, the
scheduler or the driver is lost; and the tree that merges the groups is the same, whether a group
was done or loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from .progress import Report

T = TypeVar("T")
R = TypeVar("R")


class Keeper(Protocol):
    """Where results of groups are kept; small, picklable, used by many processes at once.

    ``every`` is the number of tasks in a group (fewer in the last one).
    """

    @property
    def every(self) -> int: ...

    def load(self, group: int) -> Any:
        """The result of a group; None where there is none, or a damaged one."""
        ...

    def save(self, group: int, value: Any) -> None:
        """Keep the result of a group, whole or not at all."""
        ...


@dataclass(frozen=True)
class Group(Generic[T]):
    """Consecutive tasks and their units of work."""

    index: int
    tasks: tuple[T, ...]
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Kept(Generic[T, R]):
    """Loads a group's result, or does its tasks and keeps it."""

    function: Callable[[T, Report], R]
    merge: Callable[[R, R], R]
    keeper: Keeper

    def __call__(self, group: Group[T], report: Report) -> R:
        value = self.keeper.load(group.index)
        if value is None:
            value = self._done(group, report)
            self.keeper.save(group.index, value)
        return value

    def _done(self, group: Group[T], report: Report) -> R:
        values: list[R] = []
        before = 0
        for task, size in zip(group.tasks, group.sizes, strict=True):
            result = self.function(task, lambda n, before=before: report(before + n))  # type: ignore[misc]
            values = [self.merge(values[0], result) if values else result]
            before += size
            report(before)
        return values[0]


def groups_of(tasks: Sequence[T], sizes: Sequence[int], every: int) -> list[Group[T]]:
    """The groups, in order."""
    return [
        Group(index, tuple(tasks[start : start + every]), tuple(sizes[start : start + every]))
        for index, start in enumerate(range(0, len(tasks), every))
    ]
