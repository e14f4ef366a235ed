"""Pictures are valid, not blank, and show the density the model's basis estimates."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import BagStore
from bagbasis.bags import Box
from bagbasis.embeddings import SeriesShape
from bagbasis.errors import ConfigError
from bagbasis.jobs.pictures.densities import draw_bags
from bagbasis.jobs.pictures.evaluation import draw_confusion, draw_predictions, draw_residuals
from tests.evaluation.judged import real_errors
from tests.jobs.running import assert_picture


@pytest.mark.parametrize(
    ("n_dims", "joint"), [(1, True), (2, True), (2, False), (3, True), (3, False), (5, False)]
)
def test_bags_are_drawn_in_any_dimension(tmp_path, n_dims, joint):
    """One to many coordinates, single points and points outside the box."""
    rng = np.random.default_rng(0)
    bags = [rng.normal(3, 1, (n, n_dims)) for n in (1, 50, 3000)]
    box = Box((0.0,) * n_dims, (5.0,) * n_dims)
    names = [f"coordinate {j} (m)" for j in range(n_dims)]
    series = SeriesShape("cosine", 6, None, joint)
    path = draw_bags(tmp_path / "a.png", bags, ["a", "b", "c"], box, series, names, n_dims == 2)
    assert_picture(path)
    assert [p.name for p in tmp_path.iterdir()] == ["a.png"]


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
    assert_picture(draw_predictions(tmp_path / "p.png", *what))
    assert_picture(draw_residuals(tmp_path / "r.png", *what))


def test_many_targets_are_drawn_in_panels(tmp_path):
    """More than nine targets: the first nine."""
    true = np.arange(20.0) / 7
    errors = real_errors(np.tile(true[:, None], 12), np.tile(true[:, None] + 0.1, 12)).values()
    pairs = [np.column_stack([true, true + 0.1])] * 9
    what = pairs, list(errors), list(errors.values())
    assert_picture(draw_predictions(tmp_path / "p.png", *what))


@pytest.mark.parametrize("n_classes", [2, 10, 120])
def test_confusion_of_any_size(tmp_path, n_classes):
    """Few classes with their counts, many as colours."""
    matrix = np.eye(n_classes, dtype=int) * 9 + 1
    names = [f"class {i}" for i in range(n_classes)]
    assert_picture(draw_confusion(tmp_path / "c.png", matrix, names, "kind", 0.9))


def test_axes_have_the_stores_names(tmp_path):
    """Coordinate names that ingest left in the store label the axes."""
    from bagbasis.jobs.evaluation import TargetView

    def names(given=None):
        return TargetView(None, store, given).coordinate_names

    store = BagStore.create(tmp_path / "a.zarr", 2)
    assert names() == ["coordinate 1", "coordinate 2"]
    with store.appending({"coordinates": ["height", "width"]}):
        pass
    assert names() == ["height", "width"]
    assert names(["x (m)", "y (m)"]) == ["x (m)", "y (m)"]
    with pytest.raises(ConfigError, match=r"'coordinate_names' has 3 names; .* has 2 coord"):
        names(["x", "y", "z"])
