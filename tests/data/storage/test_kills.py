"""Killed before any of its writes, nothing is lost, nothing is mixed, and the next try goes on."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bagbasis import BagStore, DataError, InterruptedStoreError, StoreError, load_model
from bagbasis.data.store.schema import POINTS
from bagbasis.datasets import GMMComponents, generate
from bagbasis.ingest import ingest_arrays
from bagbasis.models import write_predictions
from bagbasis.operations import Registry, retrain
from tests.data.storage.killing import each_kill
from tests.models.predicting import BAGS, N, fitted, read_zarr
from tests.operations.retraining.problems import create, grow, spec

pytestmark = pytest.mark.long

MOST = 4  # writes before which a call dies, the first and the last among them; `make chaos` has all
URL = "s.zarr"
GMM = GMMComponents(n_points=(1, 9), seed=5)
OLD, NEW = np.full((3, 2), 0.25), np.full((2, 2), 0.75)


def make(place: Path) -> None:
    BagStore.create(place / URL, 2, target_names=["y"], chunk_points=1)


def replace(place: Path) -> None:
    BagStore.create(place / URL, 2, overwrite=True)


def append(place: Path) -> None:
    BagStore.open(place / URL).append([NEW], [[2.0]])


def generate_anew(place: Path) -> None:
    generate(GMM, place / URL, n_bags=20)


def generate_over(place: Path) -> None:
    generate(GMM, place / URL, n_bags=20, overwrite=True)


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
        BagStore.create(place / URL, 2, target_names=["y"], chunk_points=1).append(
            [OLD, OLD], [[1.0]] * 2
        )
    for i, what in enumerate(each_kill(act, place, most=MOST)):
        result = n_bags_of(place / URL)
        assert result in allowed, what
        overwrites = act in (replace, generate_over, ingest_over)
        (act if overwrites and (result or i % 2) else again)(place)
        assert n_bags_of(place / URL) == done, what


def remove(place: Path) -> None:
    BagStore.open(place / URL).remove([0])


def compact(place: Path) -> None:
    BagStore.open(place / URL).compact()


def test_a_change_is_whole_or_was_never_made(tmp_path):
    """A kill leaves the store as it was or as it will be, and the same change again finishes it."""
    place = tmp_path / "place"
    place.mkdir()
    made = BagStore.create(place / URL, 2, target_names=["y"], chunk_points=1)
    made.append([OLD, OLD, OLD], [[1.0]] * 3)
    remaining = set()
    for what in each_kill(remove, place, most=MOST):
        store = BagStore.open(place / URL)
        store.verify()
        remaining.add(store.n_removed)
        np.testing.assert_array_equal(store.read(1), [OLD, OLD], what)
        remove(place)
        assert BagStore.open(place / URL).present().tolist() == [False, True, True]
    assert remaining == {0}  # the commit is the last write


def test_a_killed_compaction_is_finished_by_the_next(tmp_path):
    """Whatever is deleted when it dies, the store reads the same, and then all is."""
    place = tmp_path / "place"
    place.mkdir()
    made = BagStore.create(place / URL, 2, target_names=["y"], chunk_points=1)
    made.append([OLD, np.tile(OLD, (14, 1)), NEW], [[1.0]] * 3).remove([1])
    for what in each_kill(compact, place, most=MOST):
        store = BagStore.open(place / URL)
        store.verify()
        np.testing.assert_array_equal(store.read().points, np.concatenate([OLD, NEW]), what)
        compact(place)
        points = store.array(POINTS)[:]
        np.testing.assert_array_equal(np.isnan(points[:, 0]), np.repeat([0, 1, 0], [3, 42, 2]))


# ---------------------------------------------------------------------- models, predictions, rounds


def save(place: Path) -> None:
    fitted("classes").save(place / "m.zarr", overwrite=True)


def predict(place: Path, **options: str) -> None:
    data = BagStore.open(place / URL)
    write_predictions(fitted("classes"), data, place / "p", overwrite=True, **options)


def predict_parquet(place: Path) -> None:
    predict(place, format="parquet")


def register_and_promote(place: Path) -> None:
    registry = Registry(place / "registry")
    registry.promote(registry.register(fitted("classes")))
    registry.rollback()


def retrain_once(place: Path) -> None:
    retrain(spec(place))


def check_model(place: Path) -> None:
    assert load_model(place / "m.zarr").predict(BAGS).shape == (N,)


def check_predictions(place: Path) -> None:
    url = place / "p"
    parquet = not (url / "zarr.json").exists()
    assert len(pd.read_parquet(url) if parquet else read_zarr(url)[0]["predictions"]) == N


def check_registry(place: Path) -> None:
    registry = Registry(place / "registry")
    assert registry.current() in [record.name for record in registry.list()]
    registry.load_current()


WRITERS = {
    save: check_model,
    predict: check_predictions,
    predict_parquet: check_predictions,
    register_and_promote: check_registry,
    retrain_once: check_registry,
}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A store, a model and predictions of it, and a sequence of models with new bags since."""
    place = tmp_path_factory.mktemp("written")
    BagStore.create(place / URL, 2).append(BAGS)
    fitted("one target").save(place / "m.zarr")
    write_predictions(fitted("one target"), BagStore.open(place / URL), place / "p")
    store = grow(create(place / "bags.zarr"), 150)
    retrain(spec(place))
    grow(store, 60)
    return place


@pytest.mark.parametrize("act", WRITERS, ids=lambda act: act.__name__)
def test_there_is_always_a_whole_one(written, tmp_path, act):
    """After a kill the old or the new one is there; a day later the next call leaves no junk."""
    place = tmp_path / "place"
    shutil.copytree(written, place)
    act(place)
    whole = names_below(place)
    shutil.rmtree(place)
    shutil.copytree(written, place)
    for _ in each_kill(act, place, most=MOST):
        WRITERS[act](place)
        for path in [*place.rglob("*")]:
            os.utime(path, (0, 0))
        act(place)
        WRITERS[act](place)
        assert names_below(place) == whole


def names_below(place: Path) -> set[str]:
    """Names of all that is there, but for what a name says of its content or is drawn."""
    names = {path.relative_to(place).as_posix() for path in place.rglob("*")}
    return {re.sub(r"[0-9a-f]{16}\.zarr|-[0-9a-f]{8}\.npz", "-", name) for name in names}
