"""Bags that are removed or relabelled between rounds: the model is that of a fit without them."""

from __future__ import annotations

import tempfile
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from bagbasis import BagStore, StoreError, merge_stores
from bagbasis.operations import Window, retrain
from tests.operations.retraining.problems import (
    TASKS,
    count_embedded,
    create,
    difference,
    from_scratch,
    grow,
    model_of,
    retrain_grown,
    spec,
)

STEPS = st.lists(
    st.tuples(st.sampled_from(["append", "remove", "relabel"]), st.integers(1, 25)),
    min_size=1,
    max_size=3,
)


def change(store: BagStore, task: str, action: str, n: int) -> BagStore:
    """Append, remove or relabel n bags, chosen by what is in the store already."""
    rng = np.random.default_rng([store.n_bags, store.meta.n_changes])
    if action == "append":
        return grow(store, n, task)
    rows = rng.choice(np.flatnonzero(store.present()), n, replace=False)
    if action == "remove" or task == "densities":
        return store.remove(rows)
    new = rng.integers(0, 3, n) if task == "classification" else rng.normal(size=n)
    return store.relabel("y", dict(zip(rows.tolist(), new.tolist(), strict=True)))


@pytest.mark.long
@pytest.mark.parametrize("task", TASKS)
@settings(max_examples=3, suppress_health_check=list(HealthCheck))
@given(rounds=st.lists(STEPS, min_size=1, max_size=3), recompute_every=st.sampled_from([2, 30]))
def test_models_are_those_of_fits_to_what_is_there_now(task, rounds, recompute_every):
    """Whatever is appended, removed and relabelled between rounds; the check of sums finds none
    corrupt."""
    with tempfile.TemporaryDirectory() as folder:
        store = grow(create(f"{folder}/bags.zarr", task), 150, task)
        made = spec(folder, task, recompute_every=recompute_every)
        retrain(made)
        for steps in rounds:
            for action, n in steps:
                change(store, task, action, n)
            report = retrain(made).report
            model, fit = model_of(made, report), from_scratch(store, task)
            assert difference(model, fit) < 1e-8
            assert model.report_["n_bags_fitted"] == fit.report_["n_bags_fitted"]
            assert not report["corrupt"]
            assert retrain(made).decision == "nothing"


@pytest.mark.long
@pytest.mark.parametrize("width", [100, 130])
def test_changes_of_bags_that_leave_the_window(tmp_path, width):
    """Bags are subtracted as they are now, once they were followed; others never counted again."""
    store, made = grow(create(tmp_path / "bags.zarr"), 150), spec(tmp_path, window=Window(width))
    retrain(made)
    store.remove([0, 50, 60, 149]).relabel("y", {1: 3.0, 55: -3.0, 100: 1.0})
    report = retrain_grown(made, store, 10)
    assert report["n_changed"] == sum(i >= 150 - width for i in (0, 50, 60, 149, 1, 55, 100))
    assert "recomputation" not in report["bag_passes"]
    fit = from_scratch(store.remove(range(160 - width)))  # of the window alone
    assert difference(model_of(made, report), fit) < 1e-8


@pytest.mark.long
def test_a_removal_costs_its_own_bags(tmp_path, monkeypatch):
    """Three of 600 bags are embedded once as they were; what is left judges."""
    store, made = grow(create(tmp_path / "bags.zarr"), 600), spec(tmp_path)
    retrain(made)
    store.remove([3, 300, 599])
    counted = count_embedded(monkeypatch)
    report = retrain(made).report
    assert sum(counted) <= 3 + 2 * 40
    assert report["bag_passes"]["changed"] == 6
    assert report["n_new"] == 0
    assert difference(model_of(made, report), from_scratch(store)) < 1e-8


@pytest.mark.long
def test_most_bags_removed(tmp_path):
    """Where little would be left of the sums they are counted again."""
    store, made = grow(create(tmp_path / "bags.zarr"), 200), spec(tmp_path)
    retrain(made)
    store.remove(range(10, 190))
    report = retrain(made).report
    assert report["recomputed"] == "most bags were changed"
    assert difference(model_of(made, report), from_scratch(store)) < 1e-8


@pytest.mark.long
def test_new_labels_may_be_of_a_new_class(tmp_path):
    """A class that relabelled bags alone have begins a new sequence."""
    store, made = create(tmp_path / "bags.zarr"), spec(tmp_path, "classification")
    grow(store, 150, "classification")
    retrain(made)
    store.relabel("y", dict.fromkeys(range(20), 7.0))
    report = retrain(made).report
    assert report["new_sequence"] == "new classes: 7"
    assert difference(model_of(made, report), from_scratch(store, "classification")) < 1e-8


def test_a_store_with_fewer_changes_is_another(tmp_path):
    """A copy from before a removal in the store's place is refused."""
    store, made = grow(create(tmp_path / "bags.zarr"), 150), spec(tmp_path)
    store.remove([5])
    retrain(made)
    fresh = BagStore.create(store.url, 2, target_names=["y"], dtype=np.float64, overwrite=True)
    grow(fresh, 150)
    with pytest.raises(StoreError, match="it has 0 changes of bags, 1 were seen"):
        retrain(made)


@pytest.mark.long
def test_deleted_points_are_not_subtracted(tmp_path):
    """Bags of the sums that were removed and compacted: all bags are counted again."""
    store, made = grow(create(tmp_path / "bags.zarr"), 200), spec(tmp_path)
    retrain(made)
    store.remove([7, 8]).compact()
    report = retrain(made).report
    assert "cannot be subtracted" in report["recomputed"]
    assert difference(model_of(made, report), from_scratch(store)) < 1e-8
    store.remove([9])
    report = retrain(made).report
    assert report["recomputed"] is None
    assert difference(model_of(made, report), from_scratch(store.compact())) < 1e-8


def test_a_merged_store_is_another(tmp_path):
    """Its first bags may have the same ids and sizes, and other labels than the sums have seen."""
    store, made = grow(create(tmp_path / "bags.zarr"), 150), spec(tmp_path)
    retrain(made)
    merge_stores([store.relabel("y", {3: 9.0})], tmp_path / "merged.zarr")
    with pytest.raises(StoreError, match=r"its merged is .*, it was None"):
        retrain(replace(made, data_url=str(tmp_path / "merged.zarr")))
