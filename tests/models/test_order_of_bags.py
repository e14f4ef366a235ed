"""The default does not depend on the order of bags, and copies of bags do not tell their labels."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import Bags, BagStore, DoubleBasisClassifier, DoubleBasisRegressor
from bagbasis.models.fitting.choice.sample import copies_among, order_by_content, read_sample
from tests.oracles.planned import posed

N = 60
RNG = np.random.default_rng(4)
Y = RNG.uniform(0.5, 2.0, N)
BAGS = [RNG.normal(0.3 * s, s, (int(n), 2)) for s, n in zip(Y, RNG.integers(5, 40, N), strict=True)]
NEW = [RNG.normal(0.3 * s, s, (30, 2)) for s in (0.6, 1.0, 1.9)]


def sample_of(bags, y, kind=DoubleBasisRegressor):
    return read_sample(posed(kind(), bags, y))


def folds_by_bag(bags, y, kind=DoubleBasisRegressor):
    """The fold of each bag, at its place, in every repeat."""
    sample = sample_of(bags, y, kind)
    return sample.rows.folds[:, np.argsort(sample.index)]


@pytest.mark.parametrize("kind", [DoubleBasisRegressor, DoubleBasisClassifier])
def test_folds_go_with_the_bags(kind):
    y = Y if kind is DoubleBasisRegressor else (Y > 1).astype(int)
    order = np.random.default_rng(0).permutation(N)
    expected = folds_by_bag(BAGS, y, kind)
    found = folds_by_bag([BAGS[i] for i in order], y[order], kind)
    np.testing.assert_array_equal(found, expected[:, order])
    assert np.bincount(expected[0]).tolist() == [N // 5] * 5


def test_predictions_do_not_depend_on_the_order():
    order = np.random.default_rng(1).permutation(N)
    model = DoubleBasisRegressor().fit(BAGS, Y)
    again = DoubleBasisRegressor().fit([BAGS[i] for i in order], Y[order])
    names = [[one["name"] for one in m.report_["choice"]["tried"]] for m in (model, again)]
    assert names[0] == names[1]
    np.testing.assert_allclose(again.predict(NEW), model.predict(NEW), rtol=1e-5)
    assert again.alpha_ == pytest.approx(model.alpha_, rel=1e-6)


def test_a_store_and_memory_have_the_same_folds(tmp_path):
    bags = [bag.astype(np.float32) for bag in BAGS]
    store = BagStore.create(tmp_path / "a.zarr", 2, ["y"]).append(bags, Y)
    stored = read_sample(posed(DoubleBasisRegressor(), store, target="y"))
    memory = sample_of(bags, Y)
    np.testing.assert_array_equal(stored.rows.folds, memory.rows.folds)
    np.testing.assert_array_equal(stored.index, memory.index)


@pytest.mark.parametrize("factor", [1e-12, 1000.0, np.array([1.0, 1e6])])
def test_units_do_not_decide_the_order(factor):
    moved = Bags.from_list([bag * factor + 3 * factor for bag in BAGS])
    expected = order_by_content(Bags.from_list(BAGS))
    np.testing.assert_array_equal(order_by_content(moved), expected)


@pytest.mark.parametrize("kind", [DoubleBasisRegressor, DoubleBasisClassifier])
def test_copies_share_their_folds(kind):
    y = Y if kind is DoubleBasisRegressor else (Y > 1).astype(int)
    folds = folds_by_bag([*BAGS, *BAGS], np.tile(y, 2), kind)
    np.testing.assert_array_equal(folds[:, :N], folds[:, N:])
    if kind is DoubleBasisClassifier:  # as equal shares of each class as can be
        counts = np.bincount(folds[0], weights=np.tile(y, 2))
        assert np.ptp(counts) <= 2


def test_bags_given_twice_are_no_better_known():
    """Else nearly no penalty is best: copies in other folds know the labels."""
    rng = np.random.default_rng(8)
    noisy = Y + rng.normal(0, 0.3, N)
    once = DoubleBasisRegressor().fit(BAGS, noisy)
    twice = DoubleBasisRegressor().fit([*BAGS, *BAGS], np.tile(noisy, 2))
    errors = [np.abs(model.predict(BAGS) - noisy).mean() for model in (once, twice)]
    assert errors[1] > 0.8 * errors[0]


def test_repetitions_by_chance_are_no_copies():
    """Bags of few values repeat, with any label; and one point in common makes no copy."""
    coins = Bags.from_list([np.array([[float(i % 3)]]) for i in range(N)])
    assert copies_among(coins, (np.arange(N)[:, None] // 3) % 2) is None
    assert copies_among(Bags.from_list(BAGS), Y[:, None]) is None
    some = Bags.from_list([*BAGS[:-1], BAGS[0]])
    numbers = copies_among(some, np.append(Y[:-1], Y[0])[:, None])
    assert numbers[-1] == numbers[0]
    assert len(set(numbers.tolist())) == N - 1
    assert copies_among(some, Y[:, None]) is None  # of another label
