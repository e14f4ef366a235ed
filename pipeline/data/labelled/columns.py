"""Per-bag values other than labels: groups, times and weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.arrays import Integers, as_array, missing_in
from ...core.errors import DataError, ParameterError, shown
from ..bags.bags import Bags
from ..bags.precision import check_labels_apart
from ..store.store import BagStore
from .alignment import aligned

_ROWS_PER_READ = 2**20  # bags whose values are read at a time
MAX_HELD_BAGS = 2**17  # bags whose values travel with every task: 1 MiB
MAX_GAP = 2**14  # bags between two runs that are read separately


@dataclass(frozen=True, eq=False)
class Column:
    """One value per bag: a column of a store, or values of bags in memory.

    Attributes
    ----------
    name : str
        Name of the store's column, or of the values in messages.
    store : BagStore, optional
    values : array, shape (n_bags,), optional
    """

    name: str
    store: BagStore | None = None
    values: NDArray[Any] | None = None

    @classmethod
    def of(cls, data: Bags | BagStore, what: str, column: str | ArrayLike) -> Column:
        """Return a named column of a store, or one value per bag.

        Parameters
        ----------
        what : str
            Name of the values in messages, such as "groups".

        Raises
        ------
        DataError
            If the store lacks the column, the number of values is not the number of bags, or an
            index has other ids than the bags (see `aligned`).
        ParameterError
            If a column is named for bags in memory.
        """
        if not isinstance(column, str):
            values = as_array(what, aligned(column, data, what))
            if values.shape != (len(data),):
                raise DataError(f"{what} has shape {values.shape}; expected ({len(data)},)")
            if what == "groups" and values.dtype.kind == "f":
                check_labels_apart(what, values)
            made = cls(what, values=values)
            made.members(0, len(data))  # none is missing
            return made
        if not isinstance(data, BagStore):
            raise ParameterError(f"{what} names a target of a BagStore; give one value per bag")
        data.target_columns([column])
        return cls(column, store=data)

    def held(self) -> Column:
        """Return the column with its values in memory if there are few: they are read often."""
        store = self.store
        if store is None or store.n_bags > MAX_HELD_BAGS or store.meta.n_changes:
            return self
        return Column(self.name, values=self.members(0, store.n_bags))

    def members(self, start: int, stop: int) -> NDArray[Any]:
        """Return the values of bags start … stop − 1, shape (stop − start,); NaN if removed.

        Raises
        ------
        DataError
            If a bag has no value.
        """
        if self.store is None:
            assert self.values is not None
            values = self.values[start:stop]
        else:
            values = self.store.targets(start, stop, names=[self.name])[:, 0]
        missing = missing_in(values)
        if self.store is not None:
            missing &= self.store.present(start, stop)
        if missing.any():
            where = f"{self.store.url}: " if self.store else ""
            raise DataError(f"{where}{self.name}: bag {start + int(missing.argmax())} has none")
        return values

    def at(self, index: Integers) -> NDArray[Any]:
        """Return the values of some bags, shape (n,); a store's values are read run by run."""
        if self.values is not None:
            values: NDArray[Any] = self.values[index]
            return values
        steps = np.diff(index)
        ends = np.flatnonzero((steps < 1) | (steps > MAX_GAP)) + 1
        runs = [run for run in np.split(index, ends) if len(run)]
        parts = [self.members(int(run[0]), int(run[-1]) + 1)[run - run[0]] for run in runs]
        return np.concatenate(parts) if parts else np.empty(0)

    def blocks(self, start: int, stop: int) -> Iterator[tuple[int, int, NDArray[Any]]]:
        """Yield ranges of bags and their values."""
        for first in range(start, stop, _ROWS_PER_READ):
            last = min(stop, first + _ROWS_PER_READ)
            yield first, last, self.members(first, last)


def refuse_columns_of_classes(store: BagStore, names: Iterable[str], what: str) -> None:
    """Raise DataError for a column of classes, whose codes are no numbers to compute with.

    Parameters
    ----------
    what : str
        Name of the columns in the message, such as "sample_weight".
    """
    for name in names:
        classes = store.meta.class_names.get(name)
        if classes is not None:
            raise DataError(
                f"{store.url}: {what}: {name!r} has classes, {shown(list(classes))}, and no "
                "numbers; name a column of numbers"
            )
