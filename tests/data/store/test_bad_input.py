"""Refused input, and what is not a bag store: one clear error each, and nothing half-written."""

from __future__ import annotations

import numpy as np
import pytest
import zarr

from bagbasis import Bags, BagStore, DataError, Responses, StoreError
from tests.data.store.six_bags import GOOD, contents, edit_attributes, two_bags

REFUSED = {
    "nan": (two_bags(point=(1, 2, np.nan)), GOOD, None, "bag 1, row 2: coordinate 0 is nan"),
    "inf": (two_bags(point=(1, 0, np.inf)), GOOD, [1, 2], "bag with id 2, row 0: .* is inf"),
    "text id": (two_bags(point=(0, 0, -np.inf)), GOOD, [7, 8], "bag with id 7, row 0: .* -inf"),
    "overflow": (two_bags(point=(1, 1, 1e39)), GOOD, None, "bag 1, row 1: coordinate 0 is inf"),
    "nan list": ([[[0.0, np.nan]]], GOOD[:1], None, "bag 0, row 0: coordinate 1 is nan"),
    "nan and too few ids": (two_bags(point=(1, 0, np.nan)), GOOD, [1], "ids have shape"),
    "empty bag": ([np.zeros((1, 2)), np.zeros((0, 2))], GOOD, None, "bag 1 is empty"),
    "dimension": (two_bags(n_dims=3), GOOD, None, "dimension 3, .*s.zarr holds dimension 2"),
    "one array": (np.zeros((3, 2)), GOOD, None, "pass a list"),
    "no bags": ([], None, None, "no bags"),
    "repeated id": (two_bags(), GOOD, [3, 3], "duplicate bag id 3: it is given twice"),
    "committed id": (
        two_bags(),
        GOOD,
        [99, 12],
        "bag id 12: the store or an",
    ),
    "other ids": (two_bags(), GOOD, ["a", "b"], "has int64 ids, got str"),
    "float ids": (two_bags(), GOOD, [1.0, 2.0], "ids have dtype float64"),
    "mixed ids": (two_bags(), GOOD, np.array([1, "a"], object), "ids have dtype object"),
    "large id": (two_bags(), GOOD, np.array([1, 2**63], np.uint64), "id 9223372036854775808 is"),
    "few ids": (two_bags(), GOOD, [3], r"ids have shape \(1,\); expected .* \(2,\)"),
    "short targets": (two_bags(), GOOD[:1], None, r"target 'y' has shape \(1,\); expected \(2,\)"),
    "narrow targets": (two_bags(), [[1.0], [2.0]], None, r"shape \(2, 1\); expected \(2, 2\)"),
    "flat targets": (two_bags(), [1.0, 2.0], None, r"shape \(2,\); expected \(2, 2\)"),
    "missing target": (two_bags(), {"y": [1, 2]}, None, "missing target 'c'"),
    "unknown target": (two_bags(), {"y": [1, 2], "c": [0, 0], "z": [0, 0]}, None, "target 'z'"),
    "column shape": (two_bags(), {"y": [[1], [2]], "c": [0, 0]}, None, r"'y' has shape \(2, 1\)"),
    "infinite": (two_bags(), [[1, 0], [np.inf, 0]], None, "target 'y' is infinite for bag 1"),
    "text": (two_bags(), {"y": ["1", "2"], "c": [0, 0]}, None, "'y' has dtype <U1; expected num"),
    "complex": (two_bags(), {"y": [1j, 2j], "c": [0, 0]}, None, "'y' has dtype complex128"),
    "class": (two_bags(), {"y": [1, 2], "c": ["red", "pink"]}, None, "class 'pink' for bag 1"),
    "code": (two_bags(), [[1, 0], [2, 2]], None, "'c' is 2 for bag 1; classes are 0 to 1"),
    "fraction": (two_bags(), [[1, 0.5], [2, 1]], None, "'c' is 0.5 for bag 0"),
}


@pytest.mark.long
@pytest.mark.parametrize("case", REFUSED)
def test_refused_input_leaves_the_store_as_it_was(template, case):
    """Each wrong append is a DataError that names what is wrong; nothing of it is kept."""
    bags, targets, ids, message = REFUSED[case]
    before = contents(template)
    with pytest.raises(DataError, match=message):
        template.append(bags, targets, ids=ids)
    assert contents(template) == before
    assert template.n_bags == 6


THREE = np.zeros((2, 3))


def unchecked(offsets):
    """Responses that nothing has checked."""
    return Responses.trusted(THREE, np.array(offsets))


REFUSED_RESPONSES = {
    "nan": ([None, [[0, 0, 0], [0, np.nan, 0]]], None, "response of bag 1, row 1: .* 1 is nan"),
    "inf": ([None, [[0, 0, np.inf]]], [7, 8], "response of bag with id 8, row 0: .* 2 is inf"),
    "overflow": ([[[1e39, 0, 0]], None], None, "response of bag 0, row 0: .* 0 is inf"),
    "dimension": ([THREE, THREE[:, :2]], None, "response of bag 1 has dimension 2, expected 3"),
    "of an id": ([THREE[:, :1], None], [7, 8], "response of bag with id 7 has dimension 1"),
    "too few": ([THREE], None, "1 responses for 2 bags"),
    "too many": ([None] * 3, None, "3 responses for 2 bags"),
    "one array": (THREE, None, "expected responses, got one array of shape"),
    "numbers": (THREE[:, 0], None, "to learn one number per bag, use DoubleBasisRegressor"),
    "bags": (Bags.from_list([THREE[:, :2]] * 2), None, "responses have dimension 2, expected 3"),
    "text": ([None, [["a", "b", "c"]]], None, "response of bag 1 has dtype <U1"),
    "number": ([3.0, None], None, r"response of bag 0 has shape \(\)"),
    "falling": (
        unchecked([0, 3, 2]),
        None,
        "response of bag 1 ends before",
    ),
    "ends": (
        unchecked([0, 1, 1]),
        None,
        "must run from 0 to n_points = 2",
    ),
}


@pytest.mark.parametrize("case", REFUSED_RESPONSES)
def test_refused_responses_leave_the_store_as_it_was(template, case):
    """Each wrong response is a DataError that names bag and row; its bag is not kept either."""
    responses, ids, message = REFUSED_RESPONSES[case]
    before = contents(template)
    with pytest.raises(DataError, match=message):
        template.append(two_bags(), GOOD, ids=ids, responses=responses)
    assert contents(template) == before
    assert (template.n_bags, template.n_response_points) == (6, 50)


def test_responses_for_a_store_without_are_refused(tmp_path):
    """They are not dropped in silence, not even when all are None."""
    store = BagStore.create(tmp_path / "s.zarr", 2, target_names=["y", "c"])
    for responses in ([None, THREE], [None, None]):
        with pytest.raises(DataError, match="holds no responses; make it with response_dims"):
            store.append(two_bags(), GOOD, responses=responses)
    assert BagStore.open(store.url).n_bags == 0
    for read in (store.responses, store.response_offsets):
        with pytest.raises(DataError, match="holds no responses"):
            read()


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["x", "x"], "duplicate bag id 'x'"),
        (["x", "e"], "duplicate bag id 'e'"),
        ([1, 2], "has str ids, got int64"),
        (None, "has string ids; pass ids"),
        (["x", "\ud800"], "not valid Unicode"),
    ],
)
def test_refused_text_ids(named_template, ids, message):
    """Stores with text ids refuse duplicates, numbers and missing ids, by name."""
    before = contents(named_template)
    with pytest.raises(DataError, match=message):
        BagStore.open(named_template.url).append(two_bags(), GOOD, ids=ids)
    assert contents(named_template) == before


# ---------------------------------------------------------------------- not a store


def test_what_is_not_a_store_is_named(tmp_path, store):
    """A folder, a file, a Zarr group or array of others, Zarr format 2: one line each."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    zarr.create_group(tmp_path / "group")
    zarr.create_array(tmp_path / "array", data=np.arange(3))
    zarr.create_group(tmp_path / "old", zarr_format=2)
    for name, message in (
        ("folder", "no bag store yet"),
        ("file", "not a bag store"),
        ("group", "a Zarr group, but not a bag store"),
        ("array", "not a bag store"),
        ("old", "not a bag store"),
        ("nothing", "not found"),
        ("s.zarr/points", "not a bag store"),
    ):
        with pytest.raises(StoreError, match=f"{name}: {message}"):
            BagStore.open(tmp_path / name)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a.update(format_version=3), "format 3; this version reads 1 and 2"),
        (lambda a: a.pop("format_version"), "format None; this version reads 1 and 2"),
        (lambda a: a.update(format_version=1), "damaged .*responses in format 1"),
        (lambda a: a.pop("response_dims"), "damaged bag store attributes .*response_dims"),
        (lambda a: a.update(response_dims=2), "damaged .*response_box has 3 dimensions"),
        (lambda a: a.update(n_response_points=1.5), "damaged .*n_response_points is 1.5"),
        (lambda a: a.pop("n_bags"), "damaged bag store attributes"),
        (lambda a: a.update(n_points=-1), "damaged bag store attributes .*n_points is -1"),
        (lambda a: a.update(id_kind="uuid"), "damaged bag store attributes .*id_kind is 'uuid'"),
        (
            lambda a: a.update(colour="red"),
            "'colour', which this version .* update",
        ),
        (lambda a: a.clear(), "interrupted; make it again"),
    ],
)
def test_attributes_of_another_format_or_damaged(store, change, message):
    """A store of a future format, or with attributes that make no sense, is not guessed at."""
    edit_attributes(store, change)
    with pytest.raises(StoreError, match=message):
        BagStore.open(store.url)
    with pytest.raises(StoreError, match=message):
        store.append(two_bags(), GOOD)
