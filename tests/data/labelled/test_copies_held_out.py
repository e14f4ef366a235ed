"""Copies of fitted bags among the bags held out reveal their labels, and are warned of."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import BagbasisWarning, Bags, BagStore, DoubleBasisRegressor
from bagbasis.data.labelled import leaks
from tests.models.splits import HOLDOUT_SEED, Split
from tests.oracles.labelled import LabelledBags, Targets

_RNG = np.random.default_rng(0)
ARRAYS = [_RNG.normal(size=(n, 2)) for n in _RNG.integers(3, 6, 60)]
Y = _RNG.normal(size=90)
HELD = Split(0.2, HOLDOUT_SEED)


@pytest.mark.parametrize("in_memory", [True, False])
def test_copies_held_out_are_counted_and_named(in_memory, tmp_path):
    arrays, ids = ARRAYS + ARRAYS[:30], [f"p{i}" for i in range(90)]
    out = HELD.members(0, 90)
    pairs = [(i, i + 60) for i in range(30)] + [(i + 60, i) for i in range(30)]
    copies = sorted((held, fitted) for held, fitted in pairs if out[held] and not out[fitted])
    assert 2 < len(copies) < out.sum()
    X, y = arrays, Y
    if not in_memory:
        X, y = BagStore.create(tmp_path / "s.zarr", 2, target_names=["y"], dtype="float64"), None
        X.append(arrays, targets={"y": Y}, ids=ids)
    named = " and ".join(repr(i if in_memory else ids[i]) for i in copies[0])
    message = f"{len(copies)} of {out.sum()} bags held out have the same .*such as {named}: "
    with pytest.warns(BagbasisWarning, match=message):
        DoubleBasisRegressor("moments").fit(X, y, holdout=0.2)


@pytest.mark.parametrize(
    "arrays",
    [
        [*ARRAYS],
        [points[:1] for points in ARRAYS + ARRAYS],
        [np.ones((3, 2))] * 90,
        [*ARRAYS[:15]] * 6,  # most of them repeat, as counts do
        [*ARRAYS, *(np.vstack([a[:1], a[1:-1] + 1, a[-1:]]) for a in ARRAYS)],  # the ends agree
    ],
    ids=["different", "of one point", "constant", "few values", "alike"],
)
def test_bags_that_tell_nothing_are_not_warned_of(arrays, warned):
    bags = LabelledBags(Bags.from_list(arrays), Targets((), np.ones((len(arrays), 1))))
    leaks.warn_of_copies_held_out(bags, HELD)
    assert not warned.text


def test_large_data_are_not_read_again(monkeypatch, warned):
    bags = LabelledBags(Bags.from_list(ARRAYS + ARRAYS), Targets((), np.ones((120, 1))))
    leaks.warn_of_copies_held_out(bags, HELD)
    assert "have the same points" in warned.text
    warned.clear()
    monkeypatch.setattr(leaks, "MAX_COMPARED", 100)
    leaks.warn_of_copies_held_out(bags, HELD)
    assert not warned.text
