"""The memory of this process: the least limit of its control groups, their parents, its own."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import psutil
import pytest

from bagbasis.execution import memory
from bagbasis.execution.memory import available_memory, group_limits, memory_limit

SLURM = "system.slice/slurmstepd.scope/job_7/step_0"


@pytest.fixture
def limits_of(tmp_path):
    """The limits that are found, given what /proc says and the files of the groups."""

    def limits(groups, files):
        (tmp_path / "cgroup").write_text(groups)
        for name, text in files.items():
            file = tmp_path / "mount" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{text}\n")
        return sorted({*group_limits(tmp_path / "cgroup", tmp_path / "mount")})

    return limits


def test_groups_below_the_root(limits_of):
    """Version 2: that of this process, and its parents up to the root; "max" is none."""
    files = {f"{SLURM}/memory.max": "max", "memory.max": 9000, "other.slice/memory.max": 1}
    job = SLURM.removesuffix("/step_0")
    assert limits_of(f"0::/{SLURM}\n", {**files, f"{job}/memory.max": 4096}) == [4096, 9000]


def test_version_1(limits_of):
    """Its controller has a folder of its own; others are not looked at."""
    groups = "5:cpu,cpuacct:/a\n4:memory,hugetlb:/job:7\n0::/\n"
    name = "memory.limit_in_bytes"
    files = {f"memory/job:7/{name}": 700, f"memory/{name}": 10**15, f"cpu/a/{name}": 1}
    assert limits_of(groups, files) == [700, 10**15]


def test_a_container(limits_of):
    """What it sees at the root is its group, whose path is that of the host."""
    assert limits_of("0::/../../host.slice\n", {"memory.max": 5000}) == [5000]
    assert limits_of("0::/host.slice\n", {"memory.max": 5000}) == [5000]


def test_no_groups(tmp_path):
    assert list(group_limits(tmp_path / "none", tmp_path)) == []


def test_this_process():
    """At most what the machine has; a limit that the process was started with counts."""
    assert 0 < memory_limit() <= psutil.virtual_memory().total
    code = (
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_RSS, (2**28, 2**28))\n"
        "from bagbasis.execution.memory import memory_limit\n"
        "print(memory_limit())\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == f"{2**28}\n"


ADDRESSES = """
import resource
import numpy as np
from bagbasis import DoubleBasisRegressor, RandomFourierFeatures
from bagbasis.core.errors import ExhaustedError, ParameterError
from bagbasis.execution.memory import memory_limit
from bagbasis.core.systems import addresses_needed

def limited_to(n):
    resource.setrlimit(resource.RLIMIT_AS, (n, resource.RLIM_INFINITY))

bags = [np.random.default_rng(i).random((5, 2)) for i in range(20)]
model = DoubleBasisRegressor("moments", RandomFourierFeatures(n_features=10**8), alpha=1.0)
for n, kind in ((addresses_needed() - 1, ExhaustedError), (addresses_needed(), ParameterError)):
    limited_to(n)
    try:
        model.fit(bags, range(20))
    except kind as error:
        print(error)
assert memory_limit() < addresses_needed() - 2**28  # some are taken
"""


@pytest.mark.long
def test_few_addresses():
    """A fit that libraries would end is refused, and one whose matrices find no room as well."""
    ran = subprocess.run([sys.executable, "-c", ADDRESSES], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    few, wide = ran.stdout.splitlines()
    assert few.startswith("this process may have ")
    assert "100,000,000 features needs " in wide
    assert ran.stderr == ""


def test_what_is_available(monkeypatch):
    """The machine's, or what this process may take when that is less."""
    assert 0 < available_memory() <= psutil.virtual_memory().total
    machine = SimpleNamespace(available=1_024_000)
    monkeypatch.setattr("psutil.virtual_memory", lambda: machine)
    for limit, expected in ((2**50, 1_024_000), (4096, 4096)):
        monkeypatch.setattr(memory, "memory_limit", lambda limit=limit: limit)
        assert available_memory() == expected
