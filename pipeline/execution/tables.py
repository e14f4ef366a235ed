"""Ingest of long tables, out of core: Parquet or CSV files to a bag store.

Two passes over the files. The first counts, measures and checks every row. The second brings the
rows of each bag together: ids are split into ranges that fit in memory, the rows are shuffled to
their ranges on the workers' disks, and range by range sorted into bags and written by this
process, which commits once at the end.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import numpy as np
from dask.system import CPU_COUNT
from distributed import Client

from ..bags import BagStore, Box
from ..bags.creation import check_parameters
from ..bags.ingest import new_store
from ..bags.ingest_files import Columns, Piece, Source, Table, open_table
from ..bags.ingest_rows import Decoder
from ..bags.ingest_survey import (
    Survey,
    check_rows,
    class_names,
    id_type,
    measured_box,
    range_starts,
    survey_piece,
)
from ..errors import DataError, ParameterError
from .connect import connect, current_client
from .map_reduce import map_tasks
from .progress import Progress, Report, silent
from .shuffle import groups_of_bags, quiet, raised, returning_refusals, spread

RANGE_BYTES = 2**25
LOCAL_WORKERS = 8

logger = logging.getLogger(__name__)


def ingest_tables(
    points: Source | Sequence[Source],
    url: Source,
    *,
    id_column: str,
    coordinates: Sequence[str],
    targets: Sequence[str] | None = None,
    target_table: Source | Sequence[Source] | None = None,
    target_id_column: str | None = None,
    box: Box | Sequence[Sequence[float]] | None = None,
    dtype: Any = "float32",
    overwrite: bool = False,
    chunk_points: int | None = None,
    progress: Progress | None = None,
) -> BagStore:
    """Make a store from long tables: one row a point, in any order, over any number of files.

    Runs on the client that is open, else on worker processes of its own. Bags are stored in
    ascending order of their ids, the points of a bag in the order of the files and rows: the
    store does not depend on the workers or on how the files were cut.

    Parameters
    ----------
    points : path, URL or glob, or a list of them
        ``.parquet``, ``.pq``, ``.csv`` or ``.csv.gz`` files, or directories of Parquet files. A
        ``.csv.gz`` file can not be cut into pieces and has to fit in a worker's memory. In CSV,
        empty fields, NA, N/A, NaN, nan, null and NULL are missing values.
    url : str or path
        Of the new store.
    id_column : str
        The bag of each point: integers or text. The ids of CSV files are integers if all are
        written as Python writes them (so that 007 is text), else text.
    coordinates : sequence of str
        The columns of the coordinates, numbers.
    targets : sequence of str, optional
        Columns of numbers, or of text, which is taken for class labels and stored as their
        index in the sorted labels. A missing value is not labelled. In the table of points a
        target is the same in all rows of a bag.
    target_table : path, URL or glob, or a list of them, optional
        Where the targets are, one row a bag. Bags without a row are not labelled.
    target_id_column : str, optional
        The id in the target table; default ``id_column``.
    box : sequence of (lo, hi), optional
        What is scaled to [0, 1]^d before projection; points may lie outside. Default: the range
        of the points, widened by 1 % of it on each side.
    dtype : float32 (default) or float64
        Of the stored points.
    overwrite : bool
        Replace a store that is there. It is replaced when all rows are checked; what fails after
        that leaves no store.
    chunk_points : int, optional
        See `BagStore.create`.
    progress : callable, optional
        Called with the points done and their number: a point is a third done each when it is
        checked, shuffled and written. The number is an estimate while CSV files are checked.

    Returns
    -------
    BagStore

    Raises
    ------
    DataError
        Files that are not there, can not be read or differ in their columns; a value that can not
        be used; a target that varies within a bag; a target table with unknown or repeated ids.
        Names the file, the column, the bag's id and the row, counted from 0 without the header.
    StoreError
        Something is stored at the URL, or it can not be written.
    ClusterError
        Workers were lost, or their disks are full.
    """
    columns = Columns(id_column, _names("coordinates", coordinates), _names("targets", targets))
    check_parameters(len(coordinates), columns.targets, {}, dtype, chunk_points)
    given_box = None if box is None else Box.of(box, len(coordinates))
    tables = _open(points, columns, target_table, target_id_column)
    thirds = _Thirds(progress or silent)
    with quiet(), new_store(url, overwrite) as create, _cluster() as client:
        surveys = _survey(tables, np.dtype(dtype).name, thirds.phase(0))
        decoders = _decoders(tables, surveys, np.dtype(dtype).name)
        store = create(
            len(coordinates),
            target_names=columns.targets,
            box=given_box or measured_box(surveys[0]),
            class_names=decoders[-1].classes,
            dtype=dtype,
            chunk_points=chunk_points,
        )
        source = {
            "job": "ingest",
            "from": [_shown(points), _shown(target_table)],
            "coordinates": list(coordinates),
        }
        groups = groups_of_bags(client, tables, surveys, decoders, thirds.phase(1))
        with store.appending(source) as session, closing(groups):
            n_points = sum(survey.n_rows for survey in surveys[0])
            written, unlabelled = 0, 0
            for bags in groups:
                session.write(bags.bags, bags.targets, bags.ids)
                written += len(bags.points)
                unlabelled += bags.n_without_row
                thirds.phase(2)(written, n_points)
    if unlabelled:
        logger.warning(
            "%s: %d of %d bags are not in the target table and stay without a label",
            store.url,
            unlabelled,
            store.n_bags,
        )
    return store


class _Thirds:
    """Progress in points that are done by a third in each of three phases; never goes back."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._share = 0.0

    def phase(self, index: int) -> Progress:
        def report(done: int, total: int) -> None:
            share = (index + (done / total if total else 1.0)) / 3
            if share > self._share:
                self._share = share
                self._progress(round(share * total), total)

        return report


def _names(what: str, names: Sequence[str] | None) -> tuple[str, ...]:
    if isinstance(names, str) or len(set(names or ())) != len(names or ()):
        raise ParameterError(f"{what} is {names!r}; expected a list of different column names")
    return tuple(names or ())


def _open(
    points: Any, columns: Columns, target_table: Any, target_id_column: str | None
) -> list[Table]:
    """The table of points, and that of targets if there is one."""
    if target_table is None:
        if target_id_column is not None:
            raise ParameterError("target_id_column is given, but no target_table")
        return [open_table(points, columns)]
    if not columns.targets:
        raise ParameterError("a target_table is given, but no targets; name its columns")
    return [
        open_table(points, Columns(columns.id, columns.coordinates)),
        open_table(target_table, Columns(target_id_column or columns.id, (), columns.targets)),
    ]


@contextmanager
def _cluster() -> Iterator[Client]:
    """The client that is open, or worker processes for the duration."""
    client = current_client()
    if client is not None:
        yield client
        return
    with connect("local", n_workers=min(int(CPU_COUNT), LOCAL_WORKERS)) as client:
        yield client


def _survey(tables: Sequence[Table], dtype: str, progress: Progress) -> list[list[Survey]]:
    """The surveys of each table's pieces; bad rows are refused."""
    tasks = [(piece, table.columns, dtype) for table in tables for piece in table.pieces]
    sizes = [piece.n_rows if columns.coordinates else 0 for piece, columns, _ in tasks]
    found: dict[int, Survey] = {}
    for i, survey in map_tasks(_survey_task, tasks, sizes=sizes, progress=progress):
        found[i] = raised(survey)
    parts = iter(found[i] for i in range(len(tasks)))
    surveys = [[next(parts) for _ in table.pieces] for table in tables]
    for table, of_table in zip(tables, surveys, strict=True):
        check_rows(table, of_table)
        if not any(survey.n_rows for survey in of_table):
            raise DataError(f"{table.files[0]}: the table has no rows")
    return surveys


@returning_refusals
def _survey_task(task: tuple[Piece, Columns, str], report: Report) -> Survey:
    piece, columns, dtype = task
    survey = survey_piece(piece, columns, dtype)
    report(survey.n_rows)
    return survey


def _decoders(
    tables: Sequence[Table], surveys: Sequence[Sequence[Survey]], dtype: str
) -> list[Decoder]:
    """How each table's rows are read, and in how many ranges of ids."""
    ids = id_type([survey for of_table in surveys for survey in of_table])
    columns = tables[0].columns
    row_bytes = 16 + np.dtype(dtype).itemsize * len(columns.coordinates) + 8 * len(columns.targets)
    n_bytes = sum(row_bytes * survey.n_rows + survey.id_bytes for survey in surveys[0])
    starts = range_starts(surveys[0], -(-n_bytes // RANGE_BYTES), ids)
    return [
        Decoder(
            columns=table.columns,
            ids=ids,
            dtype=dtype,
            classes=class_names(table.columns, of_table),
            starts=tuple(starts),
            places=spread(len(starts) + 1),
        )
        for table, of_table in zip(tables, surveys, strict=True)
    ]


def _shown(source: Any) -> Any:
    """Paths as they were given, for JSON."""
    if source is None or isinstance(source, (str, os.PathLike)):
        return source and os.fspath(source)
    return [os.fspath(part) for part in source]
