"""The default does not depend on the order of bags, and copies of bags do not tell their labels."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import Bags, BagStore, DoubleBasisClassifier, DoubleBasisRegressor
from bagbasis.models.fitting.choice import placing
from bagbasis.models.fitting.choice.placing import place_folds
from bagbasis.models.fitting.choice.sample import copies_among, order_by_content, read_sample
from tests.oracles.planned import folds_by_content, planned, posed

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


def copies(bags, y):
    return copies_among(bags.sizes, bags.means, y)


def test_predictions_do_not_depend_on_the_order():
    order = np.random.default_rng(1).permutation(N)
    model = DoubleBasisRegressor().fit(BAGS, Y)
    again = DoubleBasisRegressor().fit([BAGS[i] for i in order], Y[order])
    names = [[item["name"] for item in m.report_["choice"]["tried"]] for m in (model, again)]
    assert names[0] == names[1]
    np.testing.assert_allclose(again.predict(NEW), model.predict(NEW), rtol=1e-5)
    assert again.alpha_ == pytest.approx(model.alpha_, rel=1e-6)


@pytest.mark.parametrize("factor", [1e-12, 1000.0, np.array([1.0, 1e6])])
def test_units_do_not_decide_the_order(factor):
    moved = Bags.from_list([bag * factor + 3 * factor for bag in BAGS])
    expected = order_by_content(Bags.from_list(BAGS).means)
    np.testing.assert_array_equal(order_by_content(moved.means), expected)


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
    assert copies(coins, (np.arange(N)[:, None] // 3) % 2) is None
    assert copies(Bags.from_list(BAGS), Y[:, None]) is None
    some = Bags.from_list([*BAGS[:-1], BAGS[0]])
    numbers = copies(some, np.append(Y[:-1], Y[0])[:, None])
    assert numbers[-1] == numbers[0]
    assert len(set(numbers.tolist())) == N - 1
    assert copies(some, Y[:, None]) is None  # of another label


ORDER = np.random.default_rng(3).permutation(N)
MIXED = [BAGS[i] for i in ORDER]


@pytest.mark.parametrize("kind", [DoubleBasisRegressor, DoubleBasisClassifier])
def test_placed_folds_go_with_the_bags(kind):
    """In any order, in as many folds as are asked for, of equal shares of each class."""
    y = Y if kind is DoubleBasisRegressor else (Y > 1).astype(int)
    for n_folds in (2, 5, 10):
        expected = folds_by_content(BAGS, y, n_folds, kind())
        result = folds_by_content(MIXED, y[ORDER], n_folds, kind())
        np.testing.assert_array_equal(result, expected[ORDER])
        assert np.ptp(np.bincount(expected, minlength=n_folds)) <= 1
        if kind is DoubleBasisClassifier:
            assert np.ptp(np.bincount(expected, weights=y)) <= 1
    of_choice = folds_by_bag(BAGS, y, kind)[0]
    np.testing.assert_array_equal(folds_by_content(BAGS, y, 5, kind()), of_choice)
    twice = folds_by_content([*BAGS, *MIXED], np.append(y, y[ORDER]), 10, kind())
    np.testing.assert_array_equal(twice[N:], twice[:N][ORDER])


def test_folds_of_all_that_is_chosen_go_with_the_bags():
    """The penalty of a named embedding, the errors of heads, and intervals by folds."""
    models = []
    for bags, y in ((BAGS, Y), (MIXED, Y[ORDER])):
        model = DoubleBasisRegressor("moments", head="stack").fit(bags, y)
        ridge = DoubleBasisRegressor("moments").fit(bags, y).conformalize(bags, y, cv=4)
        models.append((ridge, model.report_["head"]["errors"]["ridge"]))
    (first, error), (second, other) = models
    np.testing.assert_allclose(second.alpha_scores_, first.alpha_scores_, rtol=1e-5)
    assert other == pytest.approx(error, rel=1e-5)
    ends = np.stack(first.predict_interval(NEW, coverage=0.8))
    np.testing.assert_allclose(
        np.stack(second.predict_interval(NEW, coverage=0.8)), ends, rtol=1e-4
    )


def test_copies_do_not_tell_a_penalty_their_labels():
    """A named embedding of noisy bags given twice has the penalty per bag of the bags once."""
    noisy = Y + np.random.default_rng(8).normal(0, 0.5, N)
    once = DoubleBasisRegressor("moments").fit(BAGS, noisy)
    twice = DoubleBasisRegressor("moments").fit([*BAGS, *MIXED], np.append(noisy, noisy[ORDER]))
    assert twice.alpha_ / 2 > 0.2 * once.alpha_


def test_folds_by_position(monkeypatch, tmp_path):
    """Those of few bags, of many, and of many points; a store has the folds of memory."""
    problem = posed(DoubleBasisRegressor(), BAGS[:3], Y[:3])
    assert place_folds(problem.fitted, problem.outcome, 5) is None
    bags = [bag.astype(np.float32) for bag in BAGS]
    store = BagStore.create(tmp_path / "a.zarr", 2, target_names=["y"]).append(bags, Y)
    problem = posed(DoubleBasisRegressor("moments"), store, target="y", holdout=0.2)
    placed = place_folds(problem.fitted, problem.outcome, 5)
    expected = folds_by_content([bags[i] for i in placed.places], Y[placed.places], 5)
    np.testing.assert_array_equal(placed.folds, expected)
    assert 0 < len(placed.places) < N
    assert placed.to_dict() == planned(DoubleBasisRegressor("moments"), problem).folds.to_dict()
    for name, limit in (("FOLDED_BAGS", N // 2), ("_MAX_POINTS", N), ("MAX_LABELLED_BAGS", N // 2)):
        with monkeypatch.context() as changed:
            changed.setattr(placing, name, limit)
            assert place_folds(problem.fitted, problem.outcome, 5) is None
    weighed = posed(DoubleBasisRegressor(), BAGS, Y, sample_weight=np.arange(N) % 3.0)
    placed = place_folds(weighed.fitted, weighed.outcome, 5)
    np.testing.assert_array_equal(placed.places, np.flatnonzero(np.arange(N) % 3))
    alike = posed(DoubleBasisRegressor(), [BAGS[0]] * 4, np.ones(4))
    assert place_folds(alike.fitted, alike.outcome, 5) is None


@pytest.mark.parametrize("kind", [DoubleBasisRegressor, DoubleBasisClassifier])
def test_folds_go_with_the_bags(kind):
    y = Y if kind is DoubleBasisRegressor else (Y > 1).astype(int)
    order = np.random.default_rng(0).permutation(N)
    expected = folds_by_bag(BAGS, y, kind)
    result = folds_by_bag([BAGS[i] for i in order], y[order], kind)
    np.testing.assert_array_equal(result, expected[:, order])
    assert np.bincount(expected[0]).tolist() == [N // 5] * 5


def test_a_store_and_memory_have_the_same_folds(tmp_path):
    bags = [bag.astype(np.float32) for bag in BAGS]
    store = BagStore.create(tmp_path / "a.zarr", 2, target_names=["y"]).append(bags, Y)
    stored = read_sample(posed(DoubleBasisRegressor(), store, target="y"))
    memory = sample_of(bags, Y)
    np.testing.assert_array_equal(stored.rows.folds, memory.rows.folds)
    np.testing.assert_array_equal(stored.index, memory.index)


@pytest.mark.parametrize("kind", [DoubleBasisRegressor, DoubleBasisClassifier])
def test_copies_share_their_folds(kind):
    y = Y if kind is DoubleBasisRegressor else (Y > 1).astype(int)
    folds = folds_by_bag([*BAGS, *BAGS], np.tile(y, 2), kind)
    np.testing.assert_array_equal(folds[:, :N], folds[:, N:])
    if kind is DoubleBasisClassifier:  # as equal shares of each class as can be
        counts = np.bincount(folds[0], weights=np.tile(y, 2))
        assert np.ptp(counts) <= 2
