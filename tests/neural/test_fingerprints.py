"""A checkpoint is of one training: any other point, label or response makes another fingerprint."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from bagbasis import Bags, BagStore
from bagbasis.neural import examples
from bagbasis.neural.examples import Examples
from tests.oracles.labelled import LabelledBags

RNG = np.random.default_rng(0)
N = 30
BAGS = Bags.from_list([RNG.normal(size=(5, 2)) for _ in range(N)])
LABELS = RNG.normal(size=(N, 1))
ANSWERS = Bags.from_list([RNG.normal(size=(3, 1)) for _ in range(N)])


def fingerprint(data, labels=LABELS, answers=None):
    made = Examples(LabelledBags(data), np.arange(N), labels, 4, 0.2, 0)
    return made.fingerprint("{}", answers)


def changed(bags, at):
    """Bags whose row ``at`` is another one."""
    points = bags.points.copy()
    points[at] += 1
    return Bags(points, bags.offsets)


@pytest.mark.parametrize("at", [0, 74, -1])
def test_of_bags_in_memory(at):
    first = fingerprint(BAGS)
    assert first == fingerprint(Bags(BAGS.points.copy(), BAGS.offsets))
    assert first != fingerprint(changed(BAGS, at))
    assert first != fingerprint(BAGS, changed(Bags(LABELS, np.arange(N + 1)), at % N).points)
    answered = fingerprint(BAGS, None, ANSWERS)
    assert answered != fingerprint(BAGS, None, changed(ANSWERS, at))


@pytest.mark.parametrize("held_bytes", [0, 2**30])
def test_of_a_store_made_anew(tmp_path, monkeypatch, held_bytes):
    """Other bags of the same sizes, or labels, under the same URL; a copy is the same store."""
    monkeypatch.setattr(examples, "HELD_BYTES", held_bytes)
    seen = []
    for bags in (BAGS, changed(BAGS, 74), BAGS):
        store = BagStore.create(tmp_path / "s.zarr", 2, dtype="float64", overwrite=True)
        seen.append(fingerprint(store.append(list(bags))))
    shutil.copytree(tmp_path / "s.zarr", tmp_path / "copy.zarr")
    assert seen[0] != seen[1]
    assert seen[0] == seen[2] == fingerprint(BagStore.open(tmp_path / "copy.zarr"))
