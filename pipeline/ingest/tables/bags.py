"""Turns sorted rows of long tables into bags, and joins other tables to them by id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...core.arrays import Floats, Integers
from ...core.errors import DataError
from ...data.bags.bags import AnyRagged, Bags, offsets_of
from ...data.bags.ids import folded
from ...data.bags.responses import Responses
from .surveys import CheckedTable
from .values import MEDIAN, Columns


class JoinedRows(NamedTuple):
    """Whole bags, ascending by id, with their rows of the other tables.

    ``ids``, shape (n_bags,), are int64 or text. ``targets``, shape (n_bags, n_targets), are NaN if
    missing. ``n_without_row`` bags are not in the target table. ``responses`` is None if there is
    no table of them.
    """

    ids: NDArray[Any]
    bags: Bags
    targets: Floats
    responses: Responses | None = None
    n_without_row: int = 0

    def choose(self, chosen: NDArray[np.bool_]) -> JoinedRows:
        """Return some of the bags, by a mask."""
        answers = None if self.responses is None else self.responses[chosen]
        ids, bags, targets = self.ids[chosen], self.bags[chosen], self.targets[chosen]
        return self._replace(ids=ids, bags=bags, targets=targets, responses=answers)

    def without_missing(self, missing: str) -> JoinedRows:
        """Drop the points that lack a coordinate, or the bags that have such points.

        ``missing`` is the parameter of `TableIngest`.
        """
        if missing in ("refuse", MEDIAN):
            return self
        bags, answers = _drop_points(self.bags), self.responses
        complete = bags.sizes == self.bags.sizes
        if answers is not None and self.responses is not None:
            answers = _drop_points(answers)
            complete &= answers.sizes == self.responses.sizes
        labelled = self._replace(bags=bags, responses=answers)
        return labelled.choose(complete if missing == "drop_bag" else bags.sizes > 0)


class SortedRows:
    """The rows of a table, sorted by id and row (see `Scan.coded`), taken from the front."""

    def __init__(self, batches: Iterator[pa.Table]) -> None:
        self._batches = batches
        self._rest: pa.Table | None = None

    def take_bags(self) -> Iterator[pa.Table]:
        """Yield all rows, in tables that end at the end of a bag."""
        pending: list[pa.Table] = []  # the rows of one bag, which may continue in the next table
        bag: Any = None
        for batch in self._batches:
            if not len(batch):
                continue
            ids = _ids_of(batch)
            start = int(np.searchsorted(ids, ids[-1]))  # of the last bag
            if start or bag != ids[-1]:
                if start or pending:
                    yield pa.concat_tables([*pending, batch[:start]])
                pending, bag = [], ids[-1]
            pending.append(batch[start:])
        yield pa.concat_tables(pending)

    def take_until(self, last: int | str | None) -> pa.Table | None:
        """Return the rows up to an id (all remaining rows for None); None without rows."""
        taken: list[pa.Table] = []
        while True:
            batch = next(self._batches, None) if self._rest is None else self._rest
            if batch is None:
                break
            ids = _ids_of(batch)
            n_rows = len(ids) if last is None else int(np.searchsorted(ids, last, side="right"))
            taken += [batch[:n_rows]] if n_rows else []
            self._rest = batch[n_rows:] if n_rows < len(ids) else None
            if self._rest is not None:
                break
        return pa.concat_tables(taken) if taken else None


@dataclass
class UnknownIds:
    """Treatment of ids of the other tables that no point has, and the number of ids left out.

    ``alike`` is the first id left out that differs from an id of the points only in how it is
    written, and that id.
    """

    are_skipped: bool = False
    count: int = 0
    alike: tuple[str, str] | None = None


def join_tables(
    tables: Mapping[str, CheckedTable],
    classes: Mapping[str, Sequence[str]],
    rows: Mapping[str, SortedRows],
    unknown: UnknownIds,
) -> Iterator[JoinedRows]:
    """Yield all bags, each with its rows of the other tables.

    Parameters
    ----------
    tables, rows : mapping
        Tables and their sorted rows by name: "points", and "targets" and "responses" if there are
        such tables.
    classes : mapping from target to sequence of str
        Labels of the targets in the table of points that are text.
    unknown : UnknownIds
        Treatment of unknown ids; counts the skipped ones.

    Raises
    ------
    DataError
        If a target varies within a bag, a target table has an id twice, or an id that no point has
        is not skipped. The message names the bag, or the file and the row.
    """

    def join(bags: JoinedRows, last: int | str | None) -> JoinedRows:
        for role, add in (("targets", _add_targets), ("responses", _add_responses)):
            if role in tables:
                bags = add(bags, rows[role].take_until(last), tables[role], unknown)
        return bags

    bags = None
    for of_bags in rows["points"].take_bags():
        bags = _group_rows(of_bags, tables["points"].columns, classes)
        yield join(bags, bags.ids[-1])
    if bags is not None:
        join(bags, None)  # refuses the remaining rows, whose ids come after the last bag's


def _drop_points(sets: AnyRagged) -> AnyRagged:
    """Return sets of points without those that lack a coordinate."""
    complete = ~np.isnan(sets.points).any(axis=1)
    return type(sets).trusted(
        sets.points[complete], np.append(0, np.cumsum(complete))[sets.offsets]
    )


def _ids_of(rows: pa.Table) -> NDArray[Any]:
    """Return the id of each row, int64 or Python's text."""
    return np.asarray(rows["id"].to_numpy())


def _matrix(rows: pa.Table, prefix: str) -> NDArray[Any]:
    """Return the coordinates ("x") or the targets ("y") of all rows, NaN where there is none."""
    columns = [rows[name].to_numpy() for name in rows.column_names if name[0] == prefix]
    return np.column_stack(columns) if columns else np.empty((len(rows), 0))


def _group_rows(
    rows: pa.Table, columns: Columns, classes: Mapping[str, Sequence[str]]
) -> JoinedRows:
    """Return the bags of the rows, with the targets that the table of points holds."""
    ids = _ids_of(rows)
    starts = np.flatnonzero(np.append(True, ids[1:] != ids[:-1]))
    offsets = np.append(starts, len(ids)).astype(np.int64)
    values, targets = _matrix(rows, "y"), [target.name for target in columns.targets]
    for name, rule in columns.target_rules.items():
        j = targets.index(name)
        values[:, j] = np.repeat(RULES[rule](values[:, j], offsets), np.diff(offsets))
    expected = np.repeat(values[starts], np.diff(offsets), axis=0)
    differs = (values != expected) & ~(np.isnan(values) & np.isnan(expected))
    if differs.any():
        row, j = (int(at) for at in np.argwhere(differs)[0])
        labels = classes.get(targets[j])
        label, another = (
            repr(labels[int(value)]) if labels and value == value else str(value)
            for value in (expected[row, j], values[row, j])
        )
        rule = "last" if labels else "mean"
        raise DataError(
            f"bag {_plain(ids[row])!r}: target {targets[j]!r} is {label} in one row and {another} "
            "in another; it must be the same in all rows of a bag, or set target_rules="
            f"{{{targets[j]!r}: {rule!r}}}"
        )
    return JoinedRows(ids[starts], Bags.trusted(_matrix(rows, "x"), offsets), values[starts])


def _count(values: Floats, offsets: Integers) -> Floats:
    return np.add.reduceat((~np.isnan(values)).astype(np.float64), offsets[:-1])


def _mean(values: Floats, offsets: Integers) -> Floats:
    sums = np.add.reduceat(np.where(np.isnan(values), 0.0, values), offsets[:-1])
    counts = _count(values, offsets)
    return np.where(counts > 0, sums / np.maximum(1.0, counts), np.nan)


def _any(values: Floats, offsets: Integers) -> Floats:
    return np.fmax.reduceat((values != 0) + 0.0 * values, offsets[:-1])


def _last(values: Floats, offsets: Integers) -> Floats:
    rows = np.where(np.isnan(values), -1, np.arange(len(values)))
    last = np.maximum.reduceat(rows, offsets[:-1])
    return np.where(last >= 0, values[last], np.nan)


RULES = {"mean": _mean, "any": _any, "last": _last, "count": _count}  # of the rows of a bag


def _add_targets(
    bags: JoinedRows, rows: pa.Table | None, table: CheckedTable, unknown: UnknownIds
) -> JoinedRows:
    """Return the bags with the targets of the rows of a target table."""
    targets = np.full((len(bags.ids), len(table.columns.targets)), np.nan)
    if rows is None:
        return bags._replace(targets=targets, n_without_row=len(bags.ids))
    rows, positions = _positions(bags, rows, "target", table, unknown)
    ids, numbers = _ids_of(rows), rows["row"].to_numpy()
    again = np.flatnonzero(ids[1:] == ids[:-1])
    if len(again):
        first, second = (table.place_of(numbers[again[0] + i]) for i in range(2))
        raise DataError(
            f"{second}: id {_plain(ids[again[0]])!r} is repeated in the target table (first in "
            f"{first}); keep one row per bag"
        )
    targets[positions] = _matrix(rows, "y")
    return bags._replace(targets=targets, n_without_row=len(bags.ids) - len(rows))


def _add_responses(
    bags: JoinedRows, rows: pa.Table | None, table: CheckedTable, unknown: UnknownIds
) -> JoinedRows:
    """Return the bags with the rows of a table of responses."""
    n_bags, n_dims = len(bags.ids), len(table.columns.coordinates)
    if rows is not None:
        rows, positions = _positions(bags, rows, "response", table, unknown)
    if rows is None or not len(rows):
        return bags._replace(responses=Responses.none(n_bags, n_dims, dtype=bags.bags.points.dtype))
    sizes = np.bincount(positions, minlength=n_bags)
    responses = Responses.trusted(_matrix(rows, "x"), offsets_of(sizes.astype(np.int64)))
    return bags._replace(responses=responses)


def _positions(
    bags: JoinedRows, rows: pa.Table, what: str, table: CheckedTable, unknown: UnknownIds
) -> tuple[pa.Table, Integers]:
    """Return the rows of another table whose bags exist, with the position of the bag of each."""
    ids = _ids_of(rows)
    positions = np.searchsorted(bags.ids, ids).astype(np.int64)
    is_unknown = bags.ids[np.minimum(positions, len(bags.ids) - 1)] != ids
    if is_unknown.any() and not unknown.are_skipped:
        at = int(np.argmax(is_unknown))
        place = table.place_of(rows["row"][at].as_py())
        pair = _alike(ids[at : at + 1], bags.ids)
        remedy = "remove the row, add the bag's points, or set unknown_ids to skip"
        if pair:
            remedy = (
                f"the points have {pair[1]!r}: write both alike if they are one bag, or {remedy}"
            )
        raise DataError(
            f"{place}: id {_plain(ids[at])!r} of the {what} table is unknown: no point has it; "
            f"{remedy}"
        )
    if not is_unknown.any():
        return rows, positions
    unknown.count += len(np.unique(ids[is_unknown]))
    unknown.alike = unknown.alike or _alike(ids[is_unknown], bags.ids)
    return rows.filter(pa.array(~is_unknown)), positions[~is_unknown]


def _alike(unknown: NDArray[Any], known: NDArray[Any]) -> tuple[str, str] | None:
    """Return the first unknown id that is written unlike a known one, and the known id.

    None for numbers, and where the bags of one batch have no such id.
    Blanks, case, the code of letters and the zeros of a number count as ways of writing.
    """
    if known.dtype.kind != "O":
        return None
    by_fold = {folded(name).casefold(): name for name in known.tolist()}
    pairs = ((name, by_fold.get(folded(name).casefold())) for name in unknown.tolist())
    return next(((name, other) for name, other in pairs if other is not None), None)


def _plain(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value
