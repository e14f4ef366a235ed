"""Batches of bags to write, from an iterable of arrays or from bags in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.arrays import Floats, as_array
from ..core.errors import DataError, shown
from ..data.bags.bags import Bags, offsets_of
from ..data.bags.checks import as_bag
from ..data.bags.coordinates import Names, order_of
from ..data.bags.frames import names_of_table
from ..data.bags.precision import IntegerRange, check_array_apart
from ..data.bags.responses import Responses, as_response, as_responses
from ..data.store.plan import plan_partitions
from ..data.store.targets import refuse_numerals, targets_matrix

BATCH_BYTES = 2**25  # points written at once
BATCH_BAGS = 2**16  # so that the objects of many tiny bags do not fill the memory

_END = object()


@dataclass(frozen=True)
class BagsToWrite:
    """Bags that are written together; ``targets`` maps each name to values of shape (n_bags,).

    ``responses`` is None if the bags come without responses, else it has one item per bag.
    """

    bags: Bags
    targets: dict[str, Any]
    ids: Any
    responses: Responses | None = None


class _Item(NamedTuple):
    """One bag of an iterable.

    ``response`` is None for a missing response, and `_END` if the bags come without responses.
    ``names`` are the names of the coordinates, for frames.
    """

    points: NDArray[Any]
    targets: tuple[Any, ...]
    response: Any
    names: Names = None

    @property
    def kind(self) -> tuple[int, int, bool]:
        """Properties that all bags must share."""
        return self.points.shape[1], len(self.targets), self.response is not _END


def batches_of(
    arrays: Iterable[Any],
    rows: Iterator[Any] | None,
    names: Sequence[str],
    ids: Iterator[Any] | None,
    responses: Iterator[Any] | None = None,
    response_dims: int | None = None,
) -> Iterator[BagsToWrite]:
    """Yield batches of one array per bag, in order.

    Parameters
    ----------
    arrays : iterable
        Arrays of shape (n_i, n_dims). If ``rows`` is None, tuples of an array and the bag's target.
        If ``responses`` is None, the tuples also hold the response.
    rows : iterator, optional
        Target or targets of each bag, in order.
    names : sequence of str
        Names of the targets. If empty, `default_names` are used.
    ids : iterator, optional
        Id of each bag. Default: 0, 1, ….
    responses : iterator, optional
        Response of each bag, in order; None for a missing response.
    response_dims : int, optional
        Dimension of a response. Default: the dimension of the first response.

    Raises
    ------
    DataError
        If an array, a target or a response differs in kind from the first bag's, or if the numbers
        of targets, ids or responses differ from the number of bags. The message names the bag.
    """
    items: list[_Item] = []
    first: _Item | None = None
    reference: _Item | None = None  # the first item with names
    n_bags = n_bytes = 0
    integers = {what: IntegerRange(what) for what in ("bags", "responses")}

    def batch() -> BagsToWrite:
        nonlocal response_dims
        made = _batch(items, names, ids, n_bags, response_dims)
        if reference is not None and reference.names is not None:
            made = replace(made, bags=made.bags.named(reference.names))
        if made.responses is not None:
            response_dims = made.responses.n_dims
        return made

    for array in arrays:
        item = _item(array, rows, responses, n_bags + len(items), integers)
        item = _in_order(item, reference, n_bags + len(items))
        reference = item if reference is None or reference.names is None else reference
        first = first or item
        _check_alike(item, first, names, n_bags + len(items))
        items.append(item)
        n_bytes += item.points.nbytes + getattr(item.response, "nbytes", 0)
        if n_bytes >= BATCH_BYTES or len(items) == BATCH_BAGS:
            yield batch()
            n_bags, n_bytes, items = n_bags + len(items), 0, []
    for whole in integers.values():
        whole.check()
    if items:
        yield batch()
    for what, leftover in (("targets", rows), ("ids", ids), ("responses", responses)):
        if leftover is not None and next(leftover, _END) is not _END:
            raise DataError(f"more {what} than bags: the bags end after {n_bags + len(items)}")


def slices_of(
    bags: Bags,
    columns: Mapping[str, NDArray[Any]],
    ids: NDArray[Any] | None,
    responses: Responses | None,
    progress: Callable[[int, int], None] | None,
) -> Iterator[BagsToWrite]:
    """Yield batches of bags in memory, and report the number of points done.

    The number includes the points of the responses.
    """
    done = bags.offsets if responses is None else bags.offsets + responses.offsets
    columns_a_row = bags.n_dims if responses is None else max(bags.n_dims, responses.n_dims)
    max_rows = max(1, BATCH_BYTES // (bags.points.itemsize * columns_a_row))
    for start, stop in plan_partitions(done, 1, max_rows):
        part = {name: values[start:stop] for name, values in columns.items()}
        numbers = np.arange(start, stop) if ids is None else ids[start:stop]
        answers = None if responses is None else responses[start:stop]
        yield BagsToWrite(bags[start:stop], part, numbers, answers)
        if progress is not None:
            progress(int(done[stop]), int(done[-1]))


def is_whole(targets: object) -> bool:
    """Return whether targets are given for all bags at once (by name, or as one array)."""
    return _is_named(targets) or isinstance(targets, Sequence) or hasattr(targets, "__array__")


def columns_of(
    targets: Any, names: Sequence[str], classes: dict[str, list[str]], n_bags: int | None = None
) -> tuple[dict[str, list[str]], dict[str, Floats]]:
    """Return the classes, and each target as numbers: a label is its index in the sorted labels.

    Parameters
    ----------
    targets : mapping from name to (n_bags,), array (n_bags,) or (n_bags, n_targets), or None
    names : sequence of str
        Names of the columns of an array. If empty, `default_names` are used.
    classes : dict
        Given classes of targets. Other targets of text get their own sorted labels, unless these
        are texts of numbers.
    n_bags : int, optional
        Number of bags. Default: the number of values of the first target.

    Raises
    ------
    DataError
        If the shape or the number of names is wrong, or values cannot be used.
    """
    if targets is None:
        return classes, {}
    if _is_named(targets):
        keys = targets.keys() if isinstance(targets, Mapping) else targets.columns
        values_by_name = {str(name): as_array(f"target {name!r}", targets[name]) for name in keys}
        for name, values in values_by_name.items():
            if values.ndim == 0:
                raise DataError(f"target {name!r} is {shown(targets[name])}; expected one per bag")
    else:
        matrix = as_array("targets", targets)
        matrix = matrix[:, None] if matrix.ndim == 1 else matrix
        if matrix.ndim != 2 or (names and len(names) != matrix.shape[1]):
            raise DataError(
                f"targets have shape {matrix.shape}; expected one row per bag, one column for each "
                f"of {list(names) or 'the targets'}"
            )
        values_by_name = dict(zip(names or default_names(matrix.shape[1]), matrix.T, strict=True))
    own = classes_of({n: values for n, values in values_by_name.items() if n not in classes})
    for name in own:
        advice = f"class_names={{{name!r}: [...]}} of ingest_arrays if they are classes"
        refuse_numerals(values_by_name[name].tolist(), f"target {name!r}", advice)
    classes = classes | own
    n_bags = max(map(len, values_by_name.values()), default=0) if n_bags is None else n_bags
    floats = targets_matrix(values_by_name, names or list(values_by_name), classes, n_bags)
    # one column without targets
    return classes, dict(zip(names or values_by_name, floats.T, strict=False))


def default_names(n_targets: int) -> list[str]:
    """Return "target", or "target_0", "target_1", … if there are several."""
    return ["target"] if n_targets == 1 else [f"target_{j}" for j in range(n_targets)]


def _item(
    element: Any,
    rows: Iterator[Any] | None,
    responses: Iterator[Any] | None,
    bag: int,
    integers: Mapping[str, IntegerRange],
) -> _Item:
    points, label = element, ()
    response: Any = _END
    if isinstance(element, tuple) and rows is None:
        if len(element) not in (2, 3):
            raise DataError(
                f"bag {bag} is a tuple of {len(element)}; expected its points, its targets and, if "
                "wanted, its response"
            )
        points, label, response = (*element, _END)[:3]
    elif rows is not None:
        label = _next(rows, "targets", bag)
    if responses is not None:
        if response is not _END:
            raise DataError(f"bag {bag} is a tuple with a response, but responses are given, too")
        response = _next(responses, "responses", bag)
    check_array_apart(f"bag {bag}", points, is_whole=False)
    floats = as_bag(points, f"bag {bag}")
    integers["bags"].add(points, floats)
    answer = response if response is _END else as_response(response, f"bag {bag}")
    if isinstance(answer, np.ndarray):
        integers["responses"].add(response, answer)
    labels = (label,) if np.ndim(label) == 0 else tuple(label)
    return _Item(floats, labels, answer, names_of_table(points))


def _in_order(item: _Item, reference: _Item | None, bag: int) -> _Item:
    """Return an item with its coordinates in the order of the first item that has names."""
    expected = None if reference is None else reference.names
    order = order_of(item.names, expected, f"bag {bag}", "those of the first frame are")
    if order is None:
        return item
    return item._replace(points=item.points[:, order], names=expected)


def _check_alike(item: _Item, first: _Item, names: Sequence[str], bag: int) -> None:
    kinds, expected = item.kind, (first.kind[0], len(names) or first.kind[1], first.kind[2])
    if kinds[:2] != expected[:2]:
        raise DataError(
            f"bag {bag} has dimension {kinds[0]} and {kinds[1]} targets; expected dimension "
            f"{expected[0]} and {expected[1]} targets"
        )
    if kinds[2] != expected[2]:
        raise DataError(
            f"bag {bag} comes {'with' if kinds[2] else 'without'} a response, unlike the first "
            "one; use None for a bag that has none"
        )


def _batch(
    items: Sequence[_Item],
    names: Sequence[str],
    ids: Iterator[Any] | None,
    first: int,
    response_dims: int | None,
) -> BagsToWrite:
    numbers = range(first, first + len(items))
    sizes = np.array([len(item.points) for item in items], dtype=np.int64)
    columns = [list(column) for column in zip(*(item.targets for item in items), strict=True)]
    names_of_bags = np.array(numbers) if ids is None else [_next(ids, "ids", i) for i in numbers]
    responses = None
    if items[0].response is not _END:
        item_responses = [item.response for item in items]
        if response_dims is None and all(response is None for response in item_responses):
            raise DataError(
                f"none of the first {len(items)} bags has a response; pass response_dims, the "
                "number of their coordinates"
            )
        responses = as_responses(
            item_responses, len(items), n_dims=response_dims, ids=names_of_bags
        )
    return BagsToWrite(
        Bags.trusted(np.concatenate([item.points for item in items]), offsets_of(sizes)),
        dict(zip(names or default_names(len(columns)), columns, strict=True)),
        names_of_bags,
        responses,
    )


def _next(values: Iterator[Any], what: str, bag: int) -> Any:
    value = next(values, _END)
    if value is _END:
        raise DataError(f"fewer {what} than bags: bag {bag} has none")
    return value


def _is_named(targets: object) -> bool:
    return isinstance(targets, Mapping) or hasattr(targets, "columns")


def classes_of(columns: Mapping[str, Any] | None) -> dict[str, list[str]]:
    """Return the sorted labels of each column that holds texts, also of texts of numbers."""
    arrays = {
        name: as_array(f"target {name!r}", values) for name, values in (columns or {}).items()
    }
    return {name: labels for name, values in arrays.items() if (labels := _labels(values))}


def _labels(values: NDArray[Any]) -> list[str]:
    if values.dtype.kind not in "OUT":
        return []
    return sorted({value for value in values.tolist() if isinstance(value, str) and value})
