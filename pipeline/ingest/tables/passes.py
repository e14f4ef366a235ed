"""The two passes over the tables of an ingest: all rows are checked, then sorted and written."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, fields, replace

import numpy as np
from numpy.typing import NDArray

from ...core.errors import DataError
from ...data.bags.box import Box
from ...data.store.store import BagStore
from ...data.store.writer import AppendSession
from ...execution.notebook import watched
from ...execution.progress import Progress, silent
from ..boxes import warnings_of_range
from .bags import JoinedRows, SortedRows, UnknownIds, join_tables
from .database import Database
from .engines import LocalEngine
from .files import TableFile
from .scans import Coding
from .surveys import (
    CheckedTable,
    ColumnKind,
    check_table,
    resolve_kinds,
    sort_labels,
    tell_words_among_numbers,
)
from .values import MEDIAN, Columns

_FAR_TIMES = 2.0  # times the box's side: data that reach so far are warned of …
_MANY_OUTSIDE = 0.01  # … and so is this fraction of the points outside

logger = logging.getLogger(__name__)


@dataclass
class Tally:
    """Numbers of bags and points that an ingest wrote and left out, without those of responses.

    Attributes
    ----------
    bags, points : int
        Bags and points that were written.
    dropped_bags, dropped_points : int
        Bags and points left out because a coordinate was missing. The points include those of the
        dropped bags.
    filled_points : int
        Points that were written with the median of a coordinate that was missing.
    small_bags : int
        Bags left out because they have too few points.
    known_bags : int
        Bags left out because the store already had their ids.
    bags_without_targets, bags_without_response : int
        Bags that the table of targets or of responses does not have.
    ids_without_points : int
        Ids of the other tables left out because no point has them.
    points_outside_box : int
        Points that lie outside the box.
    """

    bags: int = 0
    points: int = 0
    dropped_bags: int = 0
    dropped_points: int = 0
    filled_points: int = 0
    small_bags: int = 0
    known_bags: int = 0
    bags_without_targets: int = 0
    bags_without_response: int = 0
    ids_without_points: int = 0
    points_outside_box: int = 0

    def warnings(self) -> Iterator[str]:
        """Yield one sentence for each kind of bag or point left out or missing."""
        n_bags = self.bags + self.known_bags + self.dropped_bags + self.small_bags
        of = f"of {n_bags} bags"
        for count, text in (
            (self.dropped_points, "points were dropped, as a coordinate is missing"),
            (self.dropped_bags, f"{of} were dropped with them"),
            (
                self.filled_points,
                f"of {self.points} points have the median of a coordinate that was missing; a "
                "coordinate named *_missing marks them",
            ),
            (self.small_bags, f"{of} were left out: they have fewer points than min_points"),
            (self.known_bags, f"{of} were skipped: the store has their ids"),
            (
                self.bags_without_targets,
                f"{of} are not in the target table and stay without a label",
            ),
            (
                self.ids_without_points,
                "ids of the target table or the responses were skipped: no point has them",
            ),
            (self.bags_without_response, f"{of} are not in the table of responses and have none"),
        ):
            if count:
                yield f"{count} {text}"

    def counts(self) -> dict[str, int]:
        """Return the counts that are not zero, for a report."""
        return {count.name: n for count in fields(self) if (n := getattr(self, count.name))}


@dataclass
class TablePasses:
    """The tables of one ingest: "points", and "targets" and "responses" if there are any.

    Parameters
    ----------
    columns, files, engines : mapping from table
        Columns to read, the files, and the engine that checks and sorts them, for each table.
    progress : Progress
    skips_unknown : bool
        Whether ids of the other tables that no point has are left out.
    """

    columns: Mapping[str, Columns]
    files: Mapping[str, Sequence[TableFile]]
    engines: Mapping[str, LocalEngine]
    progress: Progress | None
    skips_unknown: bool = False
    tables: dict[str, CheckedTable] = field(default_factory=dict)
    codings: dict[str, Coding] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin to count."""
        self._thirds = _Thirds(watched(self.progress), self.files)

    def check(self, boxes: Mapping[str, Box | float], database: Database) -> None:
        """Check all rows; sample points if ``boxes`` is to be measured by a quantile."""
        for role, columns in self.columns.items():
            share, files = 0.0, self.files[role]
            is_filled = columns.missing == MEDIAN and columns.medians is None
            is_filled = is_filled and role == "points"
            if is_filled or not isinstance(boxes.get(role, Box.unit(1)), Box):
                n_rows = max(1, sum(file.n_rows for file in files))
                share = min(1.0, Box.sample_size(len(columns.coordinates) or 1) / n_rows)
            columns = replace(columns, share=share)
            surveys = self.engines[role].survey(columns, files, self._thirds.of(0, role))
            table = check_table(columns, surveys, database)
            self.tables[role] = table.with_medians() if is_filled else table
        self._thirds.count(self.tables)

    def code(self, existing: BagStore | None) -> None:
        """Decide how the values of each table are stored; ``existing`` is the existing store."""
        kinds = [survey.id_kind for table in self.tables.values() for survey in table.surveys]
        if existing is not None and existing.n_bags:
            kinds.append(
                ColumnKind("text" if existing.meta.id_kind == "str" else "number", existing.url)
            )
        ids = resolve_kinds("the id column", kinds)
        tell_words_among_numbers([survey.id_kind for survey in self.tables["points"].surveys])
        for role, table in self.tables.items():
            names = table.text_targets()
            parts = self.engines[role].find_labels(table, names) if names else []
            types = table.columns.target_types
            classes = {
                name: sort_labels(name, [part[name] for part in parts], types) for name in names
            }
            for name in set(classes) & set(table.columns.target_rules):
                if table.columns.target_rules[name] != "last":
                    raise DataError(f"target {name!r} is text; of its rows only 'last' is taken")
            if existing is not None:
                classes = {name: _known(name, classes[name], existing) for name in names}
            self.codings[role] = Coding(ids, classes)

    def write(self, session: AppendSession, box: Box, skip_known: bool, tally: Tally) -> None:
        """Sort all rows and write all bags; count the bags and points."""
        done, progress = 0, self._thirds.of(2)
        reaches = _reaches(self.tables["points"], box).max() > 1
        with ExitStack() as stack:
            rows = {}
            for role, table in self.tables.items():
                coding, progress_of = self.codings[role], self._thirds.of(1, role)
                batches = self.engines[role].sort(table, coding, progress_of)
                rows[role] = SortedRows(stack.enter_context(closing(batches)))
            classes = self.codings["points"].classes
            unknown = UnknownIds(self.skips_unknown)
            for batch in join_tables(self.tables, classes, rows, unknown):
                done += batch.bags.n_points
                done += 0 if batch.responses is None else batch.responses.n_points
                batch = self._leave_out(batch, session, skip_known, tally)
                tally.points_outside_box += box.count_outside(batch.bags.points) if reaches else 0
                if len(batch.ids):
                    targets = batch.targets if batch.targets.shape[1] else None
                    session.write(batch.bags, targets, batch.ids, responses=batch.responses)
                progress(done, self._thirds.total)
            tally.ids_without_points += unknown.count
            if unknown.alike:
                logger.warning(
                    "id %r was skipped, as no point has it, but the points have %r: write both "
                    "alike if they are one bag",
                    *unknown.alike,
                )

    def _leave_out(
        self, batch: JoinedRows, session: AppendSession, skip_known: bool, tally: Tally
    ) -> JoinedRows:
        """Leave bags and points out as asked; count them, and return the others."""
        n_bags, n_points = len(batch.ids), batch.bags.n_points
        tally.bags_without_targets += batch.n_without_row
        if batch.responses is not None:
            without = n_bags - len(batch.responses.positions)
            tally.bags_without_response += without
        batch = batch.without_missing(self.columns["points"].missing)
        tally.dropped_bags += n_bags - len(batch.ids)
        tally.dropped_points += n_points - batch.bags.n_points
        is_small = batch.bags.sizes < self.columns["points"].min_points
        tally.small_bags += int(is_small.sum())
        batch = batch.choose(~is_small) if is_small.any() else batch
        if skip_known:
            known = session.known(batch.ids)
            tally.known_bags += int(known.sum())
            batch = batch.choose(~known)
        tally.bags += len(batch.ids)
        tally.points += batch.bags.n_points
        columns = self.tables["points"].columns
        flags = batch.bags.points[:, len(columns.coordinates) :]
        tally.filled_points += int(flags.any(axis=1).sum()) if columns.fills else 0
        return batch


def warn_of(
    tally: Tally, store: BagStore, points: CheckedTable, is_new: bool, is_measured: bool
) -> None:
    """Log warnings about a store; only a new store can leave coordinates out.

    ``is_measured``: whether this ingest measured the box, which leaves out the farthest points.
    """
    names = points.columns.stored_names
    of_range = warnings_of_range(*points.range, names) if is_new else []
    for text in [*tally.warnings(), *of_range]:
        logger.warning("%s: %s", store.url, text)
    reaches = _reaches(points, store.box)
    far = int(np.argmax(reaches))
    many = tally.points_outside_box > _MANY_OUTSIDE * tally.points
    if tally.points_outside_box and (many or reaches[far] > _FAR_TIMES):
        lo, hi = (float(end[far]) for end in points.range)
        what = "lie outside the box"
        if is_measured:
            what = "were left out when the box was measured"
        logger.warning(
            "%s: %d of %d points %s; coordinate %r reaches from %.6g to %.6g, the box from %.6g "
            "to %.6g: remove wrong values, or give box=",
            *(store.url, tally.points_outside_box, tally.points, what),
            *(names[far], lo, hi, store.box.lo[far], store.box.hi[far]),
        )


def _reaches(points: CheckedTable, box: Box) -> NDArray[np.float64]:
    """Return how far data reach from the middle of the box, in half sides: 1 is the edge."""
    lo, hi = box.to_unit(np.array(points.range))
    reaches: NDArray[np.float64] = np.maximum(np.abs(2 * lo - 1), np.abs(2 * hi - 1))
    return reaches


def _known(name: str, labels: Sequence[str], store: BagStore) -> list[str]:
    """Return the classes of the existing store; refuse labels that are not among them."""
    classes = store.meta.class_names[name]
    new = [label for label in labels if label not in classes]
    if new:
        raise DataError(
            f"target {name!r}: {new[0]!r} is none of the classes of {store.url}, {classes}; "
            "correct it, or make a new store that knows it"
        )
    return classes


class _Thirds:
    """Progress in points; each of three phases counts a third of a point. It never decreases."""

    def __init__(self, progress: Progress, files: Mapping[str, Sequence[TableFile]]) -> None:
        self._progress = progress
        self._share = 0.0
        self._sizes = {role: sum(file.n_rows for file in of) for role, of in files.items()}

    def count(self, tables: Mapping[str, CheckedTable]) -> None:
        """Replace the estimated numbers of rows by the counted ones."""
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
