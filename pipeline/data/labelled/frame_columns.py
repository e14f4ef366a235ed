"""Labels, groups and weights that are columns of a grouped frame, named by `fit`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...core.errors import ParameterError
from ..bags.alignment import in_order_of_rows
from ..bags.bags import Bags
from ..bags.frames import is_groups, take_columns


class FromFrame(NamedTuple):
    """Bags of a grouped frame without the columns that were taken from it.

    Attributes
    ----------
    X : Bags, or what was given
    y : Series, DataFrame, or what was given
        Labels, taken from the columns that ``target`` names, if any.
    target : str, list of str or None
        Names of the target columns; None if ``y`` holds them.
    values : mapping from argument to its values
        Values per bag if an argument named a column, else the argument itself.
    names : tuple of str
        Columns that ``y`` was taken from.
    columns : tuple of str
        All columns that are not coordinates.
    """

    X: Any
    y: Any
    target: Any
    values: dict[str, Any]
    names: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


def from_frame(
    X: object,
    y: object = None,
    target: str | Sequence[str] | None = None,
    without: Sequence[str] = (),
    **arguments: Any,  # noqa: ANN401
) -> FromFrame:
    """Return bags, labels and further values; those named by a column are taken from X.

    Only a groupby has such columns. For other X, further values of pandas are put in the order of
    labels of pandas that have the same index; everything else is returned unchanged.

    Parameters
    ----------
    X : groupby, or anything else
    y, target
        As in ``fit``.
    without : sequence of str
        Further columns that are not coordinates. Columns that the frame lacks are ignored.
    arguments
        Values per bag, such as ``groups``, or the name of a column.

    Raises
    ------
    DataError
        If there is no such column, or it is not constant within a bag. Also if the index of values
        shares some labels with the index of y, and others not.
    ParameterError
        If both y and target are given.
    """
    if not is_groups(X):
        paired = {key: in_order_of_rows(v, y, key, "y") for key, v in arguments.items()}
        return FromFrame(X, y, target, paired)
    if target is not None and y is not None:
        raise ParameterError("y and target are given: target names the column that has the labels")
    names = () if target is None else (target,) if isinstance(target, str) else tuple(target)
    named = {key: name for key, name in arguments.items() if isinstance(name, str)}
    columns = tuple(dict.fromkeys([*names, *named.values()]))
    if not columns and not without:
        return FromFrame(X, y, target, arguments)
    coordinates, values = take_columns(X, columns)
    chosen = [name for name in coordinates if name not in without]
    bags = Bags.from_frame(X, coordinates=chosen)
    if names:
        y, target = _labels(target, names, values), None
    arguments |= {key: values[name].to_numpy() for key, name in named.items()}
    return FromFrame(bags, y, target, arguments, names, columns)


def _labels(
    target: str | Sequence[str] | None, names: tuple[str, ...], values: Mapping[str, Any]
) -> Any:  # noqa: ANN401
    if isinstance(target, str):
        return values[target].to_numpy()
    import pandas as pd  # noqa: PLC0415 - the values are of it

    return pd.DataFrame({name: values[name] for name in names}).to_numpy()
