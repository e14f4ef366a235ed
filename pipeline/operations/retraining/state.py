"""What retraining remembers between its rounds: one folder, whose ``state.json`` is the commit.

::

    <url>/state.json      the last round that is done, replaced as a whole
    <url>/sums-<n>-<x>.npz    summed statistics of its window, with checksums
    <url>/round.json      a round that was decided and is being carried out; else nothing
"""

from __future__ import annotations

import hashlib
import re
import uuid
from dataclasses import dataclass, field, replace
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
from .settings import Spending

FORMAT = Format("state of retraining")
STATE, JOURNAL = "state.json", "round.json"
# of a round; once without its second part, and half written with a dot before and two parts behind
SUMS = re.compile(r"\.?sums-(\d{6})(-[0-9a-f]{8})?\.npz(\.[0-9a-f]{32}\.partial)?")
PROMOTED, KEPT, OVERTAKEN = "promoted", "kept", "overtaken"
N_CHANGES = "n_changes"  # field of a fingerprint; those of older versions lack it
ERASED, ROWS = "n_erased", "rows"  # of a fingerprint; those of older versions lack them
NAMES_FIELD = "coordinate_names"  # as `N_CHANGES`
CHANGING_FIELDS = (N_CHANGES, ERASED, ROWS, NAMES_FIELD)  # may differ later in the same store
LAST_BAGS = 1024  # bags of a store whose ids and sizes show whether it is the one seen before

S = TypeVar("S", bound=Saved)


@dataclass(frozen=True)
class Round(Saved):
    """Record of one round of retraining.

    Attributes
    ----------
    number : int
        Number of the round, from 1.
    at : str
        Time at which the round began, ISO 8601 in UTC.
    stop : int
        The number of bags that it saw.
    model : str
        The challenger's name in the registry.
    decision : {"promoted", "kept", "overtaken"}
    n_new, n_new_labelled : int
    error, champion_error : float or None
        Errors of challenger and champion on the same bags; None where nothing was judged.
    p_value : float or None
        p-value of the gate "inputs".
    p_values : dict
        p-value of each gate against drift; rounds of earlier versions have none.
    level : float or None
        Level of each of these gates.
    wealth : dict
        Logarithm to base 10 of the capital of each gate that bets.

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
    >>> spec = Retraining('bags.zarr', 'models', estimator, target='y')
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


@dataclass(frozen=True)
class RetrainingState(Saved):
    """The last round that is done.

    Attributes
    ----------
    settings : dict
        Settings of the config that its models depend on.
    model : str
        The last model of the sequence, whose features the sums are of.
    sums : str
        Their file.
    start, stop : int
        The bags they are of.
    n_summed : int
        Rounds since the sums were computed from all of these bags.
    version : str
        Version of this package that computed them.
    store : dict
        See `fingerprint`.
    rounds : tuple of Round
        Oldest first.
    spending : Spending
        Spending of the gates against drift.
    gate_statistic : str
        Statistic of the comparisons; sequences of earlier versions continue with theirs.
    bets : dict
        For each gate that bets, the state that it resumes from; see `GateBets`.
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
        """The number of the round."""
        return self.rounds[-1].number

    @property
    def n_changes(self) -> int:
        """The length of the store's log of changes, as far as the sums know it."""
        return int(self.store.get(N_CHANGES, 0))

    def changed(self, store: BagStore) -> Integers:
        """Return which bags of the sums were removed or relabelled since, ascending."""
        bags = store.changes.since(self.n_changes).bags
        return bags[(bags >= self.start) & (bags < self.stop)]

    def misses(self, store: BagStore) -> bool:
        """Return whether bags of the sums were removed and their points deleted meanwhile."""
        gone = Changes(store.changes.rows[self.n_changes : store.meta.n_erased]).removed
        return bool(((gone >= self.start) & (gone < self.stop)).any())


@dataclass(frozen=True)
class Journal(Saved):
    """A decided round.

    Attributes
    ----------
    state : RetrainingState
        State that is committed when the change is carried out.
    promote : bool
        Whether ``state.model`` becomes the champion.
    n_changes : int
        Changes of the champion before.
    report : dict
    """

    state: RetrainingState
    promote: bool
    n_changes: int
    report: dict[str, Any]
    PARTS: ClassVar = {"state": RetrainingState}

    def overtaken(self, reason: str) -> Journal:
        """Return the round without its promotion: someone else changed the champion."""
        *before, last = self.state.rounds
        rounds = (*before, replace(last, decision=OVERTAKEN))
        report = {**self.report, "decision": OVERTAKEN, "reasons": [reason]}
        return replace(self, state=replace(self.state, rounds=rounds), report=report)


class StateFolder:
    """The folder of one sequence of rounds.

    On local files one process holds it for a whole round. In an object store several processes may
    work on a round. The first one that decides it writes the journal; the others are refused at
    that point and have done nothing.

    Parameters
    ----------
    hold : Hold
        Lock of the folder.
    """

    def __init__(self, hold: Hold) -> None:
        self.url = hold.url
        self._hold = hold

    def state(self) -> RetrainingState | None:
        """Return the last round that is done; None before the first.

        Raises
        ------
        StoreError
            A damaged file, or one of another format.
        """
        return self._read(STATE, RetrainingState)

    def journal(self) -> Journal | None:
        """Return the round that is being carried out, if there is one."""
        return self._read(JOURNAL, Journal)

    def unfinished(self) -> tuple[Journal | None, RetrainingState | None]:
        """Return the round that is being carried out, if there is one, and the last that is done.

        Raises
        ------
        WriterBusyError
            The round was finished by another process, and a later one too, while this one read.
        StoreError
            A damaged file, or one of another format.
        """
        # in this order: a round that another process begins after it changes the journal first
        journal, state = self.journal(), self.state()
        if journal is not None and state is not None and journal.state.number < state.number:
            raise WriterBusyError(f"{self.url}: another process goes on with the rounds")
        return journal, state

    def decide(self, journal: Journal) -> None:
        """Write down the decision, to be carried out by this process or by the next one.

        Raises
        ------
        WriterBusyError
            Another process has decided a round meanwhile.
        """
        self._write(JOURNAL, journal.to_dict())

    def commit(self, state: RetrainingState) -> None:
        """Write down that the round is done."""
        self._write(STATE, state.to_dict())

    def close(self, state: RetrainingState) -> None:
        """Delete the journal of a finished round, and sums that are not needed any more."""
        self._hold.check()
        for name in names_in(self.url):
            match = SUMS.fullmatch(name)
            # sums of a later round may be another process's, which works on it already
            if match and int(match[1]) <= state.number and name != state.sums:
                discard(f"{self.url}/{name}")
        self._hold.remove(JOURNAL)

    def write_sums(self, number: int, statistics: FitStatistics) -> str:
        """Write the sums of a round, under a name of their own; return the file's name."""
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
            They are missing, damaged, or of other bags.
        """
        try:
            with reading(f"{self.url}/{state.sums}") as path:
                sums = read_partial(path)
        except FileNotFoundError:
            raise ValueError("it is missing") from None
        if sums.n_bags != state.stop - state.start:
            raise ValueError(f"of {sums.n_bags} bags, not of {state.stop - state.start}")
        return sums

    def _read(self, name: str, kind: type[S]) -> S | None:
        return read_json(
            f"{self.url}/{name}",
            partial(read_saved, kind),
            read=lambda url: self._hold.read(name),
            format=FORMAT,
            remedy="restore it, or give another state_url to begin anew",
        )

    def _write(self, name: str, values: dict[str, Any]) -> None:
        self._hold.write(name, json_bytes(values, format=FORMAT))


def fingerprint(store: BagStore, stop: int) -> dict[str, Any]:
    """Return what identifies the first ``stop`` bags of a store, in types that JSON knows.

    Only the last 1,024 of them are looked at. Where ``stop`` is the length of the store, lengths
    and checksums of its arrays tell whether later rows follow these.
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
        # a box that is measured grows with the bags, which does not make it another store
        "box": None if store.meta.is_measured else store.box.bounds,
        "target_names": list(store.target_names),
        "response_dims": store.response_dims,
        N_CHANGES: store.meta.n_changes,
        "merged": store.meta.merged,
        "last_bags": digest.hexdigest(),
        ERASED: store.meta.n_erased,
        ROWS: rows,
        NAMES_FIELD: names and list(names),
    }


def _other_array(store: BagStore, before: dict[str, Any]) -> str:
    """Return the name of an array that does not begin with the rows of a fingerprint, or "".

    Only the rows that came since are read: their checksum that follows the one before is the
    checksum of all rows. After a compaction, which deletes rows, nothing is compared, and no points
    where a store that was made anew has its columns in another order.
    """
    rows = before.get(ROWS)
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
        Whose rounds saw it, for the message.
    """
    what = ""
    if store.n_bags < before["n_bags"]:
        what = f"it has {store.n_bags} bags, {before['n_bags']} were learned from"
    elif store.meta.n_changes < before.get(N_CHANGES, 0):
        what = f"it has {store.meta.n_changes} changes of bags, {before[N_CHANGES]} were seen"
    else:
        now = fingerprint(store, before["n_bags"])
        before = {"merged": None, **before}  # of older versions: without
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
