"""`summary()`, `choice_` and `repr` of fitted estimators say what the report has."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from bagbasis import (
    BagStore,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    MomentsEmbedding,
    RandomFourierFeatures,
    evaluate,
    load_model,
    tune,
)
from bagbasis.models import Search, judge_fit
from bagbasis.models.verdict import RIVALS, verdict_of
from tests.shown import with_error

N = 60
RNG = np.random.default_rng(0)
SPREADS = RNG.uniform(0.5, 2.0, N)
BAGS = [RNG.normal(0, s, (12, 1)) for s in SPREADS]


@pytest.fixture(scope="module")
def chosen():
    return DoubleBasisRegressor().fit(BAGS, SPREADS, holdout=0.2)


def estimator():
    return DoubleBasisRegressor(MomentsEmbedding(), RandomFourierFeatures(n_features=32))


@pytest.mark.long
def test_the_choice(chosen):
    """Name, width, error and its standard error, and that of means, are those of the report.

    The error of the choice is more than that of the best, for it is the best of many.
    """
    choice = chosen.report_["choice"]
    tried = choice["tried"]
    rows = chosen.summary().rows
    best, [means] = tried[0], [item for item in tried if item["name"] == "linear in means"]
    assert rows["embedding"].startswith(f"{best['name']}, width {best['width']:.3g}; ")
    assert f"chosen from {len(tried)} candidates" in rows["embedding"]
    assert best["error"] < choice["error"] < best["error"] + 2 * best["standard_error"]
    assert rows["estimated by"].endswith("corrected for the choice")
    ratios = [error**0.5 for error in (choice["error"], means["error"])]
    spreads = [
        item["standard_error"] / (2 * ratio)
        for item, ratio in zip((best, means), ratios, strict=True)
    ]
    of_best, of_means = map(with_error, ratios, spreads)
    assert rows["error"] == f"{of_best} times the best constant's; linear in means: {of_means}"
    n = chosen.report_["n_bags_fitted"]
    assert rows["bags"] == f"{n} fitted, {N - n} held out ({12 * n} points)"
    assert rows["penalty"] == f"{chosen.alpha_:.3g} (alpha='auto')"
    assert rows["next"].startswith("evaluate(model, X, y)")


@pytest.mark.long
def test_all_errors_of_a_choice_are_corrected(tmp_path):
    """`judge_fit` adds what the least of several errors lacks, as `summary` does."""
    store = BagStore.create(tmp_path / "s.zarr", n_dims=1, target_names=["y"])
    store = store.append(BAGS, targets={"y": SPREADS})
    model = DoubleBasisRegressor().fit(store)
    choice = model.report_["choice"]
    lacking = choice["error"] - choice["tried"][0]["error"]
    judged = judge_fit(model, store)
    del choice["error"]  # a model that was saved before
    before = judge_fit(model, store)
    assert lacking > 0
    assert judged["error"] ** 2 == pytest.approx(before["error"] ** 2 + lacking)
    assert model.summary().rows["estimated by"] == f"5 folds of {N} bags"


def test_a_verdict_on_bags_that_are_given(chosen, tmp_path):
    """On those held out, next to a forest, ridge on means and a constant; by folds without any."""
    rows = chosen.summary(BAGS, SPREADS).rows
    assert list(rows) == ["verdict", *chosen.summary().rows]
    errors = evaluate(chosen, BAGS, SPREADS)
    begin = (
        f"Predicting y: RMSE {with_error(errors.error, errors.standard_error)} on {errors.n} held"
    )
    assert rows["verdict"].startswith(begin)
    assert all(name in rows["verdict"] for name in RIVALS.values())
    model = estimator().fit(BAGS, SPREADS)
    by_folds = model.summary(BAGS, SPREADS).rows["verdict"]
    assert f"times the best constant's on {N} bags" in by_folds
    assert RIVALS["means_error"] in by_folds
    others = evaluate(model, BAGS[:9], SPREADS[:9])
    assert model.summary(BAGS[:9], SPREADS[:9]).rows["verdict"] == others.verdict()


def test_text_and_html(tmp_path):
    """Both have all rows; names of targets are not HTML."""
    store = BagStore.create(tmp_path / "s.zarr", n_dims=1, target_names=["<b>y</b>"])
    store.append(BAGS, targets={"<b>y</b>": SPREADS})
    summary = estimator().fit(store).summary()
    assert summary.rows["learned"] == "numbers (<b>y</b>)"
    assert repr(summary) == str(summary)
    assert len(str(summary).splitlines()) == 1 + len(summary.rows)
    assert "<b>y</b>" in str(summary)
    assert "&lt;b&gt;y&lt;/b&gt;" in summary._repr_html_()
    assert "<b>y</b>" not in summary._repr_html_()


def test_a_given_embedding():
    """Nothing was chosen: no error by folds of a choice, and no table."""
    model = estimator().fit(BAGS, SPREADS)
    assert set(model.summary().rows) == {"learned", "bags", "embedding", "penalty", "next"}
    assert model.summary().rows["embedding"] == "moments; 32 features"
    assert not hasattr(model, "choice_")
    assert "chosen" not in repr(model)
    assert len(repr(model.model_)) < 200


def test_few_bags_choose_nothing():
    """From three bags no folds are made; no number of candidates is told."""
    rows = DoubleBasisRegressor().fit(BAGS[:3], SPREADS[:3]).summary().rows
    assert "too few bags to compare embeddings" in rows["embedding"]
    assert "error" not in rows


def test_a_model_of_noise_is_warned_of():
    """Where its error by folds is that of a constant, or within two standard errors of it."""
    noise = np.random.default_rng(1).normal(size=N)
    model = DoubleBasisRegressor().fit(BAGS, noise)
    assert "better than a constant" in model.summary().rows["warning"]
    search = Search([MomentsEmbedding()], choose=True)
    tuning = tune(DoubleBasisRegressor(), BAGS, SPREADS, search=search, holdout=0.3)
    assert "warning" not in tuning.summary().rows
    assert repr(tuning) == str(tuning.summary())
    assert len(repr(tuning).splitlines()) < 12
    assert tuning.summary().rows["verdict"] == verdict_of("y", tuning.judged)
    assert tuning.summary().title in tuning._repr_html_()


def test_the_table(chosen):
    """Rows are the candidates, the best first, without the model losing them when it is saved."""
    table = chosen.choice_
    assert list(table["name"]) == [item["name"] for item in chosen.report_["choice"]["tried"]]
    assert table["error"].iloc[0] == chosen.report_["choice"]["tried"][0]["error"]
    assert table["width"].isna().sum() == table["name"].str.startswith("linear").sum()


def test_repr(chosen, tmp_path):
    """The name that was chosen stands behind the parameters, also after saving."""
    name = chosen.report_["choice"]["chosen"]
    assert repr(chosen).startswith(f"DoubleBasisRegressor()  # chosen: {name}")
    chosen.save(tmp_path / "m.zarr")
    loaded = load_model(tmp_path / "m.zarr")
    assert repr(loaded) == repr(chosen)
    assert str(loaded.summary()) == str(chosen.summary())
    assert repr(DoubleBasisRegressor()) == "DoubleBasisRegressor()"


def test_classes():
    """Errors of the kind that is learnt."""
    model = DoubleBasisClassifier(MomentsEmbedding()).fit(BAGS, SPREADS > 1)
    assert model.summary().rows["learned"] == "classes"


def test_before_a_fit():
    with pytest.raises(NotFittedError):
        estimator().summary()
