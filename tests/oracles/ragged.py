"""Ragged data the slow and obvious way: lists of arrays, and loops over bags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagbasis import Bags, BagStore, Responses

SIZES = (1, 2, 255, 256, 257, 10_000)  # around powers of two, and one bag far larger than a chunk


def random_bags(
    rng: np.random.Generator, sizes: Sequence[int], n_dims: int, dtype: Any = np.float64
) -> list[NDArray[Any]]:
    """One array of standard normal points a bag."""
    return [rng.standard_normal((size, n_dims)).astype(dtype) for size in sizes]


def random_responses(
    rng: np.random.Generator, n_bags: int, n_dims: int, dtype: Any = np.float64
) -> list[NDArray[Any] | None]:
    """One array of standard normal points a bag, some of one point; None for about a third."""
    sizes = rng.choice([0, 0, 1, 2, 17, 40], n_bags)
    return [rng.standard_normal((m, n_dims)).astype(dtype) if m else None for m in sizes]


def assert_same_responses(responses: Responses, expected: Sequence[NDArray[Any] | None]) -> None:
    """The responses equal the arrays, bit by bit, and None is none."""
    assert len(responses) == len(expected)
    there = [i for i, truth in enumerate(expected) if truth is not None]
    assert responses.positions.tolist() == there
    assert_same_bags(responses.present, [expected[i] for i in there])


def assert_same_bags(bags: Bags, expected: Sequence[NDArray[Any]]) -> None:
    """The bags equal the arrays, bit by bit."""
    assert len(bags) == len(expected)
    for bag, truth in zip(bags, expected, strict=True):
        np.testing.assert_array_equal(bag, truth)


def partitions_by_loop(
    sizes: Sequence[int], first_row: int, chunk_rows: int, max_rows: int
) -> list[tuple[int, int]]:
    """The planner's rule bag by bag: as many bags as fit, cut back to a chunk boundary if one
    lies in the second half of the range."""
    ranges, start, row = [], 0, first_row
    while start < len(sizes):
        rows = [row + sizes[start]]
        while start + len(rows) < len(sizes) and rows[-1] + sizes[start + len(rows)] - row <= (
            max_rows
        ):
            rows.append(rows[-1] + sizes[start + len(rows)])
        count = len(rows)
        if start + count < len(sizes):
            aligned = [i for i, end in enumerate(rows, 1) if end % chunk_rows == 0]
            half = (row + rows[-1]) // 2
            if aligned and rows[aligned[-1] - 1] >= half:
                count = aligned[-1]
        ranges.append((start, start + count))
        start, row = start + count, rows[count - 1]
    return ranges


@dataclass
class StoreModel:
    """What a store should hold: one array, one row of targets and one id a bag.

    And one response or None, which a store without responses does not hold.
    """

    bags: list[NDArray[Any]] = field(default_factory=list)
    targets: list[list[float]] = field(default_factory=list)
    ids: list[Any] = field(default_factory=list)
    responses: list[NDArray[Any] | None] = field(default_factory=list)
    removed: frozenset[int] = frozenset()

    def extended(
        self,
        bags: Sequence[NDArray[Any]],
        targets: Sequence[list[float]],
        ids: Sequence[Any],
        responses: Sequence[NDArray[Any] | None] | None = None,
    ) -> StoreModel:
        return StoreModel(
            [*self.bags, *bags],
            [*self.targets, *targets],
            [*self.ids, *ids],
            [*self.responses, *(responses or [None] * len(bags))],
            self.removed,
        )

    def changed(self, removed: Sequence[int] = (), labels: Any = None) -> StoreModel:
        """The model without some bags, and with other first targets of some."""
        new = labels or {}
        targets = [[new.get(i, row[0]), *row[1:]] for i, row in enumerate(self.targets)]
        return replace(self, targets=targets, removed=self.removed | set(removed))

    def check(self, store: BagStore, start: int = 0, stop: int | None = None) -> None:
        """The store's bags ``start:stop``, their targets and ids are the model's."""
        assert store.n_bags == len(self.bags)
        present = [bag for i, bag in enumerate(self.bags) if i not in self.removed]
        assert store.n_points == sum(map(len, present))
        assert store.n_removed == len(self.removed)
        part = slice(start, len(self.bags) if stop is None else stop)
        gone = [i in self.removed for i in range(len(self.bags))][part]
        bags = zip(self.bags[part], gone, strict=True)
        assert_same_bags(store.read(start, stop), [bag[:0] if out else bag for bag, out in bags])
        assert store.ids(start, stop).tolist() == self.ids[part]
        targets = np.reshape(self.targets[part], (len(gone), len(store.target_names)))
        targets = np.where(np.array(gone, dtype=bool)[:, None], np.nan, targets)
        np.testing.assert_array_equal(store.targets(start, stop), targets)
        if store.response_dims is not None:
            sizes = [0 if response is None else len(response) for response in self.responses]
            assert store.n_response_points == sum(sizes)
            responses = zip(self.responses[part], gone, strict=True)
            expected = [None if out else response for response, out in responses]
            assert_same_responses(store.responses(start, stop), expected)


def bags_at_the_edge():
    """Bags of the unit square on its edges and in its corners, of one point, or all alike."""
    return [
        [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]],
        [[0.5, 1.0]],
        [[0.0, 0.0]],
        np.full((300, 2), 0.25),
        np.concatenate([np.full((500, 2), 1e-7), np.ones((1, 2))]),
    ]
