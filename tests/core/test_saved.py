"""`Saved`: dataclasses are written field by field; `Format`: a file says what it is."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pytest

from bagbasis import Box, StoreError
from bagbasis.core.saved import Format, NewerError, Saved, read_saved
from bagbasis.data.storage.files import read_json, write_json
from bagbasis.data.store.schema import StoreMeta


@dataclass(frozen=True)
class Part(Saved):
    name: str
    pair: tuple[float, float] = (0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Whole(Saved):
    PARTS: ClassVar[Mapping[str, type[Saved]]] = {"first": Part, "others": Part}
    ARRAYS: ClassVar[tuple[str, ...]] = ("values",)
    OMITTED: ClassVar[tuple[str, ...]] = ("later",)
    first: Part | None
    others: tuple[Part, ...]
    values: np.ndarray
    settings: dict[str, Any] = field(default_factory=dict)
    later: tuple[tuple[float, ...], ...] | None = None


PARTS = (Part("a"), Part("b", (2.0, 3.0)))


@pytest.mark.parametrize("later", [None, ((1.0,), (2.0, 3.0))])
@pytest.mark.parametrize("first", [None, Part("c")])
def test_what_is_written_is_read(first, later):
    """Through JSON: parts, arrays and tuples are what they were; lists in mappings stay lists."""
    whole = Whole(first, PARTS, np.arange(6.0).reshape(2, 3), {"names": ["x"]}, later)
    written = whole.to_dict()
    assert list(written) == ["first", "others", "values", "settings", *(["later"] if later else [])]
    read = read_saved(Whole, json.loads(json.dumps(written)))
    assert (read.first, read.others, read.later) == (first, PARTS, later)
    assert read.settings == {"names": ["x"]}
    np.testing.assert_array_equal(read.values, whole.values)
    whole_numbers = read_saved(Whole, written | {"values": [1, 2]})
    assert read.values.dtype == whole_numbers.values.dtype == np.float64


def test_what_earlier_versions_left_out_has_its_default():
    """And a field that the class does not have is refused."""
    assert read_saved(Part, {"name": "a"}) == Part("a")
    with pytest.raises(TypeError, match="colour"):
        read_saved(Part, {"name": "a", "colour": "red"})


def test_formats():
    """The version stands first; others than those that are read are refused by kind and number."""
    old, new = Format("thing"), Format("thing", 2, (1,), key="version")
    assert list(old.stamp({"n": 1})) == ["format_version", "n"]
    assert new.strip(new.stamp({"n": 1})) == {"n": 1}
    assert new.strip({"version": 1, "n": 1}) == {"n": 1}
    for value in (3, None, "1", [1]):
        with pytest.raises(ValueError, match=r"of format .*; this version reads 2 and 1"):
            new.strip({"version": value})
    with pytest.raises(KeyError, match="here: thing of format 3; this version reads 1"):
        old.strip({"format_version": 3}, "here", KeyError)


def test_what_a_newer_version_wrote_is_not_damaged(tmp_path):
    """Names that this version does not know are told, with the version that wrote them."""

    @dataclass(frozen=True)
    class Kept(Saved):
        version: str = "1"

    write_json(tmp_path / "s.json", {"version": "9.1", "zz_new": 1, "aa_new": 2})
    message = r"version 9.1 of bagbasis wrote it, with 'aa_new', 'zz_new', .* update bagbasis$"
    with pytest.raises(StoreError, match=message) as caught:
        read_json(tmp_path / "s.json", partial(read_saved, Kept), remedy="restore it")
    assert "damaged" not in str(caught.value)
    assert "restore" not in str(caught.value)
    with pytest.raises(NewerError, match="a newer version of bagbasis wrote it, with 'b'"):
        read_saved(Kept, {"b": 1})


def test_omitted_fields_do_not_travel():
    """A pickle has the fields that are written, and comes back whole; tasks carry it."""
    meta = StoreMeta(2, ("y",), Box.unit(2), n_bags=3)
    again = pickle.loads(pickle.dumps(meta))
    assert again == meta
    assert again.checksums == {}
    assert b"checksums" not in pickle.dumps(meta)
    filled = replace(meta, checksums={"points": "00"}, merged="m")
    assert pickle.loads(pickle.dumps(filled)) == filled
