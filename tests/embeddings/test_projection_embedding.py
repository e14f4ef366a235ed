"""`ProjectionEmbedding` as a scikit-learn transformer over bags."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from bagbasis import Bags, BagStore, ProjectionEmbedding, RandomFourierFeatures
from bagbasis.bags import Box
from bagbasis.embeddings import EMBEDDINGS, ProjectionSpec, spec_from_dict, spec_to_dict
from bagbasis.errors import DataError, ModelError, ParameterError
from tests.oracles.ragged import random_bags
from tests.oracles.series import index_set_by_loop, project_by_loop

RNG = np.random.default_rng(0)
UNIT = [RNG.random((size, 2)) for size in (1, 30, 257)]


def naive(bags, limits, basis="cosine", lo=(0, 0), hi=(1, 1), marginals=None, mode="clip"):
    indices = index_set_by_loop(marginals or bags[0].shape[1], *limits, basis)
    return project_by_loop(bags, indices, basis, lo, hi, marginals=marginals, mode=mode)[0]


def test_defaults_are_ten_cosines_a_dimension():
    """Without parameters: 10^d cosines, float32, on the unit cube."""
    out = ProjectionEmbedding().fit(UNIT).transform(UNIT)
    assert out.shape == (3, 100)
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, naive(UNIT, (10, None)), atol=5e-6)


@pytest.mark.parametrize("basis", ["cosine", "trigonometric", "legendre"])
@pytest.mark.parametrize("limits", [(5, None), (None, 3.5)])
@pytest.mark.parametrize("marginals", [None, 1, 2])
def test_against_the_loop(basis, limits, marginals):
    """Bases, index sets and marginals mean what they say; a given box is scaled to [0, 1]^d."""
    bags = random_bags(RNG, [1, 5, 300], 3)
    lo, hi = (-2.0, -3.0, -2.5), (2.0, 3.0, 2.5)
    n_per_dim, max_norm = limits
    embedding = ProjectionEmbedding(
        basis, n_per_dim or 10, max_norm, marginals, box=list(zip(lo, hi, strict=True)),
        dtype="float64",
    )  # fmt: skip
    out = embedding.fit_transform(bags)
    np.testing.assert_allclose(out, naive(bags, limits, basis, lo, hi, marginals), atol=1e-12)
    assert embedding.spec_.n_features == out.shape[1]


def test_scikit_learn_conventions():
    """clone and set_params work, the constructor only stores, and fit leaves parameters alone."""
    embedding = ProjectionEmbedding("legendre", 4, out_of_box="drop", box=[(0, 1), (0, 2)])
    params = embedding.get_params()
    copy = clone(embedding).set_params(n_per_dim="auto")
    assert copy.n_per_dim == "auto"
    assert not hasattr(clone(embedding.fit(UNIT)), "spec_")
    assert embedding.get_params() == params
    assert embedding.fit(UNIT) is embedding


def test_fit_again_forgets():
    """The second fit's box and dimension are its own."""
    embedding = ProjectionEmbedding(n_per_dim=3).fit([[[5.0], [6.0]]])
    assert embedding.spec_.box != Box.unit(1)
    assert embedding.fit(UNIT).transform(UNIT).shape == (3, 9)
    assert embedding.spec_.box == Box.unit(2)


def test_box_of_bags_in_memory():
    """Data in the unit cube keep it; others are measured, with 1 % on each side."""
    assert ProjectionEmbedding().fit(UNIT).spec_.box == Box.unit(2)
    spec = ProjectionEmbedding().fit([[[0.0, -5.0]], [[10.0, 5.0]]]).spec_
    assert spec.box == Box((-0.1, -5.1), (10.1, 5.1))


def test_box_of_a_store(tmp_path):
    """From a store the embedding takes the store's box, without reading its bags."""
    store = BagStore.create(tmp_path / "s.zarr", 2, box=[(-3, 3), (0, 9)])
    assert ProjectionEmbedding().fit(store).spec_.box == Box((-3.0, 0.0), (3.0, 9.0))


def test_transform_without_fit():
    """The unit cube needs no fit; other data is refused rather than measured bag by bag."""
    embedding = ProjectionEmbedding(n_per_dim=4)
    np.testing.assert_array_equal(embedding.transform(UNIT), clone(embedding).fit_transform(UNIT))
    outside = [[[0.5, 1.5]]]
    with pytest.raises(DataError, match="call fit first or give box"):
        embedding.transform(outside)
    given = ProjectionEmbedding(n_per_dim=4, box=[(0, 2), (0, 2)])
    np.testing.assert_allclose(
        given.transform(outside), naive([np.array([[0.25, 0.75]])], (4, None)), atol=1e-6
    )


@pytest.mark.parametrize("fitted", [True, False])
def test_no_bags(fitted):
    """An empty slice of bags has no rows; nothing can be fitted on it."""
    none = Bags.from_list(UNIT)[:0]
    embedding = ProjectionEmbedding(n_per_dim=4)
    if fitted:
        embedding.fit(UNIT)
    assert embedding.transform(none).shape == (0, 16)
    with pytest.raises(DataError, match="no bags to fit"):
        embedding.fit(none)


def test_transform_of_a_store_is_refused(tmp_path):
    """A store's features would not fit in memory: the error names the lazy function."""
    store = BagStore.create(tmp_path / "s.zarr", 2)
    with pytest.raises(DataError, match=r"bagbasis\.features"):
        ProjectionEmbedding().transform(store)


def test_in_a_pipeline():
    """Both bases and scikit-learn's Ridge make a pipeline over a list of bags."""
    model = make_pipeline(
        ProjectionEmbedding(n_per_dim=4), RandomFourierFeatures(64), Ridge(alpha=1e-3)
    )
    bags = [RNG.beta(a, 2, (100, 1)) for a in np.linspace(1, 4, 40)]
    y = np.linspace(1, 4, 40)
    assert model.fit(bags, y).score(bags, y) > 0.9


def test_points_outside_the_box():
    """clip moves them to the wall and counts, drop leaves them out, error names the bag."""
    bags = Bags.from_list([[[0.5]], [[0.25], [3.0]]])
    made = {
        how: ProjectionEmbedding(n_per_dim=3, out_of_box=how, dtype="float64")
        .fit([[[0.5]]])
        for how in ("clip", "drop", "error")
    }  # fmt: skip
    for how in ("clip", "drop"):
        spec = made[how].spec_
        out = np.empty((2, 3))
        assert spec.embed(bags, out) == 1
        np.testing.assert_allclose(
            out, naive(list(bags), (3, None), lo=(0,), hi=(1,), mode=how), atol=1e-14
        )
    with pytest.raises(DataError, match="bag 1: 1 points lie outside the box"):
        made["error"].transform(bags)
    with pytest.raises(DataError, match="bag 1: no point lies inside the box"):
        made["drop"].transform([[[0.5]], [[3.0]]])


def test_bags_of_another_dimension():
    """A fitted embedding refuses bags of another dimension."""
    with pytest.raises(DataError, match="bags have dimension 3, the embedding was made for 2"):
        ProjectionEmbedding().fit(UNIT).transform([np.zeros((2, 3))])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"basis": "fourier"}, "basis is 'fourier'"),
        ({"n_per_dim": 0}, "n_per_dim is 0"),
        ({"n_per_dim": 2.5}, "n_per_dim is 2.5"),
        ({"n_per_dim": "many"}, "n_per_dim is 'many'"),
        ({"n_per_dim": None}, "n_per_dim is None"),
        ({"max_norm": -1}, "max_norm is -1"),
        ({"max_norm": float("inf")}, "max_norm is inf"),
        ({"max_norm": "ten"}, "max_norm is 'ten'"),
        ({"marginals": 3}, "marginals is 3; expected an integer from 1 to 2"),
        ({"marginals": 0}, "marginals is 0"),
        ({"marginals": 1.5}, "marginals is 1.5"),
        ({"out_of_box": "wrap"}, "out_of_box is 'wrap'"),
        ({"dtype": "float16"}, "dtype is 'float16'"),
        ({"n_per_dim": 1000}, "more than 200000 functions"),
    ],
)
def test_wrong_parameters(params, message):
    """Each wrong parameter is refused by fit, in one line naming it."""
    with pytest.raises(ParameterError, match=message):
        ProjectionEmbedding(**params).fit(UNIT)


@pytest.mark.parametrize("box", [[(0, 1)], [(0, 1), (1, 1)], [(0, 1), (0, np.nan)], "unit"])
def test_wrong_box(box):
    """A box of another dimension, without volume, or that is none, is refused."""
    with pytest.raises(DataError, match="box"):
        ProjectionEmbedding(box=box).fit(UNIT)


SPECS = [
    ProjectionSpec("cosine", 5, None, box=Box.unit(2)),
    ProjectionSpec(
        "legendre", None, 2.5, marginals=1, out_of_box="drop", box=Box((-1.0, 0.1), (1.0, 0.3))
    ),
    ProjectionSpec("trigonometric", None, 7**0.5, marginals=2, out_of_box="error", box=Box.unit(3)),
]


@pytest.mark.parametrize("spec", SPECS)
def test_spec_travels(spec):
    """A spec is small, survives JSON and pickle, and embeds the same afterwards."""
    copies = [
        spec_from_dict(json.loads(json.dumps(spec_to_dict(spec)))),
        pickle.loads(pickle.dumps(spec)),
    ]
    assert copies == [spec, spec]
    assert len(pickle.dumps(spec)) < 1000
    assert hash(copies[0]) == hash(spec)


def test_spec_of_another_version():
    """An embedding or a field this version does not know is refused, not guessed."""
    values = spec_to_dict(SPECS[0])
    with pytest.raises(ModelError, match=r"unknown embedding 'hologram'; this version knows"):
        spec_from_dict({**values, "name": "hologram"})
    for wrong in ({"colour": 1}, {"basis": "haar"}, {"n_per_dim": None}, {"n_per_dim": "auto"}):
        with pytest.raises((TypeError, ValueError)):
            spec_from_dict({**values, **wrong})


def test_registry_names_what_is_exported():
    """Every registered embedding is configured by a class with get_params, and makes its spec."""
    for kind, spec in EMBEDDINGS.values():
        assert isinstance(kind().fit(UNIT).spec_, spec)
