"""One fit, for every kind of cluster: what each must make of it, and tasks that can be held."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from bagbasis import DoubleBasisRegressor, ProjectionEmbedding, RandomFourierFeatures
from tests.execution.gated import Gate
from tests.oracles.labelled import LabelledBags, labelled, labelled_bags, stored
from tests.passes import kernel_threads, map_tasks, pass_limits

ROOT = Path(__file__).parents[2]
BAGS, Y = labelled_bags(160, most=40)
N_TASKS = 24


class HeldBags(LabelledBags):
    """A store's bags; every task stands before the gate next to the store first."""

    def batches(self, *bag_range, **limits):
        Gate(f"{self.url}.gate").wait()
        yield from super().batches(*bag_range, **limits)


def fitted(url, *, held=False):
    """The model of the store, by tasks that wait at the gate if they are held."""
    store = stored(url, BAGS, Y) if not Path(url).exists() else _opened(url)
    bags = labelled(store, kind=HeldBags if held else LabelledBags)
    model = DoubleBasisRegressor(
        ProjectionEmbedding(n_per_dim=4),
        RandomFourierFeatures(n_features=64),
        alpha="validation",
        precision="float64",
    )
    with pass_limits(small_task_seconds=1e-9, small_tasks=N_TASKS):
        return model.fit(bags, holdout=0.1)


def _opened(url):
    from bagbasis import BagStore

    return BagStore.open(url)


def assert_same(model, expected):
    """The same model to 1e-12, of the same bags."""
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=0, atol=1e-12)
    np.testing.assert_allclose(model.intercept_, expected.intercept_, rtol=0, atol=1e-12)
    assert model.alpha_ == expected.alpha_
    for count in ("n_bags_fitted", "n_points_seen"):
        assert model.report_[count] == expected.report_[count]


def cores_of_workers(n):
    """The cores of the workers that ``n`` tasks ran on."""
    return {cores for _, cores in map_tasks(_cores, list(range(n)), sizes=[1] * n)}


def _cores(task, report):
    with kernel_threads() as cores:
        return cores


@contextmanager
def process(*command: str, log: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process in the repository, its output in a file; ended with the block."""
    with open(log, "wb") as file:
        running = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        yield running
    finally:
        running.terminate()
        try:
            running.wait(20)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()
