"""The page next to a report: what it says first, whatever bags and classes are called."""

from __future__ import annotations

import itertools
import json
import re
from functools import cache
from importlib import resources

import numpy as np
import pytest

from bagbasis import BagStore, DoubleBasisRegressor, MomentsEmbedding, evaluate
from bagbasis.jobs.page import is_numeric, unbroken
from bagbasis.jobs.pictures import bag_dots, errors_page
from bagbasis.jobs.pictures.charts import AxisScale, Chart, Series, thin
from bagbasis.jobs.pictures.model_part import compare
from bagbasis.models import explain
from tests.jobs.pages import EVIL, Page
from tests.jobs.running import done, refused, settings
from tests.shown import rounded, with_error

SMALL = settings(model__random_features__n_features=32, model__embedding__n_per_dim=3)


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    """A store of 120 bags whose ids, target and classes are attacks on a page."""
    rng = np.random.default_rng(0)
    centres = rng.uniform(0.2, 0.8, (120, 2))
    bags = [np.clip(c + rng.normal(0, 0.1, (9, 2)), 0, 1.0) for c in centres]
    bags[7] = bags[7] + 5
    where = tmp_path_factory.mktemp("named")
    classes = [f"{EVIL}{side}" for side in ("down", "up")]
    store = BagStore.create(
        where / "s.zarr",
        2,
        target_names=[f'y"{EVIL}', "side", "noise"],
        class_names={"side": classes},
    )
    targets = {
        f'y"{EVIL}': centres[:, 0],
        "side": [classes[int(c[1] > 0.5)] for c in centres],
        "noise": rng.normal(size=120),
    }
    store.append(bags, targets=targets, ids=[f"{EVIL}{i}" for i in range(120)])
    return where


def fitted(where, target, report, *more):
    """Fit a target of the store, with bags held out; the page."""
    urls = settings(data_url=where / "s.zarr", model_url=report.with_suffix(".zarr"), report=report)
    saved = settings(target=json.dumps(target), holdout=0.5, overwrite="true")
    assert str(report.with_suffix(".html")) in done("fit", *urls, *saved, *SMALL, *more)
    page = Page(report.with_suffix(".html"))
    page.assert_self_contained()
    return page


@pytest.fixture(scope="module")
def fit_of(named, tmp_path_factory):
    """The page of a fit of one target, and the folder it lies in; each target is fitted once."""

    @cache
    def make(target):
        folder = tmp_path_factory.mktemp("fit")
        task = settings(model__task="classification") if target == "side" else []
        return fitted(named, target, folder / "fit.json", *task), folder

    return make


def test_bags_of_few_points_are_a_worry(tmp_path):
    """They are counted among the bags that are there."""
    bags = [np.full((n, 1), 0.5) for n in (4, 5, 1, 9)]
    store = BagStore.create(tmp_path / "s.zarr", 1).append(bags, ids=range(4))
    [message] = errors_page.worries_of_sizes(store.remove([2]))
    assert message.startswith("1 of 3 bags have fewer than 5 points")
    assert errors_page.worries_of_sizes(store.remove([0])) == []


@pytest.mark.parametrize("n_dims", [1, 2, 5])
def test_worst_bags_are_drawn_point_by_point(n_dims, tmp_path):
    """Those with the largest errors, each in the box of all, whose corners have no dots."""
    rng = np.random.default_rng(0)
    bags = [rng.random((7, n_dims)) for _ in range(60)]
    y = np.array([bag.mean() for bag in bags])
    y[[4, 44]] += 50
    store = BagStore.create(tmp_path / "s.zarr", n_dims, target_names=["y"]).append(bags, y)
    model = DoubleBasisRegressor(MomentsEmbedding(), random_features=False, alpha=10.0)
    model.fit(store, target="y")
    errors = evaluate(model, store, subset="all")
    drawn = bag_dots.Dots(store, model, errors)
    charts = drawn.worst_bags()
    [worst] = drawn.worst()
    rmse = np.sqrt(np.mean((errors.sample.predicted - errors.sample.true) ** 2))
    assert 1 < rmse < 10, "two digits of it are one decimal"
    assert all(cell == f"{float(cell):.1f}" for row in worst.rows for cell in row[3:])
    titles = [f"y: bag {bag}, one of the worst" for bag in (4, 44)]
    assert sorted(chart.title for chart in charts) == titles
    corners, dots, moving = charts[0].series
    assert (corners.radius, len(dots.x)) == (0, 7)
    bag = bags[int(charts[0].title.split()[2].removesuffix(","))]
    explanation = explain(model, bag)
    rows = np.argsort(-np.abs(explanation.effect[:, 0]), kind="stable")[:3]
    np.testing.assert_allclose(moving.x, bag[rows, 0], rtol=1e-6)
    message = f"without this point: {-explanation.effect[rows[0], 0]:+#.2g}".rstrip(".")
    assert moving.titles[0] == message
    [table] = drawn.explained()
    of_bag = [row for row in table.rows if row[0] == charts[0].title.split()[2].removesuffix(",")]
    assert len(of_bag) == min(n_dims, 3)
    first = max(np.abs(explanation.shift).max(), np.abs(explanation.spread).max())
    assert f"{first:#.2g}".rstrip(".") in [cell.lstrip("+-") for cell in of_bag[0][2:]]
    np.testing.assert_allclose(sorted(dots.x), sorted(bag[:, 0]), rtol=1e-6)
    if n_dims > 1:
        np.testing.assert_allclose(dots.y, bag[:, 1], rtol=1e-6)
    else:
        np.testing.assert_allclose(dots.y, (np.arange(7) + 0.5) / 7)


@pytest.mark.long
def test_fit_and_evaluate(named, fit_of, tmp_path, monkeypatch):
    """Errors next to what they have to beat, and a dot per bag that says which one it is."""
    page, folder = fit_of(f'y"{EVIL}')
    judged = json.loads((folder / "fit.json").read_text())["judged"]
    n = judged["n"]
    for key in ("constant_error", "means_error", "forest_error"):
        assert rounded(judged[key], judged["standard_error"]) in page.texts
    assert judged["forest_bags"] == 120 - n
    assert with_error(judged["error"], judged["standard_error"]) in page.texts
    titles = [title for title in page.titles if not title.startswith("without this point")]
    assert len(page.titles) - len(titles) == 2 * 3  # of the two worst bags
    assert len(titles) == 2 * n  # against truth, and the errors; all bags have one size
    assert all(title.startswith(f"bag {EVIL}") and ", n 9, " in title for title in titles)
    assert sum(", 100 % outside, " in title for title in titles) in (0, 2)
    assert f"Few bags: the model was fitted to {120 - n}." in page.worries
    monkeypatch.setattr(bag_dots, "MAX_CHART_DOTS", 20)
    urls = settings(data_url=named / "s.zarr", model_url=folder / "fit.zarr")
    for subset, is_warned in (("holdout", False), ("all", True)):
        done("evaluate", *urls, *settings(out_dir=tmp_path / "out", subset=subset))
        page = Page(tmp_path / "out" / "report.html")
        page.assert_self_contained()
        assert "importance" not in json.loads((tmp_path / "out" / "report.json").read_text())
        assert "Importance of coordinates" not in page.texts, "it was not asked for"
        drawn = {path.name for path in (tmp_path / "out").glob("*.png")}
        assert drawn
        assert drawn <= set(page.texts), "the page names the pictures next to it"
        assert sum(title.startswith("bag ") for title in page.titles) == 2 * 20
        of = n if subset == "holdout" else 120
        assert f"Dashed: predicted = true. 20 of {of} bags, drawn at random." in page.texts
        assert ("fitted to bags that it is judged on" in page.worries) == is_warned
        # rivals that were fitted to the same bags have no error to compare with
        assert ("ridge regression on the bags' means" in page.texts) != is_warned
        assert page.answer.partition(" bags")[2].startswith(", those fitted among") == is_warned


def test_numbers_in_texts_are_aligned_as_numbers():
    """Also with a standard error or a percent sign; words are not; units stay next to numbers."""
    for cell in (3, 2.5, None, "1.09", "0.66 ± 0.05", "-0.015 ± 0.012", "12,345", "95%", "3e-05"):
        assert is_numeric(cell), cell
    for cell in ("moments", "p87", "2 bags", "", "±", "class 1"):
        assert not is_numeric(cell), cell
    assert unbroken("66 % ± 5 % of") == "66\u00a0%\u00a0±\u00a05\u00a0% of"


@pytest.mark.long
def test_classes_several_targets_and_no_holdout(named, fit_of, tmp_path):
    """A confusion matrix; tables of each target; the score of a fit that held nothing out, and the
    page of another fit at the same place, which replaces it."""
    page, _ = fit_of("side")
    names = [f"{EVIL}down", f"{EVIL}up"]
    at = page.texts.index("true \\ predicted")
    assert page.texts[at + 1 : at + 4] == [*names, names[0]]
    assert {"Calibration of probabilities", "Brier score", "the frequencies of the classes"} <= set(
        page.texts
    )
    page = fitted(named, [f'y"{EVIL}', "noise"], tmp_path / "b.json")
    assert {f'Errors: y"{EVIL}', "Errors: noise"} <= set(page.texts)
    page = fitted(named, "noise", tmp_path / "c.json", *settings(holdout=0))
    assert "error by cross-validation, relative to the best constant's" in page.texts
    page = fitted(named, "noise", tmp_path / "c.json", *settings(holdout=0, model__alpha=1.0))
    assert "No error estimate: pass holdout=" in page.worries


@pytest.mark.long
def test_what_the_library_warns_of_stands_first(named, tmp_path):
    """A penalty at the edge is logged by fit, and seen again in the saved model."""
    edge = settings(model__alphas="[100.0, 200.0]")
    page = fitted(named, f'y"{EVIL}', tmp_path / "fit.json", *edge)
    assert "The best penalty, 100, is the smallest of the grid" in page.worries
    urls = settings(data_url=named / "s.zarr", model_url=tmp_path / "fit.zarr")
    done("evaluate", *urls, *settings(out_dir=tmp_path / "out"))
    message = Page(tmp_path / "out" / "report.html").worries
    assert "The best penalty, 100, is the least that was tried." in message


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ((1.0, 2.0, 3.0, 0.1), None),
        ((1.0, 2.0, None, 0.1), None),
        ((2.0, 2.0, 3.0), "no better than the best constant (2 against 2)"),
        ((2.0, 3.0, 1.5), "no better than ridge regression on the bags' means (2 against 1.5)"),
        ((2.0, 3.0, 2.05, 0.1), "hardly better than ridge regression on the bags' means"),
        ((2.0, 3.0, 1.9, 0.0, 1.8), "no better than a random forest on moments, minima and maxima"),
        (
            (0.337, 0.6, 0.303, 0.1, 0.4, "error rate on bags held out"),
            "no better than ridge regression on the bags' means (66.3 % against 69.7 %)",
        ),
        ((2.0, 3.0, 1.9, 0.0, 2.8), "no better than ridge regression on the bags' means"),
    ],
)
def test_a_model_that_beats_nothing(errors, expected):
    """By the errors of model, constant and means, and two standard errors of the model's."""
    result = compare(*errors)
    assert (result == []) if expected is None else (expected in result[0])


@pytest.mark.long
def test_the_first_line_says_which_baseline_wins(tmp_path):
    """The label is the largest number of a bag: a forest sees it, and means do not."""
    rng = np.random.default_rng(0)
    bags = [rng.normal(size=(rng.integers(1, 12), 2)) for _ in range(150)]
    labels = np.array([bag.max() for bag in bags])
    store = BagStore.create(tmp_path / "s.zarr", 2, target_names=["y"], box=[(-6, 6)] * 2).append(
        bags, labels
    )
    urls = settings(data_url=store.url, model_url=tmp_path / "m.zarr", report=tmp_path / "f.json")
    arguments = settings(holdout=0.3, model__embedding="moments", model__random_features="false")
    printed = done("fit", *urls, *arguments)
    assert "a random forest on moments, minima and maxima" in printed
    message = Page(tmp_path / "f.html").worries
    assert message.startswith("The model is no better than a random forest on moments")


def test_a_page_of_somebody_else_is_not_replaced(named, tmp_path):
    """A job refuses at once to write over it."""
    page = tmp_path / "fit.html"
    page.write_text("<html>years of work</html>")
    urls = settings(data_url=named / "s.zarr", model_url=tmp_path / "m.zarr")
    line = refused(1, "fit", *urls, *settings(report=tmp_path / "fit.json"))
    assert "fit.html: exists and is not a report of a job" in line
    assert page.read_text() == "<html>years of work</html>"


@pytest.mark.long
def test_the_result_stands_first_and_where_it_comes_from_last(fit_of):
    """Error and rivals before the worries; data, versions and config folded at the end."""
    page, folder = fit_of(f'y"{EVIL}')
    judged = json.loads((folder / "fit.json").read_text())["judged"]
    first = " ".join(page.texts[: page.texts.index("What to worry about")])
    for key in ("error", "constant_error", "means_error", "forest_error"):
        assert rounded(judged[key], judged["standard_error"]) in first
    assert "versions" not in first
    folded = page.texts.index("Where this comes from: data, models, versions, seeds")
    assert page.texts.index("versions") > folded > page.texts.index("Model card")
    assert page.tags["details"] == 2


def test_colours_can_be_read_in_the_light_and_in_the_dark():
    """Each colour has a dark twin; contrasts are those that WCAG asks of texts and of lines."""
    style = resources.files("bagbasis.jobs").joinpath("page.html").read_text()
    light, dark = (
        dict(re.findall(r"--(\w+): (#\w+)", part))
        for part in re.findall(r":root \{([^}]*--blue[^}]*)\}", style)
    )
    assert light.keys() == dark.keys() > {"text", "page"}
    for colours in (light, dark):
        grounds = [colours[name] for name in ("page", "warn", "fine", "code")]
        assert min(contrast(colours["text"], ground) for ground in grounds) >= 4.5
        assert contrast(colours["soft"], colours["page"]) >= 4.5
        for name in ("blue", "orange", "grey", "green", "purple"):
            assert contrast(colours[name], colours["page"]) >= 3, name
    assert "@media print" in style


def contrast(first, second):
    """The ratio of luminances of two colours, by WCAG 2."""
    low, high = sorted(luminance(colour) for colour in (first, second))
    return (high + 0.05) / (low + 0.05)


def luminance(colour):
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    rgb = np.array([int(digits[i : i + 2], 16) for i in (0, 2, 4)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize(
    ("values", "log", "labels"),
    [
        ([0.0125, 0.4], True, "0.02 0.05 0.1 0.2"),
        ([1e-9, 1e-3], True, "1e-08 1e-06 0.0001"),
        ([0.31, 0.42], True, "0.32 0.34 0.36 0.38 0.4 0.42"),
        ([0.0, 1.0], False, "0 0.2 0.4 0.6 0.8 1"),
    ],
)
def test_ticks_do_not_run_into_each_other(values, log, labels):
    """1, 2 and 5; labels have room on a phone, or are left out."""
    ticks = AxisScale(values, 66, 446, log).ticks
    assert " ".join(label for _, label in ticks) == labels
    narrow = AxisScale(values, 10, 60, log).ticks
    for scale in (ticks, narrow):
        for (a, first), (b, other) in itertools.pairwise(scale):
            assert b - a >= 3.5 * (len(first) + len(other))
    assert len(narrow) < len(ticks)


def test_charts_lie_within_their_axes():
    """Any values: one, none, infinite, of a logarithm; ticks are within, and dots too."""
    scales = [
        AxisScale([3.0], 10, 110, True),
        AxisScale([], 10, 110, False),
        AxisScale([1e-6, 1e3], 10, 110, True),
        AxisScale([0.0, 5.0], 10, 110, True),  # no logarithm of 0: linear
    ]
    for scale in scales:
        assert scale.ticks
        assert all(10 <= at <= 110 for at, _ in scale.ticks)
    assert [label for _, label in scales[3].ticks] == ["0", "1", "2", "3", "4", "5"]
    for rounds, labels in ([1.0], ["1"]), ([1.0, 2.0], ["1", "2"]):
        assert [label for _, label in AxisScale(rounds, 10, 400, False).ticks] == labels
    y = [1.0, float("nan"), 3.0]
    chart = Chart("", "", "", [Series("", [1, 2, 3], y, bars=[0.5] * 3)], guide="zero")
    [(_, points)] = chart.drawn()
    assert len(points) == 2
    assert all(low > middle > high for _, middle, low, high, _ in points)
    [(left, at), (right, same)] = chart.line()
    assert left < right
    assert at == same > points[0][2]  # 0 lies below the bars
    rows = thin(5000, 100)
    assert len(rows) == 100
    assert (np.diff(rows) > 0).all()
    assert thin(3, 100).tolist() == [0, 1, 2]


@pytest.mark.long
@pytest.mark.parametrize("target", ["side", f'y"{EVIL}'])
def test_importance(named, fit_of, tmp_path, target):
    """A bar and a row per coordinate."""
    _, folder = fit_of(target)
    urls = settings(data_url=named / "s.zarr", model_url=folder / "fit.zarr")
    out = tmp_path / "out"
    message = done("evaluate", *urls, *settings(out_dir=out, importance="true"))
    result = json.loads((out / "report.json").read_text())["importance"]
    [values] = result["targets"].values()
    names = [item["coordinate"] for item in values["drops"]]
    assert names == (["1", "0"] if target == "side" else ["0", "1"])
    assert f"drop of {result['measure']}" in message
    page = Page(out / "report.html")
    page.assert_self_contained()
    bars = [title for title in page.titles if not title.startswith(("bag ", "group ", "without "))]
    assert [title.split(":")[0] for title in bars] == names
    assert f"{values['drops'][0]['drop']:.4g} ± " in bars[0]
