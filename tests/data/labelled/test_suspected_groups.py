"""Signs that bags come in groups: recurring classes of a column, ids with one beginning."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import BagStore
from bagbasis.data.labelled.holdout import Holdout
from bagbasis.data.labelled.suspected_groups import suspect_groups

N = 120
DAYS = [f"2026-01-{1 + i // 4:02}" for i in range(N)]
PLACES = [f"{day}_{i % 4}" for i, day in enumerate(DAYS)]


def stored(folder, ids, **columns):
    names = ["y", *columns]
    classes = {name: sorted(set(values)) for name, values in columns.items()}
    store = BagStore.create(folder / "s.zarr", 1, target_names=names, class_names=classes)
    y = np.random.default_rng(0).random(N)
    return store.append([[[0.5]]] * N, targets={"y": y, **columns}, ids=ids)


def test_a_column_whose_values_recur(tmp_path):
    store = stored(tmp_path, None, day=DAYS)
    message = suspect_groups(store, ["y"], Holdout.of(0.2))
    assert "120 bags have 30 values of 'day'" in message
    assert "groups: day}" in message
    for known in ({"fraction": 0.2, "groups": "day"}, {"groups": "day"}, {"after": 3, "time": "y"}):
        assert suspect_groups(store, ["y"], Holdout.of(known)) is None
    assert suspect_groups(store, ["day"], Holdout.of(0.2)) is None, "it is what is learnt"


def test_ids_with_one_beginning(tmp_path):
    message = suspect_groups(stored(tmp_path, PLACES), ["y"], Holdout.of(0.2))
    assert "ids of 120 bags have 30 beginnings, as '2026-01-01'" in message


@pytest.mark.parametrize(
    "ids",
    [None, [f"bag-{i:03}" for i in range(N)], [f"{i}_x" for i in range(N)], np.arange(N) + 7],
    ids=["none", "one beginning", "all apart", "numbers"],
)
def test_no_sign(tmp_path, ids):
    """A few classes, a class of each bag, and ids that are counted are none."""
    kinds = {"side": ["left", "right"] * (N // 2), "name": [f"n{i}" for i in range(N)]}
    assert suspect_groups(stored(tmp_path, ids, **kinds), ["y"], Holdout.of(0.2)) is None
