"""The state of a retraining between rounds: one folder, committed by its ``state.json``.

::

    <url>/state.json      the last finished round, replaced as a whole
    <url>/sums-<n>-<x>.npz    summed statistics of its window, with checksums
    <url>/round.json      a decided round that is being carried out; otherwise absent
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, TypeVar

from ...core.arrays import Integers
from ...core.errors import StoreError, WriterBusyError
from ...core.saved import Format, Saved, read_saved
from ...data.storage.files import discard, json_bytes, names_in, read_json, reading, writing
from ...data.storage.lock import Hold
from ...data.store.changes import Changes
from ...data.store.checksums import checksum_of_rows
from ...data.store.chunks import shard_rows
from ...data.store.schema import POINTS, arrays_of
from ...data.store.store import BagStore
from ...models.fitting.accumulate import FitStatistics
from ...models.fitting.partials import read_partial, write_partial
from .settings import Spending, Window

RETRAINING_FORMAT = Format("state of retraining")
_STATE, JOURNAL = "state.json", "round.json"
# of a round; once without its second part, and half written with a dot before and two parts behind
SUMS = re.compile(r"\.?sums-(\d{6})(-[0-9a-f]{8})?\.npz(\.[0-9a-f]{32}\.partial)?")
PROMOTED, KEPT, OVERTAKEN = "promoted", "kept", "overtaken"
N_CHANGES = "n_changes"  # field of a fingerprint; absent in fingerprints of older versions
ERASED, _ROWS = "n_erased", "rows"  # fields of a fingerprint; absent in older versions
NAMES_FIELD = "coordinate_names"  # as `N_CHANGES`
CHANGING_FIELDS = (N_CHANGES, ERASED, _ROWS, NAMES_FIELD)  # may change while the store is the same
LAST_BAGS = 1024  # bags whose ids and sizes identify the store

_S = TypeVar("_S", bound=Saved)


@dataclass(frozen=True, kw_only=True)
class Round(Saved):
    """Record of one round of retraining.

    Attributes
    ----------
    number : int
        Number of the round, from 1.
    at : str
        Time at which the round began, ISO 8601 in UTC.
    stop : int
        Number of bags in the store when the round began.
    model : str
        Name of the new model in the registry.
    decision : {"promoted", "kept", "overtaken"}
        Outcome of the round; see `RoundResult`.
    n_new, n_new_labelled : int
        Numbers of new bags, and of new bags with a label.
    error, champion_error : float or None
        Errors of the new model and of the champion on the same bags; None if nothing was judged.
    p_value : float or None
        p-value of the drift gate "inputs".
    p_values : dict
        p-value of each drift gate; empty for rounds of earlier versions.
    level : float or None
        Significance level of each of these gates.
    wealth : dict
        Logarithm to base 10 of the capital of each gate that bets (``gate="e_process"``).

    See Also
    --------
    RoundResult : Result of `retrain`.
    retrain : Retrain and promote models.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import BagStore, DoubleBasisRegressor
    >>> from bagbasis.operations import Retraining, retrain
    >>> store = BagStore.create('bags.zarr', n_dims=2, target_names=['y']).append(X, y)
    >>> estimator = DoubleBasisRegressor('moments', alpha=1e-3)
    >>> spec = Retraining('bags.zarr', 'models', estimator=estimator, target='y')
    >>> report = retrain(spec).report  # has the round and how it was judged
    >>> report['number'], report['n_new']
    (1, 80)
    """

    number: int
    at: str
    stop: int
    model: str
    decision: str
    n_new: int
    n_new_labelled: int
    error: float | None
    champion_error: float | None
    p_value: float | None
    p_values: dict[str, float] = field(default_factory=dict)
    level: float | None = None
    wealth: dict[str, float] = field(default_factory=dict)


def window_start(
    window: Window, rounds: Sequence[Round], first: int, stop: int, now: datetime
) -> int:
    """Return the first bag of a window that ends at ``stop``.

    ``rounds`` are the earlier rounds, oldest first. ``first`` is the first bag of the previous
    window: bags that have left the window do not come back.
    """
    if window.bags is not None:
        return max(first, stop - window.bags)
    if window.days is None:
        return first
    oldest = now - timedelta(days=window.days)
    gone = [past.stop for past in rounds if datetime.fromisoformat(past.at) < oldest]
    return max(first, *gone) if gone else first


@dataclass(frozen=True)
class RetrainingState(Saved):
    """State after the last finished round.

    Attributes
    ----------
    settings : dict
        Settings of the config on which the models depend.
    model : str
        Name of the last model of the sequence. The sums are sums of its features.
    sums : str
        Name of the file of the sums.
    start, stop : int
        Range of the bags in the sums.
    n_summed : int
        Number of rounds since the sums were computed from all of these bags.
    version : str
        Version of this package that computed the sums.
    store : dict
        Fingerprint of the store; see `fingerprint`.
    rounds : tuple of Round
        All rounds, oldest first.
    spending : Spending
        Spent significance levels of the drift gates.
    gate_statistic : str
        Statistic of the drift gates; sequences of earlier versions keep their statistic.
    bets : dict
        State from which each gate that bets continues; see `GateBets`.
    """

    settings: dict[str, Any]
    model: str
    sums: str
    start: int
    stop: int
    n_summed: int
    version: str
    store: dict[str, Any]
    rounds: tuple[Round, ...]
    spending: Spending = field(default_factory=Spending)
    gate_statistic: str = "mmd_u"
    bets: dict[str, Any] = field(default_factory=dict)
    PARTS: ClassVar = {"rounds": Round, "spending": Spending}

    @property
    def number(self) -> int:
        """Number of the round."""
        return self.rounds[-1].number

    @property
    def n_changes(self) -> int:
        """Number of entries of the store's log of changes that the sums include."""
        return int(self.store.get(N_CHANGES, 0))

    def changed(self, store: BagStore) -> Integers:
        """Return the bags of the sums that were removed or relabelled since, ascending."""
        bags = store.changes.since(self.n_changes).bags
        return bags[(bags >= self.start) & (bags < self.stop)]

    def misses(self, store: BagStore) -> bool:
        """Return whether points of removed bags of the sums were deleted meanwhile."""
        gone = Changes(store.changes.rows[self.n_changes : store.meta.n_erased]).removed
        return bool(((gone >= self.start) & (gone < self.stop)).any())


@dataclass(frozen=True)
class Journal(Saved):
    """A decided round.

    Attributes
    ----------
    state : RetrainingState
        State that is committed when the round is carried out.
    promote : bool
        Whether ``state.model`` becomes the champion.
    n_changes : int
        Number of earlier changes of the champion.
    report : dict
        Report of the round.
    """

    state: RetrainingState
    promote: bool
    n_changes: int
    report: dict[str, Any]
    PARTS: ClassVar = {"state": RetrainingState}

    def overtaken(self, reason: str) -> Journal:
        """Return the round without promotion, because someone else changed the champion."""
        *before, last = self.state.rounds
        rounds = (*before, replace(last, decision=OVERTAKEN))
        report = {**self.report, "decision": OVERTAKEN, "reasons": [reason]}
        return replace(self, state=replace(self.state, rounds=rounds), report=report)


class StateFolder:
    """The folder of one sequence of rounds.

    On local files, one process locks the folder for a whole round. In an object store, several
    processes may work on the same round. The first process that decides the round writes the
    journal. The other processes are rejected at that point, without having changed anything.

    Parameters
    ----------
    hold : Hold
        Lock of the folder.
    """

    def __init__(self, hold: Hold) -> None:
        self.url = hold.url
        self._hold = hold

    def state(self) -> RetrainingState | None:
        """Return the state after the last finished round; None before the first round.

        Raises
        ------
        StoreError
            If the file is damaged or of another format.
        """
        return self._read(_STATE, RetrainingState)

    def journal(self) -> Journal | None:
        """Return the decided round that is being carried out; None if there is none."""
        return self._read(JOURNAL, Journal)

    def unfinished(self) -> tuple[Journal | None, RetrainingState | None]:
        """Return the decided round, if there is one, and the state after the last finished round.

        Raises
        ------
        WriterBusyError
            If another process finished the round and a later round during the reads.
        StoreError
            If a file is damaged or of another format.
        """
        # the journal first, because a round of another process changes the journal first
        journal, state = self.journal(), self.state()
        if journal is not None and state is not None and journal.state.number < state.number:
            raise WriterBusyError(f"{self.url}: another process goes on with the rounds")
        return journal, state

    def decide(self, journal: Journal) -> None:
        """Save the decision; this process or the next one carries it out.

        Raises
        ------
        WriterBusyError
            If another process has decided a round meanwhile.
        """
        self._write(JOURNAL, journal.to_dict())

    def commit(self, state: RetrainingState) -> None:
        """Save the state after the round, which finishes the round."""
        self._write(_STATE, state.to_dict())

    def close(self, state: RetrainingState) -> None:
        """Delete the journal of a finished round, and sums that are no longer needed."""
        self._hold.check()
        for name in names_in(self.url):
            match = SUMS.fullmatch(name)
            # sums of a later round may belong to another process that already works on it
            if match and int(match[1]) <= state.number and name != state.sums:
                discard(f"{self.url}/{name}")
        self._hold.remove(JOURNAL)

    def write_sums(self, number: int, statistics: FitStatistics) -> str:
        """Write the sums of a round to a file with a unique name, and return the name."""
        name = f"sums-{number:06d}-{uuid.uuid4().hex[:8]}.npz"
        self._hold.check()
        with writing(f"{self.url}/{name}") as path:
            write_partial(path, statistics)
        return name

    def read_sums(self, state: RetrainingState) -> FitStatistics:
        """Return the sums of the state's window.

        Raises
        ------
        ValueError
            If the sums are missing, damaged, or of other bags.
        """
        try:
            with reading(f"{self.url}/{state.sums}") as path:
                sums = read_partial(path)
        except FileNotFoundError:
            raise ValueError("it is missing") from None
        if sums.n_bags != state.stop - state.start:
            raise ValueError(f"of {sums.n_bags} bags, not of {state.stop - state.start}")
        return sums

    def _read(self, name: str, kind: type[_S]) -> _S | None:
        return read_json(
            f"{self.url}/{name}",
            partial(read_saved, kind),
            read=lambda url: self._hold.read(name),
            format=RETRAINING_FORMAT,
            remedy="restore it, or give another state_url to begin anew",
        )

    def _write(self, name: str, values: dict[str, Any]) -> None:
        self._hold.write(name, json_bytes(values, format=RETRAINING_FORMAT))


def fingerprint(store: BagStore, stop: int) -> dict[str, Any]:
    """Return a fingerprint of the first ``stop`` bags of a store, as JSON types.

    Only the last 1,024 of these bags are read. If ``stop`` is the length of the store, the lengths
    and checksums of its arrays are included, so that later rows can be checked to follow.
    """
    digest = hashlib.sha256()
    digest.update(repr(store.ids(max(0, stop - LAST_BAGS), stop).tolist()).encode())
    digest.update(repr(store.offsets(max(0, stop - LAST_BAGS), stop).tolist()).encode())
    rows, names = None, store.coordinate_names
    if stop == store.n_bags and store.meta.checksums:
        sizes = {array.name: array.rows(store.meta) for array in arrays_of(store.meta)}
        rows = {name: [n, store.meta.checksums.get(name)] for name, n in sizes.items()}
    return {
        "n_bags": stop,
        "n_dims": store.n_dims,
        # a measured box grows with the bags, although the store is the same
        "box": None if store.meta.is_measured else store.box.bounds,
        "target_names": list(store.target_names),
        "response_dims": store.response_dims,
        N_CHANGES: store.meta.n_changes,
        "merged": store.meta.merged,
        "last_bags": digest.hexdigest(),
        ERASED: store.meta.n_erased,
        _ROWS: rows,
        NAMES_FIELD: names and list(names),
    }


def _other_array(store: BagStore, before: dict[str, Any]) -> str:
    """Return the name of an array that does not begin with the rows of a fingerprint, or "".

    Only the rows that were added since are read: continuing the old checksum over these rows gives
    the checksum of all rows. After a compaction, which deletes rows, nothing is compared. Points
    are not compared if the store was recreated with its columns in another order.
    """
    rows = before.get(_ROWS)
    if rows is None or before[ERASED] != store.meta.n_erased:
        return ""
    is_turned = before.get(NAMES_FIELD) not in (None, list(store.coordinate_names or ()))
    for array in arrays_of(store.meta):
        if is_turned and array.name == POINTS.name:
            continue
        n_rows, text = rows.get(array.name, (0, None))
        all_rows = array.checksum(store.meta)
        if text is None or all_rows is None:
            continue
        checksum, stop = int(text, 16), array.rows(store.meta)
        step = shard_rows(store.array(array))
        edges = [n_rows, *range(step * (n_rows // step + 1), stop, step), stop]
        for start, end in pairwise(edges):  # object by object
            checksum = checksum_of_rows(store.read_stored(array, start, end), checksum)
        if checksum != all_rows:
            return array.name
    return ""


def check_same_store(store: BagStore, before: dict[str, Any], state_url: str) -> None:
    """Raise StoreError if the store was replaced or shrank since.

    Parameters
    ----------
    before : dict
        Result of `fingerprint`.
    state_url : str
        URL of the state, for the error message.
    """
    what = ""
    if store.n_bags < before["n_bags"]:
        what = f"it has {store.n_bags} bags, {before['n_bags']} were learned from"
    elif store.meta.n_changes < before.get(N_CHANGES, 0):
        what = f"it has {store.meta.n_changes} changes of bags, {before[N_CHANGES]} were seen"
    else:
        now = fingerprint(store, before["n_bags"])
        before = {"merged": None, **before}  # absent in older versions
        changed = [
            name for name in before if name not in CHANGING_FIELDS and now[name] != before[name]
        ]
        if changed == ["last_bags"]:
            what = f"its bags before {before['n_bags']} have other ids or sizes"
        elif changed:
            name = changed[0]
            what = f"its {name} is {now[name]}, it was {before[name]}"
        elif other := _other_array(store, before):
            what = f"its bags before {before['n_bags']} have other {other}"
    if what:
        raise StoreError(
            f"{store.url}: not the store that {state_url} was made from: {what}; put it back, or "
            "give another state_url to begin anew"
        )
