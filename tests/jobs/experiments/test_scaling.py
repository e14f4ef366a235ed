"""How a fit scales, at small scale: flat memory over bags, small graphs, and tables of both."""

from __future__ import annotations

import pickle

import numpy as np
import psutil
import pytest

from bagbasis.core.errors import ParameterError
from bagbasis.execution.tasks import current_client
from bagbasis.jobs.experiments.speed import (
    scaling_measures,
)
from bagbasis.jobs.experiments.speed.scaling_measures import Size, cpu_seconds, random_store
from bagbasis.jobs.experiments.speed.simulated_cluster import PROCESSES, simulated_cluster
from tests.jobs.experiments.contract import make

SMALL = make("scaling").settings
MIDDLE = SMALL.middle


@pytest.mark.long
def test_simulated_workers_are_many_and_end():
    """The scheduler knows each by an address of its own; after the block no process is left."""
    with simulated_cluster(7) as (scheduler, bare):
        everything = psutil.Process().children(recursive=True)
        processes = [each for each in everything if simulated_cluster.__module__ in each.cmdline()]
        assert len(processes) == 1 + PROCESSES
        addresses = current_client().scheduler_info(n_workers=-1)["workers"]
        assert len(addresses) == 7
        assert all(address.startswith("tls://127.0.0.1:") for address in addresses)
        assert len({worker["id"] for worker in addresses.values()}) == 7
        assert scheduler in processes
        assert bare > 2**24
    assert not psutil.wait_procs(processes, timeout=60)[1]


def test_store_has_the_size_and_is_deleted(tmp_path, monkeypatch):
    """As many bags, points and dimensions as were asked for, written in parts; none is left."""
    monkeypatch.setattr(scaling_measures, "POINTS_PER_WRITE", 2**11)
    with random_store(Size(N=7, D=4, n=2**10, d=1, s=4), 0, tmp_path) as store:
        assert (store.n_bags, store.n_points, store.n_dims) == (7, 7 * 2**10, 1)
    assert list(tmp_path.iterdir()) == []


def test_size_is_a_tensor_product():
    """s that is no power is refused; features have D and s; sizes travel."""
    assert Size(N=1, D=8, n=1, d=3, s=64).features().embedding.n_features == 64
    assert pickle.loads(pickle.dumps(MIDDLE)) == MIDDLE
    with pytest.raises(ParameterError, match="d = 2"):
        _ = Size(N=1, D=8, n=1, d=2, s=5).n_per_dim


def test_least_seconds(monkeypatch):
    """Of all rounds the one with the least CPU seconds counts."""
    clock = iter([0.0, 3.0, 10.0, 11.0, 20.0, 22.0])
    monkeypatch.setattr("time.process_time", lambda: next(clock))
    assert cpu_seconds(lambda: None, 3) == 1.0


@pytest.mark.parametrize("scale", ["small", "paper"])
def test_middle_is_on_every_ladder(scale):
    """So that every panel goes through the same point."""
    s = make("scaling", scale=scale).settings
    for name, values in s.ladders.items():
        assert getattr(s.middle, name) in values
        assert np.all([s.middle.but(**{name: v}).n_per_dim for v in values])
    assert s.middle.D in s.graph_features
