"""Ids that differ only in blanks, letters' code or zeros are told; blank ids are refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from bagbasis import BagbasisWarning, Bags, BagStore, DataError, as_bags
from bagbasis.ingest import ingest_arrays, ingest_frame

TWO = [np.ones((2, 1)), np.zeros((2, 1))]
ALIKE = [("a", "a "), ("a ", "a"), ("a b", "a  b"), ("a", "a\xa0"), ("\xe9", "e\u0301")]
ALIKE += [("1.0", "1"), ("01", "1"), ("007", "+7"), ("0", "0.0")]


def frame_of(ids):
    """Return a table with two rows per id."""
    return pd.DataFrame({"who": np.repeat(ids, 2), "v": np.arange(2.0 * len(ids))})


def appended(url, ids):
    """Append the second bag to a store of the first."""
    store = BagStore.create(url, n_dims=1)
    store.append(TWO[:1], ids=ids[:1])
    return store.append(TWO[1:], ids=ids[1:])


CALLS = {
    "from_frame": lambda ids, url: Bags.from_frame(frame_of(ids), "who"),
    "groupby": lambda ids, url: Bags.from_frame(frame_of(ids).groupby("who")),
    "two columns": lambda ids, url: Bags.from_frame(
        frame_of(ids).assign(day=1), ["who", "day"], coordinates=["v"]
    ),
    "Bags": lambda ids, url: Bags(np.arange(2.0)[:, None], [0, 1, 2], ids=ids),
    "with_ids": lambda ids, url: Bags(np.arange(2.0)[:, None], [0, 1, 2]).with_ids(ids),
    "ingest_frame": lambda ids, url: ingest_frame(
        frame_of(ids), url, id_column="who", coordinates=["v"]
    ),
    "ingest_arrays": lambda ids, url: ingest_arrays(TWO, url, ids=ids),
    "append": lambda ids, url: appended(url, ids),
}


@pytest.mark.parametrize(
    ("call", "ids"),
    [*(("Bags", ids) for ids in ALIKE), *((call, ALIKE[0]) for call in CALLS if call != "Bags")],
    ids=ascii,
)
def test_two_bags_whose_ids_look_alike(call, ids, tmp_path):
    with pytest.warns(BagbasisWarning, match="differ only in blanks") as record:
        CALLS[call](list(ids), tmp_path / "s.zarr")
    messages = [str(warning.message) for warning in record if "differ only" in str(warning.message)]
    assert messages[0].count("'") == 4  # both are written out
    assert len(set(messages)) == 1


@pytest.mark.parametrize("call", CALLS)
def test_other_ids_are_not_told(call, tmp_path, warned):
    """Blanks within an id, accents and capitals are what they are."""
    CALLS[call](["a b", "A b"], tmp_path / "s.zarr")
    CALLS[call](["\xe9", "e"], tmp_path / "t.zarr")
    CALLS[call](["1.5", "1.50"], tmp_path / "u.zarr")
    CALLS[call](["0a", "a"], tmp_path / "v.zarr")
    assert "differ only" not in warned.text


def test_a_number_is_compared_with_wider_ones_of_earlier_appends(tmp_path, warned):
    """7 is told to be like 007, which is stored, and neither 8 nor a text is like another."""
    store = BagStore.create(tmp_path / "s.zarr", n_dims=1).append(TWO, ids=["007", "00a"])
    store.append(TWO, ids=["8", "a"])
    assert "differ only" not in warned.text
    store.append(TWO[:1], ids=["7"])
    assert "'007' and '7' differ only" in warned.text


def test_an_append_tells_only_of_its_own_ids(tmp_path, warned):
    store = appended(tmp_path / "s.zarr", ["a", "a "])
    assert "'a' and 'a ' differ only" in warned.text
    warned.clear()
    store.append(TWO[:1], ids=["b"])
    assert "differ only" not in warned.text


@pytest.mark.parametrize("blank", ["", " ", "\t"])
@pytest.mark.parametrize("call", CALLS)
def test_a_blank_is_no_id(call, blank, tmp_path):
    with pytest.raises(DataError, match=r"a blank text; give|has no who|id is missing"):
        CALLS[call]([blank, "b"], tmp_path / "s.zarr")


@pytest.mark.parametrize(("dtype", "first"), [("float32", 2**24), ("float64", 2**53)])
def test_floats_of_large_ids_are_refused(dtype, first):
    """A column of ids with a gap was read as floats, of which neighbours are one."""
    whole = pd.DataFrame({"objid": [first, first + 1], "x": [0.0, 1.0]})
    assert len(Bags.from_frame(whole, "objid")) == 2
    floats = whole.astype({"objid": dtype})
    with pytest.raises(DataError, match=f"id {first} of 'objid' is a {dtype}.*{first}.*text"):
        Bags.from_frame(floats, "objid")
    below = whole.assign(objid=whole["objid"] - 2).astype({"objid": dtype})
    assert len(Bags.from_frame(below, "objid")) == 2


GROUPS = {
    "name": lambda frame: frame.groupby("objid"),
    "names": lambda frame: frame.assign(day=1).groupby(["objid", "day"]),
    "columns": lambda frame: frame.groupby("objid", as_index=False)[["x"]],
    "series": lambda frame: frame[["x"]].groupby(frame["objid"]),
    "level": lambda frame: frame.set_index("objid").groupby(level=0),
    "polars": lambda frame: pl.from_pandas(frame).group_by("objid", maintain_order=True),
}


@pytest.mark.parametrize(
    ("by", "dtype", "first"),
    [*((by, "float32", 2**24) for by in GROUPS), ("name", "float64", 2**53)],
)
def test_groups_by_floats_of_large_ids(dtype, first, by):
    """By the precision of the column, which the keys of groups do not have."""
    floats = pd.DataFrame({"objid": [first, first + 2], "x": [0.0, 1.0]}).astype({"objid": dtype})
    with pytest.raises(DataError, match=f"id {first} .*is a {dtype}.*{first}"):
        Bags.from_frame(GROUPS[by](floats))
    below = floats.assign(objid=np.array([1, first - 1], dtype))
    assert len(Bags.from_frame(GROUPS[by](below))) == 2


def test_a_series_of_bags_by_floats_of_large_ids():
    """Its index has the ids."""
    index = pd.Index(np.array([1, 2**24], np.float32))
    with pytest.raises(DataError, match="the id 16777216 is a float32"):
        as_bags(pd.Series([np.ones((2, 1)), np.zeros((2, 1))], index))
