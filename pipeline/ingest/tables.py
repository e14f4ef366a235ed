"""Ingest of long tables (Parquet, CSV) that need not fit in memory, to a bag store.

Two passes go over the files. The first counts, measures and checks every row. The second sorts the
rows by the bag's id, on disk if they do not fit in memory, and writes bag after bag, with one
commit at the end. An engine does the checking and sorting: this process, or a cluster's workers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, wraps
from typing import Any, ParamSpec

from ..bags import BagStore, Box
from ..bags.box import box_or_quantile
from ..bags.creation import check_parameters
from ..bags.packed_points import points_dtype
from ..errors import DataError, ParameterError
from ..execution import Progress, current_client
from ..params import check_choice, check_fields, check_integer
from .arrays import check_mode, new_store
from .csv_dialects import CsvDialect
from .table_bags import RULES
from .table_columns import (
    Columns,
    Coordinate,
    check_fits,
    check_made,
    coordinates_of,
    names_of,
    provenance,
)
from .table_engines import SORT_BYTES, ClusterEngine, LocalEngine, spill_folder
from .table_files import Source, TableFile, open_table
from .table_passes import TablePasses, Tally, warn_of
from .table_scans import Coding, Database
from .table_surveys import CheckedTable

TYPES = ("number", "class")  # of targets
MISSING = ("refuse", "drop_point", "drop_bag")
KNOWN_IDS = ("refuse", "skip")

BoxLike = Box | Sequence[Sequence[float]] | Mapping[str, float] | None

P = ParamSpec("P")


@dataclass(frozen=True)
class TableIngest:
    """Make a store from tables: one row per point, in any order, over any number of files.

    Or one row per bag, whose coordinates are lists (Parquet only). Or append to a store.
    Runs on the client that is open, else in this process; the store is the same. Bags are stored
    in ascending order of their ids, the points of a bag in the order of the files and rows.

    What does not fit in memory is sorted on disk: in this process in the folder of temporary
    files (``TMPDIR``), on a cluster on the workers' disks.

    Parameters
    ----------
    points : str, path or list of str
        Files, URLs, globs or folders of ``.parquet``, ``.pq``, ``.feather``, ``.arrow``, ``.ipc``,
        ``.jsonl``, ``.ndjson``, ``.csv``, ``.tsv``, ``.csv.gz`` or ``.tsv.gz``. Of a folder all but
        CSV is read; Arrow and JSON are copied to the folder of temporary files. A column may also
        be told by the names of folders, as in ``st=JFK/part.parquet``. CSV is split at commas,
        semicolons, tabs or bars: at the first by which the header has all columns. In CSV, empty
        fields, NA, N/A, NaN, nan, null and NULL are missing values. On a cluster a compressed file
        has to fit in a worker's memory, and so has a CSV file with line breaks within quotes, or
        whose ``csv`` has utf-16, skip_rows, comment or an escape that is not the quote.
    url : str or path
        The store to write.
    id_column : str or list of str
        Column of the bag's id: whole numbers, text, or dates, whose text it is. The ids of CSV
        files are integers if all are written as Python writes them (so that 007 is text), else
        text. Of several columns an id is their values with a slash between them, as in 2020/JFK.
    coordinates : list of str
        Coordinate columns in the order they shall have: numbers; true and false, 1 and 0; or dates
        and times, days since 1970-01-01. In Parquet also lists of numbers, as long as each other in
        a row: then a row is a bag, or a part of it.
    dates : list of str, optional
        Coordinates that are text of dates or times, as 2026-03-31 or 2026-03-31 12:30, in CSV.
    booleans : list of str, optional
        Coordinates that are text of truth values, as true or No, in CSV: 1 and 0.
    cyclic : mapping from coordinate to its period, optional
        Numbers that begin again after a period, as hours after 24, angles after 360, or dates
        after 365.2425 days: each becomes two coordinates, its cosine and its sine.
    categories : mapping from coordinate to its labels, optional
        Text or whole numbers that stand for kinds, as {"band": ["g", "r", "i"]}: a coordinate per
        label, 1 where a point has it, else 0. Another label is refused.
    decimal : {".", ","}, default "."
        What stands before the decimals of numbers in CSV.
    csv : mapping, optional
        How CSV files are written otherwise, as {"encoding": "latin-1", "skip_rows": 2}:
        ``encoding`` (utf-8, latin-1, utf-16), ``delimiter``, ``quote``, ``escape`` (what stands
        before a quote within quotes), ``comment`` (what begins one), ``skip_rows`` (lines before
        the header), ``columns`` (the names of all, where there is no header) and ``thousands``,
        as "," of 1,234.5. Quote and escape may be None.
    targets : list of str, optional
        Target columns: numbers, or text, which is taken for class labels and stored as their
        index in the sorted labels. A missing value is not labelled. In the table of points a
        target is the same in all rows of a bag, unless ``target_rules`` says what is taken. Text
        in a column most of whose values are numbers is refused.
    target_rules : mapping from target to {"mean", "any", "last", "count"}, optional
        Of targets that differ in the rows of a bag: the mean, 1 if one is not 0, the last, or how
        many there are. Rows without a value do not count.
    target_types : mapping from target to {"number", "class"}, optional
        Of targets whose values do not say it: text in one of numbers is refused, and numbers
        are taken for labels of classes.
    target_table : str, path or list of str, optional
        Tables with the targets, one row per bag. Bags without a row are not labelled.
    target_id_column : str or list of str, optional
        The bag's id in the target table. None: named as ``id_column``.
    responses : str, path or list of str, optional
        Tables with the responses, one row per point. Bags without a row have no response.
    response_coordinates : list of str, optional
        Coordinate columns of the responses, numbers, in the order they shall have.
    response_id_column : str or list of str, optional
        The bag's id in the responses. None: named as ``id_column``.
    missing : {"refuse", "drop_point", "drop_bag"}, default "refuse"
        What becomes of a row in which a coordinate is missing or NaN: an error, or the point or
        its bag is left out, and counted.
    min_points : int ≥ 1, default 1
        Bags of fewer points are left out, and counted. A measured box has their points, too.
    missing_values : list of str or int or float, optional
        Words and numbers that stand for missing coordinates and targets, beside those of CSV.
    box : list of (lo, hi) or {"quantile": share}, optional
        What is scaled to [0, 1]^d before projection. Points may lie outside. None: the range of
        the points, widened by 1 % of it on each side, but no further than a quarter beyond what
        lies between the quantiles .001 and .999 of a coordinate, so that a few outliers do not
        stretch it. {"quantile": 0} is the range, whatever lies there.
    response_box : list of (lo, hi) or {"quantile": share}, optional
        The same for the responses.
    dtype : {"float32", "float64", "uint16", "uint8"}, default "float32"
        Type of the stored points, see `BagStore.create`.
    mode : {"create", "append", "overwrite"}, default "create"
        "append" adds to the store that is there, which keeps its box and its classes; all bags,
        or none. "overwrite" replaces one. It is replaced when all rows are checked; what fails
        after that leaves no store.
    overwrite : bool, default False
        The same as mode="overwrite".
    known_ids : {"refuse", "skip"}, default "refuse"
        With mode="append", what becomes of a bag whose id the store has: an error, or it is left
        as it is, and counted.
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
    id_column: str | Sequence[str]
    coordinates: Sequence[str]
    dates: Sequence[str] | None = None
    booleans: Sequence[str] | None = None
    cyclic: Mapping[str, float] | None = None
    categories: Mapping[str, Sequence[str | int]] | None = None
    decimal: str = "."
    csv: Mapping[str, Any] | None = None
    targets: Sequence[str] | None = None
    target_types: Mapping[str, str] | None = None
    target_rules: Mapping[str, str] | None = None
    target_table: Source | Sequence[Source] | None = None
    target_id_column: str | Sequence[str] | None = None
    responses: Source | Sequence[Source] | None = None
    response_coordinates: Sequence[str] | None = None
    response_id_column: str | Sequence[str] | None = None
    missing: str = "refuse"
    min_points: int = 1
    missing_values: Sequence[str | float] | None = None
    box: BoxLike = None
    response_box: BoxLike = None
    dtype: Any = "float32"
    mode: str = "create"
    overwrite: bool = False
    known_ids: str = "refuse"
    chunk_points: int | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        """Refuse parameters that make no sense together.

        Raises
        ------
        ParameterError, DataError
            Names the parameter.
        """
        check_fields(self)
        for name in ("coordinates", "targets", "response_coordinates"):
            names = getattr(self, name)
            if names is None:
                continue
            object.__setattr__(self, name, tuple(names))
            if len(set(names)) != len(names):
                raise ParameterError(
                    f"{name} is {names!r}; expected a list of different column names"
                )
        columns = (*self.coordinates, *(self.response_coordinates or ()))
        texts = {"dates": self.dates, "booleans": self.booleans}
        check_made(columns, self.cyclic, self.categories, texts)
        n_dims = len(self._of_points)
        check_parameters(n_dims, tuple(self.targets or ()), {}, self.dtype, self.chunk_points)
        if self.target_table is None and self.target_id_column is not None:
            raise ParameterError("target_id_column is given, but no target_table")
        if self.target_table is not None and not self.targets:
            raise ParameterError("a target_table is given, but no targets; name its columns")
        if self.responses is not None and not self.response_coordinates:
            raise ParameterError("responses are given, but no response_coordinates; name them")
        for name in ("response_coordinates", "response_id_column", "response_box"):
            given = getattr(self, name)
            is_given = given is not None and not (isinstance(given, (tuple, list)) and not given)
            if self.responses is None and is_given:
                raise ParameterError(f"{name} is given, but no responses")
        if self.missing_values is not None:
            object.__setattr__(self, "missing_values", tuple(self.missing_values))
        check_choice("decimal", self.decimal, (".", ","))
        CsvDialect.of(self.csv, self.decimal)
        for name in ("id_column", "target_id_column", "response_id_column"):
            if getattr(self, name) is not None and not names_of(getattr(self, name)):
                raise ParameterError(f"{name} is empty; name a column")
        for parameter, choices in (("target_types", TYPES), ("target_rules", RULES)):
            for name, choice in (getattr(self, parameter) or {}).items():
                check_choice(f"{parameter} of {name!r}", choice, choices)
                if name not in (self.targets or ()):
                    raise ParameterError(f"{parameter} of {name!r}: no such target")
        if self.target_rules and self.target_table is not None:
            raise ParameterError("target_rules are given, but a target_table has a row per bag")
        check_choice("missing", self.missing, MISSING)
        check_integer("min_points", self.min_points)
        new = {name: getattr(self, name) for name in ("box", "response_box", "chunk_points")}
        check_mode(self.mode, self.overwrite, **new)
        check_choice("known_ids", self.known_ids, KNOWN_IDS)
        if self.known_ids != "refuse" and self.mode != "append":
            raise ParameterError("known_ids is given, but mode is not 'append'")
        self._boxes()

    def run(self, engine: LocalEngine | None = None, tally: Tally | None = None) -> BagStore:
        """Make the store, or append to it.

        ``engine`` checks and sorts the points and the responses; ``tally`` is added to.
        """
        kept = BagStore.open(self.url) if self.mode == "append" else None
        if kept is not None:
            responses = None if self.responses is None else self._of_responses
            targets = tuple(self.targets or ())
            check_fits(kept, self._of_points, responses, targets, self.target_types or {})
        columns = self._columns(kept)
        sources: dict[str, Any] = {
            "points": self.points,
            "targets": self.target_table,
            "responses": self.responses,
        }
        with spill_folder() as spill:
            files = {
                role: open_table(sources[role], columns[role], f"{spill}/{role}")
                for role in columns
            }
            return self._write(files, columns, kept, spill, engine, tally or Tally())

    def _write(
        self,
        files: Mapping[str, tuple[TableFile, ...]],
        columns: Mapping[str, Columns],
        kept: BagStore | None,
        spill: str,
        engine: LocalEngine | None,
        tally: Tally,
    ) -> BagStore:
        overwrite = self.overwrite or self.mode == "overwrite"
        with (
            nullcontext() if kept is not None else new_store(self.url, overwrite) as create,
            Database(SORT_BYTES, spill) as database,
        ):
            local = LocalEngine(database)
            if any(file.copy for table in files.values() for file in table):
                engine = local  # workers elsewhere do not see the copies
            engine = engine or (local if current_client() is None else ClusterEngine())
            engines = dict.fromkeys(columns, engine)
            engines["targets"] = local  # of one row per bag, and errors name the row
            dtype = points_dtype(self.dtype if kept is None else kept.dtype).name
            passes = TablePasses(columns, files, engines, dtype, self.progress)
            boxes = {} if kept is not None else self._boxes()
            passes.check(boxes, database)
            codings = passes.code(kept)
            if create is not None:
                kept = self._create(create, passes.tables, codings, boxes)
            assert kept is not None
            sources = self.points, self.target_table, self.responses
            origin = provenance(sources, self._of_points, self._of_responses)
            with kept.appending(origin if create else None) as session:
                passes.write(codings, session, kept.box, self.known_ids == "skip", tally)
                if not (tally.bags or tally.known_bags):
                    raise DataError(f"{kept.url}: no bag is left: all lack coordinates or points")
        warn_of(tally, kept, passes.tables["points"], create is not None)
        return kept

    def _create(
        self,
        create: Callable[..., BagStore],
        tables: Mapping[str, CheckedTable],
        codings: Mapping[str, Coding],
        boxes: Mapping[str, Box | float],
    ) -> BagStore:
        of_responses = "responses" in tables
        return create(
            len(self._of_points),
            target_names=tuple(self.targets or ()),
            box=tables["points"].box(boxes["points"]),
            response_dims=len(self._of_responses) if of_responses else None,
            response_box=tables["responses"].box(boxes["responses"]) if of_responses else None,
            class_names=codings["targets" if "targets" in tables else "points"].classes,
            dtype=self.dtype,
            chunk_points=self.chunk_points,
        )

    @cached_property
    def _of_points(self) -> tuple[Coordinate, ...]:
        return coordinates_of(self.coordinates, self.cyclic, self.categories)

    @cached_property
    def _of_responses(self) -> tuple[Coordinate, ...]:
        columns = self.response_coordinates or ()
        return coordinates_of(columns, self.cyclic, self.categories)

    def _boxes(self) -> dict[str, Box | float]:
        """Return the boxes of points and responses, or the quantiles they are measured by."""
        boxes = {"points": box_or_quantile(self.box, len(self._of_points))}
        if self.responses is not None:
            n_dims = len(self._of_responses)
            boxes["responses"] = box_or_quantile(self.response_box, n_dims, "response_box")
        return boxes

    def _columns(self, kept: BagStore | None) -> dict[str, Columns]:
        """Return what is read of the tables: of "points", and of "targets" and "responses"."""
        targets = tuple(self.targets or ())
        types = dict(self.target_types or {})
        if kept is not None:
            known = kept.meta.class_names
            types = {name: "class" if name in known else "number" for name in targets}
        words = tuple(str(word) for word in self.missing_values or ())
        ids = names_of(self.id_column)
        rules = Columns(
            ids,
            dates=names_of(self.dates),
            booleans=names_of(self.booleans),
            decimal=self.decimal,
            missing=self.missing,
            min_points=self.min_points,
            missing_values=words,
            csv=CsvDialect.of(self.csv, self.decimal),
        )
        of_targets: dict[str, Any] = {"targets": targets, "target_types": types}
        of_targets["target_rules"] = dict(self.target_rules or {})
        of_points = replace(rules, coordinates=self._of_points)
        if self.target_table is None:
            found = {"points": replace(of_points, **of_targets)}
        else:
            target_ids = names_of(self.target_id_column or ids)
            found = {"points": of_points}
            found["targets"] = replace(rules, ids=target_ids, **of_targets)
        if self.responses is not None:
            answer_ids = names_of(self.response_id_column or ids)
            found["responses"] = replace(rules, ids=answer_ids, coordinates=self._of_responses)
        return found


def _as_function(ingest: Callable[P, TableIngest]) -> Callable[P, BagStore]:
    """Return a function of the parameters that the class declares as its fields."""

    @wraps(ingest, assigned=("__doc__",), updated=())
    def run(*args: P.args, **kwargs: P.kwargs) -> BagStore:
        return ingest(*args, **kwargs).run()

    run.__name__ = run.__qualname__ = "ingest_tables"  # for help, and so that it can be pickled
    return run


ingest_tables = _as_function(TableIngest)
