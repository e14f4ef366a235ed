"""`Holdout`: the bags that a fit leaves out for its evaluation, as given by ``holdout=``."""

from __future__ import annotations

import base64
import binascii
import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Annotated, Any

import numpy as np

from ...core import FractionOrZero, Instance, MappingOf, Open, Real, Text
from ...core.arrays import Integers
from ...core.errors import DataError, ParameterError, shown, warn
from ..bags.bags import Bags
from ..store.changes import ListedBags
from .column_splits import GroupFolds, GroupSplit, TimeSplit
from .columns import Column
from .labelled import LabelledBags
from .splits import HOLDOUT_SEED, VALIDATION_SEED, Membership, Split, hash_values

_KEYS = ("fraction", "groups", "after", "time", "below", "mask")
_EXPECTED = (
    'a fraction, {"fraction": fraction, "groups": column} or '
    '{"after": date or number, "time": column}'
)
MAX_FACTOR = 2.0  # factor by which whole groups may miss the requested fraction of bags


@dataclass(frozen=True)
class Holdout:
    """Bags left out of a fit: a random fraction, whole groups, or all bags later than a time.

    Parameters
    ----------
    fraction : float in [0, 1)
        Fraction of the bags. 0 with groups holds out nothing, but chooses the validation bags by
        groups.
    groups : str, optional
        Column of the store that identifies groups. Bags of a group are held out together, and are
        in the validation set together.
    after : str or float, optional
        Date (2026-01-01) or number. Later bags are held out.
    time : str, optional
        Column that ``after`` is compared with. It holds numbers (for a date, days since
        1970-01-01), or classes whose names are dates. None: the store's only column that is not a
        target.
    below : float, optional
        Limit of the groups' hashes, which `resolve` sets.
    mask : str, optional
        One bit per bag, 1 if it is held out, as base64: see `with_groups`.
    """

    fraction: Annotated[float, FractionOrZero] = 0.0
    groups: str | None = None
    after: str | float | None = None
    time: str | None = None
    below: float | None = None
    mask: str | None = None

    @classmethod
    def of(cls, holdout: HoldoutLike) -> Holdout:
        """Return the holdout that ``holdout=`` describes; ParameterError for an invalid value."""
        if isinstance(holdout, Holdout):
            return holdout
        if not isinstance(holdout, Mapping):
            return cls(FractionOrZero.check("holdout", holdout))
        unknown = sorted(map(str, set(holdout) - set(_KEYS)))
        if unknown or not holdout:
            raise ParameterError(f"holdout is {shown(holdout)}; expected {_EXPECTED}")
        made = cls(**holdout)
        if made.mask is not None:
            made.places()
        for key in ("groups", "time"):
            name = getattr(made, key)
            if not (name is None or isinstance(name, str)):
                raise ParameterError(f"{key} of holdout is {shown(name)}; expected a column's name")
        if made.after is None:
            if made.time is not None:
                raise ParameterError("time of holdout is the column that after= is compared with")
            FractionOrZero.check("fraction of holdout", made.fraction)
        elif made.fraction or made.groups is not None:
            raise ParameterError("holdout has after and a fraction, or groups: choose one of them")
        elif isinstance(made.after, date):  # as YAML reads it
            made = replace(made, after=made.after.isoformat())
        elif not isinstance(made.after, str):
            Real(ge=-1e300, le=1e300).check("after of holdout", made.after)
        return made

    def __bool__(self) -> bool:
        """Whether any bags are held out."""
        return bool(self.fraction) or self.after is not None

    @property
    def saved(self) -> float | dict[str, Any]:
        """The fraction, or all fields that are set, in JSON types, as models store them."""
        if not self or (self.groups is None and self.after is None and self.mask is None):
            return float(self.fraction)
        return {key: value for key, value in vars(self).items() if value is not None}

    def with_groups(self, groups: Column, bags: LabelledBags) -> Holdout:
        """Return a holdout of about the same fraction of the bags, as whole groups.

        Parameters
        ----------
        groups : Column
            One value per bag, which is not a column of a store. The holdout keeps the bags
            themselves.
        bags : LabelledBags

        Raises
        ------
        DataError
            If the groups are too large.
        """
        if not self.fraction or self.mask is not None:
            return self
        column = GroupFolds.of_column(groups).column
        below = _limit(bags, column, self.fraction, HOLDOUT_SEED)
        out = GroupSplit(column, below, HOLDOUT_SEED).members(0, len(bags.data))
        return replace(self, mask=base64.b64encode(np.packbits(out).tobytes()).decode())

    def places(self) -> Integers:
        """Return the positions of the bags of the ``mask``, ascending; ParameterError for junk."""
        try:
            taken = base64.b64decode(str(self.mask), validate=True)
        except (binascii.Error, ValueError):
            raise ParameterError(
                f"mask of holdout is {shown(self.mask)}; expected base64, as a model has saved it"
            ) from None
        return np.flatnonzero(np.unpackbits(np.frombuffer(taken, np.uint8)))

    def resolve(self, bags: LabelledBags) -> Holdout:
        """Return a holdout that leaves out the same bags after the data have grown.

        Raises
        ------
        DataError
            If a column is unknown, no group can be held out, or no bag is later than the time.
        ParameterError
            If a column is named for bags in memory, or the date cannot be parsed.
        """
        if self.after is not None:
            refuse_offset(self.after)
            resolved = replace(self, time=self.time or _only_column(bags))
            split = resolved.split(bags)
            assert split is not None
            n_out = _n_members(split, bags)
            if not 0 < n_out < bags.n_bags:
                which = "all bags are" if n_out else "no bag is"
                raise DataError(f"{bags.url}: {which} after {self.after} by {resolved.time!r}")
            return resolved
        if not self.fraction or self.below is not None or self.mask is not None:
            return self
        if self.groups is None:
            if not _n_members(Split(self.fraction, HOLDOUT_SEED), bags):
                warn(
                    f"{bags.url or 'bags in memory'}: holdout={self.fraction:g} holds out none of "
                    f"{bags.n_bags} bags, so that nothing is left to evaluate on; give more"
                )
            return self
        column = _column(bags, "groups", self.groups)
        return replace(self, below=_limit(bags, column, self.fraction, HOLDOUT_SEED))

    def split(self, bags: LabelledBags) -> Membership | None:
        """Return the bags that a resolved holdout leaves out; None if there are none."""
        if self.after is not None:
            column = _column(bags, "time", self.time or _only_column(bags))
            return TimeSplit(column, _number(bags, column.name, self.after))
        if not self.fraction:
            return None
        if self.mask is not None:
            return ListedBags(self.places())
        if self.groups is None:
            return Split(self.fraction, HOLDOUT_SEED)
        below = self.resolve(bags).below
        assert below is not None
        return GroupSplit(_column(bags, "groups", self.groups), below, HOLDOUT_SEED)

    def validation(self, fraction: float, bags: LabelledBags) -> Membership:
        """Return the validation bags for choosing a penalty: a fraction of the remaining bags."""
        if self.groups is None:
            return Split(fraction, VALIDATION_SEED)
        column = _column(bags, "groups", self.groups)
        training = LabelledBags(bags.data, None, bags.start, bags.stop, self.split(bags))
        return GroupSplit(
            column, _limit(training, column, fraction, VALIDATION_SEED), VALIDATION_SEED
        )


NO_HOLDOUT = Holdout()

HoldoutLike = Annotated[
    float | Mapping[str, Any] | Holdout, Real() | MappingOf(Text, Open()) | Instance("Holdout")
]
"""What ``holdout=`` takes: a fraction of the bags, a `Holdout`, or a mapping of its fields."""


def _column(bags: LabelledBags, what: str, name: str) -> Column:
    if isinstance(bags.data, Bags):
        raise ParameterError(f"{what} of holdout is a column of a BagStore, not of bags in memory")
    return Column.of(bags.data, what, name)


def _only_column(bags: LabelledBags) -> str:
    names = () if isinstance(bags.data, Bags) else bags.data.target_names
    others = [name for name in names if name not in bags.target_names]
    if len(others) != 1:
        if isinstance(bags.data, Bags):
            raise ParameterError(
                "holdout by time is for a BagStore with a column of times; fit to earlier bags, "
                "and evaluate on the others"
            )
        raise ParameterError(f"holdout has after, and no time: name its column, of {others}")
    return others[0]


def _number(bags: LabelledBags, name: str, after: str | float) -> float:
    """Return ``after`` in the units of the column."""
    names = bags.class_names.get(name)
    if names is not None:
        known, limit = _comparable(f"{bags.url}: {name!r}", names, after)
        if known != sorted(known):
            raise DataError(f"{bags.url}: the classes of {name!r} are not in the order of time")
        return bisect_right(known, limit) - 0.5
    if not isinstance(after, str):
        return float(after)
    try:
        when = datetime.fromisoformat(after)
    except ValueError:
        raise ParameterError(
            f"after of holdout is {shown(after)}; expected a number, or a date as 2026-01-01"
        ) from None
    return (when.replace(tzinfo=None) - datetime(1970, 1, 1)) / timedelta(days=1)


def _comparable(
    where: str, names: Sequence[str], after: str | float
) -> tuple[list[Any], str | float | datetime]:
    """Return classes and a time in one type: numbers, dates, or texts in alphabetical order.

    A class stands for a year or a month if it names no day.

    Raises
    ------
    DataError
        If ``after`` is a number or a date, and a class is not.
    """
    read: Callable[[str], Any] = str
    limit: str | float | datetime = after
    if isinstance(after, str):
        with suppress(ValueError):
            limit, read = datetime.fromisoformat(after), _date_of
    else:
        read = _number_of
    values = []
    for name in names:
        try:
            values.append(read(name))
            values[-1] < limit  # noqa: B015 - a date with a UTC offset does not compare
        except (ValueError, TypeError):
            kind = "a number" if read is _number_of else "a date without UTC offset, as 2026-01-31"
            raise DataError(
                f"{where}: holdout has after {after}, and the class {name!r} is not {kind}; give "
                "after as such a class is written, or another column"
            ) from None
    return values, limit


def _number_of(name: str) -> float:
    value = float(name)
    if not math.isfinite(value):
        raise ValueError(name)
    return value


def _date_of(name: str) -> datetime:
    """Return the date that a class names, or the first day of its month or year."""
    for text in (name, f"{name}-01", f"{name}-01-01"):
        with suppress(ValueError):
            return datetime.fromisoformat(text)
    raise ValueError(name)


def refuse_offset(after: str | float) -> None:
    """Raise ParameterError for a time with a UTC offset, because columns have no offsets."""
    try:
        when = None if not isinstance(after, str) else datetime.fromisoformat(after)
    except ValueError:  # the name of a class, or refused with the column
        return
    if when is not None and when.tzinfo is not None:
        raise ParameterError(
            f"after of holdout is {shown(after)}; give it without its UTC offset, in the time zone "
            "of the column"
        )


def _n_members(split: Membership, bags: LabelledBags) -> int:
    spans = range(bags.start, bags.end, 2**20)
    return sum(int(split.members(a, min(bags.end, a + 2**20)).sum()) for a in spans)


def _limit(bags: LabelledBags, column: Column, fraction: float, seed: int) -> float:
    """Return the limit of hashes below which whole groups are about a fraction of the bags.

    Raises
    ------
    DataError
        If no limit comes near the fraction, because a group is too large.
    """
    counts: dict[float, int] = {}
    for start, stop, values in column.blocks(bags.start, bags.end):
        members = values if bags.left_out is None else values[~bags.left_out.members(start, stop)]
        for value, n in zip(
            *np.unique(members[members == members], return_counts=True), strict=True
        ):
            counts[float(value)] = counts.get(float(value), 0) + int(n)
    sizes = np.array(list(counts.values()), dtype=np.int64)
    hashes = hash_values(np.array(list(counts)), seed)
    order = np.argsort(hashes)
    shares = np.cumsum(sizes[order])[:-1] / max(1, sizes.sum())
    best = int(np.abs(shares - fraction).argmin()) if len(shares) else -1
    if best < 0 or not fraction / MAX_FACTOR <= shares[best] <= fraction * MAX_FACTOR:
        largest = sizes.max(initial=0) / max(1, sizes.sum())
        raise DataError(
            f"{bags.url or 'bags in memory'}: groups of {column.name!r} are too large to be held "
            f"out whole: there are {len(sizes)}, the largest has {largest:.0%} of "
            f"the bags, and {fraction:.0%} are asked for; take another share"
        )
    return float(hashes[order[best + 1]])
