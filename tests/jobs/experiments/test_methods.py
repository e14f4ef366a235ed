"""Choosing an embedding for Double-Basis models by the training bags."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import (
    Bags,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    HDDEmbedding,
    MomentsEmbedding,
)
from bagbasis.jobs.experiments.methods import ALPHAS, choose, described, fit_chosen


def problem():
    """Bags whose variance is the target: the mean alone knows nothing of it."""
    rng = np.random.default_rng(0)
    y = rng.uniform(0.05, 0.2, 300)
    return Bags.from_list([rng.normal(0.5, s, (40, 1)).clip(0, 1) for s in y]), y


@pytest.mark.parametrize("kind", [DoubleBasisRegressor, DoubleBasisClassifier])
def test_better_embedding_is_chosen(kind):
    """Of an embedding that sees the target and one that does not, wherever it stands."""
    bags, y = problem()
    y = y if kind is DoubleBasisRegressor else (y > 0.12).astype(float)
    blind, seeing = (MomentsEmbedding(covariance=c) for c in (False, True))
    for candidates in ([blind, seeing], [seeing, blind]):
        choice = choose(kind, candidates, (0.5, 2.0), (bags, y), 64, 0)
        assert choice.embedding is seeing
        assert choice.multiplier in (0.5, 2.0)
        assert 10**-6.01 < choice.alpha_a_bag < 10**0.51
        assert choice.values["embedding"] == {"embedding": "MomentsEmbedding"}
    model = fit_chosen(kind, choice, (bags[:200], y[:200]), 64, 0)
    assert model.score(bags[200:], y[200:]) > 0.7
    assert 0.1 <= model.alpha_ / 200 / choice.alpha_a_bag <= 3.2
    assert len(model.alphas_) < len(ALPHAS)


def test_description_has_what_is_not_default():
    """Parameters as JSON has them, without the defaults."""
    assert described(HDDEmbedding("tv", bandwidth=0.1)) == {
        "embedding": "HDDEmbedding",
        "distance": "tv",
        "bandwidth": 0.1,
    }
