"""Workers as jobs of a real SLURM (``make test-clusters`` starts it)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading

import dask
import pytest

from bagbasis import ClusterError, ConfigError, connect
from bagbasis.execution.clusters.job_queue import job_queue_cluster
from bagbasis.execution.clusters.profiles import load_profile
from tests.clusters.intruder import open_to_others, ports_of, ports_told
from tests.clusters.problem import assert_same, cores_of_workers, fitted
from tests.execution.gated import Gate, until
from tests.passes import current_client

pytestmark = pytest.mark.slurm


def slurm(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def jobs():
    """The ids of our jobs in the queue."""
    return set(slurm("squeue", "-h", "-o", "%i", "-t", "PENDING,RUNNING"))


@pytest.fixture(autouse=True)
def _started():
    assert "SLURM_CONF" in os.environ, "there is no test cluster: run make test-clusters"
    assert jobs() == set()
    yield
    until(lambda: jobs() == set())


@pytest.fixture
def profile(tmp_path):
    """Writes a profile of two jobs on loopback, with other keys instead of its own."""

    def write(**keys):
        values = {
            "cluster": "slurm",
            "n_workers": 2,
            "min_workers": 2,
            "cores_per_worker": 1,
            "memory_limit": "1GiB",
            "walltime": "'00:10:00'",
            "interface": "lo",
            "timeout": 120,
            "job_directory": str(tmp_path / "jobs"),
            "spill_directory": str(tmp_path / "spill"),
            **keys,
        }
        path = tmp_path / "slurm.yaml"
        path.write_text("".join(f"{key}: {value}\n" for key, value in values.items()))
        return str(path)

    return write


@pytest.mark.parametrize("interface", ["lo", "null"])
def test_same_model(profile, url, expected, interface):
    """Two jobs make the model one process makes, with certificates made for the run, on loopback
    too; their ports are closed to other accounts; they end with the client."""
    before = ports_of(os.getpid())
    seen = []
    with connect(
        profile(interface=interface), store=url, progress=lambda *now: seen.append(now)
    ) as client:
        assert client.scheduler.address.startswith("tls")
        assert seen[0][0] < 2
        assert seen[-1] == (2, 2)
        assert len(jobs()) == 2
        workers = client.run(lambda: (os.getpid(), os.getppid())).values()
        processes = [os.getpid(), *(pid for pids in workers for pid in pids)]
        message = list(ports_told(client))
        assert len(message) == 8
        ports = {*message, *(ports_of(*processes) - before)}
        assert open_to_others(ports) == []
        assert_same(fitted(url), expected)
    until(lambda: jobs() == set())
    assert current_client() is None


def test_a_lane_has_the_cores_of_its_job(profile):
    """A job of two cores is one worker of one thread, and SLURM counts two cores for it."""
    with connect(profile(n_workers=1, min_workers=1, cores_per_worker=2)) as client:
        assert list(client.nthreads().values()) == [1]
        assert cores_of_workers(3) == {min(2, len(os.sched_getaffinity(0)))}
        assert slurm("squeue", "-h", "-o", "%C") == ["2"]


INTERRUPTED = """
import os, signal, threading, time
def connects():
    import bagbasis.execution.clusters.job_queue
signal.signal(signal.SIGINT, signal.default_int_handler)  # which background jobs ignore
if {in_thread}:
    thread = threading.Thread(target=connects)
    thread.start()
    thread.join()
else:
    connects()
try:
    os.kill(os.getpid(), signal.SIGINT)
    while True:
        time.sleep(0.01)  # another thread may take the signal, which wakes no pause of this one
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("in_thread", [False, True])
def test_an_interrupt_stays_one(in_thread):
    """dask-jobqueue makes an exit with code 0 of it: a driver that is cut off would look done."""
    code = INTERRUPTED.format(in_thread=in_thread)
    assert slurm(sys.executable, "-c", code) == ["interrupted"]


def test_cancelled_job(profile, tmp_path):
    """scancel of a worker's job in the middle of a fit: the other does its work, the model is the
    same, and another job is submitted in its place."""
    url = str(tmp_path / "held.zarr")
    alone = fitted(url)
    gate = Gate(f"{url}.gate").arm()
    result = []
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1s"}),
        connect(profile()) as client,
    ):
        before = jobs()
        victim = min(before)
        fit = threading.Thread(target=lambda: result.append(fitted(url, held=True)))
        fit.start()
        until(lambda: len(gate.waiting()) == 2)
        slurm("scancel", victim)
        until(lambda: len(client.nthreads()) == 1)
        gate.open()
        fit.join(120)
        assert_same(result[0], alone)
        until(lambda: len(jobs() - before) == 1)
        until(lambda: len(client.nthreads()) == 2)


def test_script_of_a_job(profile):
    """What the profile says reaches SLURM and the worker; a worker has one thread. PBS likewise."""
    keys = {"cores_per_worker": 4, "walltime": "'01:00:00'", "queue": "short", "account": "me"}
    keys |= {"directives": '["--qos=x"]', "prologue": '["module load y"]', "python": "/opt/python"}
    options = r"--nthreads 4 .*--nthreads 1 .*--lifetime 3060s --lifetime-stagger 360s"
    for cluster, headers in {
        "slurm": ["-p short", "-A me", "--cpus-per-task=4", "--mem=1G", "-t 01:00:00", "--qos=x"],
        "pbs": ["-q short", "-A me", "ncpus=4:mem=1024MB", "walltime=01:00:00", "--qos=x"],
    }.items():
        with job_queue_cluster(load_profile(profile(cluster=cluster, **keys))) as made:
            script = made.job_script()
        header = "\n".join(line for line in script.splitlines() if line.startswith("#"))
        for part in headers:
            assert part in header
        assert script.index("module load y") < script.index("export BAGBASIS_WORKER_CORES=4")
        assert re.search(rf'^"/opt/python" .*{options}', script, re.MULTILINE)


def test_wrong_interface(profile):
    """A network interface that this machine does not have is one line that lists those it has."""
    with pytest.raises(ConfigError, match=r"no slurm cluster .*'ib9' is not a valid .*'lo'"):
        connect(profile(interface="ib9"))


def test_refused_job(profile):
    """What sbatch refuses is one line with its reason, at once."""
    with pytest.raises(ClusterError, match=r"SLURM refuses the job: invalid partition.*nowhere"):
        connect(profile(queue="nowhere"))
    with pytest.raises(ClusterError, match=r"SLURM refuses the job: .*--mem=8192G"):
        connect(profile(memory_limit="8TiB"))
    assert current_client() is None


def test_workers_that_do_not_come(profile):
    """A queue that starts no job in time is one line that says where to look; nothing is left."""
    directives = '["--begin=now+1hour"]'
    with pytest.raises(ClusterError, match=r"0 of at least 2 workers came within 3 s; see squeue"):
        connect(profile(directives=directives, timeout=3))
    assert current_client() is None
