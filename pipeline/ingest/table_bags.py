"""Sorted rows of long tables as bags: cut where the id changes, and joined on the id."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..bags.bags import Bags, offsets_of
from ..bags.responses import Responses
from ..errors import DataError
from .table_surveys import CheckedTable

Show = Callable[[int, float], str]  # a target's position and value as the table has it


class Labelled(NamedTuple):
    """Whole bags, ascending by id, and what other tables have for them.

    ``ids``, shape (n_bags,), are int64 or text; ``targets``, shape (n_bags, n_targets), are NaN
    where there is none; ``n_without_row`` bags are not in the target table. ``responses`` is None
    without a table of them.
    """

    ids: NDArray[Any]
    bags: Bags
    targets: NDArray[np.float64]
    responses: Responses | None = None
    n_without_row: int = 0


class SortedRows:
    """The rows of a table by id and row, as `Scan.coded` gives them, taken from the front."""

    def __init__(self, batches: Iterator[pa.Table]) -> None:
        self._batches = batches
        self._rest: pa.Table | None = None

    def take_bags(self) -> Iterator[pa.Table]:
        """All rows, in tables that end where a bag does."""
        pending: list[pa.Table] = []  # the rows of one bag, which may go on
        bag: Any = None
        for batch in self._batches:
            if not len(batch):
                continue
            ids = ids_of(batch)
            start = int(np.searchsorted(ids, ids[-1]))  # of the last bag
            if start or bag != ids[-1]:
                if start or pending:
                    yield pa.concat_tables([*pending, batch[:start]])
                pending, bag = [], ids[-1]
            pending.append(batch[start:])
        yield pa.concat_tables(pending)

    def take_until(self, last: Any) -> pa.Table | None:
        """The rows up to an id, that of None all the rest; None for no rows."""
        taken: list[pa.Table] = []
        while (
            batch := self._rest if self._rest is not None else next(self._batches, None)
        ) is not None:
            ids = ids_of(batch)
            n_rows = len(ids) if last is None else int(np.searchsorted(ids, last, side="right"))
            taken += [batch[:n_rows]] if n_rows else []
            self._rest = batch[n_rows:] if n_rows < len(ids) else None
            if self._rest is not None:
                break
        return pa.concat_tables(taken) if taken else None


def ids_of(rows: pa.Table) -> NDArray[Any]:
    """The id of each row, int64 or Python's text."""
    return np.asarray(rows["id"].to_numpy())


def matrix(rows: pa.Table, prefix: str) -> NDArray[Any]:
    """The coordinates ("x") or the targets ("y") of all rows, NaN where there is none."""
    columns = [rows[name].to_numpy() for name in rows.column_names if name[0] == prefix]
    return np.column_stack(columns) if columns else np.empty((len(rows), 0))


def group_rows(rows: pa.Table, show: Show, names: tuple[str, ...]) -> Labelled:
    """The bags of the rows, with the targets that they hold themselves.

    Raises
    ------
    DataError
        A target that is not the same in all rows of a bag.
    """
    ids = ids_of(rows)
    starts = np.flatnonzero(np.append(True, ids[1:] != ids[:-1]))
    offsets = np.append(starts, len(ids)).astype(np.int64)
    values = matrix(rows, "y")
    expected = np.repeat(values[starts], np.diff(offsets), axis=0)
    differs = (values != expected) & ~(np.isnan(values) & np.isnan(expected))
    if differs.any():
        row, j = (int(at) for at in np.argwhere(differs)[0])
        one, another = show(j, expected[row, j]), show(j, values[row, j])
        raise DataError(
            f"bag {_plain(ids[row])!r}: target {names[j]!r} is {one} in one row and {another} in "
            "another; it must be the same in all rows of a bag"
        )
    return Labelled(ids[starts], Bags.trusted(matrix(rows, "x"), offsets), values[starts])


def join_targets(bags: Labelled, rows: pa.Table | None, table: CheckedTable) -> Labelled:
    """The same bags with the targets of the rows of a target table.

    Raises
    ------
    DataError
        An id that is there twice, or that no point has; names the file and the row.
    """
    targets = np.full((len(bags.ids), len(table.columns.targets)), np.nan)
    if rows is not None:
        ids, numbers = ids_of(rows), rows["row"].to_numpy()
        again = np.flatnonzero(ids[1:] == ids[:-1])
        if len(again):
            first, second = (table.place_of(numbers[again[0] + i]) for i in range(2))
            raise DataError(
                f"{second}: id {_plain(ids[again[0]])!r} is repeated in the target table (first in "
                f"{first}); keep one row per bag"
            )
        targets[_positions(bags, rows, "target", table)] = matrix(rows, "y")
    n_rows = 0 if rows is None else len(rows)
    return bags._replace(targets=targets, n_without_row=len(bags.ids) - n_rows)


def join_responses(bags: Labelled, rows: pa.Table | None, table: CheckedTable) -> Labelled:
    """The same bags with the rows of a table of responses.

    Raises
    ------
    DataError
        An id that no point has; names the file and the row.
    """
    n_bags = len(bags.ids)
    if rows is None:
        n_dims, dtype = len(table.columns.coordinates), bags.bags.points.dtype
        return bags._replace(responses=Responses.none(n_bags, n_dims, dtype))
    positions = _positions(bags, rows, "response", table)
    sizes = np.bincount(positions, minlength=n_bags).astype(np.int64)
    return bags._replace(responses=Responses.trusted(matrix(rows, "x"), offsets_of(sizes)))


def _positions(bags: Labelled, rows: pa.Table, what: str, table: CheckedTable) -> NDArray[np.int64]:
    """The bag of each row of another table."""
    ids = ids_of(rows)
    positions = np.searchsorted(bags.ids, ids)
    found = bags.ids[np.minimum(positions, len(bags.ids) - 1)]
    unknown = np.flatnonzero(found != ids)
    if len(unknown):
        at = int(unknown[0])
        place = table.place_of(rows["row"][at].as_py())
        raise DataError(
            f"{place}: id {_plain(ids[at])!r} of the {what} table is unknown: no point has it; "
            "remove the row or add the bag's points"
        )
    return positions.astype(np.int64)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
