"""What all experiments share: points kept on disk, the command, tables, pictures and timing."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

import bagbasis.jobs.commands.experiment
from bagbasis import StoreError
from bagbasis.jobs.experiments.kit import (
    Curves,
    Experiment,
    GroupedBars,
    Images,
    Measure,
    Point,
    experiment as kit_experiment,
)
from bagbasis.jobs.experiments.kit.frame import frame, summary
from bagbasis.jobs.experiments.kit.runner import point_path, run_experiment
from bagbasis.jobs.experiments.machine import machine, versions
from bagbasis.jobs.experiments.registered import EXPERIMENTS
from bagbasis.jobs.experiments.timing import in_turn, timed_in_turn
from bagbasis.jobs.markdown import markdown_table
from bagbasis.jobs.terminal import Terminal
from tests.jobs.experiments.contract import result
from tests.jobs.running import CONFIGS, done, refused, settings


class Squares(Experiment):
    """Squares of a few numbers; remembers which it was asked for, and fails at one of them."""

    name, title, source = "squares", "Squares", "no paper"
    pictures = (Curves(file="squares.png", x="n", y="square", log="xy"),)
    fails_at = None

    def __init__(self, scale, seed, out_dir, numbers=(1, 2, 3)):
        super().__init__(scale, seed, out_dir)
        self.numbers, self.measured = numbers, []

    def measures(self):
        return [Measure("", self.square, "number {n}", {"n": self.numbers})]

    def square(self, p, progress):
        if p["n"] == self.fails_at:
            raise KeyboardInterrupt
        self.measured.append(p["n"])
        progress(1, 1)
        return {"square": np.float64(p["n"] ** 2), "nothing": float("nan")}


@pytest.fixture(autouse=True)
def scales(monkeypatch):
    """The scales of `Squares`, which has no YAML file."""
    known, own = kit_experiment.scales, {"small": {"numbers": [1]}, "paper": {"numbers": [2]}}
    monkeypatch.setattr(
        kit_experiment, "scales", lambda name: own if name == "squares" else known(name)
    )


def points_in(out_dir):
    """The files of measured points."""
    return sorted((out_dir / "points").glob("*.json"))


@pytest.mark.long
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


@pytest.mark.long
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
    assert report["tables"][0]["rows"] == [[1, 1], [2, 4], [3, 9]]
    text = (tmp_path / "table.md").read_text()
    assert "| 3 | 9 |" in text
    assert "![squares.png](squares.png)" in text
    assert f"Seed 7; {report['seconds']:.0f} s on {machine()['cores']} cores of" in text
    assert machine()["cpu"] in text
    assert f"numpy {np.__version__}" in text
    assert "squares.png" in capsys.readouterr().out


@pytest.mark.long
def test_other_parameters_seed_or_machine_are_measured(tmp_path):
    """The file of a point is one of its parameters, the seed, the machine and the versions."""
    first, other = Squares("small", 0, tmp_path), Squares("small", 1, tmp_path)
    point, where = Point("p", {"a": 1, "b": 2}), {"machine": {"cpu": "x"}}
    paths = {
        point_path(first, point, where),
        point_path(first, Point("p", {"b": 2, "a": 1}), where),
        point_path(first, Point("p", {"a": 1, "b": 3}), where),
        point_path(first, point, {"machine": {"cpu": "y"}}),
        point_path(other, point, where),
    }
    assert len(paths) == 4
    run_experiment(first, Terminal())
    changed = Squares("small", 0, tmp_path, (2, 4))
    run_experiment(changed, Terminal())
    assert changed.measured == [4]


@pytest.mark.long
@pytest.mark.parametrize("text", ["", "{}", '{"values": {"square": 1}, "seconds": null}'])
def test_damaged_point_is_named(tmp_path, text):
    """A point's file that is no result is neither used nor overwritten."""
    run_experiment(Squares("small", 0, tmp_path), Terminal())
    damaged = points_in(tmp_path)[1]
    damaged.write_text(text)
    with pytest.raises(StoreError, match=rf"{damaged.name}: is no measured point .*; delete it"):
        run_experiment(Squares("small", 0, tmp_path), Terminal())
    assert damaged.read_text() == text


@pytest.mark.long
def test_command(tmp_path, monkeypatch):
    """Name, scale, seed and directory reach the experiment; what is wrong is refused."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(EXPERIMENTS, "squares", "here")
    monkeypatch.setattr(bagbasis.jobs.commands.experiment, "experiment_type", lambda name: Squares)
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


def test_points_are_the_product_of_the_axes():
    """Parameters that go together share an axis; the last axis is the fastest."""
    over = {"a": [1, 2], "b c": [(3, 4), (5, 6)]}
    points = list(Measure("m", lambda p, progress: {}, "a {a} b {b}", over, {"d": 0}).points())
    assert [p.label for p in points] == ["a 1 b 3", "a 1 b 5", "a 2 b 3", "a 2 b 5"]
    assert points[1].params == {"measure": "m", "a": 1, "b": 5, "c": 6, "d": 0}
    assert len(list(Measure("m", lambda p, progress: {}, "one").points())) == 1


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
    actual = rounds.compared("a", "b")
    assert actual == {"ours": 2, "peer": 3, "ratio": 3, "low": 1, "high": 5}


def test_markdown_table():
    """Columns of numbers to the right, four digits, thousands, dashes, bars that stay inside."""
    rows = [["a|b", 1234.5678, 12345], ["c", None, 1]]
    assert markdown_table(["x", "y", "n"], rows).splitlines() == [
        "| x | y | n |",
        "| --- | ---: | ---: |",
        r"| a\|b | 1,235 | 12,345 |",
        "| c | – | 1 |",
    ]


def test_frame_and_summary():
    """Parameters and nested values are columns, a value wins over a parameter; a table has the
    parameters that vary, medians of repeats and means of lists."""
    results = [
        result({"x": {"r": 0.5}, "parts": [{"a": 1}, {"a": 2}], "n": 7}, 3.0, measure="a", k=1),
        result({"y": 2}, 1.0, measure="a", k=2),
        *(result({"v": v}, 1.0, measure="b", repeat=i) for i, v in enumerate((1, 2, 9))),
    ]
    rows = frame(results[:2])
    assert rows["took"].tolist() == [3.0, 1.0]
    assert rows["parts.a"][0] == [1, 2]
    table = summary(results, "a")
    assert (table.title, list(table.columns)) == ("A", ["k", "x.r", "parts.a", "n", "y"])
    assert table.rows == [[1, 0.5, 1.5, 7, None], [2, None, None, None, 2]]
    assert summary(results, "b").rows == [[2]]


def test_pictures_have_what_they_declare():
    """A panel per value, a curve per column and group, medians of repeats; bars and images."""
    rows = frame([
        result({"e": {"ours": n + r, "peer": 2 * n}, "path": [1, 2, 3], "image": [[0, 1]]},
               n=n, data=d, repeat=r)
        for n in (1, 2) for d in ("x", "y") for r in (0, 1, 5)
    ])  # fmt: skip
    figure = Curves(file="f", x="n", y="e.*", panels="data", log="x").draw(rows, "t")
    assert [axis.get_title() for axis in figure.axes] == ["x", "y"]
    assert figure.axes[0].get_legend_handles_labels()[1] == ["ours", "peer"]
    assert figure.axes[0].lines[0].get_ydata().tolist() == [2, 3]
    assert figure.axes[0].get_xscale() == "log"
    path = Curves(file="f", y="path", where={"data": "x"}).draw(rows, "t")
    assert path.axes[0].lines[0].get_xydata().tolist() == [[1, 1], [2, 2], [3, 3]]
    bars = GroupedBars(file="f", x="n", y=("e.ours", "e.peer")).draw(rows, "t").axes[0]
    assert [bar.get_height() for bar in bars.patches] == [2, 3, 2, 4]
    flat = GroupedBars(file="f", y="e.*").draw(rows, "t").axes[0]
    assert [bar.get_width() for bar in flat.patches] == [2.5, 3]
    assert len(Images(file="f", y="image").draw(rows, "t").axes) == 1
