"""`permutation_importance`: coordinates that were planted, and what is exchanged and counted."""

from __future__ import annotations

from types import MappingProxyType, SimpleNamespace

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from sklearn.base import clone

from bagbasis import (
    Bags,
    BagStore,
    DataError,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    KernelSmoother,
    ModelError,
    ParameterError,
    ProjectionEmbedding,
    RandomFourierFeatures,
    TripleBasisRegressor,
    evaluate,
)
from bagbasis.execution.costs import Cost
from bagbasis.models import permutation_importance
from bagbasis.models.evaluation import importance
from bagbasis.models.evaluation.exchanges import draw_donors, drop_of_score, exchange_coordinates
from tests.oracles.labelled import labelled
from tests.oracles.planned import Reals
from tests.shown import with_error

N = 400
BASES = ProjectionEmbedding(n_per_dim=3), RandomFourierFeatures(n_features=64)


def small(kind=DoubleBasisRegressor, **more):
    """An estimator with a penalty that is not chosen."""
    return kind(*BASES, alpha=0.01, **more)


def planted(n=N, seed=0, n_points=(8, 30)):
    """Bags in R^3: y is the mean of coordinate 1 and half that of 2; 0 tells nothing."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(0.3, 0.7, (n, 3))
    sizes = rng.integers(*n_points, n)
    bags = [c + rng.normal(0, 0.08, (m, 3)) for c, m in zip(centres, sizes, strict=True)]
    return [np.clip(bag, 0, 1) for bag in bags], centres[:, 1] + centres[:, 2] / 2


def test_importance_is_shown_in_the_digits_of_its_errors():
    """A line for each coordinate, the most important first, in a prompt and in a notebook."""
    bags, y = planted(60)
    model = DoubleBasisRegressor("moments", random_features=False, alpha=1e-3).fit(bags, y)
    result = permutation_importance(model, bags, y, n_repeats=2)
    title, first, *others = repr(result).splitlines()
    assert title.startswith("Importance: drop of R², which is 0.")
    drop, spread = float(result.drop[1, 0]), float(result.standard_error[1, 0])
    assert first.split("  ")[1:] == ["y: coordinate 1", with_error(drop, spread)]
    assert len(others) == 2
    assert with_error(drop, spread) in result._repr_html_()


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store of the planted bags, with a number, a class, a patient, weights and responses."""
    bags, y = planted()
    made = BagStore.create(
        tmp_path_factory.mktemp("importance") / "s.zarr",
        3,
        target_names=["y", "kind", "patient", "weight"],
        class_names={"kind": ["high", "low"]},
        response_dims=1,
    )
    answers = [np.clip(bag[:, 1:2] * 0.8 + 0.1, 0, 1) for bag in bags]
    kinds = np.where(y > 0.75, "high", "low")
    columns = {"y": y, "kind": kinds, "patient": np.arange(N) // 4, "weight": np.arange(N) % 3}
    with made.appending({"coordinates": ["none", "whole", "half"]}) as session:
        session.write(Bags.from_list(bags), columns, responses=answers)
    return BagStore.open(made.url)


@pytest.fixture(scope="module")
def fitted(store):
    """A model of all bags of the store."""
    return small().fit(store, target="y")


MODELS = {
    "numbers": (small(), {"target": "y"}),
    "classes": (small(DoubleBasisClassifier), {"target": "kind"}),
    "densities": (
        small(TripleBasisRegressor, response_embedding=ProjectionEmbedding(n_per_dim=4)),
        {},
    ),
}


@pytest.mark.parametrize("kind", MODELS)
def test_planted_coordinates(store, kind):
    """What tells nothing drops nothing, in standard errors; what tells most drops most."""
    model, arguments = MODELS[kind]
    model = clone(model).fit(store, holdout=0.5, **arguments)
    importances = permutation_importance(model, store)
    none, whole, half = importances.drop[:, 0]
    assert importances.names == ("none", "whole", "half")
    assert importances.subset == "holdout"
    assert abs(none) < 3 * importances.standard_error[0, 0]
    assert whole > 10 * importances.standard_error[1, 0]
    assert whole > 0.2
    if kind == "densities":
        assert abs(half) < 3 * importances.standard_error[2, 0]
    else:
        assert whole > half > 3 * importances.standard_error[2, 0]
    [score] = evaluate(model, store).values().values()
    assert importances.score[0] == pytest.approx(score["accuracy" if kind == "classes" else "r2"])
    [of_target] = importances.values()["targets"].values()
    assert of_target["drops"][0]["coordinate"] == "whole"


def test_bags_in_memory_and_a_smoother(store):
    """With labels next to them, also text; the same as of a store of them."""
    bags, y = planted()
    kinds = np.where(y > 0.75, "high", "low")
    for model, labels in ((small(), y), (small(DoubleBasisClassifier), kinds)):
        model.fit(bags, labels)
        importances = permutation_importance(model, bags, labels, n_repeats=2)
        assert importances.names == ("0", "1", "2")
        assert importances.drop.argmax() == 1
        assert importances.score[0] == pytest.approx(model.score(bags, labels))
    seen = permutation_importance(model, bags[:9], ["high"] * 8 + ["unknown"], n_repeats=1)
    assert seen.score[0] <= 8 / 9
    smoother = KernelSmoother(BASES[0]).fit(bags[:100], y[:100])
    importances = permutation_importance(smoother, bags[100:200], y[100:200], n_repeats=2)
    assert importances.drop[1, 0] > 5 * importances.standard_error[1, 0]


def test_two_targets_and_sets_of_coordinates():
    """A column per target; coordinates that go together drop as one."""
    bags, y = planted()
    both = np.stack([y, [bag[:, 0].mean() for bag in bags]], axis=1)
    model = small().fit(bags, both)
    sets = {"first": [0], "others": [1, 2]}
    importances = permutation_importance(model, bags, both, coordinates=sets, n_repeats=2)
    assert importances.names == ("first", "others")
    assert (importances.drop > 0.5).tolist() == [[False, True], [True, False]]
    alone = permutation_importance(model, bags, both, n_repeats=2)
    assert importances.drop[1, 0] > alone.drop[1:, 0].max()


@pytest.mark.parametrize("n_groups", [None, 7])
def test_what_a_bag_is_given(n_groups):
    """Values of one bag of another group, each as often as sizes allow; all else stays."""
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 9, 60)
    bags = Bags(np.arange(3.0 * sizes.sum()).reshape(-1, 3), np.r_[0, np.cumsum(sizes)])
    codes = np.arange(60) if n_groups is None else rng.permutation(np.arange(60) % n_groups)
    donors = draw_donors(codes, rng)
    assert (codes[donors] != codes).all()
    if n_groups is None:
        assert sorted(donors) == list(range(60))
    made = exchange_coordinates(bags, [0, 2], donors, rng)
    assert (made.offsets == bags.offsets).all()
    assert (made.points[:, 1] == bags.points[:, 1]).all()
    for bag, donor in zip(made, donors, strict=True):
        pairs, counts = np.unique(bag[:, [0, 2]], axis=0, return_counts=True)
        value = {tuple(pair) for pair in bags[donor][:, [0, 2]]}
        assert {tuple(pair) for pair in pairs} <= value
        assert len(pairs) == min(len(bag), len(value))
        assert counts.max() - counts.min() <= 1
    pairs = [(made[i][:, 0], bags[donor][:, 0]) for i, donor in enumerate(donors)]
    large = [(ours, theirs) for ours, theirs in pairs if min(len(ours), len(theirs)) > 5]
    assert large
    assert not any((ours[:6] == theirs[:6]).all() for ours, theirs in large)  # in random order


def one_by_one(base, exchanged, donors, units, w, codes):
    """Drop and squared error of one target, by loops over bags and repeats."""
    n, repeats = len(base), len(exchanged)
    unit = sum(w[i] * units[i] for i in range(n)) / sum(w)
    before = sum(w[i] * base[i] for i in range(n)) / sum(w)
    after = sum(w[i] * exchanged[r][i] for i in range(n) for r in range(repeats))
    after /= repeats * sum(w)
    drop = (after - before) / unit
    parts = np.zeros(max(codes) + 1)
    for i in range(n):
        parts[codes[i]] -= w[i] * (base[i] - before) + drop * w[i] * (units[i] - unit)
        for r in range(repeats):
            gap = w[i] * (exchanged[r][i] - after) / repeats
            parts[codes[i]] += gap
            parts[codes[donors[r][i]]] += gap
    parts = parts / unit / sum(w)
    return drop, len(parts) * parts.var(ddof=1)


@hypothesis.given(st.integers(2, 12), st.integers(0, 12), st.integers(1, 4), st.integers(0, 999))
def test_drop_and_error_equal_an_oracle(n_groups, n_more, repeats, seed):
    """Weighted bags in groups, or each its own, and one target next to another."""
    rng = np.random.default_rng(seed)
    n = n_groups + n_more
    codes = np.arange(n) % n_groups
    donors = np.array([draw_donors(codes, rng) for _ in range(repeats)])
    base, units = rng.random((2, n, 2))
    exchanged, w = rng.random((repeats, n, 2)), rng.random(n)
    drop, error = drop_of_score(base, exchanged, donors, units, w, codes)
    for j in range(2):
        arguments = base[:, j], exchanged[:, :, j], donors, units[:, j], w, codes
        assert (drop[j], error[j] ** 2) == pytest.approx(one_by_one(*arguments))


class Means:
    """A fitted model that predicts the mean of the coordinates."""

    outcome = Reals(1, True)
    holdout = 0.0
    features = SimpleNamespace(n_dims=2, n_features=2, cost=Cost())
    report = MappingProxyType({})
    prediction_cost = features.cost
    model_ = property(lambda self: self)

    mean_targets = None

    def decision_rows(self, bags):
        return bags.means.mean(axis=1, keepdims=True)


@pytest.mark.long
@pytest.mark.parametrize("per_group", [1, 4])
def test_standard_errors_are_those_of_other_samples(per_group):
    """As much as drops of 150 samples of 60 groups differ; bags of a group are near each other."""
    drops, errors = [], []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        patients = np.repeat(np.arange(60), per_group)
        centres = rng.normal(size=(60, 2))[patients] + 0.1 * rng.normal(size=(len(patients), 2))
        bags = Bags(np.repeat(centres, 5, axis=0), np.arange(len(patients) + 1) * 5)
        y = centres.mean(axis=1) + 0.3 * rng.normal(size=len(patients))
        data = labelled(bags, y)
        importances = permutation_importance(Means(), data, groups=patients, n_repeats=3)
        assert importances.n_groups == 60
        drops.append(importances.drop[0, 0])
        errors.append(importances.standard_error[0, 0])
    assert np.std(drops) == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=0.15)


@pytest.mark.long
def test_a_part_of_a_large_store(store, fitted, monkeypatch):
    """Bags come from all of it, and no more points are held than may be."""
    seen = []
    importances = permutation_importance(
        fitted, store, max_bags=100, n_repeats=1, progress=lambda *now: seen.append(now)
    )
    assert importances.n == 100
    assert seen[-1] == (400, 400)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    index, bags, labels = importance.taken_bags(fitted.outcome_.take_labels(store), 100)
    assert np.histogram(index, 8, (0, N))[0].min() > 8
    assert (bags[7] == store.read(index[7], index[7] + 1)[0]).all()
    assert (labels[:, 0] == store.targets(names=["y"])[index, 0]).all()
    monkeypatch.setattr(importance, "MAX_POINT_VALUES", 3 * 2000)
    assert permutation_importance(fitted, store, n_repeats=1).n < 200


def test_groups_of_the_holdout_and_weights(store, fitted):
    """Standard errors are by the groups that the model held out; bags of weight 0 do not count.

    Two bags that count are enough.
    """
    model = small().fit(store, target="y", holdout={"fraction": 0.4, "groups": "patient"})
    importances = permutation_importance(model, store, n_repeats=1)
    assert importances.n_groups == importances.n / 4
    value = permutation_importance(model, store, n_repeats=1, groups=np.arange(N))
    assert value.n_groups == value.n == importances.n
    weighted = permutation_importance(model, store, n_repeats=1, sample_weight="weight")
    errors = evaluate(model, store, sample_weight="weight").values()["y"]
    assert weighted.score[0] == pytest.approx(errors["r2"])
    two = np.arange(N) % 200 == 7
    weighted = permutation_importance(fitted, store, n_repeats=1, sample_weight=two)
    assert np.isfinite(weighted.drop).all()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"coordinates": {"a": [3]}}, ParameterError, "coordinates of 'a' is 3; expected"),
        ({"coordinates": {"a": []}}, ParameterError, "expected a list of their numbers"),
        ({"coordinates": {}}, ParameterError, "coordinates is empty"),
        ({"groups": np.zeros(N)}, DataError, "there is one group; two are needed"),
        ({"sample_weight": np.arange(N) == 1}, DataError, "fewer than two bags weigh"),
        ({"y": np.ones(N - 1)}, DataError, "y has 399 values for 400 bags"),
        ({"subset": "holdout"}, ModelError, "held no bags out"),
    ],
)
def test_what_is_refused(store, fitted, arguments, error, message):
    """By name."""
    with pytest.raises(error, match=message):
        permutation_importance(fitted, store, **arguments)


def test_labels_that_are_equal(store):
    """No coordinate can tell the bags apart."""
    bags, y = planted(20)
    model = small().fit(bags, y)
    importances = permutation_importance(model, bags, np.full(20, 0.1))
    assert importances.score.tolist() == [0]
    assert not importances.drop.any()
    assert not importances.standard_error.any()
    with pytest.raises(ModelError, match="not fitted"):
        permutation_importance(DoubleBasisRegressor(), bags, y)
