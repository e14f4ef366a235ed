"""What runs experiments: resuming, reports, the command, and the tools they share."""

from __future__ import annotations

import json
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pytest

import bagbasis.jobs.experiment
from bagbasis.errors import StoreError
from bagbasis.jobs.experiments import EXPERIMENTS, experiment_type
from bagbasis.jobs.experiments.experiment import Experiment, Point, Table
from bagbasis.jobs.experiments.machine import machine, versions
from bagbasis.jobs.experiments.markdown import table_lines
from bagbasis.jobs.experiments.runner import point_path, run_experiment
from bagbasis.jobs.experiments.timing import exponent, in_turn, timed_in_turn
from bagbasis.jobs.pictures.evaluation import new_figure, save_figure
from bagbasis.jobs.terminal import Terminal
from tests.jobs.running import CONFIGS, done, refused, settings


class Squares(Experiment):
    """Squares of a few numbers; remembers which it was asked for, and fails at one of them."""

    name, title, source, size = "squares", "Squares", "no paper", "Three numbers."
    scales = MappingProxyType({"small": None, "paper": None})
    numbers = (1, 2, 3)
    fails_at = None

    def __init__(self, scale, seed, out_dir):
        super().__init__(scale, seed, out_dir)
        self.measured = []

    def points(self):
        return [Point(f"number {n}", {"n": n}) for n in self.numbers]

    def measure(self, point, progress):
        n = point.params["n"]
        if n == self.fails_at:
            raise KeyboardInterrupt
        self.measured.append(n)
        progress(1, 1)
        return {"square": np.float64(n**2), "nothing": float("nan")}

    def tables(self, results):
        rows = [[r.point.params["n"], r.values["square"], 9.5] for r in results]
        return [Table("Squares", ["n", "here", "paper"], rows, ["As it should be."])]

    def draw(self, results):
        figure = new_figure(3.0, 3.0)
        figure.subplots().plot([r.values["square"] for r in results])
        return [save_figure(figure, self.out_dir / "squares.png")]


def points_in(out_dir):
    """The files of measured points."""
    return sorted((out_dir / "points").glob("*.json"))


def test_interrupted_run_goes_on(tmp_path, capsys):
    """Points measured before an interruption are on disk at once and are not measured again."""
    first = Squares("small", 0, tmp_path)
    first.fails_at = 3
    with pytest.raises(KeyboardInterrupt):
        run_experiment(first, Terminal())
    assert first.measured == [1, 2]
    assert [path.name.rpartition("-")[0] for path in points_in(tmp_path)] == [
        "number-1",
        "number-2",
    ]
    assert not (tmp_path / "result.json").exists()
    second, third = Squares("small", 0, tmp_path), Squares("small", 0, tmp_path)
    report = run_experiment(second, Terminal())
    assert second.measured == [3]
    capsys.readouterr()
    again = run_experiment(third, Terminal())
    assert third.measured == []
    assert capsys.readouterr().out.count("measured before") == 3
    assert again == report == json.loads((tmp_path / "result.json").read_text())


def test_report_says_what_where_and_with_what(tmp_path, capsys):
    """result.json and table.md hold points, tables, pictures, machine, versions, seed, scale."""
    run_experiment(Squares("paper", 7, tmp_path), Terminal())
    report = json.loads((tmp_path / "result.json").read_text())
    assert (report["experiment"], report["scale"], report["seed"]) == ("squares", "paper", 7)
    assert report["machine"] == machine()
    assert report["versions"] == versions()
    assert [point["values"] for point in report["points"]] == [
        {"square": n**2, "nothing": None} for n in (1, 2, 3)
    ]
    assert report["seconds"] == sum(point["seconds"] for point in report["points"])
    assert report["pictures"] == ["squares.png"]
    assert report["tables"][0]["rows"] == [[1, 1, 9.5], [2, 4, 9.5], [3, 9, 9.5]]
    text = (tmp_path / "table.md").read_text()
    assert "| 3 | 9 | 9.5 |" in text
    assert "As it should be." in text
    assert "![squares.png](squares.png)" in text
    assert f"Seed 7; {report['seconds']:.0f} s on {machine()['cores']} cores of" in text
    assert machine()["cpu"] in text
    assert f"numpy {np.__version__}" in text
    assert "As it should be." in capsys.readouterr().out


def test_other_parameters_seed_or_machine_are_measured(tmp_path):
    """The file of a point is one of its parameters, the seed, the machine and the versions."""
    one, other = Squares("small", 0, tmp_path), Squares("small", 1, tmp_path)
    point, where = Point("p", {"a": 1, "b": 2}), {"machine": {"cpu": "x"}}
    paths = {
        point_path(one, point, where),
        point_path(one, Point("p", {"b": 2, "a": 1}), where),
        point_path(one, Point("p", {"a": 1, "b": 3}), where),
        point_path(one, point, {"machine": {"cpu": "y"}}),
        point_path(other, point, where),
    }
    assert len(paths) == 4
    run_experiment(one, Terminal())
    changed = Squares("small", 0, tmp_path)
    changed.numbers = (2, 4)
    run_experiment(changed, Terminal())
    assert changed.measured == [4]


@pytest.mark.parametrize("text", ["", "{}", '{"values": {"square": 1}, "seconds": null}'])
def test_damaged_point_is_named(tmp_path, text):
    """A point's file that is no result is neither used nor overwritten."""
    run_experiment(Squares("small", 0, tmp_path), Terminal())
    damaged = points_in(tmp_path)[1]
    damaged.write_text(text)
    with pytest.raises(StoreError, match=rf"{damaged.name}: is no measured point .*; delete it"):
        run_experiment(Squares("small", 0, tmp_path), Terminal())
    assert damaged.read_text() == text


def test_command(tmp_path, monkeypatch):
    """Name, scale, seed and directory reach the experiment; what is wrong is refused."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(EXPERIMENTS, "squares", "here")
    monkeypatch.setattr(bagbasis.jobs.experiment, "experiment_type", lambda name: Squares)
    done("experiment", "squares", "--scale", "paper")
    where = tmp_path / "experiment-output/squares-paper"
    assert json.loads((where / "result.json").read_text())["seed"] == 0
    options = settings(name="squares", seed=3, out_dir=tmp_path / "mine")
    done("experiment", CONFIGS / "experiment.yaml", *options, "--scale", "small")
    report = json.loads((tmp_path / "mine/result.json").read_text())
    assert (report["scale"], report["seed"]) == ("small", 3)
    assert "did you mean" in refused(2, "experiment", "rectify-2lptt")
    assert "key 'scale'" in refused(2, "experiment", "squares", "--scale", "large")
    assert "key 'name'" in refused(2, "experiment")


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.parametrize("scale", ["small", "paper"])
def test_registered_experiments(name, scale, tmp_path):
    """Each has its name, and points with files of their own and parameters JSON knows."""
    experiment = experiment_type(name)(scale, 0, tmp_path)
    assert experiment.name == name
    assert experiment.title
    assert experiment.source
    assert experiment.size.endswith(".")
    points = experiment.points()
    assert len({point_path(experiment, point, {}) for point in points}) == len(points)
    assert len({point.label for point in points}) == len(points)
    for point in points:
        assert json.loads(json.dumps(point.params))


def test_timed_in_turn(monkeypatch):
    """Calls alternate after one of each that does not count; medians are per call."""
    clock, made = [0.0], []
    costs = {"a": iter([100, 1, 2, 9]), "b": iter([100, 10, 30, 20])}

    def call(name):
        made.append(name)
        clock[0] += next(costs[name])

    timer = SimpleNamespace(perf_counter=lambda: clock[0])
    monkeypatch.setattr("bagbasis.jobs.experiments.timing.time", timer)
    medians = timed_in_turn({"a": lambda: call("a"), "b": lambda: call("b")}, 3)
    assert medians == {"a": 2, "b": 20}
    assert made == ["a", "b"] * 4


def test_rounds(monkeypatch):
    """Calls alternate, ratios are those of one round, and the last round's results are kept."""
    clock = [0.0]
    costs, answers = {"a": iter([1, 2, 4]), "b": iter([3, 2, 20])}, iter(range(6))

    def call(name):
        clock[0] += next(costs[name])
        return next(answers)

    timer = SimpleNamespace(perf_counter=lambda: clock[0])
    monkeypatch.setattr("bagbasis.jobs.experiments.timing.time", timer)
    rounds = in_turn({"a": lambda: call("a"), "b": lambda: call("b")}, 3)
    assert rounds.seconds == {"a": [1, 2, 4], "b": [3, 2, 20]}
    assert rounds.last == {"a": 4, "b": 5}
    found = rounds.compared("a", "b")
    assert found == {"ours": 2, "peer": 3, "ratio": 3, "low": 1, "high": 5}


def test_growth():
    """Exponents of power laws come out."""
    sizes = np.array([1e3, 1e4, 1e5])
    assert exponent(sizes, 3e-6 * sizes**0.7) == pytest.approx(0.7)


def test_markdown_table():
    """Columns of numbers to the right, four digits, thousands, dashes, bars that stay inside."""
    rows = [["a|b", 1234.5678, 12345], ["c", None, 1]]
    assert table_lines(Table("", ["x", "y", "n"], rows)).splitlines() == [
        "| x | y | n |",
        "| --- | ---: | ---: |",
        r"| a\|b | 1,235 | 12,345 |",
        "| c | – | 1 |",
    ]
