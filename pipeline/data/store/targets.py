"""Conversion of targets in any accepted form to the stored float64 matrix."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.arrays import Floats, as_array, first_not_a_number, has_texts, is_missing
from ...core.errors import DataError, shown, warn
from ..bags.alignment import has_index, in_order_of, indexed, with_id_columns_as_index
from ..bags.ids import EXACT, BagIds, alike, folded


@runtime_checkable
class DataFrame(Protocol):
    """The part of pandas' data frames, and of similar ones, that is used here."""

    @property
    def columns(self) -> Iterable[Any]:
        """Names of the columns."""
        ...

    def __getitem__(self, name: object, /) -> ArrayLike:
        """Return the values of a column."""
        ...


# a number as people write it, with signs that a numeral does not have
NUMERAL = re.compile(r"[+-]?\s*[$€£]?\s*\d+([.,'\s]\d{3})*([.,]\d+)?\s*[%$€£]?")
# one as programs write it
_FLOAT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)

TargetsLike = Mapping[str, ArrayLike] | DataFrame | ArrayLike | None


def targets_in_order(targets: TargetsLike, ids: BagIds) -> TargetsLike:
    """Return targets of tables that have ids in the order of ids; raises as `in_order_of`."""
    targets = with_id_columns_as_index(indexed(targets), ids)
    if has_index(targets):
        ordered: TargetsLike = in_order_of(targets, ids, "targets")
        return ordered
    if isinstance(targets, Mapping):
        columns = {name: indexed(values) for name, values in targets.items()}
        return {
            name: in_order_of(values, ids, f"target {name!r}") if has_index(values) else values
            for name, values in columns.items()
        }
    return targets


def targets_matrix(
    targets: TargetsLike,
    names: Sequence[str],
    class_names: Mapping[str, Sequence[str]],
    n_bags: int,
) -> Floats:
    """Return the targets of bags, shape (n_bags, max(1, len(names))), NaN where unlabelled.

    ``targets`` is None (no labels), a mapping or data frame from name to values, an array of shape
    (n_bags, n_targets), or of shape (n_bags,) when the store has one target. Class labels given as
    text become their index in ``class_names``.

    Raises
    ------
    DataError
        If a name is missing or unknown, a length is wrong, values are not finite real numbers, or
        the store lacks a class.
    """
    if targets is None:
        return np.full((n_bags, max(1, len(names))), np.nan)
    if isinstance(targets, Mapping):
        columns_by_name = {str(name): values for name, values in targets.items()}
    elif hasattr(targets, "column_names") and hasattr(targets, "column"):  # a table of Arrow
        columns = list(targets.column_names)
        again = next((name for name in columns if columns.count(name) > 1), None)
        if again is not None:
            raise DataError(f"two targets are called {again!r}; rename one")
        columns_by_name = {name: targets.column(name) for name in columns}
    elif isinstance(targets, DataFrame):
        columns_by_name = {str(name): targets[name] for name in targets.columns}
    else:
        array = as_array("targets", targets)
        table = array[:, None] if array.ndim == 1 else array
        if table.ndim != 2 or table.shape[1] != len(names):
            raise DataError(
                f"targets have shape {array.shape}; expected ({n_bags}, {len(names)}) for "
                f"{shown(list(names))}"
            )
        if len(names) and table.dtype.kind == "f" and len(table) == n_bags and not class_names:
            for bag, column in np.argwhere(np.isinf(table))[:1].tolist():
                raise DataError(f"target {names[column]!r} is infinite for bag {bag}")
            return table.astype(np.float64)
        columns_by_name = {name: table[:, j] for j, name in enumerate(names)}
    _check_names(columns_by_name, names)
    matrix = np.full((n_bags, max(1, len(names))), np.nan)
    for j, name in enumerate(names):
        matrix[:, j] = target_column(columns_by_name[name], name, class_names.get(name), n_bags)
    return matrix


def _check_names(columns: Mapping[str, Any], names: Sequence[str]) -> None:
    unknown = sorted(set(columns) - set(names))
    missing = sorted(set(names) - set(columns))
    if unknown:
        raise DataError(f"unknown target {unknown[0]!r}; the store has {shown(list(names))}")
    if missing:
        raise DataError(f"missing target {missing[0]!r}; use NaN for bags without a label")


def target_column(
    values: ArrayLike, name: str, classes: Sequence[str] | None, n_bags: int
) -> Floats:
    """Return the values of one target, shape (n_bags,); raises as `targets_matrix`."""
    array = as_array(f"target {name!r}", values)
    if array.shape != (n_bags,):
        raise DataError(f"target {name!r} has shape {array.shape}; expected ({n_bags},)")
    warn_of_blank(array, f"target {name!r}", classes or ())
    if classes is not None and array.dtype.kind in "OUT":
        return _codes(array, name, classes)
    advice = "expected numbers (text labels need class_names)"
    column = as_numbers(array, f"target {name!r}", advice)
    if np.isinf(column).any():
        raise DataError(
            f"target {name!r} is infinite for bag {np.flatnonzero(np.isinf(column))[0]}"
        )
    if classes is not None:
        unknown = np.flatnonzero(~np.isnan(column) & ~np.isin(column, np.arange(len(classes))))
        if len(unknown):
            raise DataError(
                f"target {name!r} is {column[unknown[0]]:g} for bag {unknown[0]}; classes are "
                f"0 to {len(classes) - 1}"
            )
    return column


def check_codes(labels: NDArray[Any], name: str, classes: Sequence[str]) -> None:
    """Raise DataError for a number that is the code of one class, and the name of another class."""
    for label in labels.tolist() if labels.dtype.kind in "biuf" else ():
        text = f"{label:g}"
        if text in classes and classes.index(text) != label:
            raise DataError(
                f"target {name!r}: {text} is the code of class {classes[int(label)]!r}, and a "
                f"class is called {text!r}; give the name of the class as text, {text!r}"
            )


def check_integers(labels: NDArray[Any], what: str = "the label") -> None:
    """Raise DataError for integers that float64, the type of targets, cannot hold exactly."""
    if labels.dtype.kind in "iu":
        labels = labels[(labels > EXACT) | (labels < -EXACT)]
    for label in labels.ravel().tolist() if labels.dtype.kind in "iuO" else ():
        if isinstance(label, Integral) and abs(int(label)) > EXACT:
            raise DataError(beyond_exact(f"{what} {label}"))


def beyond_exact(label: str) -> str:
    """Return the reason why an integer is refused."""
    return (
        f"{label} is an integer beyond ±2^53, which stands for its neighbours too as float64: give "
        "labels as text, or as numbers from 0, and measurements as floats"
    )


def as_numbers(array: NDArray[Any], what: str, advice: str = "expected numbers") -> Floats:
    """Return labels as float64, NaN for a missing label; DataError for text and other objects."""
    if array.dtype.kind in "biufO":
        check_integers(array, f"{what}:")
        if array.dtype.kind == "O":
            array = np.where(np.vectorize(is_missing, otypes=[bool])(array), np.nan, array)
        try:
            if not has_texts(array):
                return array.astype(np.float64)
        except (TypeError, ValueError):
            pass
    raise DataError(
        f"{what} has dtype {array.dtype}; {advice}{first_not_a_number(array, 'bag', 'column')}"
    )


def warn_of_blank(labels: NDArray[Any], what: str, classes: Sequence[str] = ()) -> None:
    """Warn of labels that are empty text, which is not a label, or blanks, which are a class.

    Parameters
    ----------
    labels : shape (n_bags,) or (n_bags, k)
    what : str
        Name of the labels in the warning.
    classes : sequence of str
        Texts that are known classes, however blank.
    """
    if labels.dtype.kind not in "OUST" or not labels.size or not labels.ndim:
        return
    width = labels.size // len(labels)
    blank: dict[str, list[int]] = {}
    for i, label in enumerate(labels.ravel().tolist()):
        if isinstance(label, (str, bytes)) and not label.strip() and label not in classes:
            blank.setdefault("blanks" if label else "empty text", []).append(i // width)
    for kind, bags in blank.items():
        effect = "are a class" if kind == "blanks" else "count as no label"
        warn(
            f"{what}: {len(bags)} of {labels.size} labels are {kind}, first that of bag {bags[0]}, "
            f"and {effect}; write None for a missing label, or the name of a class"
        )


def warn_of_alike_names(names: Sequence[str], what: str) -> None:
    """Warn of two classes whose names differ only in blanks, case or a number's digits.

    Parameters
    ----------
    names : sequence of str
        All classes.
    what : str
        Name of the labels in the warning.
    """
    if pair := alike(names, lambda name: folded(name).casefold()):
        warn(
            f"{what}: the classes {pair[0]!r} and {pair[1]!r} differ only in blanks, in the case "
            "or code of their letters or in how a number is written, and count as two; write one "
            "name if they are one class"
        )


def refuse_numerals(labels: Iterable[Any], what: str, advice: str) -> None:
    """Raise DataError for texts that are or look like numbers in most places.

    Parameters
    ----------
    labels : iterable
        Labels, in the order of the bags. Only texts are looked at.
    what : str
        Name of the labels in the message.
    advice : str
        How classes are declared.
    """
    texts = {bag: label for bag, label in enumerate(labels) if isinstance(label, str) and label}
    others = [bag for bag, text in texts.items() if not _is_numeral(text)]
    if not texts or len(others) > len(texts) - len(others):
        return
    if others:
        text, n = texts[others[0]], len(texts) - len(others)
        raise DataError(
            f"{what} is {text!r} for bag {others[0]}, but {n} of {len(texts)} labels are texts of "
            f"numbers; give numbers, with NaN for a missing one, or {advice}"
        )
    raise DataError(
        f"{what} is text, but all its values look like numbers, such as {texts[min(texts)]!r}; "
        f"give numbers, or {advice}"
    )


def _is_numeral(text: str) -> bool:
    return any(kind.fullmatch(text.strip()) for kind in (NUMERAL, _FLOAT))


def _codes(labels: NDArray[Any], name: str, classes: Sequence[str]) -> Floats:
    code = {label: float(i) for i, label in enumerate(classes)}
    out = np.full(len(labels), np.nan)
    for i, label in enumerate(labels.tolist()):
        if is_missing(label) and not (isinstance(label, str) and label in code):
            continue
        if label not in code:
            raise DataError(
                f"target {name!r}: unknown class {label!r} for bag {i}; the classes are "
                f"{shown(list(classes))}"
            )
        out[i] = code[label]
    return out
