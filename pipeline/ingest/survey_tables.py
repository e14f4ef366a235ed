"""The first pass over long tables: every row is checked, and how the second reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..errors import DataError
from ..execution.progress import Progress, Report
from ..execution.tasks import map_tasks
from .shuffle import raised, returning_refusals, spread
from .survey import Survey, check_rows, class_names, id_type, range_starts, survey_piece
from .table_files import Columns, Piece, Table
from .table_rows import Decoder

Tables = Mapping[str, Table]
Surveys = Mapping[str, Sequence[Survey]]


def survey_tables(tables: Tables, dtype: str, progress: Progress) -> dict[str, list[Survey]]:
    """The surveys of each table's pieces.

    Raises
    ------
    DataError
        The first row that can not be used, or a table without rows.
    """
    tasks = [(piece, table.columns, dtype) for table in tables.values() for piece in table.pieces]
    sizes = [piece.n_rows if columns.coordinates else 0 for piece, columns, _ in tasks]
    found: dict[int, Survey] = {}
    for i, survey in map_tasks(_survey_task, tasks, sizes=sizes, progress=progress):
        found[i] = raised(survey)
    parts = iter(found[i] for i in range(len(tasks)))
    surveys = {role: [next(parts) for _ in table.pieces] for role, table in tables.items()}
    for role, table in tables.items():
        check_rows(table, surveys[role])
        if not any(survey.n_rows for survey in surveys[role]):
            raise DataError(f"{table.files[0]}: the table has no rows")
    return surveys


@returning_refusals
def _survey_task(task: tuple[Piece, Columns, str], report: Report) -> Survey:
    piece, columns, dtype = task
    survey = survey_piece(piece, columns, dtype)
    report(survey.n_rows)
    return survey


def n_points(tables: Tables, surveys: Surveys) -> int:
    """Points of bags and of responses."""
    return sum(survey.n_rows for role in _of_points(tables) for survey in surveys[role])


def decoders_of(
    tables: Tables, surveys: Surveys, dtype: str, range_bytes: int
) -> dict[str, Decoder]:
    """How each table's rows are read, in ranges of ids of about ``range_bytes`` of points."""
    ids = id_type([survey for of_table in surveys.values() for survey in of_table])
    n_bytes = 0
    for role in _of_points(tables):
        columns = tables[role].columns
        values = np.dtype(dtype).itemsize * len(columns.coordinates) + 8 * len(columns.targets)
        n_bytes += sum((16 + values) * survey.n_rows + survey.id_bytes for survey in surveys[role])
    sampled = [survey for role in _of_points(tables) for survey in surveys[role]]
    starts = range_starts(sampled, -(-n_bytes // range_bytes), ids)
    return {
        role: Decoder(
            columns=table.columns,
            ids=ids,
            dtype=dtype,
            classes=class_names(table.columns, surveys[role]),
            starts=tuple(starts),
            places=spread(len(starts) + 1),
        )
        for role, table in tables.items()
    }


def _of_points(tables: Tables) -> list[str]:
    """The tables whose rows are points."""
    return [role for role, table in tables.items() if table.columns.coordinates]
