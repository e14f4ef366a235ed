"""`bags test`: the table, the report and the picture; wrong keys are one line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from bagbasis import BagStore, MomentsEmbedding
from bagbasis.hypotheses import (
    NFSIC,
    FourierMMD,
    MeanEmbeddings,
    MixtureScore,
    fit_test,
    independence_test,
    two_sample_test,
)
from bagbasis.jobs.conclusions import lines_of_test, worries_of_test
from bagbasis.jobs.pictures import locations, scales
from bagbasis.jobs.pictures.evaluation import BLUE, ORANGE
from bagbasis.jobs.pictures.hypothesis_part import hypothesis_part
from bagbasis.jobs.pictures.locations import draw_locations
from bagbasis.jobs.pictures.scales import draw_coordinates, draw_scales
from tests.jobs.pages import Page
from tests.jobs.running import CONFIGS, assert_picture, done, refused, settings


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Thirty bags, and twenty more that are shifted; ten days of five bags."""
    rng = np.random.default_rng(0)
    bags = [(i >= 30) + rng.standard_normal((8, 2)) for i in range(50)]
    days = np.arange(50) // 5
    url = tmp_path_factory.mktemp("tests") / "bags.zarr"
    return BagStore.create(url, 2, target_names=["day"]).append(bags, days)


def assert_same_words(printed, folder):
    """The page begins with the first line of the terminal, and draws what the test found."""
    page = Page(folder / "report.html")
    page.assert_self_contained()
    first = printed.splitlines()[0]
    assert page.answer == first
    assert f"Next: {page.texts[page.texts.index('Next:') + 1]}" in printed
    assert "The statistic, and what chance alone gives" in page.texts


@pytest.mark.long
def test_two_sample(store, tmp_path):
    """As the function finds it, of two ranges of one store."""
    wanted = {"a_url": store.url, "a_bags": "[0, 30]", "b_bags": "[30, 50]"}
    more = {"parameters": "{n_frequencies: 32}", "embedding": "moments", "out_dir": tmp_path}
    more["statistic"] = "fourier"
    printed = done(
        "test", "two-sample", "-v", CONFIGS / "test-two-sample.yaml", *settings(**wanted, **more)
    )
    report = json.loads((tmp_path / "report.json").read_text())
    expected = two_sample_test(
        (store, 0, 30),
        (store, 30, 50),
        statistic=FourierMMD(n_frequencies=32),
        embedding=MomentsEmbedding(),
    )
    assert report["statistic"] == pytest.approx(expected.statistic)
    assert report["p_value"] == expected.p_value == 0.001
    assert report["n_units"] == {"a": 30, "b": 20}
    assert "fourier(n_frequencies=32)" in printed.replace("\n", "")
    assert printed.startswith("The samples differ (p = 0.001, level 0.05). Effect: ")
    assert_same_words(printed, tmp_path)
    assert_picture(tmp_path / "null.png")
    assert not (tmp_path / "scales.png").exists()
    done("test", "two-sample", *settings(**wanted, groups="day", null="null", out_dir=tmp_path))
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["unit"], report["n_units"]) == ("group", {"a": 6, "b": 4})
    assert report["name"] == "fuse_ranks"


@pytest.mark.long
@pytest.mark.parametrize("statistic", ["fuse", "fuse_ranks", "agg"])
def test_scales_are_drawn(monkeypatch, tmp_path, statistic):
    """A curve per kernel: weights, or corrected p-values with the level."""
    rng = np.random.default_rng(0)
    r = two_sample_test(*rng.standard_normal((2, 60, 1)), statistic=statistic, n_permutations=19)
    assert_picture(draw_scales(tmp_path / "scales.png", r))
    monkeypatch.setattr(scales, "save_figure", lambda figure, path: figure)
    axis = draw_scales("unused", r).axes[0]
    curves = axis.lines[:2]
    key = "corrected" if statistic == "agg" else "weight"
    drawn = np.concatenate([line.get_ydata() for line in curves])
    np.testing.assert_array_equal(drawn, r.details["scales"][key])
    assert axis.get_xscale() == "log"


@pytest.mark.long
def test_coordinates_are_drawn(store, monkeypatch, tmp_path):
    """A bar per coordinate, the largest first, by the command, too."""
    wanted = {"a_url": store.url, "a_bags": "[0, 30]", "b_bags": "[30, 50]", "bandwidth": "ard"}
    printed = done("test", "two-sample", "-v", *settings(**wanted, out_dir=tmp_path))
    assert "coordinates that differ" in printed
    assert_same_words(printed, tmp_path)
    assert_picture(tmp_path / "coordinates.png")
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((2, 60, 3))
    Y[:, 1] += 1
    r = two_sample_test(X, Y, bandwidth="ard", n_permutations=19)
    monkeypatch.setattr(scales, "save_figure", lambda figure, path: figure)
    axis = draw_coordinates("unused", r).axes[0]
    lost = r.details["coordinates"]["lost_without"]
    heights = [bar.get_height() for bar in axis.patches]
    np.testing.assert_array_equal(heights, np.sort(lost)[::-1])
    assert next(text.get_text() for text in axis.get_xticklabels()) == "1"


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ({"statistic": "mmd"}, 2, "statistic is 'mmd' (did you mean 'mmd_u'?); expected one of"),
        ({"parameters": "{L: 3}"}, 2, "unknown key 'parameters.L'; fourier has n_frequencies"),
        ({"parameters": "{n_frequency: 3}"}, 2, "(did you mean 'n_frequencies'?)"),
        ({"parameters": "{n_frequencies: 0}"}, 2, "key 'parameters': n_frequencies is 0"),
        ({"null": "normal"}, 2, "the statistic 'fourier' admits"),
        ({"groups": "week"}, 1, "no target 'week'; there are ['day']"),
        ({"b_bags": "[30, 60]"}, 1, "bags 30:60 of 50 do not exist"),
    ],
)
def test_refusals(store, tmp_path, change, code, message):
    """One line, of what the library says."""
    arguments = {
        "statistic": "fourier",
        "a_url": store.url,
        "out_dir": tmp_path,
        "a_bags": "[0, 9]",
        "b_bags": "[9, 18]",
    }
    arguments |= change
    assert message in refused(code, "test", "two-sample", *settings(**arguments))


@pytest.mark.long
@pytest.mark.parametrize("ranges", [{}, {"a_bags": [3, 9]}, {"a_bags": [0, 9], "b_bags": [8, 12]}])
def test_a_sample_is_not_compared_with_itself(store, tmp_path, ranges):
    """Which would be no difference, with a p-value of 1."""
    arguments = settings(a_url=store.url, b_url=store.url, out_dir=tmp_path / "out", **ranges)
    line = refused(2, "test", "two-sample", *arguments)
    assert "both samples have the bags" in line
    assert line.strip().endswith("give b_url, or a_bags and b_bags")
    assert not (tmp_path / "out" / "report.json").exists()


def test_reports_are_not_written_into_a_store(store):
    """Which is a folder, too."""
    arguments = settings(a_url=store.url, a_bags=[0, 9], b_bags=[9, 18], out_dir=store.url)
    line = refused(1, "test", "two-sample", *arguments)
    assert f"{store.url}: is a store or a model; give another folder for reports" in line


def test_groups_of_two_stores_are_told_by_name(tmp_path):
    """Codes differ between stores: equal codes are other sites, and other codes the same site."""

    def made(name, sites):
        rng = np.random.default_rng(len(name))
        labels = [sites[i // 3] for i in range(30)]
        store = BagStore.create(
            tmp_path / name, 2, target_names=["site"], class_names={"site": sorted(sites)}
        )
        return store.append([rng.standard_normal((8, 2)) for _ in labels], {"site": labels}).url

    first = made("a", [f"a{i}" for i in range(10)])
    words = settings(a_url=first, groups="site", n_permutations=99, out_dir=tmp_path / "out")
    second = made("bb", [f"b{i}" for i in range(10)])
    report = json.loads(done("test", "two-sample", *words, *settings(b_url=second), "--json"))
    assert report["n_units"] == {"a": 10, "b": 10}
    third = made("ccc", [*(f"A{i}" for i in range(9)), "a3"])
    line = refused(1, "test", "two-sample", *words, *settings(b_url=third))
    assert "the group a3 is in both samples" in line


def test_codes_of_classes_are_not_tested_as_numbers(tmp_path):
    store = BagStore.create(
        tmp_path / "s", 2, target_names=["site"], class_names={"site": ["a", "b"]}
    )
    store.append([np.eye(2)] * 20, {"site": ["a", "b"] * 10})
    words = settings(data_url=store.url, targets="[site]", out_dir=tmp_path / "out")
    assert "targets: 'site' has classes, ['a', 'b']" in refused(1, "test", "fit", *words)


def test_independence(store, tmp_path):
    """As the function finds it: the bags of a store depend on the day."""
    wanted = {"data_url": store.url, "target": "day", "out_dir": tmp_path}
    more = {"parameters": "{n_locations: 3}", "statistic": "nfsic"}
    printed = done(
        "test", "independence", CONFIGS / "test-independence.yaml", *settings(**wanted, **more)
    )
    report = json.loads((tmp_path / "report.json").read_text())
    expected = independence_test(store, "day", statistic=NFSIC(n_locations=3))
    assert report["statistic"] == pytest.approx(expected.statistic)
    assert report["n_units"] == {"pairs": 50}
    assert printed.startswith("The variables depend on each other (p = ")
    assert_same_words(printed, tmp_path)
    assert_picture(tmp_path / "null.png")
    assert_picture(tmp_path / "locations.png")
    assert report["pictures"] == [str(tmp_path / f"{name}.png") for name in ("null", "locations")]
    assert len(report["details"]["contributions"]) == 3
    done("test", "independence", *settings(**wanted, groups="day", bags="[0, 40]"))
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["unit"], report["n_units"]) == ("group", {"pairs": 8})


@pytest.mark.long
def test_independence_of_groups_with_bags_that_are_left_out(tmp_path):
    """One bag is smaller than the others, three have no label; each has a group."""
    rng = np.random.default_rng(2)
    made = BagStore.create(tmp_path / "s.zarr", 2, target_names=["y", "day"], box=[(-6, 6)] * 2)
    y = rng.normal(size=80)
    y[[3, 30, 31]] = np.nan
    bags = [rng.normal(size=(k, 2)) for k in [24] * 79 + [14]]
    made.append(bags, targets={"y": y, "day": np.arange(80) // 4})
    wanted = settings(data_url=made.url, target="y", groups="day", out_dir=tmp_path / "out")
    printed = done("test", "independence", *wanted)
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert (report["n"], report["n_units"]) == ({"pairs": 76}, {"pairs": 20})
    assert report["details"]["pairs_left_out"] == 4
    arguments = settings(data_url=made.url, target="y", within="day", statistic="hsic_agg",
                     out_dir=tmp_path / "out")  # fmt: skip
    done("test", "independence", *arguments)
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    expected = independence_test(made, "y", statistic="hsic_agg", within=np.arange(80) // 4)
    assert report["p_value"] == expected.p_value
    assert "left out" in printed


def _drawn(monkeypatch, result):
    """The axis, and the areas and colours of the locations."""
    monkeypatch.setattr(locations, "save_figure", lambda figure, path: figure)
    axis = draw_locations("unused", result).axes[0]
    dots = axis.collections[-1]
    return axis, dots.get_sizes(), [tuple(color[:3]) for color in dots.get_facecolors()]


@pytest.mark.long
def test_locations_are_drawn_where_the_difference_is(monkeypatch, tmp_path):
    """The two of six coordinates that differ are drawn, in the colour of the sample with more rows
    there, as large as the location contributes. For dependence, the coordinate that matters."""
    rng = np.random.default_rng(3)
    X, Y = rng.standard_normal((2, 600, 6))
    Y[:, [1, 4]] *= 0.2
    where = np.zeros((2, 6))
    where[1, 4] = 2.0  # where X has more; Y is crowded at 0
    r = two_sample_test(
        X, Y, statistic=MeanEmbeddings(n_locations=2, locations=where.tolist()), bandwidth=1.0
    )
    assert_picture(draw_locations(tmp_path / "d6.png", r))
    axis, areas, colours = _drawn(monkeypatch, r)
    assert {axis.get_xlabel(), axis.get_ylabel()} == {"coordinate 1", "coordinate 4"}
    assert colours == [to_rgb(ORANGE), to_rgb(BLUE)]
    first, second = r.details["contributions"]
    assert areas[1] / areas[0] == pytest.approx(max(second, 0) / first, abs=0.05)
    x = rng.standard_normal((800, 3))
    r = independence_test(x, x[:, 1] ** 2, statistic=NFSIC(n_locations=4))
    axis, areas, _ = _drawn(monkeypatch, r)
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("x, coordinate 1", "y")
    assert int(np.argmax(areas)) == int(np.argmax(r.details["contributions"]))


@pytest.mark.long
@pytest.mark.parametrize("n_dims", [1, 20])
def test_locations_of_few_and_many_coordinates(monkeypatch, tmp_path, n_dims):
    """One coordinate: curves. Of many: principal directions, which the axes name."""
    rng = np.random.default_rng(4)
    r = two_sample_test(*rng.standard_normal((2, 100, n_dims)), statistic="me")
    assert_picture(draw_locations(tmp_path / "a.png", r))
    axis, *_ = _drawn(monkeypatch, r)
    name = "coordinate 0" if n_dims == 1 else "principal direction"
    assert axis.get_xlabel().startswith(name)
    bags = [rng.standard_normal((9, 2)) for _ in range(40)]
    r = independence_test(bags, ["a", "b"] * 20, statistic="nfsic")
    axis, *_ = _drawn(monkeypatch, r)
    assert "embeddings of bags" in axis.get_title()


@pytest.mark.long
def test_fit(store, tmp_path):
    """As the function finds it: the days are not normal, and not two normals in one."""
    wanted = {"data_url": store.url, "targets": "[day]", "out_dir": tmp_path}
    mixture = {"means": "[[2.0], [7.0]]", "covariances": 2.0}
    done("test", "fit", CONFIGS / "test-fit.yaml", *settings(**wanted, **mixture))
    report = json.loads((tmp_path / "report.json").read_text())
    days = store.targets(0, 50, names=("day",))
    expected = fit_test(days, MixtureScore([[2.0], [7.0]], 2.0))
    assert report["statistic"] == pytest.approx(expected.statistic)
    assert report["p_value"] == expected.p_value
    assert_picture(tmp_path / "null.png")
    done("test", "fit", *settings(**wanted, statistic="fssd"))
    assert json.loads((tmp_path / "report.json").read_text())["p_value"] == 0.001
    far = fit_test(days, MixtureScore([[200.0]], 2.0), n_draws=99)
    assert (far.null, far.p_value) == ("wild_bootstrap", 0.01)
    [worry] = worries_of_test(far)
    assert worry.startswith("The p-value is the least that 99 draws of the wild bootstrap can give")
    assert "(n_draws)" in worry  # the parameter of fit_test, and the key of the job
    done("test", "fit", *settings(**wanted, n_permutations=19))  # the key of before
    assert len(json.loads((tmp_path / "report.json").read_text())["null_distribution"]) == 19


@pytest.mark.parametrize("shift", [0.0, 3.0])
def test_a_page_never_says_that_samples_differ_where_they_do_not(shift):
    """The titles of its charts say it, too; a statistic that is far away is named, not drawn."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 60, 2))
    result = two_sample_test(a, b + shift, statistic="fuse", n_permutations=99)
    part = hypothesis_part(result)
    lines = lines_of_test(result)
    assert part.answer == lines[0]
    assert lines[-1].startswith("Next: ")
    differs = result.p_value <= 0.05
    assert differs == (shift > 0)
    assert ("No difference of the samples was detected" in lines[0]) != differs
    titles = [chart.title for chart in part.charts]
    assert any("no significant difference" in title for title in titles) != differs
    assert not any("where the samples differ" in title for title in titles)
    null = part.charts[0]
    assert ("far to the right" in null.note) == (len(null.series) == 2) == differs
    drift = hypothesis_part(result, level=0.01)
    assert drift.answer.startswith("Drift: the new data differ" if differs else "No drift was")
