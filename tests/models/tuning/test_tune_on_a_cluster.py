"""Real worker processes: the same scores, coefficients cached once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bagbasis.models import tune
from tests.models.tuning.problems import (
    BAGS,
    SEARCH,
    Y,
    density_estimator,
    errors_of,
    estimator,
    kept_blocks,
    stored_pairs,
)
from tests.oracles.labelled import stored
from tests.passes import pass_limits
from tests.workers import two_workers

pytestmark = pytest.mark.long
# two scales share the coefficients
FEWER = replace(SEARCH, embeddings=SEARCH.embeddings[1:], scale_multipliers=(1.0, 50.0))


def test_two_workers_find_what_one_process_finds(tmp_path):
    """Scores, winner and model are those of one process, and all blocks are in the caches: of
    targets and of densities."""
    problems = [
        (stored(tmp_path / "targets.zarr", BAGS, Y), estimator()),
        (stored_pairs(tmp_path / "pairs.zarr"), density_estimator()),
    ]
    with pass_limits(small_task_seconds=1e-9):
        alone = [tuned(*problem, tmp_path / "alone") for problem in problems]
        with two_workers():
            shared = [tuned(*problem, tmp_path / "shared") for problem in problems]
    for (ours, our_blocks), (truth, blocks) in zip(shared, alone, strict=True):
        check(ours, truth)
        assert our_blocks == blocks
        assert all(len(names) == truth.rungs[-1].n_blocks for names in blocks)


def tuned(store, base, folder):
    """A tune, and the blocks of coefficients and of targets that it leaves."""
    cache = folder / Path(store.url).stem
    result = tune(base, store, search=FEWER, checkpoints=cache, keep_cache=True)
    return result, [
        [block.relative_to(cache) for block in kept_blocks(cache, dtype)]
        for dtype in ("float32", "float64")
    ]


def check(shared, alone):
    """The same up to the order of sums."""
    assert shared.rungs == alone.rungs
    assert shared.candidates == alone.candidates
    for ours, truth in zip(errors_of(shared), errors_of(alone), strict=True):
        assert ours.keys() == truth.keys()
        for c in ours:
            np.testing.assert_allclose(ours[c], truth[c], rtol=1e-6)
    assert shared.winner == alone.winner
    np.testing.assert_allclose(shared.model.coef_, alone.model.coef_, rtol=1e-6, atol=1e-9)
