"""`EmbeddingUnion`: kernels of joined embeddings against those of the parts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from bagbasis import (
    Bags,
    Box,
    DoubleBasisRegressor,
    EmbeddingUnion,
    HDDEmbedding,
    MomentsEmbedding,
    ParameterError,
    RandomFourierFeatures,
    load_model,
)
from bagbasis.embeddings import FourierSpec
from tests.oracles.labelled import labelled_bags
from tests.oracles.planned import chosen_features, posed

BAGS, Y = labelled_bags(40)
PARTS = [("js", HDDEmbedding("js", n_per_dim=3)), ("mean", MomentsEmbedding(covariance=False))]
WEIGHTS = np.array([0.25, 0.75])


def part_distances(bags):
    """Distances of bags in each part, over their median, shape (2, n, n)."""
    rows = [
        part.set_params(dtype="float64").fit_transform(bags) for _, part in clone(PARTS, safe=False)
    ]
    return np.array([cdist(A, A) / np.sqrt(np.median(pdist(A) ** 2)) for A in rows])


def union_of_parts(**params):
    return EmbeddingUnion(clone(PARTS, safe=False), weights=[1, 3], dtype="float64", **params)


@pytest.mark.long
@pytest.mark.parametrize(
    "second", [{}, {"orthogonal": True}, {"structure": "hadamard"}, {"scale": 2.0}]
)
@pytest.mark.parametrize("join", ["product", "sum"])
def test_kernels(join, second):
    """Random features give the product or the weighed sum of the parts' kernels."""
    model = DoubleBasisRegressor(
        union_of_parts(join=join),
        RandomFourierFeatures(n_features=2**14, **second),
        precision="float64",
    )
    features = chosen_features(model, posed(model, BAGS, Y))
    z = np.empty((len(BAGS), 2**14))
    features.features_of(features.embed(Bags.from_list(BAGS), np.float64)[0], z)
    squares = part_distances(BAGS) ** 2 / (2 * features.second.scale**2)
    exponent = -np.tensordot(WEIGHTS, squares, 1)
    expected = np.exp(exponent) if join == "product" else np.tensordot(WEIGHTS, np.exp(-squares), 1)
    np.testing.assert_allclose(z @ z.T, expected, atol=0.04)
    assert np.abs(z @ z.T - expected).mean() < 0.007
    if join == "sum" and not second:
        assert features.second.scale == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("join", ["product", "sum"])
def test_a_union_of_one_part_is_the_part(join):
    """Divided by the median distance of two bags."""
    part, expected = clone(PARTS[1][1]), part_distances(BAGS)[1]
    rows = EmbeddingUnion([part], join=join, dtype="float64").fit_transform(BAGS)
    np.testing.assert_allclose(cdist(rows, rows), expected, atol=1e-7)


def test_a_frequency_sees_one_block():
    """As many as the weights say, at least one each; others do not touch its inputs."""
    spec = FourierSpec(6, 40, scale=1.5, blocks=((4, 0.7), (1, 0.299), (1, 0.001)))
    frequencies = spec.frequencies()
    seen = np.stack([(rows != 0).any(axis=0) for rows in np.split(frequencies, [4, 5])])
    assert seen.sum(axis=0).tolist() == [1] * 20
    assert seen.sum(axis=1).tolist() == [13, 6, 1]
    assert FourierSpec(**spec.to_dict()) == spec


@pytest.mark.long
def test_a_union_learns_what_its_parts_know():
    """A sum of a function of the mean and one of the shape: each part alone misses the other."""
    rng = np.random.default_rng(1)
    centre, width = rng.uniform(0.3, 0.7, 600), rng.uniform(0.02, 0.2, 600)
    bags = [rng.normal(m, s, (60, 1)).clip(0, 1) for m, s in zip(centre, width, strict=True)]
    y = np.sin(12 * centre) + 10 * width
    parts = [("mean", MomentsEmbedding(covariance=False)), ("js", HDDEmbedding("js"))]
    errors = []
    for embedding in (parts[0][1], EmbeddingUnion(parts), EmbeddingUnion(parts, join="sum")):
        model = DoubleBasisRegressor(embedding, RandomFourierFeatures(n_features=256)).fit(
            bags[:400], y[:400]
        )
        errors.append(np.mean((model.predict(bags[400:]) - y[400:]) ** 2))
    assert max(errors[1:]) < errors[0] / 2


def test_parameters_of_parts():
    """They are set by name, and cloned apart from their originals."""
    union = EmbeddingUnion(clone(PARTS, safe=False))
    copy = clone(union).set_params(js__distance="tv", join="sum")
    assert (copy.parts[0][1].distance, copy.join) == ("tv", "sum")
    assert (union.parts[0][1].distance, union.join) == ("js", "product")


@pytest.mark.long
def test_embeddings_alone_are_named_by_what_they_are(tmp_path):
    """They are set, cloned, shown, fitted and saved as with names."""
    alone = EmbeddingUnion([HDDEmbedding("js"), MomentsEmbedding(), HDDEmbedding("tv")])
    assert "HDDEmbedding" in repr(alone)
    params = alone.get_params()
    assert (params["js__distance"], params["tv__distance"]) == ("js", "tv")
    assert params["moments"] is alone.parts[1]
    copy = clone(alone).set_params(js__distance="hellinger")
    assert [item.distance for item in (copy.parts[0], alone.parts[0])] == ["hellinger", "js"]
    named = EmbeddingUnion([(name, params[name]) for name in ("js", "moments", "tv")])
    assert clone(alone).fit(BAGS).spec_ == clone(named).fit(BAGS).spec_
    twice = EmbeddingUnion([MomentsEmbedding(), MomentsEmbedding(covariance=False)])
    assert twice.get_params()["moments2__covariance"] is False
    y = np.arange(len(BAGS), dtype=float)
    model = DoubleBasisRegressor(alone, RandomFourierFeatures(n_features=32)).fit(BAGS, y)
    model.save(tmp_path / "m.zarr")
    again = load_model(tmp_path / "m.zarr")
    assert repr(again.embedding) == repr(alone)
    np.testing.assert_array_equal(again.predict(BAGS), model.predict(BAGS))
    grid = GridSearchCV(model, {"embedding__js__distance": ["js", "tv"]}, cv=2).fit(list(BAGS), y)
    assert grid.best_params_["embedding__js__distance"] in ("js", "tv")


def test_a_kernel_needs_a_frequency():
    """A sum of kernels has at least one frequency of each."""
    model = DoubleBasisRegressor(EmbeddingUnion(join="sum"), RandomFourierFeatures(n_features=2))
    with pytest.raises(ParameterError, match="n_features is 2; expected at least 4 for a sum of 2"):
        model.fit(BAGS, Y)


@pytest.mark.parametrize("other", [{"out_of_box": "drop"}, {"box": Box((0.0, 0.0), (2.0, 2.0))}])
def test_parts_of_another_box_are_refused(other):
    """A saved union whose parts treat points outside otherwise would count them twice."""
    spec = union_of_parts().fit(BAGS).spec_
    parts = (replace(spec.parts[0], **other), *spec.parts[1:])
    with pytest.raises(ParameterError, match="share its box and its out_of_box"):
        replace(spec, parts=parts)
