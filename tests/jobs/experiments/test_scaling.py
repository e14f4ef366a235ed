"""How a fit scales, at small scale: flat memory over bags, small graphs, and tables of both."""

from __future__ import annotations

import pickle
from typing import ClassVar

import numpy as np
import pandas as pd
import psutil
import pytest

from bagbasis.core.errors import ParameterError
from bagbasis.execution.tasks import current_client
from bagbasis.jobs.experiments.kit.frame import column, frame
from bagbasis.jobs.experiments.kit.timing import exponent
from bagbasis.jobs.experiments.speed import (
    scaling_measures,
    simulated_cluster as simulated_cluster_module,
)
from bagbasis.jobs.experiments.speed.scaling_measures import Size, cpu_seconds, random_store
from bagbasis.jobs.experiments.speed.scaling_report import (
    CORES_PER_NODE,
    NAMES,
    NODES,
    block_bytes,
    cost_on_paper,
    costs,
    ladder,
    load_at_a_minute,
    memory_over,
    task_cpu,
)
from bagbasis.jobs.experiments.speed.simulated_cluster import PROCESSES, simulated_cluster
from bagbasis.models.ridge.gram_products import gram_bytes
from bagbasis.models.ridge.sums import StatisticsBuilder
from tests.jobs.experiments.contract import Contract, make

SMALL = make("scaling").settings
MIDDLE = SMALL.middle


class TestScaling(Contract):
    name = "scaling"
    sizes: ClassVar = {
        "ladders": {"N": [512, 1024, 2048], "n": [16, 64, 256], "s": [4, 16, 64]},
        "n_rounds": 1,
        "graph_bags": [1000, 1_000_000, 1_000_000_000],
        "simulated": [[20, 0.1]],
        "simulated_tasks": 20,
        "idle_seconds": 0.1,
    }

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def _one_process(cls):
        """Simulated workers share one; that there are more is tested below."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(simulated_cluster_module, "PROCESSES", 1)
            yield

    def test_memory_is_flat_over_bags(self, results):
        """From three partitions on, 64 MiB more of points and 32 MiB more of features leave the
        peak nearly where it is. Over seeds 0 to 2 it grows by 6 to 13 MiB: decoding overlaps with
        work."""
        rows, size = memory_over(results, "N"), SMALL.memory
        more = rows["N"].iloc[-1] - rows["N"].iloc[-2]
        assert (more * size.n * size.d * 4, more * size.D * 4) == (2**26, 2**25)
        assert rows["largest"].iloc[-1] - rows["largest"].iloc[-2] < 24 * 2**20

    def test_memory_beside_the_block_is_square_in_features(self, results):
        """A triangle of D² / 2 doubles and the declared memory of its products, and nothing of
        D · N: with the block of rows all of the peak."""
        rows = memory_over(results, "D")
        declared = rows["D"].map(lambda D: gram_bytes(D, np.float32))
        assert (rows["rest"] - declared > 4 * rows["D"] ** 2).all()
        assert (rows["rest"] - declared < 4 * rows["D"] ** 2 + 4 * 2**20).all()
        for D in rows["D"]:
            assert block_bytes(D) == StatisticsBuilder(D, 1)._z.nbytes

    def test_memory_over_functions_and_points(self, results):
        """More functions add no more than a block's coefficients in double, if the peak is there;
        more points of so small a store are there with copies that decoding makes."""
        for name, least, most in (("s", None, 8 * MIDDLE.N), ("n", 4 * MIDDLE.N * MIDDLE.d, None)):
            rows = memory_over(results, name)
            more = rows[name].iloc[-1] - rows[name].iloc[0]
            grown = rows["least"].iloc[-1] - rows["least"].iloc[0]
            assert grown < (most * more if most else 5 * least * more)
            assert least is None or grown > least * more

    def test_graph_of_a_billion_bags_is_small(self, results):
        """Tasks travel in some hundred bytes whatever their number, and 10⁹ bags in about a
        MiB."""
        graphs = frame(results, measure="graph")
        assert (graphs["nodes"] == 2 * graphs["tasks"]).all()
        assert (graphs["shared"] < 2000).all()
        largest = graphs[graphs["N"] == 10**9]
        assert len(largest) == len(SMALL.graph_features)
        assert largest["tasks"].between(1, 4096).all()
        assert largest["tasks"].max() > 1000
        assert (largest["bytes"] - largest["shared"] < 300 * largest["tasks"]).all()
        assert (largest["largest_task"] == -(-(10**9) // largest["tasks"])).all()
        assert (largest["model_task"] < 90).all()
        assert (largest["largest_task"] * largest["n"] * largest["d"] * 4 <= 2**30).all()

    def test_ladders_vary_one_variable(self, results, report):
        """Each has its sizes in order, takes the middle once, and the model's growth is known."""
        ladders = make(self.name).settings.ladders
        for name, values in ladders.items():
            at = ladder(results, MIDDLE, name)
            assert at[name].tolist() == values
            assert (at["fit"] > 0).all()
            assert column(at, "passes") == pytest.approx(column(at, "fit") - column(at, "solve"))
        n_fits = sum(len(values) - 1 for values in ladders.values()) + 1
        assert len(frame(results, measure="fit")) == n_fits
        over_bags = ladder(results, MIDDLE, "N")
        assert exponent(column(over_bags, "N"), column(over_bags, "model")) == pytest.approx(1)
        assert [row[0] for row in report["tables"][0]["rows"]] == list(NAMES.values())
        cost = report["tables"][-1]
        assert cost["title"].startswith("Computed, not measured: 1,000,000,000 bags")

    def test_costs_come_from_the_middle(self, results):
        """D of the middle has a graph and a timed fit, and its row says what both say."""
        found, at = costs(results, MIDDLE), ladder(results, MIDDLE, "D").set_index("D")
        assert list(found) == [MIDDLE.D]
        passes = at["passes"][MIDDLE.D]
        assert found[MIDDLE.D].core_seconds == pytest.approx(passes / MIDDLE.N)
        assert found[MIDDLE.D].n_bytes == pytest.approx(4 * MIDDLE.n * MIDDLE.d, rel=0.25)

    def test_workers_and_schedulers(self, results):
        """However many workers, they come to the same bits, and what they took was counted; tasks
        that sleep end in no less than so many workers take for them."""
        fits, loads = frame(results, measure="workers"), frame(results, measure="scheduler")
        assert len({bits for each in fits["coefficients"] for bits in each}) == 1
        assert (fits["cpu"] > 0).all()
        assert (fits["peak_a_worker"] > 2**26).all()
        least = loads["n_tasks"] / loads["n_workers"] * loads["task_seconds"]
        assert (loads["wall"] >= least).all()
        assert (loads[["cpu", "memory"]] > 0).all(axis=None)


def test_cost_on_paper():
    """Of round numbers: the busiest node's tasks, the slowest of work, reading and scheduling,
    three levels."""
    graph = {"tasks": 2500, "largest_task": 400_000, "D": 1000}
    loads = pd.DataFrame([{"n_tasks": 100, "cpu": 0.7, "idle": 0.2, "wall": 2.0}])
    cost = cost_on_paper(1e-3, 2000.0, 7.0, graph, loads)
    assert (cost.waves, cost.n_nodes) == (3, NODES)
    assert cost.work == pytest.approx(3 * 400_000 * 1e-3 / CORES_PER_NODE)
    assert cost.reading == pytest.approx(3 * 400_000 * 2000 / 0.5e9)
    assert cost.merging == pytest.approx(3 * 15 * 4 * 1000 * 1001 / 1.25e9)
    assert cost.scheduling == pytest.approx(2500 * 0.003 / 0.8)
    assert cost.total == pytest.approx(cost.work + cost.merging + 7)
    slow = cost_on_paper(1e-3, 2000.0, 7.0, graph, loads.assign(cpu=100.4))
    assert slow.total == pytest.approx(2500 / 0.8 + cost.merging + 7)


def test_load_of_the_scheduler():
    """Of round numbers: heartbeats are not a task's, and a minute has one task per worker."""
    load = {"n_workers": 1000, "n_tasks": 500, "cpu": 5.0, "idle": 0.1, "wall": 20.0}
    loads = pd.DataFrame([load])
    assert task_cpu(loads)[0] == pytest.approx(6e-3)
    assert load_at_a_minute(loads)[0] == pytest.approx(0.1 + 6e-3 * 1000 / 60)


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
