"""The leave-one-out sums of all bags of a store, in one distributed pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bags import Bags, BagStore, Box
from ..bags.plan import Range, split_evenly
from ..bags.reading import iter_bags
from ..bases import index_set
from ..bases.leave_one_out import LeaveOneOutSums, leave_one_out_sums
from ..embeddings.base import outside_error
from ..errors import DataError
from ..execution import Progress, Report, map_reduce

VALUES_A_BLOCK = 2**20
TASK_SECONDS = 20.0
SECONDS_A_VALUE = 5e-10  # a function at a point, both means; the plan needs the right order
MAX_TASKS = 4096


@dataclass(frozen=True)
class LeaveOneOutPass:
    """`LeaveOneOutSums` of a range of bags: a pure function of its fields and the range.

    ``n_per_dim`` or ``max_norm`` is the index set of all functions that any estimate needs.
    """

    data: Bags | BagStore
    n_per_dim: int | None
    max_norm: float | None
    basis: str
    box: Box
    out_of_box: str

    @property
    def indices(self) -> NDArray[np.int64]:
        return index_set(self.data.n_dims, self.n_per_dim, self.max_norm, self.basis)

    def __call__(self, bag_range: Range, report: Report) -> LeaveOneOutSums:
        start, stop = bag_range
        s = len(self.indices)
        total = LeaveOneOutSums.empty(s)
        step = max(1, VALUES_A_BLOCK // s)
        for (a, b), bags in self._parts(start, stop):
            for first in range(a, b, step):
                last = min(b, first + step)
                total += self._of_block(bags[first - a : last - a], first)
                report(last - start)
        return total

    def run(self, progress: Progress | None) -> LeaveOneOutSums:
        """The sums over all bags: on the open cluster, or in this process.

        Raises
        ------
        DataError
            No bag has two points.
        """
        n_bags, n_points = _size(self.data)
        seconds = n_points * len(self.indices) * SECONDS_A_VALUE
        n_tasks = min(MAX_TASKS, max(1, int(np.ceil(seconds / TASK_SECONDS))))
        ranges = split_evenly(n_bags, n_tasks)
        sums = map_reduce(
            self,
            ranges,
            LeaveOneOutSums.__add__,
            sizes=[stop - start for start, stop in ranges],
            progress=progress,
            here=isinstance(self.data, Bags),
        )
        if sums.n_bags == 0:
            raise DataError("the leave-one-out choice needs bags of at least two points in the box")
        return sums

    def _parts(self, start: int, stop: int) -> Any:
        if isinstance(self.data, Bags):
            return [((start, stop), self.data[start:stop])]
        return iter_bags(self.data, start, stop)

    def _of_block(self, bags: Bags, first: int) -> LeaveOneOutSums:
        every = np.arange(bags.n_dims)
        drop = self.out_of_box == "drop"
        sums, outside = leave_one_out_sums(bags, self.indices, every, self.basis, self.box, drop)
        if self.out_of_box == "error" and outside.any():
            bag = int(np.flatnonzero(outside)[0])
            raise outside_error(first + bag, int(outside[bag]), self.box)
        return sums


def _size(data: Bags | BagStore) -> tuple[int, int]:
    """Bags and points."""
    if isinstance(data, Bags):
        return len(data), data.n_points
    return data.n_bags, data.n_points
