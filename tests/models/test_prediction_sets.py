"""Prediction sets of classes have the coverage that they promise, and go with the model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bagbasis import (
    DoubleBasisClassifier,
    ModelError,
    MomentsEmbedding,
    ParameterError,
    as_bags,
    evaluate,
    load_model,
    tune,
)
from bagbasis.models import Search, write_predictions
from bagbasis.models.evaluation.coverage import judge_intervals
from bagbasis.models.intervals.calibration import SetCalibration
from bagbasis.models.intervals.fold_calibration import FoldSetCalibration
from tests.models.predicting import (
    BAGS,
    CODES,
    NAMES,
    N,
    Y,
    bases,
    classifier,
    features_of,
    regressor,
)
from tests.models.splits import held_out
from tests.oracles.labelled import stored
from tests.oracles.planned import folds_by_content

LABELS = NAMES[CODES]
HELD_OUT = held_out(0.4, N)


def by_definition(probabilities, true, rank):
    """The sets of the rank-th largest score of calibration bags, and the predicted classes."""
    scores = np.sort(1 - probabilities[0][np.arange(len(true)), true])
    result = 1 - probabilities[1] <= scores[rank - 1]
    result[np.arange(len(result)), probabilities[1].argmax(axis=1)] = True
    return result


def test_of_bags_held_out():
    """A class is in the set where its probability is at least that of enough true classes."""
    model = classifier().fit(BAGS, LABELS, holdout=0.4)
    true = np.searchsorted(model.classes_, LABELS)
    m = HELD_OUT.sum()
    shares = model.predict_proba(BAGS)
    for coverage in (0.3, 0.8, 0.9):
        rank = int(np.ceil((m + 1) * coverage - 1e-9))
        expected = by_definition((shares[HELD_OUT], shares), true[HELD_OUT], rank)
        np.testing.assert_array_equal(model.predict_set(BAGS, coverage=coverage), expected)
        assert (expected[HELD_OUT, true[HELD_OUT]]).sum() >= rank
    other = classifier().fit(BAGS, LABELS)
    again = other.conformalize(BAGS[:30], LABELS[:30]).predict_set(BAGS, coverage=0.8)
    expected = by_definition(
        (other.predict_proba(BAGS[:30]), other.predict_proba(BAGS)), true[:30], 25
    )
    np.testing.assert_array_equal(again, expected[: len(again)])


def test_of_folds():
    """Each bag by the model without its fold: the definition of CV+ for classes."""
    cv, bags, labels = 4, BAGS[:50], LABELS[:50]
    model = classifier().fit(bags, labels).conformalize(bags, labels, cv=cv)
    calibration = model.calibration_
    assert isinstance(calibration, FoldSetCalibration)
    folds = folds_by_content(bags, labels, cv, classifier())
    z = features_of(model, BAGS)
    true = np.searchsorted(model.classes_, labels)
    of_fold = []
    for j in range(cv):
        raw = z @ calibration.coef[j].T + calibration.intercept[j]
        of_fold.append(model.outcome_.probabilities(raw))
    scores = np.array([1 - of_fold[folds[i]][i, true[i]] for i in range(50)])
    result = model.predict_set(BAGS, coverage=0.8)
    rank = int(np.ceil(51 * 0.8))
    for i in range(N):
        for c in range(3):
            mine = np.array([1 - of_fold[fold][i, c] for fold in folds])
            is_top = c == model.predict_proba(BAGS[i : i + 1])[0].argmax()
            assert result[i, c] == (is_top or (scores < mine).sum() < rank)


def test_coverage():
    """Over 400 draws of 40 calibration bags the sets hold the true class as often as promised."""
    rng = np.random.default_rng(1)
    shares = rng.dirichlet([0.6] * 3, (400, 41))
    true = (rng.random((400, 41))[:, :, None] > shares.cumsum(axis=2)).sum(axis=2)
    unlikely = 1 - np.take_along_axis(shares, true[:, :, None], axis=2)[:, :, 0]
    for coverage in (0.5, 0.9):
        covered = [
            SetCalibration(np.sort(item[:40])[:, None]).sets(item[40:, None], None, coverage)[0, 0]
            for item in unlikely
        ]
        assert abs(np.mean(covered) - coverage) < 3 * (coverage * (1 - coverage) / 400) ** 0.5


def test_a_class_that_was_not_fitted_is_never_covered():
    """Its bags count as the worst: sets of all classes, where there are many such bags."""
    model = classifier().fit(BAGS, LABELS)
    strange = np.where(np.arange(N) % 2, "strange", LABELS)
    assert model.conformalize(BAGS[:-1], strange[:-1]).predict_set(BAGS, coverage=0.6).all()
    assert not model.predict_set(BAGS, coverage=0.3).all()


def test_saved_and_written(tmp_path):
    """A saved model has the same sets, lazy for a store; files have a column for each class."""
    store = stored(tmp_path / "s.zarr", BAGS, CODES.astype(float), ["kind"], chunk_points=100)
    held = classifier().fit(store, target="kind", holdout=0.4)
    folded = classifier(class_weight="balanced").fit(store, target="kind").conformalize(store, cv=3)
    for name, model in (("held", held), ("folded", folded)):
        model.save(tmp_path / name)
        loaded = load_model(tmp_path / name)
        expected = model.predict_set(BAGS, coverage=0.7)
        np.testing.assert_array_equal(loaded.predict_set(store, coverage=0.7).compute(), expected)
        url = tmp_path / f"{name}.parquet"
        write_predictions(loaded, store, url, columns=["set"], coverage=0.7)
        table = pd.read_parquet(url)[["set_0", "set_1", "set_2"]]
        np.testing.assert_array_equal(table, expected)
        write_predictions(loaded, store, tmp_path / f"{name}.zarr", columns=["set"])


def test_measured_coverage(tmp_path):
    """On another store: how many true classes are in the sets, and how large these are."""
    store = stored(tmp_path / "s.zarr", BAGS, CODES.astype(float), ["kind"])
    model = classifier().fit(store, target="kind", holdout=0.4)
    assert judge_intervals(model, store) == []  # made of the bags held out
    other = stored(tmp_path / "o.zarr", BAGS[:40], CODES[:40].astype(float), ["kind"])
    for item in judge_intervals(model, other):
        sets = model.predict_set(BAGS[:40], coverage=item["coverage"])
        assert item["target"] == "kind"
        assert item["covered"] == pytest.approx(sets[np.arange(40), CODES[:40]].mean())
        assert item["mean_size"] == pytest.approx(sets.sum(axis=1).mean())


def test_refused(tmp_path):
    """No calibration, too few bags, numbers instead of classes, and intervals of classes."""
    model = classifier().fit(BAGS, LABELS)
    with pytest.raises(ModelError, match="no calibration data; fit it with holdout"):
        model.predict_set(BAGS)
    model = classifier().fit(BAGS, LABELS, holdout=0.2)
    with pytest.raises(ParameterError, match="takes 99 held-out bags"):
        model.predict_set(BAGS, coverage=0.99)
    store = stored(tmp_path / "s.zarr", BAGS, Y)
    with pytest.raises(ModelError, match="no column 'lower'; its prediction sets are the column"):
        write_predictions(model, store, tmp_path / "p.parquet", columns=["lower"])
    numbers = regressor().fit(BAGS, Y, holdout=0.3)
    with pytest.raises(ModelError, match="a model of numbers has no column 'set'"):
        numbers.model_.sets_of(numbers.model_.interval_rows(as_bags(BAGS)), 0.5)


@pytest.mark.long
def test_a_tuned_head_is_calibrated():
    """Each head has its own map to probabilities, and sets of its own."""
    search = Search([MomentsEmbedding()], scale_multipliers=[1.0], heads=["ridge", "trees"])
    start = DoubleBasisClassifier(random_features=bases()[1], validation_fraction=0.3)
    result = tune(start, BAGS, LABELS, search=search, holdout=0.3)
    model = result.model
    held = [BAGS[i] for i in np.flatnonzero(held_out(0.3, N))]
    true = LABELS[held_out(0.3, N)]
    shares = model.predict_proba(held)[np.arange(len(held)), np.searchsorted(model.classes_, true)]
    np.testing.assert_allclose(model.calibration_.errors[:, 0], np.sort(1 - shares), rtol=1e-9)
    assert evaluate(model, BAGS, LABELS).subset == "holdout"
