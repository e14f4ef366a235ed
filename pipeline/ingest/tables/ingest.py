"""Ingest of long tables (Parquet, CSV) that need not fit in memory, to a bag store.

Two passes go over the files. The first counts, measures and checks every row. The second sorts the
rows by the bag's id, on disk if they do not fit in memory, and writes bag after bag, with one
commit at the end. An engine does the checking and sorting: this process, or a cluster's workers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike
from typing_extensions import override

from ...core import (
    Instance,
    Integer,
    ListOf,
    MappingOf,
    OneOf,
    Real,
    Text,
    TextMapping,
    UrlOrPath,
    checked,
)
from ...core.declarations import own_first
from ...core.errors import BagbasisError, DataError, ParameterError
from ...data.bags.box import Box, box_or_quantile
from ...data.bags.format_rules import FormatRules
from ...data.bags.packed_points import points_dtype
from ...data.bags.precision import merged_by_float32, too_coarse
from ...data.store.creation import check_creation
from ...data.store.schema import MEDIANS, medians_of
from ...data.store.store import BagStore
from ...data.store.writer import FIRST_POINTS
from ...execution.tasks import current_client
from ..arrays import check_mode, new_store
from ..calls import check_known_ids, function_of
from ..declared import (
    BoxOrQuantile,
    Files,
    KnownIds,
    StoreSettings,
)
from ..registry import FORMATS
from .database import Database
from .engines import SORT_BYTES, ClusterEngine, LocalEngine, spill_folder
from .files import TableFile, open_table
from .passes import TablePasses, Tally, warn_of
from .reading import ReadOptions
from .scans import guess_types
from .surveys import CheckedTable
from .values import MEDIAN, Columns, names_of, values_of

DEFAULT_DTYPE = "float32"  # if no dtype is given and the data need no other
TABLE_RULES = FormatRules(
    name="Tables (CSV, Parquet, Arrow, JSON lines)",
    calls=("TableIngest", "ingest_tables"),
    honoured={
        "null cells": "missing: refused, left out, or filled with a flag, by `missing`",
        "booleans": "1 and 0",
        "decimals": "numbers",
        "dates and times": "days since 1970-01-01, in UTC",
        "times with a zone": "the instant that they name, in UTC",
        "lists of numbers": "a row is a bag (not in CSV)",
        "times written as text in JSON": "as ids and targets texts as written; else times",
        "folders named `column=value`": "a column, whose values are texts as written",
        "empty texts as targets": "the bag has no label",
    },
    refused={
        "texts as coordinates": "write an expression that makes numbers of it",
        "two columns of one name": "rename one",
        "times with a zone in one file, without in another": "give all times a zone",
        "folders of Delta Lake, Iceberg and Hudi": "name the files of the current version",
        "lists mixed with numbers": "give all coordinates as lists, a row per bag, or as numbers",
    },
    ignored={
        "metadata of the schema": "they change no values",
        "statistics of Parquet": "every row is read and measured",
    },
)

ColumnNames = Annotated[str | Sequence[str], Text | ListOf(Text)]
ColumnsLike = Annotated[
    str | Sequence[str | Mapping[str, str]] | Mapping[str, str],
    ListOf(Text | MappingOf(Text, Text), or_one=True),
]
TargetTypes = Annotated[Mapping[str, str], MappingOf(Text, OneOf("number", "class"))]
TargetRules = Annotated[Mapping[str, str], MappingOf(Text, OneOf("mean", "any", "last", "count"))]
Missing = Annotated[str, OneOf("refuse", "drop_point", "drop_bag", MEDIAN)]
MissingValues = Annotated[Sequence[str | float], ListOf(Text | Integer() | Real(), or_one=True)]


@FORMATS.register
@own_first
@dataclass(frozen=True)
class TableIngest(StoreSettings):
    """Make a store from table files with one row per point, or append to one.

    Rows may come in any order and from any number of files. In Parquet and Arrow files, a row may
    also be a whole bag: its coordinates are then lists of numbers, or one list of vectors. Bags are
    stored in ascending order of their ids, and the points of a bag in the order of files and rows.

    The ingest runs on the open Dask client, or else in this process; both give the same store.

    Rows that do not fit in memory are sorted on disk: in this process in the folder of temporary
    files (``TMPDIR``), on a cluster on the workers' disks.

    Parameters
    ----------
    points : str, path or list of str
        Files, URLs, globs or folders of ``.parquet``, ``.pq``, ``.feather``, ``.arrow``, ``.ipc``,
        ``.jsonl``, ``.ndjson``, ``.csv``, ``.tsv``, ``.csv.gz`` or ``.tsv.gz``. All files in a
        folder are read except CSV files. Arrow and JSON files are copied to the folder of temporary
        files. Folder names such as ``st=JFK/part.parquet`` give a column ``st``. On a cluster some
        files have to fit in a worker's memory: compressed files, CSV files with line breaks within
        quotes, and CSV files that are read with utf-16, skip, comment or an escape that is not the
        quote.
    url : str or path
        URL of the store to write.
    id_column
        Column of the bag's id: whole numbers, text or dates. A date becomes its text. In CSV files,
        ids are integers if all are written as Python writes integers, else text; 007 is text. With
        several columns, the id joins their values with a slash: 2020/JFK.
    coordinates : str, list of str or mapping from name to str
        Coordinates, in the order in which they are stored. Each is the name of a column, or a
        DuckDB expression over the columns of a row: ``"ln(pressure)"``. A mapping names an
        expression, also as an item of a list: ``{"hour_cos": "cos(2*pi()*hour/24)"}``. Columns hold
        numbers, booleans (stored as 1 and 0), or dates and times (stored as days since 1970-01-01
        in UTC). Times given as text may have an offset from UTC. In Parquet, columns may hold lists
        of numbers, which have equal lengths within a row. A row is then a bag or a part of a bag,
        and expressions apply to the items. Lists of vectors of one length (``list<list<float>>``)
        or of records stand for all of their entries: ``["patches"]`` gives ``patches[0]``,
        ``patches[1]``, ….
    read : mapping
        Options for reading CSV files, named as in DuckDB's ``read_csv``, such as ``{"delim": ";",
        "decimal_separator": ","}``: ``delim``, ``quote``, ``escape``, ``comment``, ``skip`` (lines
        before the header), ``names`` (of all columns, for files without a header), ``encoding``
        (utf-8, latin-1, utf-16), ``decimal_separator``, ``thousands``, ``nullstr`` (texts of
        missing values) and ``types`` (of columns). Default of ``delim``: the first of comma,
        semicolon, tab and bar that splits the header into most of the required columns. ``nullstr``
        applies to unquoted texts; default: empty fields, NA, N/A, NaN, nan, null and NULL.
        ``types`` are for columns that are not numeric or that expressions read: ``{"day":
        "DATE"}``; default: the types that the first rows have.
    targets : str, list of str or mapping from name to str
        Targets: columns or expressions, given like ``coordinates``. Values are numbers, or texts,
        which are class labels and stored as their index in the sorted labels. A missing value
        leaves the bag without a label. In the table of points, a target must be equal in all rows
        of a bag, unless ``target_rules`` names a rule for it. Text in a column of mostly numbers is
        refused, and so are texts that all look like numbers, such as "4,5" or "12 %". A warning
        names amounts with a unit, such as "63 kg", that become more than four classes.
    target_rules : mapping from target to {"mean", "any", "last", "count"}
        Rule that combines the values of a target that vary within a bag: "mean"; "any", which is 1
        if any value is not 0; "last", the last value; or "count", the number of values. Rows
        without a value do not count.
    target_types : mapping from target to {"number", "class"}
        Types of targets whose values do not determine the type: text in a "number" is refused,
        numbers in a "class" are class labels.
    target_table : str, path or list of str
        Files with the targets, one row per bag. Bags without a row are not labelled.
    target_id_column
        Column of the bag's id in the target table. None: the same as ``id_column``.
    responses : str, path or list of str
        Files with the responses, one row per point of a response. Bags without a row have no
        response.
    response_coordinates : str, list of str or mapping from name to str
        Coordinates of the responses, given like ``coordinates``.
    response_id_column
        Column of the bag's id in the responses. None: the same as ``id_column``.
    missing
        How to treat a row with a coordinate that is missing or NaN: "refuse" raises an error,
        "drop_point" and "drop_bag" leave out the point or its bag and count it, "median" fills the
        cell with the median of the coordinate. With "median" each coordinate with missing cells
        gets a flag ``<name>_missing``, which is 1 where the cell was missing and 0 elsewhere. With
        many rows the median of a sample is used. The store keeps the medians, so that appended rows
        get the same medians and flags. Responses are never filled: a missing value in a response is
        an error.
    min_points
        Smallest number of points of a bag; smaller bags are left out and counted. A measured box
        includes their points.
    missing_values
        Texts and numbers that mark missing coordinates and targets, quoted or not, in any kind of
        file.
    response_box : list of (lo, hi) or {"quantile": share}
        Range of each coordinate of the responses, given like ``box``.
    mode
        How to treat an existing store: "create" raises an error, "append" adds the bags atomically
        and keeps the box and the classes, "overwrite" replaces the store. The old store is replaced
        after all rows are checked; a later failure leaves no store.
    known_ids
        How mode="append" treats a bag whose id is already in the store: "refuse" raises an error,
        "skip" keeps the stored bag and counts the new bag.
    unknown_ids
        How to treat an id of the target table or of the responses that no point has: "refuse"
        raises an error, "skip" leaves out the rows with this id and counts the id. An id that is
        written unlike the id of a bag, such as 007 for 7, is named, unless the table is so large
        that its bags are read in parts.
    progress : callable
        Function that is called with the number of points done and the number of all points. Both
        numbers include the points of responses. A point counts a third each when it is checked,
        sorted and written. The number of all points is an estimate while CSV files are checked.

    Returns
    -------
    BagStore

    Raises
    ------
    DataError
        If files do not exist, cannot be read or differ in their columns, or if a value cannot be
        used. Also if a target varies within a bag, or if the target table repeats an id. Unknown
        ids in the target table or the responses raise unless they are skipped. The message names
        the file, the column, the bag's id and the row, counted from 0 without the header.
    StoreError
        If the URL is taken or cannot be written, or if the disk of temporary files is full.
    ParameterError
        If parameters contradict each other, or if a text is not an expression. The message names
        the parameter and the text.
    ClusterError
        If workers were lost or their disks are full.

    See Also
    --------
    ingest_frame : Read a data frame.
    bagbasis.BagStore : Bags on disk or in object storage.

    Examples
    --------
    >>> import pandas as pd
    >>> columns = {'patient': ['a', 'a', 'b'], 'cd3': [0.1, 0.4, 0.2], 'cd4': [1.0, 2.0, 3.0]}
    >>> points = pd.DataFrame(columns)
    >>> from bagbasis.ingest import ingest_tables
    >>> points.to_csv('points.csv', index=False)
    >>> names = ['cd3', 'cd4']
    >>> store = ingest_tables('points.csv', 'bags.zarr', id_column='patient', coordinates=names)
    >>> len(store), store[0].shape
    (2, (2, 2))
    """

    name: ClassVar[str] = "tables"
    files: ClassVar[str] = "tables"
    uses_cluster: ClassVar[bool] = True
    rules: ClassVar[FormatRules] = TABLE_RULES

    points: Files
    url: UrlOrPath
    _: KW_ONLY
    id_column: ColumnNames
    coordinates: ColumnsLike
    read: TextMapping | None = None
    targets: ColumnsLike | None = None
    target_types: TargetTypes | None = None
    target_rules: TargetRules | None = None
    target_table: Files | None = None
    target_id_column: ColumnNames | None = None
    responses: Files | None = None
    response_coordinates: ColumnsLike | None = None
    response_id_column: ColumnNames | None = None
    missing: Missing = "refuse"
    min_points: Annotated[int, Integer(1)] = 1
    missing_values: MissingValues | None = None
    response_box: BoxOrQuantile = None
    known_ids: KnownIds = "refuse"
    unknown_ids: KnownIds = "refuse"

    def __post_init__(self) -> None:
        """Raise ParameterError for invalid or contradictory parameters."""
        for name in ("points", "target_table", "responses"):
            value = getattr(self, name)
            if hasattr(value, "columns") or hasattr(value, "__arrow_c_stream__"):
                raise ParameterError(f"{name}: a table in memory is not a path: use ingest_frame")
        super().__post_init__()
        made = {
            name: values_of(name, getattr(self, name))
            for name in ("coordinates", "targets", "response_coordinates")
        }
        targets = [target.name for target in made["targets"]]
        dtype = DEFAULT_DTYPE if self.dtype is None else self.dtype
        check_creation(len(made["coordinates"]), (*targets,), {}, dtype, self.chunk_points)
        ReadOptions.of(self.read)
        needs = {
            "target_id_column": "target_table",
            "response_coordinates": "responses",
            "response_id_column": "responses",
            "response_box": "responses",
        }
        for name, other in needs.items():
            if _is_given(getattr(self, name)) and getattr(self, other) is None:
                raise ParameterError(f"{name} is given, but not {other}; pass both")
        if self.target_table is not None and not targets:
            raise ParameterError("a target_table is given, but no targets; name its columns")
        if self.responses is not None and not made["response_coordinates"]:
            raise ParameterError("responses are given, but no response_coordinates; name them")
        for name in ("id_column", "target_id_column", "response_id_column"):
            names = names_of(getattr(self, name))
            if getattr(self, name) is not None and not names:
                raise ParameterError(f"{name} is empty; name a column")
            if len({*names}) < len(names):
                raise ParameterError(f"{name} is {[*names]}; name each column once")
        for parameter in ("target_types", "target_rules"):
            for name in getattr(self, parameter) or {}:
                if name not in targets:
                    raise ParameterError(f"{parameter} of {name!r}: no such target")
        if self.target_rules and self.target_table is not None:
            raise ParameterError(
                "target_rules are given, but a target_table has a row per bag; leave the rules out"
            )
        new = {name: getattr(self, name) for name in ("box", "response_box", "chunk_points")}
        check_mode(self.mode, self.overwrite, **new)
        check_known_ids(self.known_ids, self.mode)
        if self.unknown_ids != "refuse" and self.target_table is None and self.responses is None:
            raise ParameterError(
                "unknown_ids is given, but neither target_table nor responses; leave it out"
            )
        self._boxes(self._columns(None), are_files_read=False)

    @classmethod
    @override
    def names_in(cls, points: Any) -> list[str]:
        with suppress(BagbasisError), spill_folder() as spill:
            _, files = open_table(points, Columns(()), f"{spill}/points")
            return [*files[0].names, *dict(files[0].parts)]
        return []

    @checked
    def run(
        self,
        engine: Annotated[LocalEngine, Instance()] | None = None,
        *,
        tally: Annotated[Tally, Instance()] | None = None,
    ) -> BagStore:
        """Make the store, or append to it.

        ``engine`` checks and sorts the points and the responses; ``tally`` is added to.
        """
        store = BagStore.open(self.url) if self.mode == "append" else None
        tally, columns = tally or Tally(), self._columns(store)
        files: dict[str, tuple[TableFile, ...]] = {}
        with ExitStack() as stack:
            spill = stack.enter_context(spill_folder())
            n_columns = len(columns["points"].coordinates)
            database = stack.enter_context(Database(SORT_BYTES, spill, n_columns))
            for role, of in columns.items():
                with _naming_ids(role, of.ids):
                    columns_read, files[role] = open_table(
                        self._sources[role], of, f"{spill}/{role}"
                    )
                columns[role] = guess_types(columns_read, files[role], database)
            create = None
            if store is None:
                overwrite = self.overwrite or self.mode == "overwrite"
                create = stack.enter_context(new_store(self.url, overwrite))
            else:
                _check_fits(store, columns, self.target_types or {})
            local = LocalEngine(database)
            if any(file.copy for table in files.values() for file in table):
                engine = local  # workers elsewhere do not see the copies
            engine = engine or (local if current_client() is None else ClusterEngine())
            # target tables have one row per bag, and errors name the row
            engines = {**dict.fromkeys(columns, engine), "targets": local}
            skips_unknown = self.unknown_ids == "skip"
            passes = TablePasses(columns, files, engines, self.progress, skips_unknown)
            boxes = {} if store is not None else self._boxes(columns)
            passes.check(boxes, database)
            for role, table in passes.tables.items():
                if role != "targets":
                    table.check_apart()
            dtype = self._dtype_of(passes, store)
            passes.code(store)
            if create is not None:
                store = self._create(create, passes, boxes, dtype)
            assert store is not None
            origin = self._origin(passes.tables) if create else None
            with store.appending(origin) as session:
                passes.write(session, store.box, self.known_ids == "skip", tally)
                if not (tally.bags or tally.known_bags):
                    raise DataError(f"{store.url}: no bag is left: all lack coordinates or points")
        is_measured = create is not None and not isinstance(boxes["points"], Box)
        warn_of(tally, store, passes.tables["points"], create is not None, is_measured)
        return store

    @override
    def run_counted(self) -> tuple[BagStore, Mapping[str, int]]:
        tally = Tally()
        return self.run(tally=tally), tally.counts()

    def _create(
        self,
        create: Callable[..., BagStore],
        passes: TablePasses,
        boxes: Mapping[str, Box | float],
        dtype: DTypeLike,
    ) -> BagStore:
        tables = passes.tables
        dims = {role: len(table.columns.stored_names) for role, table in tables.items()}
        measured = {role: tables[role].box(box) for role, box in boxes.items()}
        of_targets = "targets" if "targets" in tables else "points"
        return create(
            dims["points"],
            target_names=tuple(column.name for column in tables[of_targets].columns.targets),
            box=measured["points"],
            class_names=passes.codings[of_targets].classes,
            dtype=dtype,
            chunk_points=self.chunk_points,
            response_dims=dims.get("responses"),
            response_box=measured.get("responses"),
        )

    def _dtype_of(self, passes: TablePasses, store: BagStore | None) -> DTypeLike:
        """Return the dtype of the stored points.

        Without a chosen dtype, the dtype is wide enough for the points. DataError for points that
        float32 merges, if float32 was chosen or the existing store has it.
        """
        dtype = self.dtype if store is None else store.stored_dtype
        if dtype is not None and np.dtype(dtype) != np.float32:
            return dtype
        for role, table in passes.tables.items():
            names = table.columns.stored_names
            if role == "targets" or not names:
                continue
            lo, hi = table.range
            span = hi - lo
            if store is not None and store.n_bags:
                read = store.read(0, 1) if role == "points" else store.responses(0, 1)
                first = read.points[:FIRST_POINTS]
                span = np.fmax(span, np.ptp(first, axis=0)) if len(first) else span
            rows = np.concatenate([[*table.range], table.sample])
            for column in merged_by_float32(rows, lo, hi, span).tolist():
                if dtype is not None:
                    raise DataError(too_coarse(str(self.url), column, lo, hi, names))
                for role_read in passes.tables:
                    wide = replace(passes.tables[role_read].columns, dtype="float64")
                    passes.tables[role_read] = replace(passes.tables[role_read], columns=wide)
                return "float64"
        return DEFAULT_DTYPE if dtype is None else dtype

    def _boxes(
        self, columns: Mapping[str, Columns], are_files_read: bool = True
    ) -> dict[str, Box | float]:
        """Return the boxes of points and responses, or the quantiles they are measured by.

        Before files are read, a box may have more dimensions than there are columns, because a
        column may hold vectors.
        """

        def n_dims(box: object, of: Columns) -> int:
            may_be_more = isinstance(box, Sequence) and not are_files_read
            return max(len(of.coordinates), len(box) if may_be_more else 0)  # type: ignore[arg-type]

        declared = {"points": ("box", self.box), "responses": ("response_box", self.response_box)}
        return {
            role: box_or_quantile(box, n_dims(box, columns[role]), name)
            for role, (name, box) in declared.items()
            if role in columns
        }

    def _columns(self, store: BagStore | None) -> dict[str, Columns]:
        """Return the columns to read of the tables "points", "targets" and "responses"."""
        targets = values_of("targets", self.targets)
        types = dict(self.target_types or {})
        dtype = DEFAULT_DTYPE if self.dtype is None else self.dtype
        if store is not None:
            dtype, known = store.dtype, store.meta.class_names
            types = {
                target.name: "class" if target.name in known else "number" for target in targets
            }
        rules = Columns(
            names_of(self.id_column),
            missing=self.missing,
            min_points=self.min_points,
            missing_values=tuple(str(word) for word in self.missing_values or ()),
            read=ReadOptions.of(self.read),
            dtype=points_dtype(dtype).name,
        )
        of_rules = dict(self.target_rules or {})
        labels = replace(rules, targets=targets, target_types=types, target_rules=of_rules)
        points = rules if self.target_table is not None else labels
        coordinates = values_of("coordinates", self.coordinates)
        medians = None if store is None else medians_of(store.meta, store.url)
        columns = {"points": replace(points, coordinates=coordinates, medians=medians)}
        if self.target_table is not None:
            columns["targets"] = replace(labels, ids=names_of(self.target_id_column) or rules.ids)
        if self.responses is not None:
            ids = names_of(self.response_id_column) or rules.ids
            coordinates = values_of("response_coordinates", self.response_coordinates)
            missing = "refuse" if self.missing == MEDIAN else self.missing
            columns["responses"] = replace(rules, ids=ids, coordinates=coordinates, missing=missing)
        return columns

    @property
    def _sources(self) -> dict[str, Any]:
        return {"points": self.points, "targets": self.target_table, "responses": self.responses}

    def _origin(self, tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
        """Return the source of the bags, as the store records it."""
        files = {role: _as_given(source) for role, source in self._sources.items()}
        names = {role: table.columns.stored_names for role, table in tables.items()}
        origin: dict[str, Any] = {"job": "ingest", "from": [files["points"], files["targets"]]}
        origin["coordinates"] = names["points"]
        if medians := tables["points"].columns.medians:
            origin[MEDIANS] = dict(medians)
        if "responses" in tables:
            origin |= {"responses": files["responses"], "response_coordinates": names["responses"]}
        return origin


@contextmanager
def _naming_ids(role: str, ids: Sequence[str]) -> Iterator[None]:
    """Add to the error of a second table without the id column how to name its own."""
    try:
        yield
    except DataError as error:
        if role == "points" or not any(f"no column {name!r}" in str(error) for name in ids):
            raise
        key = {"targets": "target_id_column", "responses": "response_id_column"}[role]
        raise DataError(f"{error}; if its ids have another name, give it as {key}") from error


def _is_given(value: object) -> bool:
    return value is not None and not (isinstance(value, (tuple, list)) and not value)


def _as_given(source: UrlOrPath | Sequence[UrlOrPath] | None) -> str | list[str] | None:
    """Return paths as they were given, for JSON."""
    if source is None or isinstance(source, (str, os.PathLike)):
        return None if source is None else os.fspath(source)
    return [os.fspath(part) for part in source]


def _check_fits(
    store: BagStore, columns: Mapping[str, Columns], target_types: Mapping[str, str]
) -> None:
    """Raise ParameterError for tables that do not fit the store that they are appended to."""
    targets = [column.name for column in columns.get("targets", columns["points"]).targets]
    pairs: dict[str, tuple[object, object]] = {}
    roles = {"coordinates": ("points", store.n_dims)}
    roles["response_coordinates"] = "responses", store.response_dims or 0
    for key, (role, n_dims) in roles.items():
        if role in columns:
            names = columns[role].stored_names
            pairs[key] = (len(names), n_dims)
            if store.meta.source.get(key):
                pairs[key] = names, store.meta.source[key]
    if targets:
        pairs["targets"] = targets, list(store.target_names)
    for name, (names_read, expected) in pairs.items():
        if names_read != expected:
            raise ParameterError(f"{name} are {names_read}; {store.url} has {expected}")
    for name, kind in target_types.items():
        if (kind == "class") != (name in store.meta.class_names):
            raise ParameterError(f"target_types of {name!r}: {store.url} has it otherwise")


ingest_tables = function_of(TableIngest, "ingest_tables")
