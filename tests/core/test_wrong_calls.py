"""A call with wrong arguments names the function, and the argument that was meant."""

from __future__ import annotations

from typing import Annotated

import pytest

from bagbasis import (
    DoubleBasisRegressor,
    MomentsEmbedding,
    ParameterError,
    RandomFourierFeatures,
    as_responses,
    cross_val_score,
)
from bagbasis.core import Integer, checked
from bagbasis.hypotheses import KSD, RDC, FourierMMD
from bagbasis.operations import Retraining

MODEL = DoubleBasisRegressor()
BAGS = [[[0.0]], [[1.0]]]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: DoubleBasisRegressor(random_state=0), r"as in NystroemFeatures\(seed=0\)"),
        (
            lambda: DoubleBasisRegressor(1, 2, 3),
            r"at most 2 positional .* \(embedding, random_features\), but 3",
        ),
        (
            lambda: RandomFourierFeatures(random_state=0),
            r"RandomFourierFeatures\(\) .*\(did you mean 'seed'",
        ),
        (lambda: MomentsEmbedding(standardise=True), r"\(did you mean 'standardize'\?\)"),
        (
            lambda: MODEL.fit(BAGS, [0, 1], 0.1),
            r"fit\(\) takes at most 2 .* \(X, y\), but 3 .* by keyword, such as .*sample_weight=",
        ),
        (lambda: MODEL.fit(BAGS, [0, 1], nothing_like_it=0.1), r"'nothing_like_it'$"),
        (
            lambda: FourierMMD(32),
            r"^FourierMMD\(\) takes keyword arguments only, such as n_frequencies=, but 1 was",
        ),
        (
            lambda: RDC(50, 0.2),
            r"^RDC\(\) takes keyword arguments only, such as n_features=, scale=, but 2 were",
        ),
        (lambda: KSD(memori=1.0), r"^KSD\(\) got an unexpected keyword argument 'memori'"),
        (
            lambda: MODEL.save("model", True),
            r"^save\(\) takes at most 1 positional argument \(url\), .* such as overwrite=$",
        ),
        (lambda: MODEL.score(BAGS, [0, 1], [1, 1]), r"\(X, y\), but 3 were .* sample_weight=$"),
        (lambda: MODEL.predict_interval(BAGS, 0.9), r"\(X\), but 2 were .* such as coverage=$"),
        (
            lambda: Retraining("store", "registry", MODEL),
            r"^Retraining\(\) .* \(data_url, registry_url\), but 3 were .* such as estimator=",
        ),
        (lambda: cross_val_score(MODEL), r"cross_val_score\(\) is missing the argument 'X'"),
        (lambda: as_responses([]), r"as_responses\(\) is missing the argument 'n_bags'"),
    ],
)
def test_wrong_arguments(call, words):
    with pytest.raises(TypeError, match=words):
        call()


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"solver": "xyz"}, r"solver is 'xyz'; expected"),
        ({"random_features": "rff"}, r"random_features is 'rff'; expected .*'fourier'"),
        ({"precision": "float"}, r"precision is 'float' \(did you mean 'float\d\d'\?\)"),
    ],
)
def test_wrong_words(parameters, words):
    with pytest.raises(ParameterError, match=words):
        DoubleBasisRegressor(**parameters).fit(BAGS, [0.0, 1.0])


def test_errors_within_a_constructor_stay():
    """A TypeError that is not of the call is that of the code."""
    with pytest.raises(TypeError, match="unhashable"):
        as_responses({[]: 1}, 1)


@checked
def counted(n: Annotated[int, Integer(ge=0)], /, *more: int, seed: int = 0, **named: int):
    """Return all arguments."""
    return n, more, seed, named


def test_parameters_that_have_no_names_are_checked():
    assert counted(3, 4, 5, seed=1, other=6) == (3, (4, 5), 1, {"other": 6})
    assert counted(3, n=4) == (3, (), 0, {"n": 4})
    with pytest.raises(ParameterError, match="n is -1"):
        counted(-1)
