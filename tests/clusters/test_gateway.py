"""A real dask-gateway server on loopback, with deploy's config, its local backend and its proxy."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import dask
import pytest

from bagbasis import ClusterError, ConfigError, connect
from tests.clusters.problem import ROOT, assert_same, cores_of_workers, fitted, process
from tests.execution.gated import until
from tests.passes import current_client

pytestmark = pytest.mark.gateway

PASSWORD = "for-this-test"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The server's address."""
    folder = tmp_path_factory.mktemp("gateway")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    beside = Path(sys.executable).parent
    with process(
        str(beside / "dask-gateway-server"),
        "--config",
        str(Path(__file__).with_name("gateway_config.py")),
        log=folder / "log",
        PATH=f"{beside}{os.pathsep}{os.environ['PATH']}",
        BAGBASIS_GATEWAY_CONFIG=str(ROOT / "deploy/gateway/dask_gateway_config.py"),
        BAGBASIS_GATEWAY_ADDRESS=address,
        BAGBASIS_GATEWAY_PASSWORD=PASSWORD,
    ):
        until(lambda: answers(f"http://{address}/api/health"))
        yield f"http://{address}"


def answers(address):
    try:
        return urlopen(address, timeout=1).status == 200
    except (URLError, OSError):
        return False


@pytest.fixture
def profile(tmp_path, server):
    """Writes a profile of two workers, with other keys instead of its own."""

    def write(**keys):
        values = {
            "cluster": "gateway",
            "address": server,
            "auth": "basic",
            "n_workers": 2,
            "min_workers": 2,
            "options": "{worker_cores: 1, worker_memory: 1.5}",
            "timeout": 120,
            **keys,
        }
        path = tmp_path / "gateway.yaml"
        path.write_text("".join(f"{key}: {value}\n" for key, value in values.items()))
        return str(path)

    with password(PASSWORD):
        yield write


def password(value):
    import dask_gateway  # noqa: F401 - its defaults come first

    return dask.config.set({"gateway.auth.kwargs": {"password": value}})


def test_same_model(profile, url, expected):
    """Two workers of the gateway make the model one process makes, over its encrypted proxy."""
    with connect(profile(), store=url) as client:
        assert client.scheduler.address.startswith("gateway://")
        assert_same(fitted(url), expected)
    assert current_client() is None


def test_a_lane_has_the_cores_of_its_worker(profile):
    """deploy's config gives a worker of two cores one thread."""
    options = "{worker_cores: 2, worker_memory: 1.5}"
    with connect(profile(n_workers=1, min_workers=1, options=options)) as client:
        assert list(client.nthreads().values()) == [1]
        assert cores_of_workers(3) == {min(2, len(os.sched_getaffinity(0)))}


def test_refusals(profile):
    """A wrong option, password or address is one line each."""
    with pytest.raises(ConfigError, match=r"key 'options': the gateway .*worker_gpus"):
        connect(profile(options="{worker_gpus: 1}"))
    with pytest.raises(ConfigError, match=r"key 'options': the gateway .*worker_cores"):
        connect(profile(options="{worker_cores: 1000}"))
    unknown = r"does not know the user \(HTTP 401\)"
    with password("wrong"), pytest.raises(ClusterError, match=unknown):
        connect(profile())
    with pytest.raises(ClusterError, match=r"the gateway http://127\.0\.0\.1:1 does not answer"):
        connect(profile(address="http://127.0.0.1:1"))
