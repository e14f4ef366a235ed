"""Ingest of long tables, out of core: Parquet or CSV files to a bag store.

Two passes over the files. The first counts, measures and checks every row. The second brings the
rows of each bag together: ids are split into ranges that fit in memory, the rows are shuffled to
their ranges on the workers' disks, and range by range sorted into bags and written by this
process, which commits once at the end.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import numpy as np
from dask.system import CPU_COUNT
from distributed import Client

from ..bags import BagStore, Box
from ..bags.creation import check_parameters
from ..bags.writer import AppendSession
from ..clusters.connect import connect
from ..errors import ParameterError
from ..execution import current_client
from ..execution.progress import Progress, silent
from .arrays import new_store
from .shuffle import groups_of_bags, quiet
from .survey import measured_box
from .survey_tables import decoders_of, n_points, survey_tables
from .table_files import Columns, Source, Table, open_table
from .table_rows import Group

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
    responses: Source | Sequence[Source] | None = None,
    response_coordinates: Sequence[str] | None = None,
    response_id_column: str | None = None,
    box: Box | Sequence[Sequence[float]] | None = None,
    response_box: Box | Sequence[Sequence[float]] | None = None,
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
    responses : path, URL or glob, or a list of them, optional
        Where the responses are, one row a point of one. Bags without a row have no response.
    response_coordinates : sequence of str, optional
        The columns of the responses' coordinates, numbers.
    response_id_column : str, optional
        The id in the table of responses; default ``id_column``.
    box, response_box : sequence of (lo, hi), optional
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
        Called with the points done and their number, those of responses among them: a point is
        a third done each when it is checked, shuffled and written. The number is an estimate
        while CSV files are checked.

    Returns
    -------
    BagStore

    Raises
    ------
    DataError
        Files that are not there, can not be read or differ in their columns; a value that can not
        be used; a target that varies within a bag; a target table with unknown or repeated ids;
        a table of responses with unknown ids. Names the file, the column, the bag's id and the
        row, counted from 0 without the header.
    StoreError
        Something is stored at the URL, or it can not be written.
    ClusterError
        Workers were lost, or their disks are full.
    """
    columns = Columns(id_column, _names("coordinates", coordinates), _names("targets", targets))
    answers = _names("response_coordinates", response_coordinates)
    check_parameters(len(coordinates), columns.targets, {}, dtype, chunk_points)
    tables = _open(points, columns, target_table, target_id_column)
    tables |= _open_responses(responses, answers, response_id_column, response_box, id_column)
    given_box = None if box is None else Box.of(box, len(coordinates))
    if response_box is not None:
        response_box = Box.of(response_box, len(answers), "response_box")
    thirds = _Thirds(progress or silent)
    with quiet(), new_store(url, overwrite) as create, _cluster() as client:
        surveys = survey_tables(tables, np.dtype(dtype).name, thirds.phase(0))
        decoders = decoders_of(tables, surveys, np.dtype(dtype).name, RANGE_BYTES)
        if responses is not None and response_box is None:
            response_box = measured_box(surveys["responses"])
        store = create(
            len(coordinates),
            target_names=columns.targets,
            box=given_box or measured_box(surveys["points"]),
            response_dims=len(answers) or None,
            response_box=response_box,
            class_names=decoders["targets" if "targets" in tables else "points"].classes,
            dtype=dtype,
            chunk_points=chunk_points,
        )
        source = {
            "job": "ingest",
            "from": [_shown(points), _shown(target_table)],
            "coordinates": list(coordinates),
        }
        if responses is not None:
            source |= {"responses": _shown(responses), "response_coordinates": list(answers)}
        groups = groups_of_bags(client, tables, surveys, decoders, thirds.phase(1))
        with store.appending(source) as session, closing(groups):
            missing = _write(session, groups, thirds.phase(2), n_points(tables, surveys))
    for what, count in missing.items():
        if count:
            logger.warning("%s: %d of %d bags %s", store.url, count, store.n_bags, what)
    return store


def _write(
    session: AppendSession, groups: Iterator[Group], progress: Progress, total: int
) -> Counter[str]:
    """Write all bags; how many of them are missing in the other tables, in words."""
    missing: Counter[str] = Counter()
    done = 0
    for bags in groups:
        session.write(bags.bags, bags.targets, bags.ids, responses=bags.responses)
        done += len(bags.points)
        missing["are not in the target table and stay without a label"] += bags.n_without_row
        if bags.responses is not None:
            done += bags.responses.n_points
            without = len(bags.responses) - len(bags.responses.positions)
            missing["are not in the table of responses and have none"] += without
        progress(done, total)
    return missing


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
) -> dict[str, Table]:
    """The table of "points", and that of "targets" if there is one."""
    if target_table is None:
        if target_id_column is not None:
            raise ParameterError("target_id_column is given, but no target_table")
        return {"points": open_table(points, columns)}
    if not columns.targets:
        raise ParameterError("a target_table is given, but no targets; name its columns")
    of_targets = Columns(target_id_column or columns.id, (), columns.targets)
    return {
        "points": open_table(points, Columns(columns.id, columns.coordinates)),
        "targets": open_table(target_table, of_targets),
    }


def _open_responses(
    responses: Any,
    coordinates: tuple[str, ...],
    response_id: str | None,
    response_box: Any,
    bag_id: str,
) -> dict[str, Table]:
    """The table of "responses" if there is one."""
    if responses is not None:
        if not coordinates:
            raise ParameterError("responses are given, but no response_coordinates; name them")
        return {"responses": open_table(responses, Columns(response_id or bag_id, coordinates))}
    for name, given in (
        ("response_coordinates", bool(coordinates)),
        ("response_id_column", response_id is not None),
        ("response_box", response_box is not None),
    ):
        if given:
            raise ParameterError(f"{name} is given, but no responses")
    return {}


@contextmanager
def _cluster() -> Iterator[Client]:
    """The client that is open, or worker processes for the duration."""
    client = current_client()
    if client is not None:
        yield client
        return
    with connect("local", n_workers=min(int(CPU_COUNT), LOCAL_WORKERS)) as client:
        yield client


def _shown(source: Any) -> Any:
    """Paths as they were given, for JSON."""
    if source is None or isinstance(source, (str, os.PathLike)):
        return source and os.fspath(source)
    return [os.fspath(part) for part in source]
