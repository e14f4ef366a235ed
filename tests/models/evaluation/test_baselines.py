"""What a model is compared with: the best constant, and ridge on the means of bags."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import RidgeCV

from bagbasis import (
    Bags,
    BagStore,
    DataError,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    ProjectionEmbedding,
    RandomFourierFeatures,
    TripleBasisRegressor,
    evaluate,
)
from bagbasis.models import judge_fit
from bagbasis.models.evaluation.baselines import judge_rivals
from tests.models.splits import held_out

N = 300
RNG = np.random.default_rng(3)
CENTRES = RNG.random((N, 2)) / 2 + 0.25
BAGS = [np.clip(c + RNG.normal(0, 0.1, (RNG.integers(2, 30), 2)), 0, 1) for c in CENTRES]
OUT = held_out(0.3, N)
BASES = ProjectionEmbedding(n_per_dim=3), RandomFourierFeatures(n_features=32)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Bags whose centre is the target, or decides the class; some are not labelled."""
    y = CENTRES[:, 0].copy()
    y[5] = np.nan
    labels = np.where(CENTRES[:, 1] > 0.5, "up", "down")
    made = BagStore.create(
        tmp_path_factory.mktemp("baselines") / "s.zarr",
        2,
        target_names=["x", "side", "age"],
        response_dims=2,
        class_names={"side": ["down", "up"]},
    )
    targets = {"x": y, "side": labels, "age": np.arange(N) % 56}
    return made.append(BAGS, targets=targets, responses=[bag[::2] for bag in BAGS])


KINDS = {"x": DoubleBasisRegressor, "side": DoubleBasisClassifier}


@pytest.fixture(scope="module")
def models(store):
    """A model of each target, with bags held out."""
    return {name: KINDS[name](*BASES).fit(store, target=name, holdout=0.3) for name in KINDS}


@pytest.mark.long
def test_errors_beside_a_model_of_numbers(store, models):
    """Each is what scikit-learn and a mean give for the bags held out."""
    model = models["x"]
    judged = judge_fit(model, store)
    means = np.array([bag.mean(axis=0) for bag in BAGS])
    known = np.arange(N) != 5
    train, test = known & ~OUT, known & OUT
    y = store.targets(names=["x"])[:, 0]
    spread = means[train].std(axis=0)
    ridge = RidgeCV(np.logspace(-4, 4, 17)).fit(means[train] / spread, y[train])
    rmse = np.sqrt(((ridge.predict(means[test] / spread) - y[test]) ** 2).mean())
    assert judged["n"] == test.sum()
    assert judged["measure"] == "RMSE on bags held out"
    assert (
        judged["error"]
        == evaluate(model, store).error
        == pytest.approx(
            np.sqrt(
                ((model.predict([BAGS[i] for i in np.flatnonzero(test)]) - y[test]) ** 2).mean()
            )
        )
    )
    assert judged["means_error"] == pytest.approx(rmse, rel=1e-6)
    assert judged["constant_error"] == pytest.approx(y[test].std())


def test_errors_beside_models_of_classes_and_densities(store, models):
    """The most frequent class; the average density; and means do better than both here."""
    judged = judge_fit(models["side"], store)
    up = (CENTRES[OUT, 1] > 0.5).mean()
    assert judged["constant_error"] == pytest.approx(min(up, 1 - up))
    assert judged["error"] < judged["constant_error"] > judged["means_error"]
    densities = TripleBasisRegressor(*BASES, response_embedding=ProjectionEmbedding(n_per_dim=3))
    judged = judge_fit(densities.fit(store, holdout=0.3), store)
    assert 0 < judged["means_error"] < judged["constant_error"]


def test_an_evaluation_has_the_rivals_of_a_fit(store, models):
    """The same ridge and the same forest, on the same bags; classes have a measure of their own."""
    for model in models.values():
        judged = judge_fit(model, store, forest=True)
        means, forest = judge_rivals(model, store, "holdout")
        assert means.error == pytest.approx(judged["means_error"])
        assert forest.error == pytest.approx(judged["forest_error"])
    measures = {
        target: judge_fit(kind(*BASES).fit(store, target=target), store)["measure"]
        for target, kind in KINDS.items()
    }
    assert measures["x"].startswith("error by cross-validation")
    assert measures["side"].startswith("error of the classes' probabilities by cross-validation")


@pytest.mark.parametrize("chosen", ["gcv", "validation"])
def test_errors_without_bags_held_out(store, chosen):
    """The score of the penalty, against that of ridge on the means, each bag left out once."""
    model = DoubleBasisRegressor(*BASES, alpha=chosen).fit(store, target="x")
    judged = judge_fit(model, store)
    means = np.array([bag.mean(axis=0) for bag in BAGS])[np.arange(N) != 5]
    y = CENTRES[np.arange(N) != 5, 0]
    scaled = (means - means.mean(axis=0)) / means.std(axis=0)
    ridge = RidgeCV(np.logspace(-4, 4, 17), store_cv_results=True).fit(scaled, y)
    rmse = np.sqrt(ridge.cv_results_.mean(axis=0).min())
    assert judged["error"] == pytest.approx(np.sqrt(model.alpha_scores_.min()))
    assert judged["error"] < 0.5 < judged["constant_error"] == 1
    assert judged["means_error"] == pytest.approx(rmse / y.std(), rel=1e-6)
    assert judged["n"] == N - 1
    fitted = DoubleBasisRegressor(*BASES, alpha=0.1).fit(store, target="x")
    assert judge_fit(fitted, store) is None
    densities = TripleBasisRegressor(
        *BASES, response_embedding=ProjectionEmbedding(n_per_dim=3)
    ).fit(store)
    judged = judge_fit(densities, store)
    mean = ((densities.alpha_scores_.min()) / _variance(store, densities)) ** 0.5
    assert judged["error"] == pytest.approx(mean)
    assert 0 < judged["means_error"] < 1


def _variance(store, model):
    """Mean squared distance of the responses' series from their average."""
    return model.outcome_.encode(store.responses())[0].var(axis=0).sum()


def test_bags_held_out_are_judged_by_default(store, models, tmp_path, monkeypatch):
    """Labels of the fitted store are read once; for another store all are new."""
    model = models["x"]
    reads, read = [], BagStore.targets
    with monkeypatch.context() as patch:
        patch.setattr(
            BagStore, "targets", lambda *places, **which: reads.append(1) or read(*places, **which)
        )
        errors = evaluate(model, store)
    assert errors.n == (OUT & (np.arange(N) != 5)).sum()
    assert (errors.subset, len(reads)) == ("holdout", 1)
    assert evaluate(model, store, subset="all").n == N - 1
    other = BagStore.create(tmp_path / "o.zarr", 2, target_names=["x"]).append(
        BAGS[::-1], targets={"x": CENTRES[::-1, 0]}
    )
    assert evaluate(model, other).n == N
    few = BagStore.create(tmp_path / "few.zarr", 2, target_names=["x"]).append(
        BAGS[:3], targets={"x": [1, 2, 3]}
    )
    small = DoubleBasisRegressor(*BASES).fit(few, holdout=0.1)
    assert evaluate(small, few).n == 3  # none of which was held out


def test_classes_are_no_numbers_and_numbers_no_classes(store):
    """Codes of classes are not regressed, and a target of many numbers is not classified."""
    for fit in (
        lambda: DoubleBasisRegressor(*BASES).fit(store, target="side"),
        lambda: DoubleBasisRegressor(*BASES).fit(store, target=["x", "side"]),
    ):
        with pytest.raises(DataError, match=r"'side' has classes, \['down', 'up'\]; learn it with"):
            fit()
    for target, n in (("x", 299), ("age", 56)):
        with pytest.raises(DataError, match=f"'{target}' has numbers, {n} different ones"):
            DoubleBasisClassifier(*BASES).fit(store, target=target)
    few = DoubleBasisClassifier(*BASES).fit(Bags.from_list(BAGS), np.arange(N) % 56)
    assert len(few.classes_) == 56
