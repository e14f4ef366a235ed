"""Ingest of long tables, out of core: Parquet or CSV files to a bag store.

Two passes over the files. The first counts, measures and checks every row. The second brings the
rows of each bag together: ids are split into ranges that fit in memory, the rows are shuffled to
their ranges on the workers' disks, and range by range sorted into bags and written by this
process, which commits once at the end.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
from dask.system import CPU_COUNT
from distributed import Client, Future

from ..bags import BagStore, Box
from ..bags.ingest import new_store
from ..bags.ingest_files import Columns, Piece, Table, open_table
from ..bags.ingest_rows import Decoder, Group, group, label
from ..bags.ingest_survey import (
    Survey,
    check_rows,
    class_names,
    first_rows,
    id_type,
    measured_box,
    range_starts,
    survey_piece,
)
from ..errors import BagbasisError, ClusterError, DataError, ParameterError
from .connect import connect, current_client
from .map_reduce import RETRIES, map_tasks
from .progress import Progress, Report, Tally, listening, silent
from .shuffle import ShuffledTable, quiet, spread

RANGE_BYTES = 2**26
LOCAL_WORKERS = 8

logger = logging.getLogger(__name__)

Source = str | os.PathLike[str]


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
    dtype = np.dtype(dtype).name
    columns, target_columns = _columns(
        id_column, coordinates, targets, target_table is not None, target_id_column
    )
    given_box = None if box is None else Box.of(box, len(columns.coordinates))
    tables = [open_table(points, columns)]
    if target_table is not None:
        tables.append(open_table(target_table, target_columns))
    report = progress or silent
    with new_store(url, overwrite) as create, _cluster() as client:
        surveys = [
            _survey(table, dtype, _part(report, i, len(tables), 0))
            for i, table in enumerate(tables)
        ]
        ...
