"""How many labels lie in intervals, compared with a count bag by bag; none where no bag is fair."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis.models.evaluation.coverage import judge_intervals
from tests.models.predicting import BAGS, N, Y, classifier, regressor
from tests.models.splits import held_out
from tests.oracles.labelled import stored

TWO = np.stack([Y, 9 * Y**2], axis=1)


@pytest.fixture
def store(tmp_path):
    return stored(tmp_path / "s.zarr", BAGS, TWO, ["a", "b"], chunk_points=100)


def check(actual, model, rows):
    for item in actual:
        low, high = model.predict_interval([BAGS[i] for i in rows], coverage=item["coverage"])
        j = ["a", "b"].index(item["target"])
        low, high, y = low[:, j], high[:, j], TWO[rows, j]
        share = ((low <= y) & (y <= high)).mean()
        assert item["covered"] == pytest.approx(share)
        # of none or all, that of a sample with two more bags of each kind
        more = 0 if 0 < share < 1 else 4
        likely = (share * len(rows) + more / 2) / (len(rows) + more)
        spread = (likely * (1 - likely) / (len(rows) + more)) ** 0.5
        assert item["standard_error"] == pytest.approx(spread)
        assert item["mean_width"] == pytest.approx((high - low).mean())
        assert item["n"] == len(rows)
    assert [item["target"] for item in actual] == ["a"] * (len(actual) // 2) + ["b"] * (
        len(actual) // 2
    )


@pytest.mark.long
def test_of_the_bags_held_out(store):
    """Folds leave those held out for judging; .95 can be promised by 55 bags, not by 15."""
    model = regressor().fit(store, target=["a", "b"], holdout=0.2)
    assert judge_intervals(model, store) == []  # made of the bags held out
    result = judge_intervals(model.conformalize(store, cv=5), store)
    assert [item["coverage"] for item in result[:4]] == [0.5, 0.8, 0.9, 0.95]
    check(result, model, np.flatnonzero(held_out(0.2, N)))


def test_of_another_store(store, tmp_path):
    """All bags, whatever the intervals are made of; coverages that can be promised."""
    model = regressor().fit(store, target=["a", "b"], holdout=0.2)
    other = stored(tmp_path / "o.zarr", BAGS[:40], TWO[:40], ["a", "b"])
    result = judge_intervals(model, other)
    assert [item["coverage"] for item in result] == [0.5, 0.8, 0.9] * 2
    check(result, model, np.arange(40))


def test_nothing_to_judge(store, tmp_path):
    """No intervals, none left out, no such targets, or classes."""
    whole = regressor().fit(store, target=["a", "b"])
    assert judge_intervals(whole, store) == []
    assert judge_intervals(whole.conformalize(store, cv=5), store) == []
    assert judge_intervals(whole, stored(tmp_path / "o.zarr", BAGS, Y)) == []
    classes = stored(tmp_path / "c.zarr", BAGS, (Y > 0).astype(float))
    assert judge_intervals(classifier().fit(classes, target="y", holdout=0.2), classes) == []
