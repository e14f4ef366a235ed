"""`connect`: local processes, a scheduler's address, profiles, and what is refused."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace

import dask
import numpy as np
import pytest
from distributed import LocalCluster
from distributed.comm import CommClosedError
from distributed.core import Status

from bagbasis import (
    ClusterError,
    ConfigError,
    DoubleBasisRegressor,
    ProjectionEmbedding,
    RandomFourierFeatures,
    StoreError,
    connect,
)
from bagbasis.execution.clusters import cluster_checks
from bagbasis.execution.clusters.cluster_checks import check_store, check_versions
from bagbasis.execution.clusters.profiles import LocalProfile, load_profile, walltime_seconds
from bagbasis.execution.clusters.tls import check_address
from bagbasis.execution.tasks import map_reduce
from tests.data.storage.objects import among_objects
from tests.execution.gated import until
from tests.oracles.labelled import labelled_bags, stored
from tests.passes import current_client, kernel_threads, map_tasks

BAGS, Y = labelled_bags(30, most=9)
ROOT = Path(__file__).parents[2]

TLS = "cluster: tcp\naddress: tcp://h:1\ntls_ca_file: a"
SLURM = "cluster: slurm\nn_workers: 2\ncores_per_worker: 1\nmemory_limit: 1GiB"


@pytest.fixture(scope="module")
def cluster():
    """A scheduler that runs already, on loopback, with one worker of one thread; a task that
    kills its worker is not tried again."""
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalCluster(
            n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
        ) as cluster,
    ):
        yield cluster


@pytest.fixture
def scheduler(cluster):
    return cluster.scheduler_address


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
    with kernel_threads() as cores:
        return os.getpid(), cores


@pytest.mark.long
def test_address_of_a_scheduler(scheduler, tmp_path):
    """tcp://… runs a fit on workers that were there before, and leaves them there."""
    store = stored(tmp_path / "s.zarr", BAGS, Y)
    model = DoubleBasisRegressor(
        ProjectionEmbedding(n_per_dim=3),
        RandomFourierFeatures(n_features=16),
        alpha=0.1,
        precision="float64",
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


@pytest.mark.long
def test_task_that_kills_its_worker(cluster):
    """A task that no worker survives is one clear error that says what is likely."""

    def settle():
        """A nanny that has not yet seen its worker start does not start it again."""
        client.wait_for_workers(1)
        until(lambda: all(nanny.status == Status.running for nanny in cluster.workers.values()))

    with connect(cluster.scheduler_address) as client:
        settle()
        with pytest.raises(ClusterError, match=r"workers died running one task.*memory"):
            map_reduce(die, [0], keep, sizes=[1])
        settle()
        with pytest.raises(ClusterError, match="workers died running one task"):
            list(map_tasks(die, [0], sizes=[1]))
        settle()
        assert len(dict(map_tasks(process_and_cores, [0, 1], sizes=[1, 1]))) == 2


def test_nobody_answers(closed_port, tmp_path):
    """An address without a scheduler is an error after the profile's timeout, naming it."""
    target = profile(tmp_path / "p.yaml", f"cluster: tcp\naddress: {closed_port}\ntimeout: 0.5")
    with pytest.raises(ClusterError, match=f"no scheduler answers at {closed_port}"):
        connect(target)
    assert current_client() is None


def test_somebody_else_answers():
    """What a server of another protocol says is not a size of a message to make room for."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            with server.accept()[0] as peer:
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
                peer.recv(1)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(ClusterError, match="no scheduler answers at tcp"):
            connect(f"tcp://127.0.0.1:{server.getsockname()[1]}")
        thread.join()
    assert current_client() is None


@pytest.mark.parametrize("host", ["10.0.0.1", "scheduler"])
def test_address_that_is_not_encrypted(host, tmp_path):
    """Beyond loopback a tcp:// address is refused, until somebody writes that it is insecure."""
    address = f"tcp://{host}:9"
    path = tmp_path / "p.yaml"
    for target in (address, profile(path, f"cluster: tcp\naddress: {address}")):
        with pytest.raises(ConfigError, match=rf"{address} is not encrypted.*insecure: true"):
            connect(target)
    profile(path, "cluster: tcp\naddress: tcp://0.0.0.0:9\ninsecure: true\ntimeout: 0.1")
    with pytest.raises(ClusterError, match="no scheduler answers at tcp"):
        connect(str(path))
    for closed in (f"tls://{host}:9", "tcp://127.0.0.2:9", "tcp://[::1]:9", "tcp://localhost:9"):
        check_address(closed, insecure=False)


@pytest.mark.parametrize("address", ["foo://x:1", "tcp://", "tcp://127.0.0.1", "tcp://host:port"])
def test_no_address(address):
    """What is not an address is refused without trying to reach it."""
    with pytest.raises(ConfigError, match=f"'{address}' is not the address of a scheduler"):
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
        ("cluster: tcp", "missing key 'address'"),
        ("cluster: tcp\nadress: tcp://x", "unknown key 'adress' .did you mean 'address'.*"),
        ("cluster: slrum", "key 'cluster' is 'slrum'; expected 'local', 'tcp', 'slurm', 'pbs'"),
        ("cluster: local\nn_workers: 0", "key 'n_workers' is 0; expected an integer >= 1"),
        ("cluster: local\nmemory_limit: 3 cows", "key 'memory_limit': '3 cows' is not a size"),
        ("cluster: local\naddress: tcp://x", "unknown key 'address'; the keys here are cluster"),
        ("cluster: [", "not valid YAML"),
        ("n_workers: 2", "missing key 'cluster'; expected 'local'"),
        ("", "expected 'key: value' lines"),
        ("- local", "expected 'key: value' lines"),
        (TLS, "tls_cert and tls_key missing"),
        (f"{TLS}\ntls_cert: b\ntls_key: c", "address 'tcp://h:1' with TLS files; expected tls://"),
        (f"{SLURM}\nwalltime: 90", "key 'walltime' is 90; expected a string"),
        (f"{SLURM}\nwalltime: '1:30'", "key 'walltime': '1:30' is not a walltime"),
        (f"{SLURM}\nwalltime: '00:00:30'", "key 'walltime': '00:00:30' is less than a minute"),
        (f"{SLURM}\nwalltime: '01:00:00'\nmin_workers: 3", "min_workers is 3, n_workers is 2"),
        (SLURM, "missing key 'walltime'"),
        (
            "cluster: gateway\nn_workers: 1\naddress: http://h:1",
            "address 'http://h:1'; expected https://",
        ),
        ("cluster: kubernetes\ncluster_spec: x", "missing keys 'tls_ca_file', 'tls_cert'"),
    ],
)
def test_wrong_profile(tmp_path, text, message):
    """A wrong key, value or syntax is one line naming the file and the key."""
    with pytest.raises(ConfigError, match=rf"p\.yaml: {message}") as caught:
        connect(profile(tmp_path / "p.yaml", text))
    assert "\n" not in str(caught.value)


def test_unknown_profile(tmp_path, monkeypatch):
    """A name without a file is an error that lists those there are."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "configs" / "profiles"
    folder.mkdir(parents=True)
    (folder / "mine.yaml").write_text("cluster: local\nn_workers: 3\nmemory_limit: 1GiB\n")
    with pytest.raises(
        ConfigError, match=r"no cluster profile 'yours' .* there are \[.*'mine', 's"
    ):
        connect("yours")
    with pytest.raises(ConfigError, match=r"no cluster profile 'other\.yaml'"):
        connect("other.yaml")
    assert load_profile("mine") == LocalProfile(n_workers=3, memory_limit="1GiB")


def test_profiles_of_the_repository():
    """The profiles that come with the package are valid, and named by their cluster."""
    paths = sorted(Path("configs/profiles").glob("*.yaml"))
    assert len(paths) == 5
    for path in paths:
        assert load_profile(str(path)).cluster == path.stem


@pytest.mark.parametrize(
    ("text", "seconds"), [("00:01:00", 60), ("30:00:01", 108001), ("2-01:00:00", 176400)]
)
def test_walltimes(text, seconds):
    """Walltimes are read as SLURM and PBS read them."""
    assert walltime_seconds(text) == seconds


def test_package_that_is_not_installed(tmp_path, monkeypatch):
    """A profile whose package is missing is one line that says what to install."""
    monkeypatch.setitem(sys.modules, "bagbasis.execution.clusters.job_queue", None)
    path = profile(tmp_path / "p.yaml", f"{SLURM}\nwalltime: '01:00:00'")
    with pytest.raises(ConfigError, match=r"slurm profile needs pip install 'bagbasis\[slurm\]'"):
        connect(path)


@contextmanager
def started(*options, **environment):
    """A process of Dask's command line; killed at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dask", *options, "--dashboard-address", "127.0.0.1:0"],
        cwd="/",
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.kill()
        process.wait()


@contextmanager
def empty_scheduler(tmp_path, **environment):
    """The address of a scheduler without workers."""
    file = tmp_path / "scheduler.json"
    options = ["--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file)]
    with started("scheduler", *options, **environment):
        until(file.exists)
        until(lambda: file.read_text())
        yield json.loads(file.read_text())["address"]


def one_worker(address, **environment):
    return started("worker", address, "--nthreads", "1", "--host", "127.0.0.1", **environment)


def installed(folder, package, version):
    """What to put in a process's environment to make it say it has that version."""
    info = folder / f"{package}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    return {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}


@pytest.mark.long
def test_workers_that_do_not_come(tmp_path):
    """A scheduler without workers is one line after the profile's timeout; progress is told."""
    seen = []
    with empty_scheduler(tmp_path) as address:
        path = profile(tmp_path / "p.yaml", f"cluster: tcp\naddress: {address}\ntimeout: 1")
        message = r"0 of at least 1 workers came within 1 s; start workers \(dask worker tcp://"
        with pytest.raises(ClusterError, match=message):
            connect(path, progress=lambda *now: seen.append(now))
        assert set(seen) == {(0, 1)}
        assert current_client() is None
        with one_worker(address), connect(address, progress=lambda *now: seen.append(now)):
            assert seen[-1] == (1, 1)


@pytest.mark.long
def test_scheduler_that_ends_meanwhile(tmp_path):
    """A scheduler that ends while workers are waited for is one line, long before the timeout."""
    with ExitStack() as stack:
        address = stack.enter_context(empty_scheduler(tmp_path))
        path = profile(tmp_path / "p.yaml", f"cluster: tcp\naddress: {address}\ntimeout: 60")
        with pytest.raises(ClusterError, match="the scheduler is gone"):
            connect(path, progress=lambda *now: stack.close())
    assert current_client() is None


def test_scheduler_that_ends_while_workers_look_at_the_store(tmp_path):
    """Its connection breaks off: one line."""
    stored(tmp_path / "s.zarr", BAGS, Y)

    class Gone:
        def run(self, *args, **options):
            raise CommClosedError("Stream is closed")

    with pytest.raises(ClusterError, match=r"the scheduler is gone \(Stream is closed\)"):
        check_store(Gone(), str(tmp_path / "s.zarr"))


def test_a_worker_that_is_lost_while_it_looks(tmp_path, monkeypatch):
    """It is asked again, as Dask starts another; one that does not come back is named."""
    store = stored(tmp_path / "s.zarr", BAGS, Y)
    there = (store.n_dims, store.n_bags, store.n_points)

    class Client:
        def __init__(self, n_losses):
            self.left = [CommClosedError("closed")] * n_losses

        def run(self, *args, **options):
            return {"a": there, "b": self.left.pop() if self.left else there}

    monkeypatch.setattr(cluster_checks, "SECONDS_BETWEEN_TRIES", 0.0)
    check_store(Client(3), store.url)
    with pytest.raises(ClusterError, match=r"worker b cannot use the store .*closed"):
        check_store(Client(100), store.url)


@pytest.mark.long
@pytest.mark.filterwarnings("error:Mismatched versions")
def test_versions_that_differ(tmp_path):
    """A worker, or the scheduler, with another version of what matters is one line with both."""
    other = installed(tmp_path / "numba", "numba", "0.1.2")
    message = r"versions of numba differ: [0-9.]+ here, 0\.1\.2 on worker tcp://127"
    with (
        empty_scheduler(tmp_path) as address,
        one_worker(address, **other),
        pytest.raises(ClusterError, match=message),
    ):
        connect(address)
    assert current_client() is None
    (tmp_path / "scheduler.json").unlink()
    other = installed(tmp_path / "bagbasis", "bagbasis", "0.0.1")
    message = r"versions of bagbasis differ: [0-9.rc]+ here, 0\.0\.1 on the scheduler; install"
    with (
        empty_scheduler(tmp_path, **other) as address,
        one_worker(address),
        pytest.raises(ClusterError, match=message),
    ):
        connect(address)


@pytest.mark.parametrize("name", cluster_checks.COMPARED_PACKAGES)
@pytest.mark.parametrize("place", ["scheduler", "a", "b"])
def test_each_version_counts(name, place):
    """Versions of each package, at the scheduler and all workers; also of one not installed."""
    same = dict.fromkeys(cluster_checks.COMPARED_PACKAGES, "1.2.3")

    def client(**others):
        infos = {key: {"packages": others.get(key, same)} for key in ("scheduler", "a", "b")}
        workers = {key: infos[key] for key in ("a", "b")}
        by_name = {
            "client": {"packages": same},
            "scheduler": infos["scheduler"],
            "workers": workers,
        }
        return SimpleNamespace(get_versions=lambda packages: by_name)

    check_versions(client())
    who = "the scheduler" if place == "scheduler" else f"worker {place}"
    for there, text in (("1.2.4", r"1\.2\.4"), (None, "none")):
        with pytest.raises(
            ClusterError, match=rf"versions of {name} differ: 1\.2\.3 here, {text} on {who};"
        ):
            check_versions(client(**{place: {**same, name: there}}))


@pytest.mark.long
def test_worker_that_can_not_see_the_store(scheduler, tmp_path):
    """A store in this process's memory: one line names the worker and why; a store on a disk
    that both see is fine, and one that is nowhere is the store's own error."""
    url = str(tmp_path / "seen.zarr")
    seen = stored(url, BAGS, Y)
    with connect(scheduler, store=url) as client:
        assert client is current_client()
    hidden = "memory://hidden.zarr"
    among_objects(seen, hidden)
    with pytest.raises(ClusterError, match=r"worker tcp://.* cannot use the store memory://hidden"):
        connect(scheduler, store=hidden)
    assert current_client() is None
    with pytest.raises(StoreError, match=r"nowhere\.zarr"):
        connect(scheduler, store=str(tmp_path / "nowhere.zarr"))
    assert current_client() is None


def test_worker_that_sees_another_store(scheduler, tmp_path):
    """The same URL in the worker's memory is another store: it says what it sees there."""
    url = "memory://two.zarr"
    among_objects(stored(tmp_path / "30.zarr", BAGS, Y), url)
    theirs = stored(tmp_path / "10.zarr", BAGS[:10], Y[:10])
    with connect(scheduler) as client:
        client.run(lambda: among_objects(theirs, url) and None)
    with pytest.raises(ClusterError, match=r"under that URL it sees 10 bags of .* here are 30 of"):
        connect(scheduler, store=url)


def test_without_a_cluster():
    """Nothing is connected unless somebody connects."""
    assert current_client() is None
