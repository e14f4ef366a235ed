"""Bags in memory that a model was fitted to with a holdout are judged on the bags held out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bagbasis import (
    Bags,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    KernelSmoother,
    ProjectionEmbedding,
    TripleBasisRegressor,
    evaluate,
    load_model,
)
from bagbasis.core.errors import ModelError

N = 120
RNG = np.random.default_rng(1)
Y = RNG.uniform(0.5, 3, N)
BAGS = [RNG.normal(0, s, (30, 2)) for s in Y]
SMALL = ProjectionEmbedding(n_per_dim=4)
NOISE = RNG.normal(size=N)


def exact(kind=DoubleBasisRegressor, **parameters):
    """Return an estimator that learns its labels by heart."""
    return kind(SMALL, alpha=1e-9, **parameters)


def test_the_bags_held_out_are_judged():
    model = exact().fit(BAGS, NOISE, holdout=0.25)
    errors = evaluate(model, BAGS, NOISE)
    assert errors.subset == "holdout"
    assert errors.n == model.report_["n_bags_held_out"]
    assert model.score(BAGS, NOISE) == errors.score < 0.5
    assert evaluate(model, BAGS, NOISE, subset="all").n == N
    assert evaluate(model, BAGS, NOISE, subset="train").n == N - errors.n


def test_of_a_classifier_and_of_densities():
    classes = np.where(NOISE > 0, "a", "b")
    model = exact(DoubleBasisClassifier).fit(BAGS, classes, holdout=0.25)
    assert evaluate(model, BAGS, classes).subset == "holdout"
    densities = TripleBasisRegressor(SMALL, response_embedding=SMALL).fit(BAGS, BAGS, holdout=0.25)
    assert evaluate(densities, BAGS, BAGS).subset == "holdout"
    smoother = KernelSmoother(SMALL).fit(BAGS, Y, holdout=0.25)
    assert evaluate(smoother, BAGS, Y).subset == "holdout"


def test_the_same_bags_are_known_in_any_form(tmp_path):
    model = exact().fit(BAGS, NOISE, holdout=0.25)
    model.save(tmp_path / "m")
    for known in (model, load_model(tmp_path / "m")):
        assert evaluate(known, Bags.from_list(BAGS), NOISE).subset == "holdout"
        assert evaluate(known, [bag.tolist() for bag in BAGS], NOISE).subset == "holdout"


@pytest.mark.long
def test_swapped_columns_of_a_frame_are_the_same_bags():
    frame = pd.concat([pd.DataFrame(bag, columns=["a", "b"]).assign(id=i)
                       for i, bag in enumerate(BAGS)])  # fmt: skip
    model = exact().fit(frame.groupby("id"), NOISE, holdout=0.25)
    assert evaluate(model, frame.groupby("id")[["b", "a"]], NOISE).subset == "holdout"


def test_other_bags_are_judged_whole():
    model = exact().fit(BAGS, NOISE, holdout=0.25)
    for others in (BAGS[::-1], BAGS[:-1], [*BAGS[:-1], BAGS[-1] + 1]):
        assert evaluate(model, others, NOISE[: len(others)]).subset == "all"
    without = exact().fit(BAGS, NOISE)
    assert evaluate(without, BAGS, NOISE).subset == "all"
    assert "data_digest" not in without.report_


def test_intervals_are_made_of_the_bags_held_out():
    model = exact().fit(BAGS, NOISE, holdout=0.25)
    widths = np.ptp(model.predict_interval(BAGS, 0.5), axis=0)
    model.conformalize(BAGS, NOISE)
    np.testing.assert_array_equal(np.ptp(model.predict_interval(BAGS, 0.5), axis=0), widths)


def test_a_subset_is_refused_where_nothing_was_held_out():
    with pytest.raises(ModelError, match="held no bags out"):
        evaluate(exact().fit(BAGS, NOISE), BAGS, NOISE, subset="holdout")
