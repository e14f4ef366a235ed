"""The tasks of `tasks-with-floors`: their best predictions are the best, and their draws differ."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from bagbasis import Bags
from bagbasis.jobs.experiments.regression.tasks_with_floors import FLOOR_TASKS
from bagbasis.models.bag_summaries import MomentsAndExtremes


def rmse(predicted, truth):
    return float(np.sqrt(np.mean((predicted - truth) ** 2)))


@pytest.mark.parametrize(
    "name", [n for n, task in FLOOR_TASKS.items() if task.kind == "regression"]
)
def test_no_line_is_better_than_the_floor(name):
    """Not even one that has seen the labels; and the floor is far below the constant."""
    drawn = FLOOR_TASKS[name].draw(np.random.default_rng(0), 300)
    rows = MomentsAndExtremes(drawn.bags[0].shape[1]).of(Bags.from_list(drawn.bags))
    line = LinearRegression().fit(rows, drawn.truth).predict(rows)
    floor = rmse(drawn.best, drawn.truth)
    assert floor < 1.1 * rmse(line, drawn.truth)
    assert floor < 0.5 * drawn.truth.std()
    # best predictions are right on average, and no multiple of them is better
    slope = LinearRegression().fit(drawn.best[:, None], drawn.truth).coef_[0]
    assert slope == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize(
    "name", [n for n, task in FLOOR_TASKS.items() if task.kind != "regression"]
)
def test_probabilities_are_calibrated(name):
    """Logistic regression on the best log odds finds nothing to change."""
    drawn = FLOOR_TASKS[name].draw(np.random.default_rng(1), 3000)
    np.testing.assert_allclose(drawn.best.sum(axis=1), 1)
    for code in range(drawn.best.shape[1]):
        p = drawn.best[:, code].clip(1e-9, 1 - 1e-9)
        logistic = LogisticRegression(C=1e6).fit(np.log(p / (1 - p))[:, None], drawn.truth == code)
        assert logistic.coef_[0, 0] == pytest.approx(1, abs=0.25)
        assert p.mean() == pytest.approx((drawn.truth == code).mean(), abs=0.02)
