"""Labels that estimators accept: the number of targets, and the classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Floats, is_missing
from ...core.errors import DataError, shown, warn
from ...data.bags.ids import EXACT
from ...data.labelled.inputs import check_numbers
from ...data.labelled.labelled import LabelledBags
from ...data.labelled.labels import Targets
from ...data.store.targets import check_integers, warn_of_blank

MAX_CLASSES = 10_000  # more distinct labels are treated as real numbers
_FEW_CLASSES = 4  # up to as many classes, bags with a class of their own are not warned about
_MAX_NUMBERS = 20  # more distinct whole numbers of a store are not classes, unless it names them


def refuse_numbers(source: LabelledBags, codes: Floats) -> None:
    """Raise DataError for labels that are numbers instead of classes.

    In a store without class names, such labels are fractions, or many different whole numbers. In
    memory, they are many different fractions, or fractions that are different for most bags.
    """
    [name] = source.target_names or ("",)
    whole, few = bool((codes == np.round(codes)).all()), len(codes) <= _MAX_NUMBERS
    remedy = "use DoubleBasisRegressor (in a config or with --set: model.task=regression)"
    if source.in_memory:
        if not whole and not (few and 2 * len(codes) <= source.n_bags):
            raise DataError(
                f"y has {len(codes)} distinct values that are not all whole, as a regression "
                f"target has; {remedy}, or encode the classes as integers or text"
            )
        return
    if name in source.class_names or (whole and few):
        return
    raise DataError(
        f"{source.url}: target {name!r} has numbers, {len(codes)} different ones; {remedy}, or "
        f"make a store that has their classes (ingest with target_types: {{{name}: class}})"
    )


def n_targets_of(source: LabelledBags) -> int:
    """Return the number of targets; DataError if the labels of bags in memory are not targets."""
    targets = source.labels.values if isinstance(source.labels, Targets) else None
    if targets is not None:
        check_numbers(targets)
        if np.isinf(targets.astype(np.float64)).any():
            raise DataError("y has an infinite value; use NaN for bags without a label")
        return int(targets.shape[1])
    return len(source.target_names)


def class_codes(labels: NDArray[Any]) -> tuple[NDArray[Any] | None, NDArray[Any]]:
    """Return class names and their positions as targets for text; None and y for numbers.

    Empty text, None and NaN are missing labels, as in a store.
    """
    if labels.ndim != 1:
        column = ", such as y[:, 0]" if labels.shape[1:] == (1,) else ""
        raise DataError(f"y has shape {labels.shape}; expected one class per bag{column}")
    if labels.dtype.kind in "iufb":
        check_integers(labels)
        return None, labels
    if labels.dtype.kind not in "OUST":
        raise DataError(f"y has dtype {labels.dtype}; expected numbers or text")
    warn_of_blank(labels, "y")
    missing = np.array([is_missing(label) for label in labels.tolist()], dtype=bool)
    if labels.dtype.kind == "O":
        text = [isinstance(label, str) for label in labels[~missing].tolist()]
        if not any(text):
            check_integers(labels[~missing])
            return None, _numeric(np.where(missing, np.nan, labels))
        if not all(text):
            raise DataError("y mixes text with other labels; give all classes as text")
    codes = np.full(len(labels), np.nan)
    texts = np.array(_texts(labels[~missing].tolist()), dtype=str)  # astype takes no StringDType
    names, codes[~missing] = np.unique(texts, return_inverse=True)
    return names, codes


def _texts(labels: list[Any]) -> list[str]:
    """Return texts; bytes are decoded."""
    try:
        texts = [label.decode() if isinstance(label, bytes) else label for label in labels]
    except UnicodeDecodeError as error:
        raise DataError(f"y: {error.object!r} is not text in UTF-8; decode the classes") from error
    for text in texts:
        if text.endswith("\0"):
            raise DataError(f"y: the label {text!r} ends with NUL, which arrays drop; remove it")
    return texts


def are_booleans(labels: NDArray[Any]) -> bool:
    """Whether all labels that are not missing are True or False."""
    if labels.dtype.kind != "O":
        return labels.dtype.kind == "b"
    known = [label for label in labels.ravel().tolist() if not is_missing(label)]
    return bool(known) and all(isinstance(label, (bool, np.bool_)) for label in known)


def _numeric(labels: NDArray[Any]) -> Floats:
    try:
        return labels.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"y holds a label that is neither text nor a number ({error}); write classes as text, "
            "[str(label) for label in y]"
        ) from error


def distinct_labels(source: LabelledBags) -> tuple[Floats, int]:
    """Return the distinct labels, sorted, and the number of labelled bags."""
    distinct, n_bags = np.empty(0), 0
    for _, _, labels in source.label_blocks():
        n_bags += len(labels)
        distinct = np.union1d(distinct, labels.astype(np.float64)[:, 0])
        if len(distinct) > MAX_CLASSES:
            raise DataError(f"more than {MAX_CLASSES} classes: is the target a real number?")
    if len(distinct) < 2:
        raise DataError(f"a classifier needs two classes, the labels have {len(distinct)}")
    return distinct, n_bags


def warn_of_many_classes(names: Sequence[Any], n_bags: int, what: str) -> None:
    """Warn about labels with fewer than two bags per class, as ids, amounts and dates have.

    Parameters
    ----------
    names : sequence
        Classes.
    n_bags : int
        Number of labelled bags.
    what : str
        Name of the labels in the warning.
    """
    if len(names) > _FEW_CLASSES and n_bags < 2 * len(names):
        warn(
            f"{what} has {len(names)} classes in {n_bags} labelled bags, such as "
            f"{shown(names[0])}: fewer than two bags per class are too few to learn from; if the "
            "labels are amounts or dates, write them as numbers and use DoubleBasisRegressor"
        )


def as_integers(codes: Floats) -> NDArray[Any]:
    """Return whole numbers as integers, unless they are too large to be exact."""
    whole = (codes == np.round(codes)) & (np.abs(codes) <= EXACT)
    return codes.astype(np.int64) if whole.all() else codes
