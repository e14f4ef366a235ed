"""`explain`: effects of points are exact, and coordinates that matter are seen."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from bagbasis import (
    DataError,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    ModelError,
    ParameterError,
    ProjectionEmbedding,
    TripleBasisRegressor,
)
from bagbasis.models import explain

RNG = np.random.default_rng(3)
BAGS = [RNG.normal(size=(12, 2)) * scale for scale in RNG.uniform(0.5, 2.0, 40)]
Y = np.array([bag[:, 1].mean() for bag in BAGS])
LINEAR = {"embedding": "moments", "random_features": False, "alpha": 1e-6}


@pytest.fixture(scope="module")
def model():
    return DoubleBasisRegressor(**LINEAR).fit(BAGS, Y)


def test_effects_are_those_of_leaving_a_point_out(model):
    """The effect of every point: the prediction less that of the bag without the point."""
    explanation = explain(model, BAGS[0])
    without = [np.delete(BAGS[0], i, axis=0) for i in range(12)]
    expected = model.predict([BAGS[0]])[0] - model.predict(without)
    np.testing.assert_allclose(explanation.effect[:, 0], expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(explanation.rows, np.arange(12))
    assert explanation.prediction[0] == pytest.approx(model.predict([BAGS[0]])[0])


@pytest.mark.parametrize("centre", [0.0, 1.0])
def test_a_linear_head_on_means_has_the_slopes_of_the_mean(centre):
    """A shift by a standard deviation of coordinate 1 moves its mean, which is the label; points
    spread about the mean, wherever it is."""
    model = DoubleBasisRegressor(**LINEAR).fit([bag + centre for bag in BAGS], Y)
    explanation = explain(model, BAGS[0] + centre)
    assert explanation.shift[1, 0] == pytest.approx(BAGS[0][:, 1].std(), rel=0.05)
    assert abs(explanation.shift[0, 0]) < 0.05 * explanation.shift[1, 0]
    assert abs(explanation.spread[:, 0]).max() < 0.1 * explanation.shift[1, 0]


def test_columns_of_frames_are_found_by_their_names():
    """In another order than the bags fitted had them."""
    frame = pd.concat(
        [pd.DataFrame(bag, columns=["a", "b"]).assign(id=i) for i, bag in enumerate(BAGS)]
    )
    model = DoubleBasisRegressor(**LINEAR).fit(frame.groupby("id")[["a", "b"]], Y)
    bag = pd.DataFrame(BAGS[0], columns=["a", "b"])
    result, turned = explain(model, bag), explain(model, bag[["b", "a"]])
    np.testing.assert_allclose(result.effect, turned.effect)
    assert result.coordinate_names == turned.coordinate_names == ("a", "b")
    assert [*result.to_frame().columns] == ["effect", "a", "b"]


def test_probabilities_of_classes_are_explained():
    """Effects on the probabilities of all classes add up to 0."""
    classes = np.where([bag.std() > 1.2 for bag in BAGS], "wide", "narrow")
    model = DoubleBasisClassifier("moments", alpha=1e-2).fit(BAGS, classes)
    explanation = explain(model, BAGS[0])
    assert explanation.targets == ("probability of narrow", "probability of wide")
    np.testing.assert_allclose(explanation.effect.sum(axis=1), 0, atol=1e-9)
    assert "probability of wide: points" in repr(explanation)


def test_densities_are_explained_by_their_coefficients():
    """Those of the series that the model predicts."""
    X = [RNG.random((20, 1)) * 0.5 + shift for shift in np.linspace(0, 0.5, 30)]
    basis = ProjectionEmbedding(max_norm=3)
    model = TripleBasisRegressor(basis, response_embedding=basis, alpha=1e-3)
    model.fit(X, [1 - bag for bag in X])
    explanation = explain(model, X[0])
    np.testing.assert_allclose(explanation.prediction, model.predict([X[0]])[0])
    assert explanation.targets == tuple(
        f"coefficient {j}" for j in range(len(explanation.prediction))
    )
    of_targets = ("prediction", "effect", "shift", "spread")
    tiled = {name: np.tile(getattr(explanation, name), 9) for name in of_targets}
    lines = repr(replace(explanation, targets=explanation.targets * 9, **tiled))
    assert len(lines.splitlines()) <= 40
    assert "coefficient 0: points" not in lines  # the constant, which nothing moves


def test_large_bags_leave_out_some_points(model):
    """As many as asked for, evenly chosen, the first and the last among them."""
    explanation = explain(model, BAGS[0], max_points=4)
    assert len(explanation.effect) == 4
    assert explanation.rows[[0, -1]].tolist() == [0, 11]


@pytest.mark.parametrize(
    ("bag", "error", "message"),
    [
        (np.ones((1, 2)), DataError, "single point"),
        (np.ones((4, 3)), ModelError, "dimension 2, these have 3"),
        (np.full((4, 2), np.nan), DataError, "is nan"),
    ],
)
def test_bags_that_cannot_be_explained(model, bag, error, message):
    """One point, another dimension, or no numbers."""
    with pytest.raises(error, match=message):
        explain(model, bag)
    with pytest.raises(ParameterError, match="target is 1; expected 0 to 0"):
        explain(model, BAGS[0]).to_frame(1)
