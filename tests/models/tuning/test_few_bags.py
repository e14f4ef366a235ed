"""`Search.choose` and `Search.heads`: few bags are compared by folds, and heads of the winner."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bagbasis import (
    DataError,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    MomentsEmbedding,
    RandomFourierFeatures,
    load_model,
)
from bagbasis.embeddings import FourierSpec, NystroemSpec
from bagbasis.models import Search, stacking, tune
from bagbasis.models.tuning import halving
from tests.oracles.labelled import stored

N = 60
RNG = np.random.default_rng(4)
TOP = RNG.uniform(0.3, 1.0, N)
BAGS = [RNG.uniform(0, top, (10, 1)) for top in TOP]
STEPS = (TOP > 0.6).astype(float) + (TOP > 0.8)
GROUPS = np.arange(N) // 3
PLAIN = Search([MomentsEmbedding()], scale_multipliers=(1.0,), heads=["ridge", "trees", "stack"])


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    monkeypatch.setattr(stacking, "N_RANDOMISED", 20)


def stored_labels(folder, n=N, labels=STEPS):
    columns = np.stack([labels, GROUPS], axis=1).astype(float)[:n]
    return stored(folder / "s.zarr", BAGS[:n], columns, ("y", "group"))


@pytest.mark.long
@pytest.mark.parametrize("kind", [DoubleBasisRegressor, DoubleBasisClassifier])
def test_few_bags_are_tuned_as_auto_chooses_them(kind, tmp_path):
    """The embedding, width and report are those of the default fit; the model is explicit."""
    store = stored_labels(tmp_path)
    result = tune(kind(), store, search=Search.auto(1), target="y", groups="group")
    default = kind().fit(store, target="y", groups="group")
    chosen, model = default.report_["choice"], result.model
    seconds = {"seconds": model.report_["choice"]["seconds"]}
    assert model.report_["choice"] == {**chosen, **seconds}
    assert model.features_ == default.features_
    assert repr(model.embedding) == repr(result.embeddings[0])
    assert model.alpha == "folds"  # as the default takes for few bags
    assert model.alpha_ == default.alpha_
    assert [score.error for score in result.scores[0].values()] == [chosen["tried"][0]["error"]]
    assert [(r.n_bags, r.n_candidates, r.n_kept) for r in result.rungs] == [
        (chosen["n_bags"], 1, 1)
    ]
    assert model.head == model.report_["head"]["head"] == "stack"
    assert set(model.report_["head"]["errors"]) == {"ridge", "trees", "stack"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("heads", "expected"),
    [(("trees", "ridge", "stack"), "stack"), (("ridge", "trees"), "ridge"), (None, "ridge")],
)
def test_few_bags_have_a_stack_where_the_search_has_one(heads, expected, tmp_path):
    """Also where the ridge is hard to beat, of which it is then made."""
    means = np.array([bag.mean() for bag in BAGS])
    search = replace(Search.auto(1), heads=heads)
    model = tune(
        DoubleBasisRegressor(), stored_labels(tmp_path, labels=means), search=search, target="y"
    ).model
    assert model.head == expected
    assert (model.model_.line is not None) == (expected == "stack")
    if heads:
        errors = model.report_["head"]["errors"]
        assert errors["ridge"] < 1e-6 < errors["trees"]
        assert errors["stack"] < 1.01 * errors["ridge"]


def second_bases(result):
    """The kinds of second basis among the candidates."""
    return {type(item.features.second) for item in result.candidates}


@pytest.mark.long
def test_a_halving_begins_with_the_choice(tmp_path, monkeypatch):
    """The embedding that is chosen for few bags comes first, and its width among those given; it
    has landmarks as the default fit does, or none, where it is linear."""
    store = stored_labels(tmp_path)
    chosen = DoubleBasisRegressor().fit(store, target="y")
    monkeypatch.setattr(halving, "TUNED_AT_ONCE", 20)
    search = replace(Search.auto(1), scale_multipliers=(0.123,), heads=None, join=False)
    base = DoubleBasisRegressor(validation_fraction=0.4)
    result = tune(base, store, search=search, target="y")
    assert len(result.embeddings) == 1 + len(search.embeddings) + len(search.linear)
    assert result.candidates[0].features.embedding == chosen.features_.embedding
    width = chosen.report_["choice"]["tried"][0]["width"]
    widths = {item.scale_multiplier for item in result.candidates}
    assert widths == {0.123, width, None}
    assert width not in (0.123, None)
    assert second_bases(result) == {NystroemSpec, type(None)}
    base.set_params(random_features=RandomFourierFeatures(n_features=32))  # which stay
    few = replace(search, embeddings=[MomentsEmbedding()])
    assert second_bases(tune(base, store, search=few, target="y")) == {FourierSpec, type(None)}


def test_too_few_bags_have_nothing_to_compare(tmp_path):
    with pytest.raises(DataError, match="3 labelled bags are too few to compare"):
        tune(DoubleBasisRegressor(), stored_labels(tmp_path, 3), search=Search.auto(1), target="y")


def test_the_cheapest_head_among_level_ones_is_taken():
    """Half a standard error behind is level: the ridge first, then the trees."""
    model = DoubleBasisRegressor(MomentsEmbedding(), head="stack").fit(BAGS, STEPS).model_
    shares = model.report["head"]["shares"]
    assert sum(shares.values()) == pytest.approx(1)
    for errors, expected, weight in (
        ((1.0, 0.9, 0.8), "stack", shares["trees"]),
        ((1.0, 0.84, 0.8), "trees", 1.0),
        ((0.84, 0.83, 0.8), "ridge", None),
    ):
        names = ("ridge", "trees", "stack")
        report = {
            **model.report["head"],
            "errors": dict(zip(names, errors, strict=True)),
            "standard_errors": dict.fromkeys(names, 0.1),
        }
        value = replace(model, report={"head": report})
        made, head = stacking.choose_head(value, names)
        assert (head, made.report["head"]["head"]) == (expected, expected)
        assert (None if made.trees is None else made.trees.weight) == weight
        line = shares["line"] if head == "stack" else None
        assert (None if made.line is None else made.line.weight) == line
        assert stacking.choose_head(value, ["ridge"])[1] == "ridge"


@pytest.mark.long
def test_trees_win_where_a_point_decides(tmp_path):
    """After a halving, too: the saved model has the head; intervals are those of its errors."""
    store = stored_labels(tmp_path)
    options = {"target": "y", "holdout": 0.3}
    result = tune(DoubleBasisRegressor(validation_fraction=0.4), store, search=PLAIN, **options)
    model = result.model
    assert model.head in ("trees", "stack")
    errors = model.report_["head"]["errors"]
    assert errors[model.head] < errors["ridge"]
    model.save(tmp_path / "m.zarr")
    loaded = load_model(tmp_path / "m.zarr")
    assert np.array_equal(loaded.predict(BAGS), model.predict(BAGS))
    again = load_model(tmp_path / "m.zarr").conformalize(store)
    assert np.array_equal(again.calibration_.errors, model.calibration_.errors)


def test_rows_that_do_not_fit_leave_the_ridge(tmp_path, monkeypatch):
    store, estimator = stored_labels(tmp_path), DoubleBasisRegressor(validation_fraction=0.4)
    monkeypatch.setattr(stacking, "COPIES", 10**12)
    model = tune(estimator, store, search=PLAIN, target="y").model
    assert model.head == "ridge"
    assert model.model_.trees is None
    assert "trees on" in model.report_["head"]["refused"]
