"""Requests for predictions, and the answers to them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bagbasis import Bags
from bagbasis.core.compiling import compiling_at_once
from bagbasis.core.errors import BagbasisError, gathering_warnings, shown
from bagbasis.data.bags.coordinates import checked_names
from bagbasis.models.predictions.outside import warning_of_outside

from ...files import plain

if TYPE_CHECKING:
    from ...pictures.model_part import JobModel

MAX_REQUEST_BAGS = 100_000  # per request: the answer is one text
_MAX_VALUES = 2_500_000  # numbers per answer: some 50 MiB of JSON
MAX_SMALL_VALUES = 2**16  # largest number of values in an answer that the server itself computes
ENCODINGS = ("utf-8", "utf-16", "utf-32", "us-ascii")  # encodings that JSON decoders detect
BODY = {"bag": "one bag: a list of points", "bags": "a list of bags"}
BODY_COLUMNS = "columns"  # another key of a body: the names of the coordinates
EXPECTED = (
    " or ".join(f'{{"{key}": {text}}}' for key, text in BODY.items())
    + f'; optionally "{BODY_COLUMNS}": a list with the name of each coordinate, if they are known'
)


class Served(NamedTuple):
    """A model and its name. A request is answered by one model, even if another is promoted."""

    name: str
    model: JobModel
    url: str = ""
    n_values: int = 1  # number of values in the answer to a bag


class LargeAnswerError(Exception):
    """The answer to a small request is large."""


def check_form(headers: Mapping[str, str]) -> str | None:
    """Return why a body with these headers is not read, or None if it may be JSON."""
    coding = headers.get("content-encoding", "identity").strip().lower()
    if coding not in ("", "identity"):
        return f"Content-Encoding {shown(coding)}: send the body uncompressed"
    kind, _, options = headers.get("content-type", "").lower().partition(";")
    charset = options.partition("charset=")[2].partition(";")[0].strip(' "')
    if charset and not charset.replace("_", "-").startswith(ENCODINGS):
        return f"Content-Type: the charset is {shown(charset)}; send JSON in UTF-8"
    if kind.strip().startswith(("multipart/", "image/", "audio/", "video/")):
        return f"Content-Type {shown(kind)}: send the JSON itself as the body"
    return None


def reason_of(error: Exception) -> str:
    """Return an error's message for the client, as text that can be encoded in UTF-8."""
    return (str(error) or type(error).__name__).encode("utf-8", "backslashreplace").decode()


def answer_request(
    served: Served, body: bytes | bytearray, max_values: int | None = None
) -> dict[str, Any]:
    """Return the model's prediction for the bag, or the bags, of a request.

    Raises
    ------
    ValueError
        If the body is not JSON, or has neither one bag nor a list of bags.
    BagbasisError
        If a bag is invalid, or does not fit the model, for example by its names of coordinates.
    RecursionError
        If lists are nested too deeply.
    LargeAnswerError
        If the answer would hold more than ``max_values`` numbers.
    """
    text = body.decode(json.detect_encoding(body))
    try:
        asked = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"the body is not JSON: {error}") from None
    names = asked.pop(BODY_COLUMNS, None) if isinstance(asked, dict) else None
    if not isinstance(asked, dict) or len(asked) != 1 or not asked.keys() <= BODY.keys():
        raise ValueError(f"the body is {shown(asked)}; expected {EXPECTED}")
    if names is not None and ("true" in text or "false" in text):  # a column may have this name
        text = json.dumps(asked)
    if "true" in text or "false" in text:  # numpy would read 1 and 0
        raise ValueError("the body holds true or false; expected numbers")
    single = "bag" in asked
    if not single and isinstance(asked["bags"], list):
        check_n_bags(len(asked["bags"]))
    bags = Bags.from_list([asked["bag"]] if single else asked["bags"])
    if max_values is not None and len(bags) * served.n_values > max_values:
        raise LargeAnswerError
    return response(served, bags, single, names)


def response(served: Served, bags: Bags, is_single: bool, names: object) -> dict[str, Any]:
    """Return the answer to bags; ``names`` are the names of their coordinates, or None.

    The answer has "warnings" if there are any, for example about many points outside the box.

    Raises
    ------
    ValueError
        If the names are invalid, the answer would be too large, or a prediction is not finite.
    BagbasisError
        If the bags do not fit the model.
    """
    if names is not None:
        bags = bags.named(_column_names(names, bags.n_dims))
    if len(bags) * served.n_values > _MAX_VALUES:
        raise ValueError(
            f"the answer to {len(bags):,} bags would hold {len(bags) * served.n_values:,} numbers; "
            f"send at most {max(1, _MAX_VALUES // served.n_values):,} bags at a time"
        )
    warnings: list[str] = []
    # overflow is refused below
    with np.errstate(all="ignore"), gathering_warnings(warnings), warning_of_outside(bags):
        arrays: Mapping[str, Any] = served.model.model_.predicted(bags).arrays()
    for key in ("predictions", "probabilities"):
        values = np.asarray(arrays.get(key, 0))
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            bag = np.argwhere(~np.isfinite(values))[0][0]
            raise ValueError(
                f"bag {bag}: its prediction is not finite; its coordinates are too large for the "
                "model"
            )
    rows = {key: array[0] if is_single else array for key, array in arrays.items()}
    if is_single:
        rows["prediction"] = rows.pop("predictions")
    return {"model": served.name, **plain(rows), **({"warnings": warnings} if warnings else {})}


def warm(model: JobModel) -> int:
    """Predict a bag of one point, so that kernels are compiled now, not while a client waits.

    Returns
    -------
    int
        Number of values in the answer to a bag.
    """
    with suppress(BagbasisError), compiling_at_once():
        point = Bags.from_list([np.zeros((1, model.model_.features.n_dims))])
        arrays: Mapping[str, Any] = model.model_.predicted(point).arrays()
        return max(1, sum(np.size(array) for array in arrays.values()))
    return 1


def check_n_bags(n: int) -> None:
    """Raise ValueError for more bags than a request may hold."""
    if n > MAX_REQUEST_BAGS:
        raise ValueError(f"the body holds {n:,} bags; send at most {MAX_REQUEST_BAGS:,} at a time")


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object as a dict; ValueError if a key comes twice."""
    values = dict(pairs)
    if len(values) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {shown(twice)} comes twice; give it once")
    return values


# integers are read as floats, because numpy would make objects of integers from 2 ** 64 on
_DECODER = json.JSONDecoder(object_pairs_hook=_each_once, parse_int=float)


def _column_names(names: object, n_dims: int) -> Sequence[str]:
    """Return the names of the coordinates of a request; ValueError for anything else."""
    if not isinstance(names, list) or checked_names(names, n_dims) is None:
        raise ValueError(
            f'"{BODY_COLUMNS}" is {shown(names)}; expected a list of {n_dims} texts, the name of '
            "each coordinate of a point"
        )
    return names
