"""How a fit scales, at small scale: flat memory over bags, small graphs, and tables of both."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import psutil
import pytest

import bagbasis.jobs.experiments.scaling_measures
from bagbasis.errors import ParameterError
from bagbasis.execution import current_client
from bagbasis.execution.lanes import lane_cores
from bagbasis.jobs.experiments.experiment import Point, Result, measured
from bagbasis.jobs.experiments.scaling import SETTINGS, Scaling
from bagbasis.jobs.experiments.scaling_cluster_report import load_at_a_minute, task_cpu
from bagbasis.jobs.experiments.scaling_cost import CORES_A_NODE, NODES, cost_on_paper, costs
from bagbasis.jobs.experiments.scaling_measures import (
    Size,
    cpu_seconds,
    one_core,
    random_store,
    refuse_cluster,
)
from bagbasis.jobs.experiments.scaling_report import (
    MEMORY_OVER,
    NAMES,
    block_bytes,
    ladder,
    memory_over,
)
from bagbasis.jobs.experiments.simulated_cluster import PROCESSES, simulated_cluster
from bagbasis.jobs.experiments.timing import exponent
from bagbasis.regression.statistics import StatisticsBuilder
from tests.jobs.experiments.running import results_of, small_run
from tests.jobs.running import assert_picture

MIDDLE = SETTINGS["small"].middle


@pytest.fixture(scope="module")
def out_dir(tmp_path_factory):
    """What the command leaves behind at small scale."""
    return small_run("scaling", tmp_path_factory.mktemp("scaling"))


@pytest.fixture(scope="module")
def results(out_dir):
    """All points that were measured."""
    return results_of(out_dir)[1]


def test_memory_is_flat_over_bags(results):
    """From three partitions on, 64 MiB more of points and 32 MiB more of features leave the peak
    nearly where it is. Over seeds 0 to 2 it grows by 6 to 13 MiB: decoding overlaps with work."""
    bags, _, peaks = memory_over(results, "N")
    size, more = SETTINGS["small"].memory, bags[-1] - bags[-2]
    assert (more * size.n * size.d * 4, more * size.D * 4) == (2**26, 2**25)
    assert peaks[-1] - peaks[-2] < 24 * 2**20


def test_memory_beside_the_block_is_square_in_features(results):
    """Two matrices of D² numbers, and nothing of D · N: with the block of rows, all of the peak."""
    features, _, peaks = memory_over(results, "D")
    rest = peaks - [block_bytes(int(D)) for D in features]
    assert (rest > 8 * features**2).all()
    assert (rest < 8 * features**2 + 4 * 2**20).all()
    for D in features.astype(int):
        assert block_bytes(D) == StatisticsBuilder(D, 1)._z.nbytes


def test_memory_over_functions_and_points(results):
    """More functions add no more than a block's coefficients in double, if the peak is there; more
    points of so small a store are there with copies that decoding makes."""
    functions, least, _ = memory_over(results, "s")
    assert least[-1] - least[0] < 8 * MIDDLE.N * (functions[-1] - functions[0])
    points, least, _ = memory_over(results, "n")
    more = 4 * MIDDLE.N * MIDDLE.d * (points[-1] - points[0])
    assert more < least[-1] - least[0] < 5 * more


def test_graph_of_a_billion_bags_is_small(results):
    """Tasks travel in some hundred bytes whatever their number, and 10⁹ bags in about a MiB."""
    graphs = measured(results, "graph")
    largest = [r for r in graphs if r.point.params["N"] == 10**9]
    assert len(largest) == len(SETTINGS["small"].graph_features)
    for r in largest:
        assert r.values["tasks"] <= 4096
        assert r.values["bytes"] - r.values["shared"] < 300 * r.values["tasks"]
        assert r.values["largest_task"] == -(-(10**9) // r.values["tasks"])
        assert r.values["model_task"] < 90
        assert r.values["largest_task"] * r.point.params["n"] * r.point.params["d"] * 4 <= 2**30
    assert max(r.values["tasks"] for r in largest) > 1000
    for r in graphs:
        assert r.values["nodes"] == 2 * r.values["tasks"]
        assert r.values["shared"] < 2000


def test_ladders_vary_one_variable(results):
    """Each has its sizes in order, takes the middle once, and the model's growth is as known."""
    for name in NAMES:
        at = ladder(results, MIDDLE, name)
        assert tuple(at.sizes) == SETTINGS["small"].ladders[name]
        assert (at.fit > 0).all()
        assert at.passes == pytest.approx(at.fit - at.solve)
    assert len(measured(results, "fit")) == sum(
        len(values) - 1 for values in SETTINGS["small"].ladders.values()
    ) + 1  # fmt: skip
    model = ladder(results, MIDDLE, "N").model
    assert exponent(ladder(results, MIDDLE, "N").sizes, model) == pytest.approx(1)


def test_upper_exponent_is_that_of_the_upper_half():
    """The lower half, where what is fixed matters, does not count; the middle size does."""
    sizes = 2.0 ** np.arange(5)
    rows = [
        _fit(replace(MIDDLE, N=int(MIDDLE.N * size)), fit=max(4.0, size) ** 2 + 1) for size in sizes
    ]
    solve = Result(Point("solve", {"measure": "solve", "D": MIDDLE.D}), {"one": 1.0}, 0.0)
    at = ladder([*rows, solve], MIDDLE, "N")
    assert at.upper_exponent(at.passes) == pytest.approx(2)


def test_cost_on_paper():
    """Of round numbers: the busiest node's tasks, the slowest of work, reading and scheduling,
    three levels."""
    graph = Result(Point("graph", {}), {"tasks": 2500, "largest_task": 400_000}, 0.0)
    load = Result(Point("", {"n_tasks": 100}), {"cpu": 0.7, "idle": 0.2, "wall": 2.0}, 0.0)
    cost = cost_on_paper(1e-3, 2000.0, 7.0, 1000, graph, load)
    assert (cost.waves, cost.n_nodes) == (3, NODES)
    assert cost.work == pytest.approx(3 * 400_000 * 1e-3 / CORES_A_NODE)
    assert cost.reading == pytest.approx(3 * 400_000 * 2000 / 0.5e9)
    assert cost.merging == pytest.approx(3 * 15 * 4 * 1000 * 1001 / 1.25e9)
    assert cost.scheduling == pytest.approx(2500 * 0.003 / 0.8)
    assert cost.total == pytest.approx(cost.work + cost.merging + 7)
    slow = replace(load, values={**load.values, "cpu": 100.4})
    total = cost_on_paper(1e-3, 2000.0, 7.0, 1000, graph, slow).total
    assert total == pytest.approx(2500 / 0.8 + cost.merging + 7)


def test_costs_come_from_the_middle(results):
    """D of the middle has a graph and a timed fit, and its row says what both say."""
    found = costs(results, MIDDLE)
    assert list(found) == [MIDDLE.D]
    at = ladder(results, MIDDLE, "D")
    [passes] = at.passes[at.sizes == MIDDLE.D]
    assert found[MIDDLE.D].core_seconds == pytest.approx(passes / MIDDLE.N)
    assert found[MIDDLE.D].n_bytes == pytest.approx(4 * MIDDLE.n * MIDDLE.d, rel=0.25)


def test_workers_find_the_same_model(results):
    """However many, they come to the same bits, and what they took was counted."""
    fits = measured(results, "workers")
    assert len({bits for r in fits for bits in r.values["coefficients"]}) == 1
    assert all(r.values["cpu"] > 0 and r.values["peak_a_worker"] > 2**26 for r in fits)


def test_scheduler_under_simulated_workers(results):
    """Tasks that sleep end in no less than so many workers take for them; its time is counted."""
    for r in measured(results, "scheduler"):
        n_workers, seconds = r.point.params["n_workers"], r.point.params["task_seconds"]
        a_worker = r.point.params["n_tasks"] / n_workers
        assert r.values["wall"] >= a_worker * seconds
        assert r.values["cpu"] > 0
        assert r.values["memory"] > 0


def test_simulated_workers_are_many_and_end():
    """The scheduler knows each by an address of its own; after the block no process is left."""
    with simulated_cluster(7) as (scheduler, bare):
        everything = psutil.Process().children(recursive=True)
        processes = [each for each in everything if simulated_cluster.__module__ in each.cmdline()]
        assert len(processes) == 1 + PROCESSES
        addresses = current_client().scheduler_info(n_workers=-1)["workers"]
        assert len(addresses) == 7
        assert all(address.startswith("tcp://127.0.0.1:") for address in addresses)
        assert len({worker["id"] for worker in addresses.values()}) == 7
        assert scheduler in processes
        assert bare > 2**24
        with pytest.raises(ParameterError, match="without a cluster"):
            refuse_cluster()
    assert not psutil.wait_procs(processes, timeout=60)[1]


def test_load_of_the_scheduler():
    """Of round numbers: heartbeats are not a task's, and a minute has one task a worker."""
    values = {"cpu": 5.0, "idle": 0.1, "wall": 20.0}
    load = Result(Point("", {"n_workers": 1000, "n_tasks": 500}), values, 0.0)
    assert task_cpu(load) == pytest.approx(6e-3)
    assert load_at_a_minute(load) == pytest.approx(0.1 + 6e-3 * 1000 / 60)


def test_one_core_is_given_back(monkeypatch):
    """Within, a lane has one core; after it as many as before, and a cluster is refused."""
    before = lane_cores()
    with one_core():
        assert lane_cores() == 1
    assert lane_cores() == before
    monkeypatch.setattr(
        bagbasis.jobs.experiments.scaling_measures, "current_client", lambda: object()
    )
    with pytest.raises(ParameterError, match="without a cluster"), one_core():
        pass


def test_store_has_the_size_and_is_deleted(tmp_path, monkeypatch):
    """As many bags, points and dimensions as were asked for, written in parts; none is left."""
    monkeypatch.setattr(bagbasis.jobs.experiments.scaling_measures, "ROWS_A_WRITE", 2**11)
    size = Size(N=7, D=4, n=2**10, d=1, s=4)
    with random_store(size, 0, tmp_path) as store:
        assert (store.n_bags, store.n_points, store.n_dims) == (7, 7 * 2**10, 1)
    assert list(tmp_path.iterdir()) == []


def test_size_is_a_tensor_product():
    """s that is no power is refused; features have D and s; sizes travel."""
    assert Size(1, 8, 1, 3, 64).features().embedding.n_features == 64
    assert pickle.loads(pickle.dumps(MIDDLE)) == MIDDLE
    with pytest.raises(ParameterError, match="d = 2"):
        _ = Size(1, 8, 1, 2, 5).n_per_dim


def test_least_seconds(monkeypatch):
    """Of all rounds the one with the least CPU seconds counts."""
    clock = iter([0.0, 3.0, 10.0, 11.0, 20.0, 22.0])
    monkeypatch.setattr("time.process_time", lambda: next(clock))
    assert cpu_seconds(lambda: None, 3) == 1.0


@pytest.mark.parametrize("scale", SETTINGS)
def test_middle_is_on_every_ladder(scale):
    """So that every panel goes through the same point."""
    settings = SETTINGS[scale]
    for name, values in settings.ladders.items():
        assert getattr(settings.middle, name) in values
        assert all(replace(settings.middle, **{name: v}).n_per_dim for v in values)
    assert settings.middle.D in settings.graph_features


def test_tables_and_pictures(out_dir):
    """One row a variable, what is computed and what is left out is said, pictures are drawn."""
    report, results = results_of(out_dir)
    exponents, seconds, _, _, memory, graph, fits, loads, cost = report["tables"]
    ladders = SETTINGS["small"].ladders
    assert len(memory["rows"]) == sum(len(ladders[name]) for name in MEMORY_OVER)
    assert [row[0] for row in exponents["rows"]] == list(NAMES.values())
    assert len(seconds["rows"]) == sum(len(v) for v in SETTINGS["small"].ladders.values())
    assert len(graph["rows"]) == len(measured(results, "graph"))
    assert cost["title"].startswith("Computed, not measured: 1,000,000,000 bags")
    assert [row[0] for row in fits["rows"]] == list(SETTINGS["small"].workers)
    assert [row[0] for row in loads["rows"]] == [n for n, _ in SETTINGS["small"].simulated]
    assert report["pictures"] == ["times.png", "memory.png", "clusters.png"]
    for name in report["pictures"]:
        assert_picture(out_dir / name)
    assert [r.point for r in results] == Scaling("small", 0, out_dir).points()


def _fit(size, **values):
    """A measured fit."""
    params = {"measure": "fit", **size.params}
    return Result(Point("fit", params), {"model": 1.0, **values}, 0.0)
