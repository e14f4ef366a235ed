"""Learned frequencies in the estimators: what is looked at, on which workers, and what is kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from bagbasis import (
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    EmbeddingUnion,
    LearnedFourierFeatures,
    ModelError,
    MomentsEmbedding,
    ParameterError,
    ProjectionEmbedding,
    RandomFourierFeatures,
    TripleBasisRegressor,
    cross_val_score,
    features,
    load_model,
)
from bagbasis.data.labelled.holdout import Holdout
from bagbasis.embeddings import LearnedSpec
from bagbasis.models import Checkpoints, Search, tune
from bagbasis.models.evaluation.cross_validation import choose_folds
from bagbasis.models.fitting import learning_passes
from tests.models.edited import edit_state
from tests.oracles.labelled import LabelledBags, labelled_bags, stored
from tests.oracles.planned import posed
from tests.passes import pass_limits

N = 120
BAGS, Y = labelled_bags(N, most=30)
CODES = np.digitize(Y, [-0.3, 0.4])
LEARNED = LearnedFourierFeatures(n_features=12, n_sweeps=3, seed=2)
FIRST = ProjectionEmbedding(n_per_dim=3, box=[(0, 1)] * 2)


def regressor(second=LEARNED, kind=DoubleBasisRegressor, **params):
    return kind(FIRST, second, **{"precision": "float64", **params})


def frequencies(model):
    return model.features_.second.frequencies


def test_passes_over_bags_learn_what_rows_of_embeddings_do():
    """`fit(X, y)` of the features and of an estimator take the same decisions."""
    model = regressor().fit(BAGS, Y)
    rows = FIRST.transform(BAGS).astype(np.float64)
    alone = clone(LEARNED).fit(rows, Y)
    np.testing.assert_allclose(frequencies(model), alone.spec_.frequencies, rtol=1e-6)


@pytest.mark.parametrize(
    ("kind", "params", "labels"),
    [
        (DoubleBasisRegressor, {}, np.stack([Y, Y**2], axis=1)),
        (DoubleBasisRegressor, {"baseline": "linear", "solver": "cholesky"}, Y),
        (DoubleBasisClassifier, {}, CODES),
        (TripleBasisRegressor, {"response_embedding": FIRST}, BAGS),
        (TripleBasisRegressor, {"response_embedding": FIRST, "baseline": "own"}, BAGS),
    ],
)
def test_saved_models_of_all_outcomes_have_their_frequencies(tmp_path, kind, params, labels):
    """They predict the same bits, and are refused where the frequencies are others."""
    model = regressor(kind=kind, **params).fit(BAGS, labels)
    model.save(tmp_path / "m.zarr")
    again = load_model(tmp_path / "m.zarr")
    assert again.features_ == model.features_
    assert again.get_params()["random_features"].get_params() == LEARNED.get_params()
    np.testing.assert_array_equal(model.predict(BAGS[:9]), again.predict(BAGS[:9]))
    scale = again.get_params()["random_features"].scale
    edit_state(
        tmp_path / "m.zarr",
        lambda state: state["features"]["random_features"].update(scale=2 * scale),
    )
    with pytest.raises(ModelError):
        load_model(tmp_path / "m.zarr")


def test_two_classes_are_one_number():
    """Their indicators say the same, and are no twofold evidence."""
    classes = (Y > 0).astype(int)
    of_classes = regressor(kind=DoubleBasisClassifier).fit(BAGS, classes)
    of_numbers = regressor().fit(BAGS, classes.astype(float))
    np.testing.assert_allclose(frequencies(of_classes), frequencies(of_numbers), rtol=1e-9)


def test_the_width_of_learnt_frequencies_is_no_advice(warned):
    """Labels made them whatever they are; no search has their σ."""
    regressor(clone(LEARNED).set_params(scale=1e-3)).fit(BAGS, Y)
    assert "the scale of the random features" not in warned.text
    regressor(RandomFourierFeatures(n_features=12, scale=1e-3)).fit(BAGS, Y)
    assert "the scale of the random features" in warned.text


def test_a_width_that_nobody_gave_is_no_advice(warned):
    """Where most bags are equal, the library's own width is as good as any other."""
    bags = [BAGS[0]] * (N - 4) + [(1 - 1e-4) * BAGS[0]] * 4
    regressor(RandomFourierFeatures(n_features=12)).fit(bags, Y)
    assert "the scale of the random features" not in warned.text
    regressor(RandomFourierFeatures(n_features=12, scale_multiplier=30.0)).fit(BAGS, Y)
    assert "the scale of the random features" in warned.text


@pytest.mark.long
def test_labels_held_out_are_not_looked_at(tmp_path):
    """Neither those held out nor those to validate on; other labels of them change no bit."""
    store = stored(tmp_path / "a.zarr", BAGS, Y)
    model = regressor(alpha="validation").fit(store, holdout=0.3)
    source = LabelledBags(store)
    held = Holdout.of(0.3).split(source).members(0, N)
    held |= Holdout.of(0.3).validation(model.validation_fraction, source).members(0, N)
    assert 20 < held.sum() < 100
    other = stored(tmp_path / "b.zarr", BAGS, np.where(held, -9.0, Y))
    again = regressor(alpha="validation").fit(other, holdout=0.3)
    np.testing.assert_array_equal(frequencies(again), frequencies(model))
    whole = regressor().fit(other)
    assert not np.array_equal(frequencies(whole), frequencies(model))


def test_weights_count():
    """Doubled weights change nothing, a bag of weight 0 is as one without a label."""
    weights = np.random.default_rng(0).integers(0, 3, N).astype(float)
    model = regressor().fit(BAGS, Y, sample_weight=weights)
    doubled = regressor().fit(BAGS, Y, sample_weight=2 * weights)
    other = regressor().fit(BAGS, np.where(weights == 0, 99.0, Y), sample_weight=weights)
    for again in (doubled, other):
        np.testing.assert_allclose(frequencies(again), frequencies(model), rtol=1e-9)
    plain = regressor().fit(BAGS, Y)
    assert not np.allclose(frequencies(plain), frequencies(model))


@pytest.mark.long
def test_chunks_and_tasks_do_not_matter(tmp_path):
    """Decisions are the same for any of them."""
    values = []
    for chunk_points, tasks in ((50, (1e-9, 60.0)), (1000, (60.0,))):  # 16 tasks, or one
        store = stored(tmp_path / f"{chunk_points}.zarr", BAGS, Y, chunk_points=chunk_points)
        for seconds in tasks:
            with pass_limits(partition_bytes=60 * 16, small_task_seconds=seconds):
                values.append(regressor().fit(store))
    for model in values[1:]:
        np.testing.assert_allclose(frequencies(model), frequencies(values[0]), rtol=1e-9)


def test_a_sample_of_runs_is_learnt_from_where_there_are_more_bags():
    """Bags between the runs are not looked at by sweeps; all are fitted to."""
    model = regressor(LearnedFourierFeatures(n_features=12, n_sweeps=2, n_bags=40)).fit(BAGS, Y)
    between = np.ones(N, bool)
    for start in range(0, N, 28):  # 5 runs of 8
        between[start : start + 8] = False
    again = regressor(LearnedFourierFeatures(n_features=12, n_sweeps=2, n_bags=40)).fit(
        BAGS, np.where(between, 5.0, Y)
    )
    np.testing.assert_array_equal(frequencies(again), frequencies(model))
    assert again.report_["n_bags_fitted"] == N
    assert not np.allclose(again.coef_, model.coef_)


class _Killed(Exception):
    pass


@pytest.mark.long
@pytest.mark.parametrize("alpha", [0.1, "validation"])
def test_goes_on_from_a_checkpoint(alpha, monkeypatch, tmp_path):
    """A fit that is cut off in any pass repeats none that a sweep or the widths have ended."""
    store = stored(tmp_path / "s.zarr", BAGS, Y)
    whole = regressor(alpha=alpha).fit(store)
    run, passes = learning_passes.run_pass, []

    def killed_in_pass(*args, **kwargs):
        passes.append(1)
        if len(passes) in (7, 9, 10):  # the first and the second sweep, twice
            raise _Killed
        return run(*args, **kwargs)

    monkeypatch.setattr(learning_passes, "run_pass", killed_in_pass)
    for _ in range(3):
        with pytest.raises(_Killed):
            regressor(alpha=alpha).fit(store, checkpoints=tmp_path / "kept")
    again = regressor(alpha=alpha).fit(store, checkpoints=tmp_path / "kept")
    assert again.features_ == whole.features_
    np.testing.assert_array_equal(again.coef_, whole.coef_)
    assert len(passes) == 6 + 3 + 3
    assert not (tmp_path / "kept").exists()


@pytest.mark.long
def test_what_other_sweeps_have_come_to_is_not_gone_on_from(monkeypatch, tmp_path):
    """Another seed, other features or another penalty's bags learn by themselves."""
    store = stored(tmp_path / "s.zarr", BAGS, Y)
    with Checkpoints(tmp_path / "kept") as saved:
        regressor().fit(store, checkpoints=saved)
        other = clone(LEARNED).set_params(seed=3)
        again = regressor(other).fit(store, checkpoints=saved)
        assert again.features_ == regressor(other).fit(store).features_


@pytest.mark.parametrize("which", ["numbers", "classes", "in time"])
def test_each_fold_learns_from_its_own_bags(which):
    """Labels of a fold, and of later ones in time, change no frequency that predicts it."""
    kind, labels = DoubleBasisRegressor, Y
    if which == "classes":
        kind, labels = DoubleBasisClassifier, CODES
    arguments = {"time": np.arange(N)} if which == "in time" else {"groups": np.arange(N) % 3}
    scores = cross_val_score(regressor(kind=kind), BAGS, labels, cv=3, **arguments)
    source = posed(regressor(), BAGS, Y).source
    folds = choose_folds(source, 3, arguments.get("groups"), arguments.get("time"))
    for j, score in enumerate(scores):
        fitted, out = folds < j if which == "in time" else folds != j, folds == j
        saved = np.where(fitted, labels, np.nan)
        model = regressor(kind=kind).fit(BAGS, saved, groups=arguments.get("groups"))
        tested = [BAGS[i] for i in np.flatnonzero(out)]
        np.testing.assert_allclose(score, model.score(tested, labels[out]), rtol=1e-6)


@pytest.mark.long
def test_a_search_compares_gaussian_kernels_and_its_last_fit_learns(tmp_path):
    """The same candidates and scores as with `RandomFourierFeatures` of as many features."""
    store = stored(tmp_path / "s.zarr", BAGS, Y)
    search = Search(
        [ProjectionEmbedding(n_per_dim=3), MomentsEmbedding()],
        scale_multipliers=(0.7, 1.4),
        join=True,
    )
    ours = tune(regressor(), store, search=search, target="y")
    fixed = RandomFourierFeatures(n_features=12, seed=2)
    theirs = tune(regressor(fixed), store, search=replace(search, join=False), target="y")
    for rung, other in zip(ours.scores, theirs.scores, strict=True):
        assert {c: rung[c].error for c in other} == {c: item.error for c, item in other.items()}
    winner = ours.candidates[ours.winner].estimator(regressor())
    assert ours.model.features_ == winner.fit(store, target="y").features_
    assert isinstance(ours.model.features_.second, LearnedSpec)
    assert not any(getattr(item, "join", "") == "sum" for item in ours.embeddings)
    summed = EmbeddingUnion(join="sum")
    with pytest.raises(ParameterError, match="learned frequencies are of one kernel"):
        tune(regressor(), store, search=Search([FIRST, summed]), target="y")


def test_where_no_label_may_be_looked_at_learning_is_refused(tmp_path):
    """Features of a store name what can be done instead."""
    store = stored(tmp_path / "s.zarr", BAGS, Y)
    with pytest.raises(ParameterError, match="follow the labels"):
        features(store, FIRST, LEARNED)
    rows = features(store, FIRST, clone(LEARNED).fit(FIRST.transform(BAGS), Y))
    assert rows.shape == (N, 12)


def test_progress_says_which_sweep_it_is():
    """Each pass counts its bags, and the evidence that was come to."""
    message, counts = [], []

    class Watched:
        def __call__(self, done, total):
            counts.append((done, total))

        def note(self, text):
            message.append(text)

    regressor().fit(BAGS, Y, progress=Watched())
    assert message[0] == "width 0.125"
    assert message[-1].startswith("sweep 3 of 3, log evidence ")
    assert counts.count((N, N)) == 6 + 3 + 1
