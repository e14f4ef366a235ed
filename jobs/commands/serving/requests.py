"""What a request for predictions holds, and the answer to it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bagbasis import Bags, as_bags
from bagbasis.core.errors import BagbasisError, shown
from bagbasis.data.bags.coordinates import checked_names

from ...files import plain

if TYPE_CHECKING:
    from ..model_place import FittedModel

MOST_BAGS = 100_000  # of a request: their answer is one text
BODY = {"bag": "one bag: a list of points", "bags": "a list of bags"}
COLUMNS = "columns"  # key of a body beside these: the names of the coordinates
EXPECTED = (
    " or ".join(f'{{"{key}": {text}}}' for key, text in BODY.items())
    + f'; beside it "{COLUMNS}": a list with the name of each coordinate, if they are known'
)


class Served(NamedTuple):
    """A model and its name. A request is answered by one of them, even if another is promoted."""

    name: str
    model: FittedModel
    url: str = ""


def answer(served: Served, body: bytes | bytearray) -> dict[str, Any]:
    """Return the model's prediction for the bag, or the bags, of a request.

    Raises
    ------
    ValueError
        No JSON, or something else than one bag or a list of bags; `BagbasisError` where bags are
        none, or none of the model's, as by other names of columns; RecursionError for lists in
        lists in lists.
    """
    text = body.decode(json.detect_encoding(body))
    # integers of any size are numbers; numpy would make objects of those from 2 ** 64 on
    asked = json.loads(text, object_pairs_hook=_each_once, parse_int=float)
    names = asked.pop(COLUMNS, None) if isinstance(asked, dict) else None
    if not isinstance(asked, dict) or len(asked) != 1 or not asked.keys() <= BODY.keys():
        raise ValueError(f"the body is {shown(asked)}; expected {EXPECTED}")
    if names is not None and ("true" in text or "false" in text):  # a column may be called so
        text = json.dumps(asked)
    if "true" in text or "false" in text:  # numpy would make 1 and 0 of them
        raise ValueError("the body holds true or false; expected numbers")
    single = "bag" in asked
    if not single and isinstance(asked["bags"], list):
        check_n_bags(len(asked["bags"]))
    return response(served, as_bags([asked["bag"]] if single else asked["bags"]), single, names)


def response(served: Served, bags: Bags, is_single: bool, names: object) -> dict[str, Any]:
    """Return the answer to bags whose coordinates have these names, or None.

    Raises
    ------
    ValueError
        The names are not those of coordinates; `BagbasisError` for bags that are not the model's.
    """
    if names is not None:
        bags = bags.named(_column_names(names, bags.n_dims))
    arrays: Mapping[str, Any] = served.model.model_.predicted(bags).arrays()
    rows = {key: array[0] if is_single else array for key, array in arrays.items()}
    if is_single:
        rows["prediction"] = rows.pop("predictions")
    return {"model": served.name, **plain(rows)}


def warm(model: FittedModel) -> None:
    """Predict a bag of one point: kernels are compiled now, not while a client waits."""
    with suppress(BagbasisError):
        model.model_.predicted(Bags.from_list([np.zeros((1, model.model_.features.n_dims))]))


def check_n_bags(n: int) -> None:
    """Raise ValueError for more bags than a request may hold."""
    if n > MOST_BAGS:
        raise ValueError(f"the body holds {n:,} bags; send at most {MOST_BAGS:,} at a time")


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs of an object; ValueError if a key comes twice."""
    values = dict(pairs)
    if len(values) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {shown(twice)} comes twice; give it once")
    return values


def _column_names(names: object, n_dims: int) -> Sequence[str]:
    """Return the names of the coordinates of a request; ValueError for anything else."""
    if not isinstance(names, list) or checked_names(names, n_dims) is None:
        raise ValueError(
            f'"{COLUMNS}" is {shown(names)}; expected a list of {n_dims} texts, the name of each '
            "coordinate of a point"
        )
    return names
