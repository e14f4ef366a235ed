"""Killed before any of its writes, nothing is lost, nothing is mixed, and the next try goes on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bagbasis.bags import BagStore
from bagbasis.datasets import GMMComponents, generate
from bagbasis.errors import DataError, InterruptedStoreError, StoreError
from bagbasis.ingest.arrays import ingest_arrays
from tests.storage.killing import each_kill

URL = "s.zarr"
GMM = GMMComponents(n_points=(1, 9), seed=5)
OLD, NEW = np.full((3, 2), 0.25), np.full((2, 2), 0.75)


def make(place: Path) -> None:
    BagStore.create(place / URL, 2, ["y"], chunk_points=1)


def replace(place: Path) -> None:
    BagStore.create(place / URL, 2, overwrite=True)


def append(place: Path) -> None:
    BagStore.open(place / URL).append([NEW], [[2.0]])


def generate_anew(place: Path) -> None:
    generate(GMM, place / URL, 20)


def generate_over(place: Path) -> None:
    generate(GMM, place / URL, 20, overwrite=True)


def ingest_anew(place: Path) -> None:
    ingest_arrays([NEW, NEW], place / URL)


def ingest_over(place: Path) -> None:
    ingest_arrays([NEW, NEW], place / URL, overwrite=True)


def ingest_in_vain(place: Path) -> None:
    with pytest.raises(DataError, match="bag with id 1"):
        ingest_arrays([NEW, NEW * np.nan], place / URL)


# what is done, the numbers of bags that a kill may leave and that are there at last, and what goes
# on without overwrite where no whole store was left
CASES = {
    make: ({None}, 0, make),
    append: ({2}, 3, append),
    replace: ({2, None}, 0, make),
    generate_anew: ({None, 0}, 20, generate_anew),
    generate_over: ({2, None, 0}, 20, generate_anew),
    ingest_anew: ({None, 0}, 2, ingest_anew),
    ingest_over: ({2, None, 0}, 2, ingest_anew),
    ingest_in_vain: ({None, 0}, 2, ingest_anew),
}


def n_bags_of(url: Path) -> int | None:
    """Return the number of bags of a whole store; None where there is none, or half of one."""
    try:
        store = BagStore.open(url)
    except InterruptedStoreError:
        return None
    except StoreError as error:
        if "not found" in str(error):
            return None
        raise
    store.verify()
    return store.n_bags


@pytest.mark.parametrize("act", CASES, ids=lambda act: act.__name__)
def test_a_store_is_whole_or_made_again(tmp_path, act):
    """A kill leaves the old store, the new one, or what says that it is none; all goes on."""
    allowed, done, again = CASES[act]
    place = tmp_path / "place"
    place.mkdir()
    if 2 in allowed:
        BagStore.create(place / URL, 2, ["y"], chunk_points=1).append([OLD, OLD], [[1.0]] * 2)
    for i, what in enumerate(each_kill(act, place, most=12)):
        found = n_bags_of(place / URL)
        assert found in allowed, what
        overwrites = act in (replace, generate_over, ingest_over)
        (act if overwrites and (found or i % 2) else again)(place)
        assert n_bags_of(place / URL) == done, what
