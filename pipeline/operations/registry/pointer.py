"""The current and former champions of a registry, in one small JSON object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ...core.errors import ModelError
from ...core.saved import Format, NewerError, Saved, read_saved
from ...data.storage.files import json_bytes, read_json
from ...data.store.checksums import checksum_of_values

REGISTRY_FORMAT = Format("registry")
CHECKSUM = "checksum"  # of all other keys
_KEYS = {"current", "history", CHECKSUM}
PROMOTE, ROLLBACK = "promote", "rollback"


def now() -> str:
    """Return the current time in the registry's format: ISO 8601 in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True)
class Promotion(Saved):
    """One change of the champion.

    Attributes
    ----------
    name : str
        Name of the model that became champion.
    at : str
        Time of the change, ISO 8601 in UTC.
    action : {"promote", "rollback"}
        Kind of the change.
    """

    name: str
    at: str
    action: str


@dataclass(frozen=True)
class Pointer:
    """Every change of the champion, oldest first; entries are never removed."""

    history: tuple[Promotion, ...] = ()

    @property
    def champions(self) -> tuple[str, ...]:
        """Champions to which rollbacks lead, followed by the current champion.

        Raises
        ------
        ValueError
            If the history is inconsistent.
        """
        names: list[str] = []
        for change in self.history:
            if change.action == PROMOTE:
                names.append(change.name)
                continue
            if change.action != ROLLBACK or len(names) < 2 or names[-2] != change.name:
                raise ValueError(f"{change} cannot have followed")
            names.pop()
        return tuple(names)

    @property
    def current(self) -> str | None:
        """The champion's name; None before the first promotion."""
        return self.champions[-1] if self.history else None

    def promoted(self, name: str) -> Pointer:
        """Return the pointer with another champion."""
        return Pointer((*self.history, Promotion(name, now(), PROMOTE)))

    def rolled_back(self) -> Pointer:
        """Return the pointer to the previous champion; a previous champion must exist."""
        return Pointer((*self.history, Promotion(self.champions[-2], now(), ROLLBACK)))

    def to_bytes(self) -> bytes:
        """Return the JSON text that `read` takes."""
        history = [change.to_dict() for change in self.history]
        values: dict[str, Any] = {"current": self.current, "history": history}
        values[CHECKSUM] = checksum_of_values(values)
        return json_bytes(values, format=REGISTRY_FORMAT)

    @classmethod
    def read(cls, url: str, read: Callable[[str], bytes | None]) -> Pointer:
        """Return the pointer stored at a URL, or a new one without history.

        Raises
        ------
        ModelError
            If `to_bytes` cannot have written the content. The message names the URL.
        """
        remedy = (
            "try again if something between here and the storage may have answered in its place; "
            "if it is damaged, restore it from a copy, or keep it under another name and promote a "
            "model: it holds the history of the champion"
        )
        pointer = read_json(
            url,
            cls._parsed,
            read=read,
            format=REGISTRY_FORMAT,
            kind=ModelError,
            remedy=remedy,
        )
        return pointer or cls()

    @classmethod
    def _parsed(cls, values: dict[str, Any]) -> Pointer:
        unknown = values.keys() - _KEYS
        if unknown:
            raise NewerError(sorted(unknown))
        pointer = cls(tuple(read_saved(Promotion, change) for change in values["history"]))
        if values["current"] != pointer.current:
            raise ValueError(
                f"current is {values['current']!r}, its history ends at {pointer.current!r}"
            )
        checksum = values.pop(CHECKSUM, None)  # earlier versions wrote none
        if checksum not in (None, checksum_of_values(values)):
            raise ValueError(f"its content does not match its checksum, {checksum}")
        return pointer
