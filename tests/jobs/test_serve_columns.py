"""A request of `bags serve` may name its columns: they are put in the model's order, or refused."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from bagbasis import BagbasisWarning, DoubleBasisRegressor, ModelError, MomentsEmbedding
from bagbasis.jobs.commands.serving.body_parsing import parsed
from bagbasis.jobs.commands.serving.requests import response
from tests.jobs.serving import Served, answer_request

RNG = np.random.default_rng(0)
BAGS = [RNG.normal(0, (1 + i, 10), (9, 2)) for i in range(12)]
FRAMES = [pd.DataFrame(bag, columns=["pulse", "pressure"]) for bag in BAGS]


@pytest.fixture(scope="module")
def served():
    model = DoubleBasisRegressor(MomentsEmbedding(), alpha=1.0).fit(FRAMES, np.arange(12.0))
    return Served("m", model)


@pytest.fixture(scope="module")
def unnamed():
    return Served("m", DoubleBasisRegressor(MomentsEmbedding(), alpha=1.0).fit(BAGS, range(12)))


def large(served, body):
    """Return the answer of the reader of large bodies."""
    return response(served, *parsed(body))


@pytest.fixture(params=[answer_request, large], ids=["small", "large"])
def ask(request):
    """Ask, by the reader of small or of large bodies."""
    return lambda served, **body: request.param(served, json.dumps(body).encode())


@pytest.mark.parametrize("key", ["bag", "bags"])
def test_columns_are_put_in_the_models_order(ask, served, key):
    bags = [bag.tolist() for bag in BAGS[:2]]
    turned = [bag[:, ::-1].tolist() for bag in BAGS[:2]]
    if key == "bag":
        bags, turned = bags[0], turned[0]
    as_fitted = ask(served, **{key: bags})
    assert ask(served, columns=["pulse", "pressure"], **{key: bags}) == as_fitted
    assert ask(served, **{key: turned}, columns=["pressure", "pulse"]) == as_fitted


def test_an_answer_has_the_warnings_of_a_prediction(ask, served):
    """Bags that `predict` warns of are told to the client, who does not read the server's log."""
    bag = (1e6 * BAGS[0]).tolist()
    with pytest.warns(BagbasisWarning, match="9 of 9 points outside the box"):
        prediction = served.model.predict([np.array(bag)])
    answer = ask(served, bags=[BAGS[0].tolist(), bag])
    assert [list(answer), answer["predictions"][1]] == [
        ["model", "predictions", "warnings"],
        *prediction,
    ]
    assert "bag 1: 9 of 9" in answer["warnings"][0]
    assert "warnings" not in ask(served, bag=BAGS[1].tolist())


def test_other_columns_are_refused(ask, served):
    with pytest.raises(ModelError, match=r"'pulse' is missing \(did you mean 'puls'\?\)"):
        ask(served, columns=["puls", "pressure"], bag=BAGS[0].tolist())


@pytest.mark.parametrize("columns", [["pulse"], "pulse", [1, 2], {"a": 1}, ["a", None]])
def test_columns_that_are_no_names_are_refused(ask, served, columns):
    reason = r'"columns" is .*; expected a list of 2 texts|/columns.* changed|names'
    with pytest.raises(ValueError, match=reason):
        ask(served, columns=columns, bag=BAGS[0].tolist())


def test_a_model_without_names_takes_columns_by_position(ask, unnamed):
    bag = BAGS[0].tolist()
    assert ask(unnamed, columns=["true_pulse", "false"], bag=bag) == ask(unnamed, bag=bag)


def test_truth_is_no_number_beside_columns(ask, served):
    with pytest.raises(ValueError, match=r"true or false|from number to boolean"):
        ask(served, columns=["pulse", "pressure"], bag=[[True, 2.0]])
