"""What retraining remembers between its rounds: one folder, whose ``state.json`` is the commit.

::

    <url>/state.json      the last round that is done, replaced as a whole
    <url>/sums-<n>.npz    summed statistics of its window, with checksums
    <url>/round.json      a round that was decided and is being carried out; else nothing
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from ..bags import BagStore
from ..errors import StoreError
from ..regression.accumulate import FitStatistics
from ..regression.partials import read_partial, write_partial
from ..storage.files import discard, names_in, read_json, reading, write_json, writing

FORMAT_VERSION = 1
STATE, JOURNAL = "state.json", "round.json"
PROMOTED, KEPT = "promoted", "kept"
LAST_BAGS = 1024  # of a store, whose ids and sizes tell whether it is the one seen before

T = TypeVar("T")


@dataclass(frozen=True)
class Round:
    """One round, as later ones and the pictures need it.

    Attributes
    ----------
    number : int
        From 1.
    at : str
        When it began, ISO 8601 in UTC.
    stop : int
        The number of bags that it saw.
    model : str
        The challenger's name in the registry.
    decision : {"promoted", "kept"}
    n_new, n_new_labelled : int
    error, champion_error : float or None
        Of challenger and champion on the same bags; None where nothing was judged.
    p_value : float or None
        Of the drift test.
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


@dataclass(frozen=True)
class State:
    """The last round that is done.

    Attributes
    ----------
    settings : dict
        Of the config, as far as its models depend on them.
    model : str
        The last model of the line, whose features the sums are of.
    sums : str
        Their file.
    start, stop : int
        The bags they are of.
    n_summed : int
        Rounds since the sums were computed from all of these bags.
    version : str
        Of this package, which computed them.
    store : dict
        See `fingerprint`.
    rounds : tuple of Round
        Oldest first.
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

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> State:
        rounds = tuple(Round(**one) for one in values["rounds"])
        return cls(**{**values, "rounds": rounds})


@dataclass(frozen=True)
class Journal:
    """A decided round.

    Attributes
    ----------
    state : State
        What is committed when it is carried out.
    promote : bool
        Whether ``state.model`` becomes the champion.
    n_changes : int
        Changes of the champion before.
    report : dict
    """

    state: State
    promote: bool
    n_changes: int
    report: dict[str, Any]

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Journal:
        return cls(**{**values, "state": State.from_dict(values["state"])})


class StateFolder:
    """The folder of one line of rounds.

    Parameters
    ----------
    url : str
    check : callable
        Raises when the folder is no longer ours; asked before every write.
    """

    def __init__(self, url: str, check: Callable[[], None]) -> None:
        self.url = url
        self._check = check

    def state(self) -> State | None:
        """None before the first round is done.

        Raises
        ------
        StoreError
            A damaged file, or one of another format.
        """
        return self._read(STATE, State.from_dict)

    def journal(self) -> Journal | None:
        """None when no round is being carried out."""
        return self._read(JOURNAL, Journal.from_dict)

    def decide(self, journal: Journal) -> None:
        """From here on the round is carried out, by this process or by the next."""
        self._write(JOURNAL, asdict(journal))

    def commit(self, state: State) -> None:
        """The round is done."""
        self._write(STATE, asdict(state))

    def close(self, state: State) -> None:
        """Delete the journal of a round that is done, and sums that nothing needs any more."""
        self._check()
        for name in names_in(self.url):
            if name.startswith("sums-") and name != state.sums:
                discard(f"{self.url}/{name}")
        discard(f"{self.url}/{JOURNAL}")

    def write_sums(self, number: int, statistics: FitStatistics) -> str:
        """Write the sums of a round; returns the file's name."""
        name = f"sums-{number:06d}.npz"
        self._check()
        with writing(f"{self.url}/{name}") as path:
            write_partial(path, statistics)
        return name

    def read_sums(self, state: State) -> FitStatistics:
        """The sums of the state's window.

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

    def _read(self, name: str, parse: Callable[[dict[str, Any]], T]) -> T | None:
        remedy = "restore it, or give another state_url to begin anew"
        url = f"{self.url}/{name}"
        return read_json(url, parse, format_version=FORMAT_VERSION, remedy=remedy)

    def _write(self, name: str, values: dict[str, Any]) -> None:
        self._check()
        write_json(f"{self.url}/{name}", values, format_version=FORMAT_VERSION)


def fingerprint(store: BagStore, stop: int) -> dict[str, Any]:
    """What identifies the first ``stop`` bags of a store, in types that JSON knows.

    Only the last 1,024 of them are looked at.
    """
    digest = hashlib.sha256()
    digest.update(repr(store.ids(max(0, stop - LAST_BAGS), stop).tolist()).encode())
    digest.update(repr(store.offsets(max(0, stop - LAST_BAGS), stop).tolist()).encode())
    return {
        "n_bags": stop,
        "n_dims": store.n_dims,
        "box": [list(bounds) for bounds in store.box.bounds],
        "target_names": list(store.target_names),
        "response_dims": store.response_dims,
        "last_bags": digest.hexdigest(),
    }


def check_same_store(store: BagStore, before: dict[str, Any], state_url: str) -> None:
    """Raise StoreError for a store that was replaced or shrunk since.

    Parameters
    ----------
    before : dict
        Of `fingerprint`.
    state_url : str
        Whose rounds saw it, for the message.
    """
    what = ""
    if store.n_bags < before["n_bags"]:
        what = f"it has {store.n_bags} bags, {before['n_bags']} were learned from"
    else:
        now = fingerprint(store, before["n_bags"])
        changed = [name for name in before if now[name] != before[name]]
        if changed == ["last_bags"]:
            what = f"its bags before {before['n_bags']} have other ids or sizes"
        elif changed:
            name = changed[0]
            what = f"its {name} is {now[name]}, it was {before[name]}"
    if what:
        raise StoreError(
            f"{store.url}: not the store that {state_url} was made from: {what}; put it back, or "
            "give another state_url to begin anew"
        )
