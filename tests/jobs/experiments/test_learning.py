"""Choosing an embedding by training bags, what it is compared with, and errors."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import (
    Bags,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    MomentsEmbedding,
)
from bagbasis.datasets import GMMComponents
from bagbasis.densities import divergence_matrix
from bagbasis.jobs.experiments.kit.learning import (
    ALPHAS,
    Learner,
    draw_from,
    predict_by_distances,
    predict_by_kl,
)
from bagbasis.jobs.experiments.regression.over_sizes import (
    order_by_cross_validation,
    orders_by_criteria,
)


@pytest.fixture(scope="module")
def problem():
    """Bags whose spread is the target: the mean alone knows nothing of it."""
    rng = np.random.default_rng(0)
    y = rng.uniform(0.05, 0.2, 300)
    return Bags.from_list([rng.normal(0.5, s, (40, 1)).clip(0, 1) for s in y]), y


@pytest.mark.parametrize("kind", [DoubleBasisRegressor, DoubleBasisClassifier])
def test_better_embedding_is_chosen(kind, problem):
    """The embedding that sees the target is chosen, wherever it stands."""
    bags, y = problem
    y = y if kind is DoubleBasisRegressor else (y > 0.12).astype(float)
    learner = Learner(kind, 0)
    blind, seeing = (MomentsEmbedding(covariance=c) for c in (False, True))
    for candidates in ([blind, seeing], [seeing, blind]):
        choice = learner.choose(candidates, (0.5, 2.0), (bags, y), 64)
        assert choice.embedding is seeing
        assert choice.multiplier in (0.5, 2.0)
        assert 10**-6.01 < choice.alpha_a_bag < 10**0.51
        assert choice.values["embedding"] == {"embedding": "MomentsEmbedding"}
    model = learner.fit_choice(choice, (bags[:200], y[:200]), 64)
    assert model.score(bags[200:], y[200:]) > 0.7
    assert 0.1 <= model.alpha_ / 200 / choice.alpha_a_bag <= 3.2
    assert len(model.alphas_) < len(ALPHAS)


def test_bags_are_drawn_once():
    """Sets of other sizes are beginnings of each other, without repeats."""
    dataset = GMMComponents(n_points=20, seed=5)
    bags, y = draw_from(dataset, 1500)
    assert len({bag[0].tobytes() for bag in bags}) == len(bags) == len(y) == 1500
    fewer, labels = draw_from(dataset, 700)
    np.testing.assert_array_equal(fewer.points, bags[:700].points)
    np.testing.assert_array_equal(labels, y[:700])


@pytest.mark.long
def test_full_matrix_learns_by_training_bags_alone(problem):
    """Predictions follow the truth; a row is predicted as it is alone, several columns as each
    alone, and the choice sees no test bag. Matrices of the same divergence give the same."""
    bags, y = problem
    train, targets, test = bags[:60], y[:60, None], bags[60:120]
    predicted, choice = predict_by_kl(train, targets, test)
    assert np.corrcoef(predicted[:, 0], y[60:120])[0, 1] > 0.75
    both, again = predict_by_kl(train, np.hstack([targets, -targets]), test[:1])
    assert choice == again
    np.testing.assert_allclose(both, predicted[:1] * [[1, -1]], atol=1e-9)
    own = divergence_matrix(train, divergence="symmetric_kl", k=4)
    cross = divergence_matrix(test, train, divergence="symmetric_kl", k=4)
    again, _ = predict_by_distances(own, cross, targets)
    np.testing.assert_allclose(again, predicted, atol=1e-9)


@pytest.mark.parametrize("order", [1, 3])
def test_orders_of_clusters_far_apart(order):
    """Clusters that nobody would mistake are counted by BIC and cross-validation, and nearly by
    AIC."""
    rng = np.random.default_rng(0)
    centres = 30 * np.array([[0, 0], [0, 1], [3, 3]])
    points = rng.normal(size=(180, 2)) + centres[rng.integers(order, size=180)]
    result = orders_by_criteria(points, 5, 0)
    assert result["bic"] == order
    assert result["aic"] in (order, order + 1)
    assert order_by_cross_validation(points, 4, 3, 0) == order
    assert 1 <= order_by_cross_validation(points[:5], 10, 5, 0) <= 4
