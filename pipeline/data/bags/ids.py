"""Bag ids: their two kinds, and how duplicates are refused while a store grows."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import as_array
from ...core.errors import DataError, warn

Ids = NDArray[Any]
LARGEST_ID = 2**63 - 1
EXACT = 2**53  # up to it every whole number is a float64
LONGEST_ID = 2**15 - 2**3  # bytes of a text: 65,536 of them are one chunk, of less than 2 GiB


def plain_id(key: Any) -> Any:  # noqa: ANN401
    r"""Return the text of an id of bytes, as DuckDB has it, and any other id as it is.

    Printable characters of ASCII are as they are; other bytes, quotes and backslashes are as
    ``\xC3``.
    """
    if isinstance(key, tuple):
        return tuple(plain_id(part) for part in key)
    if not isinstance(key, bytes):
        return key
    return "".join(
        chr(byte) if 32 <= byte < 127 and chr(byte) not in "\\'\"" else f"\\x{byte:02X}"
        for byte in key
    )


def as_ids(ids: Sequence[Any] | Ids, n_bags: int) -> tuple[Ids, str]:
    """Return ids as an array of shape (n_bags,), and its kind, "int64" or "str".

    Raises
    ------
    DataError
        If the length is wrong, or values are neither 64-bit integers nor (Unicode) strings. Bytes
        become the texts of `plain_id`.
    """
    array = as_array("ids", ids)
    if array.dtype.kind in "SO" and array.ndim == 1:
        array = np.array([plain_id(key) for key in np.asarray(ids, object).tolist()], dtype=object)
    if array.dtype.kind == "U" and not isinstance(ids, np.ndarray):
        array = np.array(ids, dtype=object)  # numpy's texts lose NULs at the end, and take numbers
    if array.shape != (n_bags,):
        raise DataError(f"ids have shape {array.shape}; expected one per bag, ({n_bags},)")
    if array.dtype.kind in "iu":
        if array.dtype.kind == "u" and n_bags and array.max() > LARGEST_ID:
            raise DataError(f"id {array.max()} is too large; integer ids are below 2**63")
        return array.astype(np.int64), "int64"
    if array.dtype.kind in "UTO":
        _check_lengths(array)
    if array.dtype.kind in "UT" or all(isinstance(value, str) for value in array.tolist()):
        try:
            return array.astype(np.dtypes.StringDType()), "str"
        except (TypeError, UnicodeError) as error:
            raise DataError(f"an id is not valid Unicode ({error})") from error
    raise DataError(f"ids have dtype {array.dtype}; expected integers or strings")


@dataclass(frozen=True, eq=False)
class BagIds:
    """The ids of bags in memory.

    Attributes
    ----------
    values : array, shape (n_bags,)
        Ids as int64, or as objects: texts, times, or one tuple per bag if several columns form the
        id.
    columns : tuple of str
        Names of the id columns; empty for ids without columns.
    """

    values: Ids
    columns: tuple[str, ...] = ()

    @classmethod
    def of_keys(cls, keys: Sequence[Any], columns: Sequence[str] = ()) -> Self:
        """Return the ids for the keys of bags; a tuple of one value becomes that value.

        Raises
        ------
        DataError
            If keys are floats from 2^53 on, which may merge different whole numbers.
        """
        single = [key[0] if isinstance(key, tuple) and len(key) == 1 else key for key in keys]
        parts = (part for key in single for part in (key if isinstance(key, tuple) else (key,)))
        check_apart(np.array([part for part in parts if isinstance(part, float)]), columns)
        values = np.empty(len(single), dtype=object)
        values[:] = [plain_id(key) for key in single]
        return cls(values, tuple(columns))

    def __len__(self) -> int:
        """Count the ids."""
        return len(self.values)

    def take(self, rows: slice | NDArray[np.int64]) -> Self:
        """Return the ids of some bags."""
        return replace(self, values=self.values[rows])

    @property
    def storable(self) -> Ids | None:
        """The ids in the form of a store, int64 or texts; None for other ids."""
        names = self.values.tolist()
        if all(isinstance(name, str) for name in names):
            return self.values
        is_number = all(isinstance(name, int) and not isinstance(name, bool) for name in names)
        if is_number and all(-(2**63) <= name <= LARGEST_ID for name in names):
            return np.array(names, dtype=np.int64)
        return None

    def joined(self, other: Self | None) -> Self | None:
        """Return the ids of two sets of bags; None unless both have ids of the same columns."""
        if other is None or other.columns != self.columns:
            return None
        ours, theirs = self.values.astype(object), other.values.astype(object)
        return replace(self, values=np.concatenate([ours, theirs]))


def check_apart(values: NDArray[np.floating[Any]], columns: Sequence[str]) -> None:
    """Raise DataError for a float that stands for several whole numbers, by its precision."""
    first = 2 ** (np.finfo(values.dtype).nmant + 1)
    shared = values[np.abs(values) >= first]
    if shared.size:
        where = f" of {' and '.join(map(repr, columns))}" if columns else ""
        raise DataError(
            f"the id {shared[0]:.0f}{where} is a {values.dtype}, which has no digit for every "
            f"whole number from {first}, so that two bags may be one: read the column as whole "
            "numbers or text, as by dtype='Int64' or dtype=str of pandas.read_csv"
        )


def check_columns_apart(ids: Any) -> None:  # noqa: ANN401 - a frame of pandas
    """Raise DataError for a float id that stands for several whole numbers, in any column."""
    for name, column in ids.items():
        if column.dtype.kind == "f":
            check_apart(column.to_numpy(), [name] if isinstance(name, str) else ())


def _check_lengths(ids: Ids) -> None:
    """Raise DataError for a text with more bytes than fit into a chunk of ids."""
    for bag, name in enumerate(ids.tolist()):
        if isinstance(name, str) and 4 * len(name) > LONGEST_ID:
            n_bytes = len(name.encode("utf-8", "replace"))
            if n_bytes > LONGEST_ID:
                raise DataError(
                    f"the id {name[:20]!r}… of bag {bag} has {n_bytes} bytes; an id has at most "
                    f"{LONGEST_ID}: give a shorter one"
                )


def check_not_blank(ids: Ids) -> None:
    """Raise DataError for an id that is an empty text, or only blanks."""
    if ids.dtype.kind == "i":
        return
    for bag, name in enumerate(ids.tolist()):
        if not name.strip():
            raise DataError(f"the id of bag {bag} is {name!r}, a blank text; give every bag an id")


_WHOLE = re.compile(r"\+?0*([0-9]+)(?:\.0*)?")


def folded(name: str) -> str:
    """Return a text with accents composed, no blanks at its ends and single ones within.

    A whole number has neither leading zeros nor a fraction: 007 and 7.0 become 7.
    """
    text = " ".join((name if name.isascii() else unicodedata.normalize("NFC", name)).split())
    if "." in text or text.startswith(("0", "+")):
        number = _WHOLE.fullmatch(text)
        return number[1] if number else text
    return text


def alike(names: Iterable[Any], fold: Callable[[str], str] = folded) -> tuple[Any, Any] | None:
    """Return the first two names that ``fold`` makes equal; else None.

    Parameters
    ----------
    names : iterable of str, or of tuples with texts; other names differ.
    fold : callable
    """
    first: dict[Any, Any] = {}
    for name in names:
        parts = name if isinstance(name, tuple) else (name,)
        key = tuple(fold(part) if isinstance(part, str) else part for part in parts)
        if (other := first.setdefault(key, name)) != name:
            return other, name
    return None


def warn_of_alike_ids(names: Iterable[Any]) -> None:
    """Warn about two bags whose ids differ only in blanks, accents' code or a number's digits.

    Parameters
    ----------
    names : iterable
        Ids; texts, and tuples with texts, are compared.
    """
    if pair := alike(name for name in names if isinstance(name, (str, tuple))):
        _warn_of_alike_pair(*pair)


def _warn_of_alike_pair(first: Any, second: Any) -> None:  # noqa: ANN401 - texts or tuples
    look_alike = unicodedata.normalize("NFC", f"{first}") == unicodedata.normalize(
        "NFC", f"{second}"
    )
    first_id, second_id = (ascii(name) if look_alike else repr(name) for name in (first, second))
    warn(
        f"the ids {first_id} and {second_id} differ only in blanks, in the code of their letters "
        "or in how a number is written, and are two bags; write one id if they are one bag"
    )


def given_ids(ids: Sequence[Any] | Ids, n_bags: int) -> Ids:
    """Check ids for bags in memory and return them in `comparable` form, shape (n_bags,).

    Raises
    ------
    DataError
        As `as_ids`, and for a blank text.
    """
    array = comparable(as_ids(ids, n_bags)[0])
    check_not_blank(array)
    warn_of_alike_ids(array.tolist())
    return array


def find_ids(ids: Ids, kind: str, wanted: Sequence[Any] | Ids) -> NDArray[np.int64]:
    """Return the positions of wanted ids among all ids of a store, shape (n_wanted,).

    Raises
    ------
    DataError
        If an id does not exist or is given twice, or if ids are of another kind.
    """
    array, wanted_kind = as_ids(wanted, as_array("ids", wanted).size)
    if not len(array):
        return np.empty(0, dtype=np.int64)
    if wanted_kind != kind:
        raise DataError(f"the store has {kind} ids, got {wanted_kind}")
    ids, array = (comparable(side) for side in (ids, array))
    order = np.argsort(ids, kind="stable")
    at = np.minimum(np.searchsorted(ids[order], array), max(0, len(ids) - 1))
    positions: NDArray[np.int64] = order[at] if len(ids) else at
    names = array.tolist()
    for name, known in zip(names, ids[positions] == array if len(ids) else at < 0, strict=True):
        if not known:
            raise DataError(f"no bag has the id {name!r}")
    for name, count in Counter(names).items():
        if count > 1:
            raise DataError(f"the id {name!r} is given twice")
    return positions


def comparable(ids: Ids) -> Ids:
    """Return ids in a form that NumPy compares fully: its texts end at a NUL."""
    return ids if ids.dtype.kind == "i" else ids.astype(object)


class TakenIds:
    """The ids in a store, to which an append adds new ids batch by batch.

    If integer ids only grow, each batch is compared with the largest id so far, and committed ids
    are never read. The first batch that is not above the largest id loads all ids.

    Parameters
    ----------
    kind : {"int64", "str"}
    max_id : int or None
        Largest integer id so far.
    load : callable
        Function that yields blocks of all ids so far.
    """

    def __init__(self, kind: str, max_id: int | None, load: Callable[[], Iterable[Ids]]) -> None:
        self.max_id = max_id
        self._kind = kind
        self._load: Callable[[], Iterable[Ids]] | None = load
        self._runs: list[Ids] = []
        self._names: set[str] = set()
        self._unfolded: dict[str, str] = {}  # names with blanks to fold, by their folded form
        self._widths: set[int] = set()  # of the numbers with leading zeros
        self._has_warned = False

    def add(self, ids: Ids) -> None:
        """Add new ids, at least one.

        Raises
        ------
        DataError
            If an id exists already. No id is added then.
        """
        if self._kind == "str":
            self._add_names(ids)
        else:
            self._add_numbers(ids)

    def known(self, ids: Ids) -> NDArray[np.bool_]:
        """Return which ids exist already, shape (n_ids,)."""
        if self._kind == "str":
            return self._known_names(ids.tolist())
        return self._known_numbers(ids)

    def _add_names(self, ids: Ids) -> None:
        names = ids.tolist()
        again = [name for name, count in Counter(names).items() if count > 1]
        _refuse(again, ids[self._known_names(names)].tolist())
        self._take_names(names)

    def _take_names(self, names: list[str], are_new: bool = True) -> None:
        """Add names, and warn once about new names that differ only in blanks or accents."""
        self._names.update(names)
        for name in names:
            short = folded(name)
            other = self._unfolded.get(short, short if short in self._names else name)
            if name.isdigit() and short != name:  # 007: millions may be so, of few widths
                self._widths.add(len(name))
            elif short != name:
                self._unfolded.setdefault(short, name)
            for width in self._widths if short.isdigit() and other == name else ():
                padded = short.zfill(width)
                other = padded if padded in self._names else other
            if other != name and are_new and not self._has_warned:
                self._has_warned = True
                _warn_of_alike_pair(other, name)

    def _known_names(self, names: list[str]) -> NDArray[np.bool_]:
        if self._load is not None:
            for block in self._load():
                self._take_names(block.tolist(), are_new=False)
            self._load = None
        return np.array([name in self._names for name in names], dtype=bool)

    def _add_numbers(self, ids: Ids) -> None:
        ordered = np.sort(ids)
        again = ordered[1:][ordered[1:] == ordered[:-1]]
        _refuse(again.tolist(), ordered[self._known_numbers(ordered)].tolist())
        self._remember(ordered)
        last = int(ordered[-1])
        self.max_id = last if self.max_id is None else max(self.max_id, last)

    def _known_numbers(self, ids: Ids) -> NDArray[np.bool_]:
        known = np.zeros(len(ids), dtype=bool)
        if self.max_id is None or not len(ids) or ids.min() > self.max_id:
            return known
        if self._load is not None:
            blocks = list(self._load())
            self._runs = [np.sort(np.concatenate(blocks))] if blocks else []
            self._load = None
        for run in self._runs:
            at = np.minimum(np.searchsorted(run, ids), len(run) - 1)
            known |= run[at] == ids
        return known

    def _remember(self, ordered: Ids) -> None:
        """Keep sorted ids. Runs of similar length are merged, so that few runs are kept."""
        if self._load is not None:
            return  # `load` will yield them
        self._runs.append(ordered)
        while len(self._runs) > 1 and len(self._runs[-2]) <= 2 * len(self._runs[-1]):
            last = self._runs.pop()
            self._runs[-1] = np.sort(np.concatenate([self._runs[-1], last]))


def _refuse(again: list[Any], known: list[Any]) -> None:
    """Raise DataError for ids that are given twice or exist already."""
    for name in again:
        raise DataError(f"duplicate bag id {name!r}: it is given twice; ids are unique in a store")
    for name in known:
        raise DataError(
            f"duplicate bag id {name!r}: the store or an earlier bag has it; leave its bag out, "
            "as an ingest of tables does by known_ids: skip"
        )
