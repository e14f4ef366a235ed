"""Pictures are valid, not blank, and show the density the model's basis estimates."""

from __future__ import annotations

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from bagbasis import BagStore, Box, ConfigError
from bagbasis.embeddings import SeriesShape
from bagbasis.hypotheses import two_sample_test
from bagbasis.jobs.pictures import densities, evaluation, scales, tuning
from bagbasis.jobs.pictures.densities import draw_bags
from bagbasis.jobs.pictures.errors_page import probability_table, reliability
from bagbasis.jobs.pictures.evaluation import (
    draw_confusion,
    draw_judged_predictions,
    draw_residuals,
)
from bagbasis.jobs.pictures.rounds import draw_rounds
from bagbasis.jobs.pictures.tuning import draw_tuning
from bagbasis.models import Rung, Score
from tests.jobs.running import assert_picture
from tests.models.evaluation.judged import class_errors, real_errors
from tests.shown import rounded, with_error


@pytest.mark.long
@pytest.mark.parametrize(("n_dims", "joint"), [(1, True), (2, True), (2, False), (5, False)])
def test_bags_are_drawn_in_any_dimension(tmp_path, n_dims, joint):
    """One to many coordinates, single points and points outside the box."""
    rng = np.random.default_rng(0)
    bags = [rng.normal(3, 1, (n, n_dims)) for n in (1, 50, 3000)]
    box = Box((0.0,) * n_dims, (5.0,) * n_dims)
    names = [f"coordinate {j} (m)" for j in range(n_dims)]
    series = SeriesShape(basis="cosine", n_per_dim=6, max_norm=None, joint=joint)
    path = draw_bags(tmp_path / "a.png", bags, ["a", "b", "c"], box, series, names, n_dims == 2)
    assert_picture(path)
    assert [p.name for p in tmp_path.iterdir()] == ["a.png"]


@pytest.mark.long
@pytest.mark.parametrize("kind", ["integers", "few", "many", "constant", "one"])
def test_predictions_of_any_kind_are_drawn(tmp_path, kind):
    """Violins, dots, hexagons; a target without variance; a single bag."""
    rng = np.random.default_rng(0)
    true = {
        "integers": rng.integers(1, 11, 500).astype(float),
        "few": rng.normal(size=300),
        "many": rng.normal(size=8000),
        "constant": np.full(100, 2.0),
        "one": np.array([0.3]),
    }[kind]
    predicted = true + 0.1 * rng.normal(size=len(true))
    errors = real_errors(true[:, None], predicted[:, None]).values()
    what = [np.column_stack([true, predicted])], ["y"], list(errors.values())
    assert_picture(draw_judged_predictions(tmp_path / "p.png", *what))
    assert_picture(draw_residuals(tmp_path / "r.png", *what))


@pytest.mark.long
@pytest.mark.parametrize("n_classes", [2, 120])
def test_confusion_of_any_size(tmp_path, n_classes):
    """Few classes with their counts, many as colours."""
    matrix = np.eye(n_classes, dtype=int) * 9 + 1
    names = [f"class {i}" for i in range(n_classes)]
    assert_picture(draw_confusion(tmp_path / "c.png", matrix, names, "kind", 0.9))


def test_axes_have_the_stores_names(tmp_path):
    """Coordinate names that ingest left in the store label the axes."""
    from bagbasis.jobs.commands.evaluation import TargetView

    def names(value=None):
        return TargetView(None, store, value).coordinate_names

    store = BagStore.create(tmp_path / "a.zarr", 2)
    assert names() == ["coordinate 0", "coordinate 1"]
    with store.appending({"coordinates": ["height", "width"]}):
        pass
    assert names() == ["height", "width"]
    assert names(["x (m)", "y (m)"]) == ["x (m)", "y (m)"]
    with pytest.raises(ConfigError, match=r"'coordinate_names' has 3 names; .* has 2 coord"):
        names(["x", "y", "z"])


@pytest.mark.long
def test_panels_of_a_plane_share_a_scale_and_titles_stay_above_them(tmp_path, monkeypatch):
    """One colour bar, no higher than the panels; no title runs into another panel."""
    monkeypatch.setattr(densities, "save_figure", lambda figure, path: figure)
    rng = np.random.default_rng(0)
    bags = [rng.random((n, 2)) for n in (40, 200)]
    titles = [f"bag patient-{i:04}: number of components {i}, predicted 3.4567" for i in range(2)]
    series = SeriesShape(basis="cosine", n_per_dim=4, max_norm=None, joint=True)
    figure = draw_bags(tmp_path / "a.png", bags, titles, Box.unit(2), series, ["x", "y"])
    figure.draw_without_rendering()
    *panels, bar = figure.axes
    assert len(panels) == 2
    assert len({panel.images[0].get_clim() for panel in panels}) == 1
    boxes = [panel.get_window_extent() for panel in panels]
    assert bar.get_window_extent().height <= boxes[0].height
    for own, panel in zip(boxes, panels, strict=True):
        title = panel.title.get_window_extent()
        others = [*boxes, bar.get_window_extent()]
        assert not any(title.overlaps(other) for other in others if other is not own)
        assert panel.xaxis.label.get_window_extent().y0 > 0


@pytest.mark.parametrize(("n", "expected"), [(4, 5), (178, 13), (10_000, 60)])
def test_few_bags_have_few_bins(tmp_path, monkeypatch, n, expected):
    """As many as the root of their number."""
    monkeypatch.setattr(evaluation, "save_figure", lambda figure, path: figure)
    true = np.random.default_rng(0).normal(size=(n, 1))
    errors = real_errors(true, true + 0.1).values()
    figure = draw_residuals("a.png", [np.hstack([true, true**2])], ["y"], list(errors.values()))
    assert len(figure.axes[0].patches) == expected


@pytest.mark.parametrize("p_value", [None, 0.3])
def test_no_panel_of_drift_before_it_was_tested(p_value):
    """Panels of errors and new bags alone, in the first round."""
    values = {"number": 1, "error": 0.2, "champion_error": None, "decision": "promoted"}
    values |= {"n_new": 9, "n_new_labelled": 5, "level": None, "p_values": {}, "p_value": p_value}
    figure = draw_rounds([SimpleNamespace(**values, wealth={})], {"measure": "RMSE"})
    assert len(figure.axes) == (2 if p_value is None else 3)
    legends = [[text.get_text() for text in axis.get_legend().texts] for axis in figure.axes[:2]]
    assert legends == [["challenger"], ["new bags", "with a label"]]


@pytest.mark.parametrize("n_labelled", [9, 5, 0])
def test_bags_with_a_label_are_seen_where_all_have_one(n_labelled):
    """A dot within a ring; a round without labels is on the axis, which begins at 0."""
    values = {"number": 1, "error": None, "champion_error": None, "decision": "kept", "level": None}
    values |= {"n_new": 9, "n_new_labelled": n_labelled, "p_values": {}, "p_value": None}
    panel = draw_rounds([SimpleNamespace(**values, wealth={})], {"measure": "RMSE"}).axes[1]
    ring, dot = panel.lines
    assert ring.get_markersize() > 1.5 * dot.get_markersize()
    assert (ring.get_markerfacecolor(), [*ring.get_ydata()]) == ("none", [9])
    assert [*dot.get_ydata()] == [n_labelled]
    assert panel.get_ylim()[0] == 0
    assert [text.get_text() for text in panel.texts] == ["9"]


def test_one_prediction_stretches_no_axis(monkeypatch):
    """Axes show the truth and a quarter of its range more; how many bags lie beyond is said."""
    monkeypatch.setattr(evaluation, "save_figure", lambda figure, path: figure)
    true = np.repeat(np.arange(1.0, 11.0), 20)
    predicted = true + np.tile([-0.5, 0.5], 100)
    predicted[:3] = [-40.0, 90.0, -1.0]
    errors = real_errors(true[:, None], predicted[:, None]).values()
    figure = draw_judged_predictions(
        "p", [np.stack([true, predicted], 1)], ["y"], [*errors.values()]
    )
    [axis] = figure.axes
    assert axis.get_xlim() == pytest.approx((1 - 0.54, 10 + 0.54))
    assert axis.get_ylim() == pytest.approx((-1.25 - 0.54, 12.25 + 0.54))
    assert "2 bags lie beyond the axis" in {text.get_text() for text in axis.get_legend().texts}


def test_a_single_rung_is_a_ranking(monkeypatch):
    """Candidates by name, the winner on top, instead of a column of dots over one number."""
    monkeypatch.setattr(tuning, "save_figure", lambda figure, path: figure)
    errors = np.linspace(0.2, 0.9, 20)[::-1].tolist()
    scores = {
        c: Score(
            error=e,
            n_bags=90,
            n_train=60,
            n_held_out=30,
            alpha=1.0,
            alphas=(1.0, 2.0),
            errors=(e, 1.0),
            seconds=0.1,
        )
        for c, e in enumerate(errors)
    }
    names = [f"candidate {c}" for c in range(20)]
    _, right = draw_tuning(
        "t", [Rung(n_blocks=1, n_bags=90, n_candidates=20, n_kept=1)], [scores], names, 19
    ).axes
    assert [text.get_text() for text in right.get_yticklabels()] == names[:4:-1]
    at = {round(line.get_ydata()[0]): line.get_xdata()[0] for line in right.lines}
    assert [at[place] for place in range(20)] == pytest.approx(sorted(errors))
    assert right.get_xlim()[1] < errors[0]
    assert right.get_title() == "The best 15 of 20 on 90 bags"


@pytest.mark.parametrize("sharpened", [1, 4])
def test_calibration_of_probabilities(sharpened):
    """Groups of honest probabilities are right as often as said; of sharpened ones less often."""
    rng = np.random.default_rng(0)
    shares = rng.dirichlet([1.0, 1.0, 1.0], 2000)
    true = (shares.cumsum(axis=1) < rng.random((2000, 1))).sum(axis=1).astype(float)
    scores = shares**sharpened
    errors = class_errors((0.0, 1.0, 2.0), ("a", "b", "c"), true, scores)
    [series] = reliability(errors).series
    message = scores / scores.sum(axis=1, keepdims=True)
    order = np.argsort(message.max(axis=1), kind="stable").reshape(10, 200)
    right = message.argmax(axis=1) == true
    np.testing.assert_allclose(series.x, message.max(axis=1)[order].mean(axis=1))
    np.testing.assert_allclose(series.y, right[order].mean(axis=1))
    low, high = np.array(series.bars).T
    assert ((low >= 0) & (high <= 1) & (low <= series.y) & (high >= series.y)).all()
    gaps = 2 * (np.array(series.x) - series.y) / (high - low)
    assert np.abs(gaps).max() < 3 if sharpened == 1 else np.median(gaps) > 3
    brier = ((message - np.eye(3)[true.astype(int)]) ** 2).sum(axis=1)
    classes = 1 - (np.bincount(true.astype(int)) ** 2).sum() / 2000**2
    [[_, *_, model], [_, *_, constant]] = probability_table(errors, {}).rows
    spread = brier.std() / 2000**0.5
    assert model == with_error(brier.mean(), spread)
    assert constant == rounded(classes, spread)


def test_widths_have_plain_labels_that_do_not_touch(monkeypatch, tmp_path):
    """Less than two decades of widths, where matplotlib labels each tick with a product."""
    figures = []
    monkeypatch.setattr(scales, "save_figure", lambda figure, path: figures.append(figure))
    widths = np.geomspace(0.18, 6.9, 10)
    table = {"kernel": ["gaussian"] * 10, "bandwidth": widths, "weight": np.full(10, 0.1)}
    a, b = np.random.default_rng(0).normal(size=(2, 20, 2))
    tested = two_sample_test(a, b, statistic="fuse", n_permutations=19)
    result = replace(tested, details={"scales": table})
    scales.draw_scales(tmp_path / "s.png", result)
    [figure] = figures
    figure.canvas.draw()
    axis = figure.axes[0].xaxis
    labels = [text for text in axis.get_ticklabels(which="both") if text.get_text()]
    assert {"0.5", "1", "2", "5"} <= {text.get_text() for text in labels}
    boxes = sorted(text.get_window_extent().intervalx.tolist() for text in labels)
    assert all(first[1] < other[0] for first, other in itertools.pairwise(boxes))
