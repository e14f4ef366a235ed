"""Real worker processes: the same scores, coefficients cached once."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pipeline import connect
from pipeline.regression import accumulate as accumulation
from pipeline.tuning import tune
from tests.oracles.labelled import stored
from tests.tuning.problems import BAGS, SEARCH, Y, errors_of, estimator


def test_two_workers_find_what_one_process_finds(tmp_path, monkeypatch):
    """Scores, winner and model are those of one process, and all blocks are in the cache."""
    monkeypatch.setattr(accumulation, "SMALL_TASK_SECONDS", 1e-9)
    store = stored(tmp_path / "s.zarr", BAGS, Y)
    alone = tune(store, estimator(), SEARCH, cache_url=tmp_path / "alone", keep_cache=True)
    with connect("local", n_workers=2, cores_per_worker=1):
        shared = tune(store, estimator(), SEARCH, cache_url=tmp_path / "shared", keep_cache=True)
    assert shared.rungs == alone.rungs
    assert shared.candidates == alone.candidates
    for ours, truth in zip(errors_of(shared), errors_of(alone), strict=True):
        assert ours.keys() == truth.keys()
        for c in ours:
            np.testing.assert_allclose(ours[c], truth[c], rtol=1e-6)
    assert shared.winner == alone.winner
    np.testing.assert_allclose(shared.model.coef_, alone.model.coef_, rtol=1e-6, atol=1e-9)
    kept = [
        sorted(p.name + p.parent.name for p in Path(tmp_path / name).glob("*/coefficients/c/*/0"))
        for name in ("alone", "shared")
    ]
    assert kept[0] == kept[1]
    assert len(kept[0]) == alone.rungs[-1].n_blocks
