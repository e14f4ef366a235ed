"""Ingest of long tables, out of core: Parquet or CSV files to a bag store.

Two passes over the files. The first counts, measures and checks every row. The second sorts the
rows by the bag's id, on disk where they do not fit in memory, and writes bag after bag, with one
commit at the end. Who checks and sorts is an engine: this process, or the workers of a cluster.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import KW_ONLY, dataclass
from functools import wraps
from typing import Any, ParamSpec

import numpy as np

from ..bags import BagStore, Box
from ..bags.creation import check_parameters
from ..bags.writer import AppendSession
from ..errors import ParameterError
from ..execution import Progress, current_client
from ..execution.progress import silent
from .arrays import new_store
from .table_bags import Labelled, SortedRows, join_tables
from .table_engines import SORT_BYTES, ClusterEngine, LocalEngine, spill_folder
from .table_files import Columns, Source, TableFile, open_table
from .table_scans import Coding, Database
from .table_surveys import CheckedTable, check_table, resolve_kinds, sort_labels

P = ParamSpec("P")

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TableIngest:
    """Make a store from long tables: one row a point, in any order, over any number of files.

    Runs on the client that is open, else in this process; the store is the same. Bags are stored
    in ascending order of their ids, the points of a bag in the order of the files and rows.

    What does not fit in memory is sorted on disk: in this process in the folder of temporary
    files (``TMPDIR``), on a cluster on the workers' disks.

    Parameters
    ----------
    points : str, path or list of str
        Files, URLs, globs or folders of ``.parquet``, ``.pq``, ``.csv`` or ``.csv.gz``. Of a
        folder the Parquet files are read. In CSV, empty fields, NA, N/A, NaN, nan, null and NULL
        are missing values. On a cluster a ``.csv.gz`` file has to fit in a worker's memory, and so
        has a CSV file with line breaks within quotes.
    url : str or path
        The store to write.
    id_column : str
        Column of the bag's id: integers or text. The ids of CSV files are integers if all are
        written as Python writes them (so that 007 is text), else text.
    coordinates : list of str
        Coordinate columns, numbers, in the order they shall have.
    targets : list of str, optional
        Target columns: numbers, or text, which is taken for class labels and stored as their
        index in the sorted labels. A missing value is not labelled. In the table of points a
        target is the same in all rows of a bag.
    target_table : str, path or list of str, optional
        Tables with the targets, one row per bag. Bags without a row are not labelled.
    target_id_column : str, optional
        The bag's id in the target table. None: named as ``id_column``.
    responses : str, path or list of str, optional
        Tables with the responses, one row per point. Bags without a row have no response.
    response_coordinates : list of str, optional
        Coordinate columns of the responses, numbers, in the order they shall have.
    response_id_column : str, optional
        The bag's id in the responses. None: named as ``id_column``.
    box : list of (lo, hi), optional
        What is scaled to [0, 1]^d before projection. Points may lie outside. None: the range of
        the points, widened by 1 % of it on each side.
    response_box : list of (lo, hi), optional
        The same for the responses.
    dtype : {"float32", "float64"}
        Type of the stored points.
    overwrite : bool
        Replace a store that is there. It is replaced when all rows are checked; what fails after
        that leaves no store.
    chunk_points : int ≥ 1, optional
        Points in a stored chunk. None: two MiB of them.
    progress : callable, optional
        Called with the points done and their number, those of responses among them: a point is
        a third done each when it is checked, sorted and written. The number is an estimate
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
        Something is stored at the URL, or it can not be written, or the disk of temporary files
        is full.
    ClusterError
        Workers were lost, or their disks are full.
    """

    points: Source | Sequence[Source]
    url: Source
    _: KW_ONLY
    id_column: str
    coordinates: Sequence[str]
    targets: Sequence[str] | None = None
    target_table: Source | Sequence[Source] | None = None
    target_id_column: str | None = None
    responses: Source | Sequence[Source] | None = None
    response_coordinates: Sequence[str] | None = None
    response_id_column: str | None = None
    box: Box | Sequence[Sequence[float]] | None = None
    response_box: Box | Sequence[Sequence[float]] | None = None
    dtype: Any = "float32"
    overwrite: bool = False
    chunk_points: int | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        """Refuse parameters that make no sense together.

        Raises
        ------
        ParameterError, DataError
            Names the parameter.
        """
        for name in ("coordinates", "targets", "response_coordinates"):
            names = getattr(self, name)
            if isinstance(names, str) or len(set(names or ())) != len(names or ()):
                raise ParameterError(
                    f"{name} is {names!r}; expected a list of different column names"
                )
        n_dims = len(self.coordinates)
        check_parameters(n_dims, tuple(self.targets or ()), {}, self.dtype, self.chunk_points)
        if self.target_table is None and self.target_id_column is not None:
            raise ParameterError("target_id_column is given, but no target_table")
        if self.target_table is not None and not self.targets:
            raise ParameterError("a target_table is given, but no targets; name its columns")
        if self.responses is not None and not self.response_coordinates:
            raise ParameterError("responses are given, but no response_coordinates; name them")
        for name in ("response_coordinates", "response_id_column", "response_box"):
            if self.responses is None and getattr(self, name) not in (None, (), []):
                raise ParameterError(f"{name} is given, but no responses")
        if self.box is not None:
            Box.of(self.box, n_dims)
        if self.response_box is not None:
            Box.of(self.response_box, len(self.response_coordinates or ()), "response_box")

    def run(self, engine: LocalEngine | None = None) -> BagStore:
        """Make the store; ``engine`` checks and sorts the points and the responses."""
        columns = self._columns()
        sources: dict[str, Any] = {
            "points": self.points,
            "targets": self.target_table,
            "responses": self.responses,
        }
        files = {role: open_table(sources[role], columns[role]) for role in columns}
        thirds = _Thirds(self.progress or silent, files)
        with (
            new_store(self.url, self.overwrite) as create,
            spill_folder() as spill,
            Database(SORT_BYTES, spill) as database,
        ):
            local = LocalEngine(database)
            engine = engine or (local if current_client() is None else ClusterEngine())
            engines = dict.fromkeys(columns, engine)
            engines["targets"] = local  # of one row per bag, and errors name the row
            tables = self._check(columns, files, engines, thirds)
            codings = self._code(tables, engines)
            answers = tables.get("responses")
            store = create(
                len(self.coordinates),
                target_names=tuple(self.targets or ()),
                box=tables["points"].box() if self.box is None else self.box,
                response_dims=answers and len(answers.columns.coordinates),
                response_box=answers and (self.response_box or answers.box()),
                class_names=codings["targets" if "targets" in tables else "points"].classes,
                dtype=self.dtype,
                chunk_points=self.chunk_points,
            )
            with store.appending(self._provenance()) as session, ExitStack() as stack:
                rows = {}
                for role, table in tables.items():
                    batches = engines[role].sort(table, codings[role], thirds.of(1, role))
                    rows[role] = SortedRows(stack.enter_context(closing(batches)))
                missing = _write(session, join_tables(tables, codings, rows), thirds)
        for what, count in missing.items():
            if count:
                logger.warning("%s: %d of %d bags %s", store.url, count, store.n_bags, what)
        return store

    def _columns(self) -> dict[str, Columns]:
        """Return what is read of the tables: of "points", and of "targets" and "responses"."""
        coordinates, targets = tuple(self.coordinates), tuple(self.targets or ())
        if self.target_table is None:
            found = {"points": Columns(self.id_column, coordinates, targets)}
        else:
            target_id = self.target_id_column or self.id_column
            found = {"points": Columns(self.id_column, coordinates)}
            found["targets"] = Columns(target_id, (), targets)
        if self.responses is not None:
            answer_id = self.response_id_column or self.id_column
            found["responses"] = Columns(answer_id, tuple(self.response_coordinates or ()))
        return found

    def _check(
        self,
        columns: Mapping[str, Columns],
        files: Mapping[str, Sequence[TableFile]],
        engines: Mapping[str, LocalEngine],
        thirds: _Thirds,
    ) -> dict[str, CheckedTable]:
        dtype = np.dtype(self.dtype).name
        surveys = {
            role: engines[role].survey(columns[role], files[role], dtype, thirds.of(0, role))
            for role in columns
        }
        tables = {role: check_table(columns[role], found) for role, found in surveys.items()}
        thirds.count(tables)
        return tables

    def _code(
        self, tables: Mapping[str, CheckedTable], engines: Mapping[str, LocalEngine]
    ) -> dict[str, Coding]:
        kinds = [survey.id_kind for table in tables.values() for survey in table.surveys]
        ids = resolve_kinds("the id column", kinds)
        codings = {}
        for role, table in tables.items():
            names = table.text_targets()
            parts = engines[role].find_labels(table, names) if names else []
            classes = {name: sort_labels(name, [part[name] for part in parts]) for name in names}
            codings[role] = Coding(ids, np.dtype(self.dtype).name, classes)
        return codings

    def _provenance(self) -> dict[str, Any]:
        """Where the bags come from, as it was given, for the store."""
        source: dict[str, Any] = {
            "job": "ingest",
            "from": [_as_given(self.points), _as_given(self.target_table)],
            "coordinates": list(self.coordinates),
        }
        if self.responses is not None:
            source["responses"] = _as_given(self.responses)
            source["response_coordinates"] = list(self.response_coordinates or ())
        return source


def _as_function(ingest: Callable[P, TableIngest]) -> Callable[P, BagStore]:
    """Return a function of the parameters that the class declares as its fields."""

    @wraps(ingest, assigned=("__doc__",), updated=())
    def run(*args: P.args, **kwargs: P.kwargs) -> BagStore:
        return ingest(*args, **kwargs).run()

    run.__name__ = run.__qualname__ = "ingest_tables"  # for help, and so that it can be pickled
    return run


ingest_tables = _as_function(TableIngest)


def _write(session: AppendSession, groups: Iterator[Labelled], thirds: _Thirds) -> Counter[str]:
    """Write all bags; count those that are missing in the other tables, by what that means."""
    missing: Counter[str] = Counter()
    done, progress = 0, thirds.of(2)
    for found in groups:
        session.write(found.bags, found.targets, found.ids, responses=found.responses)
        done += found.bags.offsets[-1]
        missing["are not in the target table and stay without a label"] += found.n_without_row
        if found.responses is not None:
            done += found.responses.n_points
            without = len(found.responses) - len(found.responses.positions)
            missing["are not in the table of responses and have none"] += without
        progress(int(done), thirds.total)
    return missing


class _Thirds:
    """Progress in points that are done by a third in each of three phases; never goes back."""

    def __init__(self, progress: Progress, files: Mapping[str, Sequence[TableFile]]) -> None:
        self._progress = progress
        self._share = 0.0
        self._sizes = {role: sum(file.n_rows for file in of) for role, of in files.items()}

    def count(self, tables: Mapping[str, CheckedTable]) -> None:
        """Take the numbers of rows that were counted in place of the estimates."""
        self._sizes = {role: table.n_rows for role, table in tables.items()}

    @property
    def total(self) -> int:
        """Points of bags and of responses."""
        return sum(self._sizes.get(role, 0) for role in ("points", "responses"))

    def of(self, phase: int, role: str = "") -> Progress:
        """Return the progress of a phase of one table, or of all."""
        if role == "targets":
            return silent

        def report(done: int, total: int) -> None:
            before = self._sizes["points"] if role == "responses" else 0
            rows = self._sizes[role] if role else self.total
            done_of_all = (before + rows * (done / total if total else 1.0)) / max(1, self.total)
            share = (phase + done_of_all) / 3
            if share > self._share:
                self._share = share
                self._progress(round(share * self.total), self.total)

        return report


def _as_given(source: Source | Sequence[Source] | None) -> str | list[str] | None:
    """Return paths as they were given, for JSON."""
    if source is None:
        return None
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    return [os.fspath(part) for part in source]
