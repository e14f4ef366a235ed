"""`Format` and `Saved`: declarations of saved data by kind, version and fields."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, ClassVar, TypeVar

from .declarations import default_of
from .moved import today_names
from .versions import version


@dataclass(frozen=True)
class Format:
    """Kind and version of saved data, declared once next to their writer.

    Attributes
    ----------
    kind : str
        Name in messages: "model".
    version : int
        Version that is written.
    others : tuple of int
        Older versions that can be read, too.
    key : str
        Key of the version in the saved values.
    """

    kind: str
    version: int = 1
    others: tuple[int, ...] = ()
    key: str = "format_version"

    def stamp(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return values as they are written: the version first."""
        return {self.key: self.version, **values}

    def strip(
        self, values: Mapping[str, Any], url: str = "", error: type[Exception] = ValueError
    ) -> dict[str, Any]:
        """Return the values that `stamp` was given.

        Raises
        ------
        error
            If the version of the values cannot be read. The message names the ``url``. For a later
            version the error is a `NewerError`, or has a `NewerError` as its cause.
        """
        rest = dict(values)
        saved_version, known = rest.pop(self.key, None), (self.version, *self.others)
        if saved_version not in known:
            versions = " and ".join(map(str, known))
            place = f"{url}: " if url else ""
            reason = f"{self.kind} of format {saved_version}; this version reads {versions}"
            if type(saved_version) is int and saved_version > max(known):
                newer = NewerError(saved_by=_author_of(rest), reason=reason)
                raise (
                    newer if error is ValueError and not url else error(f"{place}{newer}")
                ) from newer
            raise error(f"{place}{reason}")
        return rest


class NewerError(TypeError, ValueError):
    """Saved data of a newer version of bagbasis, which are intact but cannot be read here.

    Parameters
    ----------
    unknown : sequence of str
        Names that this version does not know.
    saved_by : str, optional
        The version of bagbasis that wrote them.
    reason : str
        If this version cannot read something else: a format, a value.
    """

    def __init__(
        self, unknown: Sequence[str] = (), saved_by: object = None, reason: str = ""
    ) -> None:
        self.unknown = list(unknown)
        self.saved_by = saved_by if isinstance(saved_by, str) else None
        self.reason = reason
        own = version("bagbasis")
        author = f"version {saved_by}" if self.saved_by else "a newer version"
        names = ", ".join(map(repr, self.unknown))
        tail = f", with {names}, which this version ({own}) does not know" if unknown else ""
        head = f"{reason}; " if reason else ""
        super().__init__(f"{head}{author} of bagbasis wrote it{tail}; update bagbasis")


class UnknownComponentError(NewerError):
    """Saved data that need a component which nothing here registers.

    Parameters
    ----------
    kind, name : str
        The kind and the name of the component: "embedding", "wavelets".
    """

    def __init__(self, kind: str, name: object) -> None:
        self.unknown, self.saved_by = [str(name)], None
        self.reason = (
            f"it needs the {kind} {name!r}, which is not registered here: install the package that "
            "adds it, or update bagbasis"
        )
        Exception.__init__(self, self.reason)


def newer_error(error: Exception, values: Mapping[str, Any]) -> NewerError | None:
    """Return the error for saved values that a newer version wrote; None for damaged values.

    Unknown names come from a newer version. Any other failure counts as newer if the values carry a
    later version of bagbasis than this one.

    Parameters
    ----------
    error : Exception
        Error that was raised while the values were read.
    values : mapping
        All values, with the version that wrote them under "version", or among "versions".
    """
    saved_by = _author_of(values)
    if isinstance(error.__cause__, NewerError):
        error = error.__cause__
    if isinstance(error, UnknownComponentError):
        return error
    if isinstance(error, NewerError):
        return error if error.saved_by else NewerError(error.unknown, saved_by, error.reason)
    keyword = UNEXPECTED.search(str(error)) if isinstance(error, TypeError) else None
    if keyword is not None:
        return NewerError([keyword[1]], saved_by)
    if saved_by is not None and _release(saved_by) > _release(version("bagbasis")):
        return NewerError((), saved_by, f"{type(error).__name__}: {error}")
    return None


def _author_of(values: Mapping[str, Any]) -> str | None:
    """Return the version of bagbasis that wrote the values, if it is recorded."""
    versions = values.get("versions")
    author = versions.get("bagbasis") if isinstance(versions, Mapping) else values.get("version")
    return author if isinstance(author, str) else None


def _release(text: str) -> tuple[int, ...]:
    """Return the numbers of a version's release: those before a suffix."""
    return tuple(int(number) for number in RELEASE.match(text)[0].split(".") if number)  # type: ignore[index]  # matches nothing, too


UNEXPECTED = re.compile(r"unexpected keyword argument '(\w+)'")  # what Python says of a call
RELEASE = re.compile(r"[0-9.]*")


_S = TypeVar("_S", bound="Saved")


class Saved:
    """Base of dataclasses that are written as JSON, field by field; `read_saved` reads them.

    A field holds a JSON value, an array, a tuple, or another `Saved`. Lists are read as tuples;
    values in a mapping are not changed.

    Attributes
    ----------
    PARTS : mapping of str to type
        Class of each field that holds a `Saved` or a tuple of `Saved`.
    ARRAYS : tuple of str
        Fields that hold float64 arrays.
    OMITTED : tuple of str
        Fields that are not written if they have their defaults, so that the file equals files of
        earlier versions, which lack the field.
    """

    PARTS: ClassVar[Mapping[str, type[Saved]]] = {}
    ARRAYS: ClassVar[tuple[str, ...]] = ()
    OMITTED: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def omitted(cls) -> dict[str, Any]:
        """Return the default of each field of `OMITTED`."""
        own = fields(cls)  # type: ignore[arg-type]  # of a dataclass
        return {item.name: default_of(item) for item in own if item.name in cls.OMITTED}

    def __getstate__(self) -> dict[str, Any]:
        """Leave out omitted values too, because the state travels with every task."""
        return self._without_omitted(vars(self))

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Put omitted values back."""
        vars(self).update({**self.omitted(), **state})

    def to_dict(self) -> dict[str, Any]:
        """Return the fields in JSON types; keyword-only fields come last."""
        own = sorted(fields(self), key=lambda item: item.kw_only is True)  # type: ignore[arg-type]  # of a dataclass
        values = self._without_omitted({item.name: getattr(self, item.name) for item in own})
        return {name: _plain(value) for name, value in values.items()}

    def _without_omitted(self, values: Mapping[str, Any]) -> dict[str, Any]:
        omitted = self.omitted()
        return {n: v for n, v in values.items() if n not in omitted or v != omitted[n]}


def read_saved(kind: type[_S], values: Mapping[str, Any]) -> _S:
    """Return the object that `Saved.to_dict` described by these values.

    Raises
    ------
    NewerError
        If the values have fields that ``kind`` lacks, which a newer version wrote.
    TypeError
        If a field without a default is missing.
    """
    values = today_names(kind.__name__, values)
    unknown = sorted(values.keys() - {item.name for item in fields(kind)})  # type: ignore[arg-type]  # of a dataclass
    if unknown:
        raise NewerError(unknown, _author_of(values))
    try:
        return kind(**{name: _read(kind, name, value) for name, value in values.items()})
    except NewerError as error:  # of a part, which does not say who wrote it
        raise newer_error(error, values) or error from error


def _read(kind: type[Saved], name: str, value: Any) -> Any:  # noqa: ANN401 - of any field
    if name in kind.ARRAYS:
        import numpy as np  # noqa: PLC0415 - configs are checked before numpy is loaded

        return np.array(value, dtype=np.float64)
    if name not in kind.PARTS or value is None:
        return _frozen(value)
    read = partial(read_saved, kind.PARTS[name])
    return tuple(map(read, value)) if isinstance(value, (list, tuple)) else read(value)


def _plain(value: Any) -> Any:  # noqa: ANN401 - of any field
    if isinstance(value, Saved):
        return value.to_dict()
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return {k: _plain(v) for k, v in value.items()} if isinstance(value, Mapping) else value


def _frozen(value: Any) -> Any:  # noqa: ANN401 - likewise
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
