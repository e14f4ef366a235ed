"""How a fit scales, at small scale: flat memory over bags, small graphs, and tables of both."""

from __future__ import annotations

import psutil
import pytest

from bagbasis.jobs.experiments.speed.simulated_cluster import PROCESSES, simulated_cluster
from tests.passes import current_client


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
