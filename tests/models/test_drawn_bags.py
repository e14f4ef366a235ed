"""Drawn bags: every embedding that is made of others, and every estimator, against its slow twin.

The embeddings themselves have theirs in `tests.oracles.test_table`, drawn there too.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from hypothesis import given, settings, strategies as st
from scipy.spatial.distance import cdist, pdist
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bagbasis import (
    Bags,
    CoefficientPCA,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    EmbeddingUnion,
    MeanMapEmbedding,
    MomentsEmbedding,
    PointTransformer,
    ProjectionEmbedding,
    RandomFourierFeatures,
    TripleBasisRegressor,
)
from tests.oracles import ridge
from tests.oracles.labelled import labelled_bags
from tests.oracles.principal import components_by_svd

UNIT = [(0, 1)] * 2
DRAWN = settings(max_examples=10)
FIRST = partial(ProjectionEmbedding, n_per_dim=3)
PARTS = {"a": FIRST, "b": partial(MomentsEmbedding, standardize=False), "c": MeanMapEmbedding}


def rows_of(embedding, bags):
    """The embedding of bags in the unit square, in double."""
    return embedding.set_params(box=UNIT, dtype="float64").fit(bags).transform(bags)


@DRAWN
@given(
    st.integers(2, 30),
    st.lists(st.floats(0.01, 9), min_size=3, max_size=3),
    st.sampled_from(["ab", "ba", "abc"]),
    st.integers(0, 99),
)
def test_a_union_is_its_parts(n, weights, names, seed):
    """Each over the median distance of bags, times the root of its share of the weights."""
    bags, _ = labelled_bags(n, seed=seed)
    weights = np.array(weights[: len(names)])
    union = EmbeddingUnion([(x, PARTS[x]()) for x in names], weights=weights)
    expected = []
    for name, share in zip(names, weights / weights.sum(), strict=True):
        rows = rows_of(PARTS[name](), bags)
        scale = np.sqrt(np.median(pdist(rows) ** 2))
        expected.append(rows / (scale or 1) * np.sqrt(share))
    np.testing.assert_allclose(rows_of(union, bags), np.hstack(expected), atol=1e-9)


@DRAWN
@given(st.integers(2, 40), st.integers(1, 8), st.booleans(), st.integers(0, 99))
def test_components_are_those_of_a_dense_svd(n, n_components, whiten, seed):
    """For fewer and more bags than coefficients; at most the axes along which bags differ."""
    bags, _ = labelled_bags(n, seed=seed)
    rows = rows_of(FIRST(), bags)
    pca = CoefficientPCA(FIRST(), n_components=n_components, whiten=whiten)
    result = rows_of(pca, bags)
    saved = min(n_components, n - 1, rows.shape[1] - 1)  # the first function is constant
    assert result.shape[1] <= saved
    mean, axes = components_by_svd(rows, result.shape[1], whiten)
    np.testing.assert_allclose(
        cdist(result, result), cdist(*[(rows - mean) @ axes.T] * 2), atol=1e-7
    )


@DRAWN
@given(st.integers(2, 20), st.booleans(), st.integers(0, 99))
def test_points_are_transformed_as_all_points_stacked(n, rotated, seed):
    """Standardised, or rotated and whitened besides."""
    bags, _ = labelled_bags(n, seed=seed)
    steps = [StandardScaler(), PCA(2, whiten=True)]
    transformer = make_pipeline(*steps) if rotated else steps[0]
    points = np.concatenate([*bags, np.random.default_rng(seed).random((3, 2))])
    bags.append(points[-3:])
    ours = PointTransformer(transformer, FIRST()).fit(bags).transform_points(bags).points
    peer = transformer.fit_transform(points)
    signs = np.sign(ours[:1] * peer[:1])  # of axes with two entries alike rounding decides
    np.testing.assert_allclose(ours * signs, peer, atol=1e-9)


def columns_of(model, bags):
    """z and the columns of a baseline, in double."""
    [(_, rows, _)] = model.features_.blocks(Bags.from_list(bags), np.float64)
    return np.split(rows.copy(), [model.features_.n_penalized], axis=1)


BOTH = {"box": UNIT, "dtype": "float64"}
ESTIMATORS = [
    *((kind, baseline) for kind in (DoubleBasisRegressor, DoubleBasisClassifier)
      for baseline in (None, "linear")),
    (TripleBasisRegressor, None),
    (TripleBasisRegressor, "own"),
]  # fmt: skip


@DRAWN
@given(
    st.sampled_from(ESTIMATORS),
    st.integers(12, 60),
    st.floats(1e-3, 10),
    st.integers(0, 99),
)
def test_estimators_are_dense_ridges(estimator, n, alpha, seed):
    """For more and fewer bags than the 32 features, some without a label; with baselines."""
    kind, baseline = estimator
    bags, y = labelled_bags(n, seed=seed, most=15)
    known = np.random.default_rng(seed).random(n) < 0.8
    known[:4] = True
    params = {"alpha": alpha, "precision": "float64", "baseline": baseline}
    if kind is TripleBasisRegressor:
        params["response_embedding"] = FIRST(**BOTH)
        labels = [bag if keep else None for bag, keep in zip(bags, known, strict=True)]
        targets = FIRST(**BOTH).fit(bags).transform(bags)
    elif kind is DoubleBasisClassifier:
        classes = np.where(y > np.median(y[known]), 1.0, 0.0)
        classes[:2] = 0, 1
        labels = np.where(known, classes, np.nan)
        targets = np.eye(2)[classes.astype(int)]
    else:
        labels, targets = np.where(known, y, np.nan), y[:, None]
    model = kind(FIRST(**BOTH), RandomFourierFeatures(n_features=32, seed=seed), **params).fit(
        bags, labels
    )
    z, a = columns_of(model, bags)
    if baseline == "own":
        solution = ridge.own_ridge(z[known], a[known], targets[known], alpha)
    elif baseline == "linear":
        beside = model.report_["baseline_alpha"]
        solution = ridge.partial_ridge(z[known], a[known], targets[known], alpha, beside)
    else:
        solution = ridge.ridge(z[known], targets[known], alpha)
    expected = ridge.predict(np.hstack([z, a]), solution)
    result = np.hstack([z, a]) @ np.atleast_2d(model.coef_).T + model.intercept_
    np.testing.assert_allclose(result, expected, atol=1e-6)
    if kind is DoubleBasisClassifier:
        result, expected = model.predict(bags), expected.argmax(axis=1)
    else:
        result = model.predict(bags).reshape(n, -1)
    np.testing.assert_allclose(result, expected, atol=1e-6)
