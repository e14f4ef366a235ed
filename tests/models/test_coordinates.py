"""Which coordinates `embedding="auto"` embeds, where labels depend on some of them alone."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from bagbasis import Bags, BagStore, DoubleBasisRegressor, load_model
from bagbasis.data.store.sampling import spread_rows
from bagbasis.models.fitting.choice import coordinates
from bagbasis.models.fitting.choice.coordinates import stable_sets
from bagbasis.models.fitting.fold_errors import FoldRows, assign_folds


def sets_of(bags, y):
    y = np.asarray(y, float).reshape(len(bags), -1)
    units = y.var(axis=0) + (np.ptp(y, axis=0) == 0)
    rows = FoldRows(y, assign_folds(len(y)), units, np.ones(len(y)), np.arange(len(y)))
    return stable_sets(Bags.from_list(bags), rows)


def bags_of_means(n, d, seed=0, size=20):
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(n, d))
    return means, [mean + rng.normal(size=(size, d)) for mean in means], rng


def spreads(n=200):
    _, bags, rng = bags_of_means(n, 9)
    scales = rng.uniform(0.5, 2, n)
    return [bag * np.where(np.arange(9) == 4, s, 1) for bag, s in zip(bags, scales, strict=True)], (
        np.log(scales)
    )


def correlations(n=200):
    rng = np.random.default_rng(1)
    r = rng.uniform(-0.9, 0.9, n)
    bags = rng.normal(size=(n, 60, 12))
    bags[:, :, 7] = r[:, None] * bags[:, :, 3] + np.sqrt(1 - r**2)[:, None] * bags[:, :, 7]
    return list(bags), r


def shares_of_a_category(n=200):
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.ones(4), (n, 8))
    bags = [np.column_stack([rng.choice(4, 50, p=q) for q in row]) for row in p]
    return bags, p[:, 6, 2]


def products_of_means(n=300):
    means, bags, _ = bags_of_means(n, 10, seed=4)
    return bags, means[:, 2] * means[:, 9]


def waves(n=200):
    means, bags, _ = bags_of_means(n, 20, seed=3)
    return bags, np.sin(2.5 * means[:, 11])


def three_of_many(n=300):
    means, bags, _ = bags_of_means(n, 30, seed=5)
    return bags, np.column_stack([means[:, 1], means[:, 8] ** 2 - means[:, 20]])


@pytest.mark.parametrize(
    ("drawn", "expected"),
    [
        (spreads, (4,)),
        (correlations, (3, 7)),
        (shares_of_a_category, (6,)),
        (products_of_means, (2, 9)),
        (waves, (11,)),
        (three_of_many, (1, 8, 20)),
    ],
)
def test_coordinates_that_labels_depend_on_come_first(drawn, expected):
    """Whatever their units are."""
    bags, y = drawn()
    sets = sets_of(bags, y)
    assert sets[-1] == expected
    units = 2.0 ** np.resize([-400, 0, 400], bags[0].shape[1])
    assert sets_of([bag * units for bag in bags], y) == sets


def test_no_coordinate_comes_first_where_none_or_all_matter():
    """Sets that chance puts first differ from fold to fold."""
    means, bags, rng = bags_of_means(150, 10)
    noise = rng.normal(size=150)
    assert sets_of(bags, noise) == []
    assert sets_of(bags, np.ones(150)) == []
    constant = [np.ones((5, 6))] * 150
    assert sets_of(constant, noise) == []
    few, few_means = bags[:20], means[:20, 0]
    assert sets_of(few, few_means) == []


@pytest.mark.parametrize(("d", "n_targets"), [(9, 1), (9, 3), (45, 1), (46, 1)])
def test_as_many_bags_are_ranked_as_summaries_may_take(d, n_targets, monkeypatch):
    """Nine summaries of a coordinate, and two of a pair of at most 45 coordinates."""
    means, bags, _ = bags_of_means(100, d, size=3)
    chosen = []
    monkeypatch.setattr(coordinates, "MIN_RANKED_BAGS", 1)
    monkeypatch.setattr(coordinates, "RANKED_NUMBERS", 2**13)
    monkeypatch.setattr(
        coordinates, "spread_rows", lambda *rows: chosen.append(spread_rows(*rows)) or chosen[-1]
    )
    sets_of(bags, means[:, :n_targets])
    n_summaries = 9 * d + (d * (d - 1) if d <= 45 else 0)
    assert len(chosen[0]) == 2**13 // (n_summaries * n_targets)


@pytest.mark.long
def test_the_default_embeds_these_coordinates_alone(tmp_path):
    """It says so; tables, stores, saved models and other fits have the same bits."""
    bags, y = waves(120)
    names = [f"marker {j}" for j in range(20)]
    frames = [pd.DataFrame(bag, columns=names) for bag in bags]
    model = DoubleBasisRegressor().fit(frames[:100], y[:100])
    choice = model.report_["choice"]
    assert json.loads(json.dumps(choice)) == choice
    assert choice["coordinates"] == ["marker 11"]
    assert "1 coordinate" in choice["chosen"]
    assert "marker 11" in str(model.summary())
    assert choice["tried"][0]["error"] < 0.5
    every = [item for item in choice["tried"] if "1 coordinate" not in item["name"]]
    assert every[0]["error"] > 0.7
    tried = {item["name"] for item in choice["tried"]}
    assert "linear in means, 1 coordinate" in tried
    for name in tried:  # parts of a sum are also judged alone, on its coordinates and scale
        parts, *view = name.split(", ", 1)
        assert {", ".join([part, *view]) for part in parts.split(" + ")} <= tried
    model.save(tmp_path / "m.zarr")
    loaded = load_model(tmp_path / "m.zarr")
    np.testing.assert_array_equal(loaded.predict(frames[100:]), model.predict(frames[100:]))
    moved = [frame[frame.columns[::-1]] for frame in frames[100:]]
    np.testing.assert_array_equal(loaded.predict(moved), model.predict(frames[100:]))
    store = BagStore.create(tmp_path / "s.zarr", 20, target_names=["y"], dtype=np.float64)
    store = store.append(Bags.from_list(bags[:100]), {"y": y[:100]})
    of_store = DoubleBasisRegressor().fit(store)
    assert of_store.report_["choice"]["coordinates"] == ["x11"]
