"""What all experiments share: points kept on disk, the command, tables, verdicts and timing."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import bagbasis.jobs.commands.experiment
from bagbasis.core.errors import ConfigError, StoreError
from bagbasis.execution.lanes import lane_cores
from bagbasis.jobs.experiments import EXPERIMENTS
from bagbasis.jobs.experiments.kit import experiment as kit_experiment, notes, runner
from bagbasis.jobs.experiments.kit.experiment import Experiment, Measure, Point, Scale, Table
from bagbasis.jobs.experiments.kit.frame import frame, pair, pivot, select, table
from bagbasis.jobs.experiments.kit.machine import machine, versions
from bagbasis.jobs.experiments.kit.plots import AT_ENDS, LINE_HEIGHT, Curve, lines
from bagbasis.jobs.experiments.kit.runner import point_path, run_experiment
from bagbasis.jobs.experiments.kit.timing import (
    exponent,
    in_turn,
    one_thread,
    timed_in_turn,
    upper_exponent,
)
from bagbasis.jobs.experiments.kit.verdicts import (
    crossing,
    lead,
    lead_text,
    listing,
    order_verdict,
    two_digits,
)
from bagbasis.jobs.markdown import markdown_table
from bagbasis.jobs.pictures.evaluation import new_figure
from bagbasis.jobs.terminal import Terminal
from tests.jobs.experiments.contract import make, result
from tests.jobs.running import CONFIGS, done, refused, settings


class Numbers(Scale):
    """What YAML would say."""

    numbers: list[int]


class Squares(Experiment):
    """Squares of a few numbers; remembers which it was asked for, and fails at one of them."""

    name, title, source, size = "squares", "Squares", "no paper", "Three numbers."
    kind = Numbers
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

    def tables(self, results):
        rows = [[r.params["n"], r.values["square"], 9.5] for r in results]
        return [Table("Squares", ["n", "here", "paper"], rows, ["As it should be."])]

    def draw(self, results):
        squares = [r.values["square"] for r in results]
        with self.picture("squares.png", "Squares", 1, 3.0) as (_, [axis]):
            lines(axis, [Curve(self.numbers, squares, "square")], "n", "n²", log="xy")


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
    changed = Squares("small", 0, tmp_path, (2, 4))
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


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.parametrize("scale", ["small", "paper"])
def test_registered_experiments(name, scale, tmp_path):
    """Each has its name, and points with files of their own and parameters JSON knows; other
    seeds have other files."""
    experiment = make(name, tmp_path, scale)
    assert experiment.name == name
    assert experiment.title
    assert experiment.source
    assert experiment.size.endswith(".")
    points = [point for point, _ in experiment.points()]
    other = make(name, tmp_path, scale, seed=1)
    files = {point_path(e, point, {}) for e in (experiment, other) for point, _ in e.points()}
    assert len(files) == 2 * len(points)
    assert len({point.label for point in points}) == len(points)
    for point in points:
        assert json.loads(json.dumps(point.params))


def test_scale_is_validated(monkeypatch, tmp_path):
    """A key that a scale does not know, and a wrong value, are one line that names them."""
    for values, message in (({"numbers": [1], "n": 2}, "'n'"), ({"numbers": ["1"]}, "numbers")):
        monkeypatch.setattr(kit_experiment, "scales", lambda name, v=values: {"small": v})
        with pytest.raises(ConfigError, match=message):
            Squares("small", 0, tmp_path)


def test_points_are_the_product_of_the_axes():
    """Parameters that go together share an axis; the last axis is the fastest."""
    over = {"a": [1, 2], "b c": [(3, 4), (5, 6)]}
    points = list(Measure("m", lambda p, progress: {}, "a {a} b {b}", over, {"d": 0}).points())
    assert [p.label for p in points] == ["a 1 b 3", "a 1 b 5", "a 2 b 3", "a 2 b 5"]
    assert points[1].params == {"measure": "m", "a": 1, "b": 5, "c": 6, "d": 0}
    assert len(list(Measure("m", lambda p, progress: {}, "one").points())) == 1


def test_cluster_is_refused(monkeypatch, tmp_path):
    """What measures this machine does not run where a cluster would do the work."""
    monkeypatch.setattr(Squares, "alone", True)
    monkeypatch.setattr(runner, "current_client", object)
    with pytest.raises(ConfigError, match="leave out --cluster"):
        run_experiment(Squares("small", 0, tmp_path), Terminal())


def test_frame():
    """Parameters and nested values are columns, a value wins over a parameter; a table takes
    columns or makes them, and what is not there is empty."""
    results = [
        result({"x": {"r": 0.5}, "n": 7}, 3.0, measure="a", n=1),
        result({"y": 2}, 1.0, measure="a", n=2),
        result({}, 1.0, measure="b"),
    ]
    assert len(select(results, measure="a")) == 2
    rows = frame(results, measure="a")
    assert rows["n"].tolist() == [7, 2]
    assert rows["took"].tolist() == [3.0, 1.0]
    made = table("t", rows, {"n": "n", "r": "x.r", "twice": lambda f: 2 * f["n"], "none": "z"})
    assert made.rows == [[7, 0.5, 14, None], [2, None, 4, None]]
    x, y = pair(rows, "n", "x.r")
    assert (x.tolist(), y.tolist()) == ([7], [0.5])
    assert len(pair(rows, "n", "z")[0]) == 0


def test_remarks(tmp_path, monkeypatch):
    """Paragraphs of a section with values in their places; some only where a value is there."""
    (tmp_path / "n.md").write_text(
        "# About\n\n## a\n\nTwo\nlines, {x:.1f}.\n\n{?y} With {y}.\n\n## b\n\n{row[k]:,}\n"
    )
    monkeypatch.setattr(notes, "FOLDER", tmp_path)
    notes.sections.cache_clear()
    assert notes.remarks("n", "a", x=1.25, y="") == ["Two lines, 1.2."]
    assert notes.remarks("n", "a", x=1, y="z") == ["Two lines, 1.0.", "With z."]
    assert notes.remarks("n", "b", row={"k": 1000}) == ["1,000"]


def test_pivot():
    """Cells of values over two keys, in the order of their first appearance."""
    rows = pd.DataFrame({"m": ["b", "b", "a"], "n": [1000, 20, 20], "v": [1.5, 2.5, 3.5]})
    names, cells = pivot(rows, "m", "n", {"V": "v"})
    assert names == ["V, 1,000", "V, 20"]
    assert cells == {"b": [1.5, 2.5], "a": [None, 3.5]}


def test_timed_in_turn(monkeypatch):
    """Calls alternate after one of each that does not count; medians are per call."""
    clock, made = [0.0], []
    costs = {"a": iter([100, 1, 2, 9]), "b": iter([100, 10, 30, 20])}

    def call(name):
        made.append(name)
        clock[0] += next(costs[name])

    timer = SimpleNamespace(perf_counter=lambda: clock[0])
    monkeypatch.setattr("bagbasis.jobs.experiments.kit.timing.time", timer)
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
    monkeypatch.setattr("bagbasis.jobs.experiments.kit.timing.time", timer)
    rounds = in_turn({"a": lambda: call("a"), "b": lambda: call("b")}, 3)
    assert rounds.seconds == {"a": [1, 2, 4], "b": [3, 2, 20]}
    assert rounds.last == {"a": 4, "b": 5}
    found = rounds.compared("a", "b")
    assert found == {"ours": 2, "peer": 3, "ratio": 3, "low": 1, "high": 5}


def test_growth():
    """Exponents of power laws come out; of the upper half, what is fixed does not count."""
    sizes = np.array([1e3, 1e4, 1e5])
    assert exponent(sizes, 3e-6 * sizes**0.7) == pytest.approx(0.7)
    sizes = 2.0 ** np.arange(5)
    assert upper_exponent(sizes, np.maximum(4, sizes) ** 2) == pytest.approx(2)


def test_threads_are_given_back():
    """Within, a lane has one core; after it as many as before."""
    before = lane_cores()
    with one_thread():
        assert lane_cores() == 1
    assert lane_cores() == before


def test_labels_at_the_ends_of_lines():
    """In the order of the ends, none over another, and in place of a legend."""
    axis = new_figure(4.0, 3.0).subplots()
    ends = {"high": 9.0, "near": 8.99, "low": 1.0, "nearest": 8.98}
    curves = [Curve([1, 2], [5, end], label) for label, end in ends.items()]
    lines(axis, curves, "x", "y", log="y", legend=AT_ENDS)
    assert axis.get_legend() is None
    heights = {text.get_text(): text.get_position()[1] for text in axis.texts}
    assert sorted(heights, key=heights.get) == ["low", "nearest", "near", "high"]
    assert min(np.diff(sorted(heights.values()))) >= LINE_HEIGHT - 1e-12


def test_markdown_table():
    """Columns of numbers to the right, four digits, thousands, dashes, bars that stay inside."""
    rows = [["a|b", 1234.5678, 12345], ["c", None, 1]]
    assert markdown_table(["x", "y", "n"], rows).splitlines() == [
        "| x | y | n |",
        "| --- | ---: | ---: |",
        r"| a\|b | 1,235 | 12,345 |",
        "| c | – | 1 |",
    ]


SHARES = {
    "high": np.array([0.90, 0.92, 0.91]),
    "near": np.array([0.89, 0.93, 0.905]),
    "less": np.array([0.87, 0.89, 0.88]),
    "low": np.array([0.80, 0.81, 0.82]),
}


def test_lead_is_that_on_the_same_splits():
    """The error is that of the differences, and there is none with one split."""
    assert lead(SHARES["high"], SHARES["less"]) == pytest.approx((0.03, 0))
    gaps = SHARES["high"] - SHARES["low"]
    assert lead(SHARES["high"], SHARES["low"]) == pytest.approx((0.1, gaps.std(ddof=1) / 3**0.5))
    assert lead_text(SHARES["high"], SHARES["less"], 3) == "+0.030 ± 0.000"
    assert lead_text(SHARES["low"][:1], SHARES["high"][:1], 2) == "-0.10"


@pytest.mark.parametrize(
    ("one", "relation", "other", "holds"),
    [
        ("high", "≥", "near", True),
        ("near", "≥", "high", True),
        ("less", "≥", "high", False),
        ("high", ">", "near", False),
        ("high", ">", "less", True),
        ("high", "≫", "less", False),
        ("high", "≫", "low", True),
    ],
)
def test_relations(one, relation, other, holds):
    """≥ allows a level, > asks for a sure lead, and ≫ for a large one."""
    verdict = order_verdict(SHARES, [(one, relation, other)], 3)
    first, second = verdict.split(". Does not hold here: ")
    assert (f"{one} {relation} {other} (" in first) == holds
    assert (f"{one} {relation} {other} (" in second) != holds
    assert "nothing" in (second if holds else first)


def test_crossing():
    """Straight in logarithms between the points; none where a level is not passed."""
    sizes, values = np.array([10.0, 1e3, 1e5]), np.array([0.1, 10.0, 1000.0])
    assert crossing(sizes, values, 1) == pytest.approx(100)
    assert crossing(sizes, values, 100) == pytest.approx(1e4)
    assert crossing(sizes, values, 1e4) is None
    assert crossing(sizes, values, 0.01) is None
    assert two_digits(12_345.6) == 12_000


def test_listing():
    """Numbers and words, with "and" before the last one."""
    assert listing([1000, 2]) == "1,000 and 2"
    assert listing(["a", "b", "c"]) == "a, b and c"
    assert listing(["a"]) == "a"
    assert listing([]) == ""
