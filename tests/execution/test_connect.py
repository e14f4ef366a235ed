"""`connect`: local processes, a scheduler's address, profiles, and what is refused."""

from __future__ import annotations

import os
import socket

import dask
import numpy as np
import pytest
from distributed import LocalCluster

from pipeline import DoubleBasisRegressor, ProjectionEmbedding, RandomFourierFeatures, connect
from pipeline.errors import ClusterError, ConfigError
from pipeline.execution import current_client, lane, map_reduce, map_tasks
from pipeline.execution.connect import Profile, load_profile
from tests.oracles.labelled import labelled_bags, stored

BAGS, Y = labelled_bags(30, most=9)


@pytest.fixture(scope="module")
def scheduler():
    """A scheduler that runs already, on loopback, with one worker of one thread; a task that
    kills its worker is not tried again."""
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalCluster(
            n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
        ) as cluster,
    ):
        yield cluster.scheduler_address


@pytest.fixture
def closed_port():
    """An address on loopback where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        yield f"tcp://127.0.0.1:{probe.getsockname()[1]}"


def profile(path, text):
    path.write_text(text)
    return str(path)


def process_and_cores(task, report):
    with lane() as cores:
        return os.getpid(), cores


def test_address_of_a_scheduler(scheduler, tmp_path):
    """tcp://… runs a fit on workers that were there before, and leaves them there."""
    store = stored(tmp_path / "s.zarr", BAGS, Y)
    model = DoubleBasisRegressor(
        ProjectionEmbedding(n_per_dim=3), RandomFourierFeatures(16), 0.1, precision="float64"
    )
    expected = model.fit(store).predict(BAGS)
    for target in (scheduler, profile(tmp_path / "p.yaml", f"cluster: tcp\naddress: {scheduler}")):
        with connect(target) as client:
            assert current_client() is client
            (_, (pid, cores)), *_ = map_tasks(process_and_cores, [0], sizes=[1])
            assert pid != os.getpid()
            assert cores == 1
            np.testing.assert_allclose(model.fit(store).predict(BAGS), expected, atol=1e-10)
        assert current_client() is None


def die(task, report):
    os._exit(1)


def keep(a, b):
    return a


def test_task_that_kills_its_worker(scheduler):
    """A task that no worker survives is one clear error that says what is likely."""
    with connect(scheduler) as client:
        with pytest.raises(ClusterError, match=r"workers died running one task.*memory"):
            map_reduce(die, [0], keep, sizes=[1])
        client.wait_for_workers(1)
        with pytest.raises(ClusterError, match="workers died running one task"):
            list(map_tasks(die, [0], sizes=[1]))
        client.wait_for_workers(1)
        assert len(dict(map_tasks(process_and_cores, [0, 1], sizes=[1, 1]))) == 2


def test_nobody_answers(closed_port, tmp_path):
    """An address without a scheduler is an error after the profile's timeout, naming it."""
    target = profile(tmp_path / "p.yaml", f"cluster: tcp\naddress: {closed_port}\ntimeout: 0.5")
    with pytest.raises(ClusterError, match=f"no scheduler answers at {closed_port}"):
        connect(target)
    assert current_client() is None


@pytest.mark.parametrize("address", ["foo://x:1", "tcp://", "tcp://127.0.0.1", "tcp://host:port"])
def test_no_address(address):
    """What is not an address is refused without trying to reach it."""
    with pytest.raises(ConfigError, match=f"'{address}' is no scheduler's address"):
        connect(address)


@pytest.mark.parametrize(
    "option", [{"n_workers": 2}, {"cores_per_worker": 1}, {"memory_limit": "1GiB"}]
)
def test_options_of_local_workers(option):
    """Asking for workers of a cluster that has its own is refused, not ignored."""
    with pytest.raises(ConfigError, match=f"{next(iter(option))} is for local workers"):
        connect("tcp://127.0.0.1:1", **option)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cluster: tcp", "needs an address"),
        ("cluster: tcp\nadress: tcp://x", r"p\.yaml: .*adress.*"),
        ("cluster: slurm", r"p\.yaml: .*cluster.*'local' or 'tcp'"),
        ("cluster: local\nn_workers: many", r"p\.yaml: .*n_workers"),
        ("cluster: [", r"p\.yaml: "),
        ("", r"p\.yaml: .*cluster.*required"),
        ("- local", r"p\.yaml: "),
    ],
)
def test_wrong_profile(tmp_path, text, message):
    """A wrong key, value or syntax is one error naming the file and the key."""
    with pytest.raises(ConfigError, match=message):
        connect(profile(tmp_path / "p.yaml", text))


def test_unknown_profile(tmp_path, monkeypatch):
    """A name without a file is an error that lists those there are."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "configs" / "profiles"
    folder.mkdir(parents=True)
    (folder / "mine.yaml").write_text("cluster: local\nn_workers: 3\nmemory_limit: 1GiB\n")
    with pytest.raises(ConfigError, match=r"no cluster profile 'yours' .* there are \['mine'\]"):
        connect("yours")
    with pytest.raises(ConfigError, match=r"no cluster profile 'other\.yaml'"):
        connect("other.yaml")
    assert load_profile("mine") == Profile(cluster="local", n_workers=3, memory_limit="1GiB")


def test_profiles_of_the_repository():
    """The profiles that come with the package are valid, and named by their cluster."""
    assert load_profile("configs/profiles/local.yaml").cluster == "local"
    assert load_profile("configs/profiles/tcp.yaml").address.startswith("tcp://")


def test_without_a_cluster():
    """Nothing is connected unless somebody connects."""
    assert current_client() is None
