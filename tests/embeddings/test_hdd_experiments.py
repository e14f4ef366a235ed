"""The two experiments that 001 judges HDD embeddings by (§5.1 and §5.2), at a small size."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import (
    Bags,
    DoubleBasisRegressor,
    HDDEmbedding,
    ProjectionEmbedding,
    RandomFourierFeatures,
)
from bagbasis.datasets import make_dataset
from bagbasis.embeddings import FourierSpec
from bagbasis.jobs.experiments.data.samples import truncated_mixtures
from tests.oracles.hdd import kappa

N_MIXTURES = 20


def agreement(true, estimate):
    """Squared correlation and determination 1 − SSE/SST, above the diagonal."""
    upper = np.triu_indices(len(true), 1)
    a, b = true[upper], estimate[upper]
    determination = 1 - ((a - b) ** 2).sum() / ((a - a.mean()) ** 2).sum()
    return np.corrcoef(a, b)[0, 1] ** 2, determination


@pytest.mark.long
@pytest.mark.parametrize(
    ("distance", "orthogonal", "least"),
    [("js", True, 0.985), ("hellinger", True, 0.985), ("chi2", True, 0.985), ("tv", False, 0.96)],
)
def test_gram_matrix(distance, orthogonal, least):
    """The kernel of the embeddings, and of random features of them, is the true one: the paper
    has squared correlations of .974 and .966 for JS; determination shows a wrong scale too."""
    bags, densities = truncated_mixtures(0, N_MIXTURES)
    true = np.array([kappa(distance, p, densities).mean(axis=1) for p in densities])
    variance = np.median(true[np.triu_indices(N_MIXTURES, 1)])
    kernel = np.exp(-true / (2 * variance))
    embedding = HDDEmbedding(distance, dtype="float64").fit_transform(bags)
    squares = ((embedding[:, None] - embedding) ** 2).sum(axis=2)
    correlation, determination = agreement(kernel, np.exp(-squares / (2 * variance)))
    assert correlation > 0.987
    assert determination > 0.955
    features = np.empty((N_MIXTURES, 3500))
    spec = FourierSpec(
        embedding.shape[1], 3500, scale=float(np.sqrt(variance)), seed=0, orthogonal=orthogonal
    )
    spec.transform(embedding, features)
    correlation, determination = agreement(kernel, features @ features.T)
    assert correlation > least
    assert determination > 0.95


@pytest.mark.long
def test_counting_components():
    """How many components has a mixture, from 200 points: HDD < L2 < constant, by clear steps."""
    dataset = make_dataset("gmm_components", n_points=200, seed=1)
    blocks = [dataset.block(i) for i in range(-(-2000 // dataset.block_bags))]
    bags = Bags.from_list([bag for block, _ in blocks for bag in block][:2000])
    y = np.concatenate([targets[:, 0] for _, targets in blocks])[:2000]

    def error(embedding):
        model = DoubleBasisRegressor(
            embedding=embedding, random_features=RandomFourierFeatures(n_features=1000, seed=0)
        )
        predicted = model.fit(bags[:1500], y[:1500]).predict(bags[1500:])
        return np.sqrt(np.mean((predicted - y[1500:]) ** 2))

    box = [(-10, 10)] * 2
    js, hellinger = (error(HDDEmbedding(name, box=box)) for name in ("js", "hellinger"))
    projection = error(ProjectionEmbedding(box=box))
    assert max(js, hellinger) + 0.03 < projection
    assert projection + 0.5 < y[1500:].std()
