"""A random forest on moments and extremes, against scikit-learn's on features made bag by bag."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

from bagbasis import Bags, BagStore, DoubleBasisClassifier, DoubleBasisRegressor, MomentsEmbedding
from bagbasis.models import judge_fit
from bagbasis.models.bag_summaries import MomentsAndExtremes
from bagbasis.models.evaluation import forest
from tests.models.splits import held_out
from tests.oracles.bag_summaries import summary_of

N = 240
RNG = np.random.default_rng(8)
BAGS = [RNG.normal(size=(RNG.integers(1, 12), 2)).astype(np.float32) for _ in range(N)]
Y = np.array([bag.max() for bag in BAGS])
OUT = held_out(0.3, N)
N_TREES = forest._N_TREES  # when this is imported; while tests run, forests are smaller


@pytest.fixture(autouse=True)
def whole_forests(monkeypatch):
    monkeypatch.setattr(forest, "_N_TREES", N_TREES)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    url = tmp_path_factory.mktemp("forest") / "s.zarr"
    made = BagStore.create(
        url,
        2,
        target_names=["y", "side"],
        box=[(-6, 6), (-6, 6)],
        class_names={"side": ["low", "high"]},
    )
    sides = np.where(np.median(Y) < Y, "high", "low")
    return made.append(BAGS, targets={"y": Y, "side": sides})


@pytest.fixture(scope="module")
def model(store):
    return DoubleBasisRegressor(MomentsEmbedding()).fit(store, target="y", holdout=0.3)


@pytest.mark.parametrize("d", [1, 2, 3, 24, 30])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_summaries_are_those_of_a_loop(d, dtype):
    bags = [RNG.normal(3, 1, (n, d)).astype(dtype) for n in (1, 2, 7, 1, 40)]
    features = MomentsAndExtremes(d)
    result = features.of(Bags.from_list(bags))
    assert result.shape == (5, features.n_features)
    np.testing.assert_allclose(result, [summary_of(bag) for bag in bags], rtol=1e-6, atol=1e-6)


@pytest.mark.long
def test_error_of_numbers_is_scikit_learns(store, model):
    """The label is the largest number of a bag: a forest sees it, and the model does not."""
    judged = judge_fit(model, store, forest=True)
    rows = np.array([summary_of(bag) for bag in BAGS])
    trees = RandomForestRegressor(100, max_features=1 / 3, random_state=0).fit(rows[~OUT], Y[~OUT])
    rmse = np.sqrt(np.mean((trees.predict(rows[OUT]) - Y[OUT]) ** 2))
    assert judged["forest_error"] == pytest.approx(rmse, rel=0.05)  # last digits move splits
    assert judged["forest_error"] < judged["error"]
    assert judged["forest_bags"] == (~OUT).sum()
    assert judge_fit(model, store) == {k: v for k, v in judged.items() if "forest" not in k}


@pytest.mark.long
def test_classes_and_trees_that_have_to_be_small(store, monkeypatch):
    model = DoubleBasisClassifier(MomentsEmbedding()).fit(store, target="side", holdout=0.3)
    assert judge_fit(model, store, forest=True)["forest_error"] < 0.1
    fitted = []
    fit = RandomForestRegressor.fit
    monkeypatch.setattr(
        RandomForestRegressor,
        "fit",
        lambda self, *arguments: fitted.append(self) or fit(self, *arguments),
    )
    monkeypatch.setattr(forest, "MAX_FOREST_BYTES", 2**18)
    judge_fit(model, store, forest=True)
    trees = fitted[0].estimators_
    assert sum(tree.tree_.node_count for tree in trees) * (64 + 2 * 8) <= 2**18


@pytest.mark.long
def test_long_and_wide_samples_are_thinned(store, model, monkeypatch):
    """To evenly spread bags, as many as the work allows; the report has their number."""
    width = MomentsAndExtremes(store.n_dims).n_features
    for allowed in (40, 7):
        monkeypatch.setattr(forest, "MAX_WORK", allowed * width * np.log2(allowed))
        n = judge_fit(model, store, forest=True)["forest_bags"]
        assert 0.9 * allowed - 1 <= n <= allowed
