"""Conjugate gradients on real workers: the same bits when one is killed between steps."""

from __future__ import annotations

import os

import numpy as np
import pytest

from bagbasis import (
    BagStore,
    DoubleBasisRegressor,
    ProjectionEmbedding,
    RandomFourierFeatures,
    connect,
)
from bagbasis.execution.affinity import WorkerAffinity
from bagbasis.models.fitting import feature_rows
from tests.data.store.processes import loaded
from tests.execution.gated import kill
from tests.oracles.labelled import labelled_bags, stored
from tests.passes import pass_limits, use_cores

ALPHAS = 0.1, "validation"


class KillingProgress:
    """Kills a worker after the second step; counts the steps."""

    def __init__(self, cluster):
        self.cluster, self.n_steps = cluster, 0

    def __call__(self, done, total):
        pass

    def note(self, text):
        self.n_steps += 1
        assert "objective" in text
        if self.n_steps == 2:
            self.kill_one()

    def kill_one(self):
        while True:
            try:
                return kill(min(self.cluster.run(os.getpid).values()))
            except ProcessLookupError:  # it was being replaced: ask who is there now
                continue


def _n_kept(dask_worker):
    return len(feature_rows.KEPT_ROWS)


def fit(store, alpha, progress=None):
    bases = ProjectionEmbedding(n_per_dim=4), RandomFourierFeatures(n_features=48)
    model = DoubleBasisRegressor(*bases, alpha=alpha, solver="cg", precision="float64")
    return model.fit(store, progress=progress)


def numbers(model):
    """Return coefficients and scores of penalties, NaN for none."""
    return model.coef_, np.asarray(model.alpha_scores_, dtype=float)


def fit_alone(url, alphas):
    """Fit without a cluster, with one core; what was found, per penalty."""
    with pass_limits(small_task_seconds=1e-9, small_tasks=16), use_cores(1):
        return [numbers(fit(BagStore.open(url), alpha)) for alpha in alphas]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    bags, y = labelled_bags(120, most=20)
    return stored(tmp_path_factory.mktemp("kernels") / "s.zarr", bags, y)


@pytest.fixture(scope="module")
def alone(store):
    """What one process finds, per penalty; all kernels are compiled before."""
    return dict(zip(ALPHAS, loaded(fit_alone, store.url, ALPHAS), strict=True))


@pytest.fixture(scope="module")
def cluster(alone):
    """Two workers of one core each, and passes of 16 tasks."""
    with (
        pass_limits(small_task_seconds=1e-9, small_tasks=16),
        connect("local", n_workers=2, cores_per_worker=1) as client,
    ):
        yield client


@pytest.mark.long
@pytest.mark.parametrize("alpha", ALPHAS)
def test_a_worker_is_killed_between_steps(cluster, alpha, store, alone):
    """The model has the bits of one process, and workers keep nothing when the fit has ended."""
    whole = fit(store, alpha)
    assert set(cluster.run(_n_kept).values()) == {0}
    progress = KillingProgress(cluster)
    killed = fit(store, alpha, progress)
    assert progress.n_steps > 2
    for other in (numbers(killed), alone[alpha]):
        for ours, expected in zip(other, numbers(whole), strict=True):
            np.testing.assert_array_equal(ours, expected)


def test_tasks_stay_where_their_rows_are(monkeypatch):
    """An even share per worker, again and again; no more tasks move than have to."""
    preferred_workers, workers = WorkerAffinity(), ["a", "b"]
    monkeypatch.setattr("bagbasis.execution.affinity.addresses", lambda: workers)
    before = preferred_workers(16)
    assert (before.count("a"), before.count("b")) == (8, 8)
    assert preferred_workers(16) == before
    for workers, n_moved in ((["b"], 8), (["b", "c"], 8), (["b", "c", "d"], 4), ([], 16)):
        after = preferred_workers(16)
        assert set(after) == set(workers)
        if workers:
            assert sum(a != b for a, b in zip(before, after, strict=True)) == n_moved
            assert max(map(after.count, workers)) == -(-16 // len(workers))
            before = after
