"""The first pass over long tables: count, measure and check every row, choose the id ranges.

Each piece gives a small `Survey`; all of them together say how ids and targets are to be read,
where the points lie, and at which ids the rows split into ranges that fit in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..bags.box import Box
from ..errors import DataError
from .columns import (
    MAX_CLASSES,
    Kind,
    Problem,
    coordinate_values,
    id_kind,
    id_problem,
    plain,
    resolve,
    target_kind,
)
from .table_files import Columns, Piece, Table, read_piece

SAMPLE = 512  # ids of each piece


@dataclass(frozen=True)
class Survey:
    """One piece in small.

    ``lo`` and ``hi``, shape (n_dims,), are in the units of the data. ``sample`` holds the ids
    of random rows, ``id_bytes`` the size of all of them. ``labels`` are the different texts of
    each target, None for too many. ``problem`` is the first row that can not be used.
    """

    n_rows: int
    lo: NDArray[np.float64]
    hi: NDArray[np.float64]
    sample: list[Any]
    id_bytes: int
    id_kind: Kind
    target_kinds: dict[str, Kind]
    labels: dict[str, set[str] | None]
    problem: Problem | None


def survey_piece(piece: Piece, columns: Columns, dtype: Any) -> Survey:
    """Read one piece and look at every value; points will be stored as ``dtype``.

    Raises
    ------
    DataError
        The file can not be read, or a column has a type that can not be used.
    """
    table = read_piece(piece, columns)
    ids = plain(table[columns.id])
    n_rows = len(ids)
    problems = [id_problem(ids)]
    lo, hi = np.empty((2, len(columns.coordinates)))
    for j, name in enumerate(columns.coordinates):
        values, problem = coordinate_values(plain(table[name]), name, piece.file, dtype)
        problems.append(_of_bag(problem, ids))
        lo[j], hi[j] = values.min(initial=np.inf), values.max(initial=-np.inf)
    kinds: dict[str, Kind] = {}
    labels: dict[str, set[str] | None] = {}
    for name in columns.targets:
        kinds[name], labels[name], problem = target_kind(plain(table[name]), name, piece.file)
        problems.append(_of_bag(problem, ids))
    random = np.random.default_rng((piece.file_index, piece.start))
    rows = random.integers(0, max(1, n_rows), min(SAMPLE, n_rows))
    return Survey(
        n_rows=n_rows,
        lo=lo,
        hi=hi,
        sample=ids.take(pa.array(rows)).drop_null().to_pylist(),
        id_bytes=ids.nbytes,
        id_kind=id_kind(ids, columns.id, piece.file),
        target_kinds=kinds,
        labels=labels,
        problem=min((p for p in problems if p is not None), default=None),
    )


def _of_bag(problem: Problem | None, ids: pa.Array) -> Problem | None:
    return problem and (problem[0], f"bag {ids[problem[0]].as_py()!r}: {problem[1]}")


def check_rows(table: Table, surveys: Sequence[Survey]) -> None:
    """Raise DataError for the first row that can not be used, naming its file and row.

    Rows are counted from 0 in each file, without the header.
    """
    for piece, row, survey in zip(table.pieces, first_rows(table, surveys), surveys, strict=True):
        if survey.problem is not None:
            raise DataError(f"{piece.file}, row {row + survey.problem[0]}: {survey.problem[1]}")


def first_rows(table: Table, surveys: Sequence[Survey]) -> list[int]:
    """The row in its file at which each piece begins."""
    rows: list[int] = []
    ends = [0] * len(table.files)
    for piece, survey in zip(table.pieces, surveys, strict=True):
        rows.append(ends[piece.file_index])
        ends[piece.file_index] += survey.n_rows
    return rows


def id_type(surveys: Iterable[Survey]) -> str:
    """ "number" or "text": the ids of all tables together."""
    return resolve("the id column", [survey.id_kind for survey in surveys])


def class_names(columns: Columns, surveys: Sequence[Survey]) -> dict[str, list[str]]:
    """The sorted labels of each target that is text.

    Raises
    ------
    DataError
        Numbers in one file and text in another, or more labels than `MAX_CLASSES`.
    """
    found: dict[str, list[str]] = {}
    for name in columns.targets:
        if resolve(f"target {name!r}", [survey.target_kinds[name] for survey in surveys]) == "text":
            found[name] = _labels(name, [survey.labels[name] for survey in surveys])
    return found


def _labels(name: str, parts: Iterable[set[str] | None]) -> list[str]:
    labels: set[str] = set()
    for part in parts:
        if part is None or len(labels := labels | part) > MAX_CLASSES:
            raise DataError(
                f"target {name!r} is text with more than {MAX_CLASSES} different values, so not "
                "a class label; name another column"
            )
    return sorted(labels)


def measured_box(surveys: Iterable[Survey]) -> Box:
    """The range of the points widened by `Box.around`'s margin."""
    surveys = list(surveys)
    return Box.around(
        np.min([survey.lo for survey in surveys], axis=0),
        np.max([survey.hi for survey in surveys], axis=0),
    )


def range_starts(surveys: Iterable[Survey], n_ranges: int, ids: str) -> list[Any]:
    """The first ids of ranges 1, 2, … of ids that hold about the same number of rows.

    Parameters
    ----------
    surveys : iterable of Survey
    n_ranges : int
    ids : {"number", "text"}

    Returns
    -------
    list of int or str
        Strictly increasing; fewer than ``n_ranges - 1`` where one bag fills a range.
    """
    read = int if ids == "number" else str
    sample = sorted(
        (read(value), survey.n_rows / len(survey.sample))
        for survey in surveys
        for value in survey.sample
    )
    if not sample:
        return []
    rows = np.cumsum([weight for _, weight in sample])
    ends = np.searchsorted(rows, rows[-1] * np.arange(1, n_ranges) / n_ranges)
    return sorted({sample[k][0] for k in ends.tolist()} - {sample[0][0]})
