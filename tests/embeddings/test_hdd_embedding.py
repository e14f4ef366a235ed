"""`HDDEmbedding` as a scikit-learn transformer over bags, its edges and its refusals."""

from __future__ import annotations

import json
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone

from bagbasis import (
    Bags,
    BagStore,
    DoubleBasisRegressor,
    ProjectionEmbedding,
    RandomFourierFeatures,
)
from bagbasis.bags import Box
from bagbasis.embeddings.hdd import OF_BEST_BANDWIDTH, HDDEmbedding
from bagbasis.embeddings.hdd_measures import DISTANCES
from bagbasis.embeddings.hdd_spec import HDDSpec
from bagbasis.errors import DataError, ParameterError
from tests.oracles.hdd import direct_embedding, midpoints
from tests.oracles.series import index_set_by_loop

RNG = np.random.default_rng(0)
UNIT = [RNG.random((size, 2)) for size in (1, 30, 257)]


@pytest.fixture(autouse=True)
def _warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_defaults():
    """JS, three nodes of two parts, 10² cosines, float32; h is 0.7 of the leave-one-out choice."""
    embedding = HDDEmbedding().fit(UNIT)
    out = embedding.transform(UNIT)
    assert out.shape == (3, 600)
    assert out.dtype == np.float32
    spec = embedding.spec_
    assert spec.distance == "js"
    best = HDDEmbedding("hellinger", n_per_dim=2).fit(UNIT).spec_.bandwidth / OF_BEST_BANDWIDTH
    assert spec.bandwidth == pytest.approx(0.7 * best)
    assert np.pi * spec.n_coefficients * spec.bandwidth >= 2.4 or spec.n_coefficients == 64
    direct = direct_embedding(
        UNIT[1],
        spec.bandwidth,
        1e-3,
        (spec.lambdas, spec.weights),
        index_set_by_loop(2, 10, None, "cosine"),
        midpoints(80, 2),
    )
    np.testing.assert_allclose(out[1], direct, atol=2e-3)


@pytest.mark.parametrize(
    ("distance", "n_features", "grid"),
    [("js", 600, 20), ("chi2", 600, 20), ("hellinger", 100, 20), ("tv", 4000, 20), ("l2", 100, 10)],
)
def test_defaults_of_each_distance(distance, n_features, grid):
    """Functions, nodes and midpoints where none are given; TV has as many midpoints as
    functions."""
    spec = HDDEmbedding(distance, bandwidth=0.04).fit(UNIT).spec_
    assert (spec.n_features, spec.grid) == (n_features, grid)
    assert HDDEmbedding(distance, bandwidth=0.01, max_norm=4).fit(UNIT).spec_.grid >= 5
    assert HDDEmbedding("js", bandwidth=0.01).fit(UNIT).spec_.grid == 44


@pytest.mark.parametrize(("dtype", "atol"), [("float32", 1e-6), ("float64", 1e-12)])
@pytest.mark.parametrize("n_dims", [1, 2, 3])
@pytest.mark.parametrize("parameters", [{}, {"max_norm": 5.0}, {"marginals": 1}])
def test_l2_is_the_projection(dtype, atol, n_dims, parameters):
    """L2 as a 2-HDD (000, §4.3.2): the coefficients of plain projection, not floored and not
    smoothed, so that distances are equal too; Hellinger of order 2 is a multiple."""
    bags = [RNG.random((size, n_dims)) for size in (1, 2, 40, 300)] + [np.ones((5, n_dims))]
    projection = ProjectionEmbedding(dtype=dtype, **parameters).fit_transform(bags)
    out = HDDEmbedding("l2", dtype=dtype, **parameters).fit_transform(bags)
    np.testing.assert_allclose(out, projection, atol=atol, rtol=0)
    out = HDDEmbedding("hellinger", order=2, dtype=dtype, **parameters).fit_transform(bags)
    np.testing.assert_allclose(np.sqrt(2) * out, projection, atol=10 * atol, rtol=0)


def test_l2_of_smoothed_densities():
    """A bandwidth that is given damps the coefficients; more functions than a density estimate
    may have are no obstacle."""
    embedding = HDDEmbedding("l2", n_per_dim=70, bandwidth=0.001, dtype="float64").fit(UNIT)
    damping = np.exp(-0.5 * (np.pi * 0.001) ** 2 * (embedding.spec_.indices**2).sum(axis=1))
    projection = ProjectionEmbedding(n_per_dim=70, dtype="float64").fit_transform(UNIT)
    np.testing.assert_allclose(embedding.transform(UNIT), projection * damping, atol=1e-12)


def test_seeds():
    """Random nodes are those of the seed."""
    parameters = {"nodes": "random", "bandwidth": 0.1}
    a, b, c = (HDDEmbedding("js", seed=s, **parameters).fit_transform(UNIT) for s in (3, 3, 4))
    np.testing.assert_array_equal(a, b)
    assert np.abs(a - c).max() > 1e-3


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bags_at_the_edge(distance, dtype):
    """Points on the walls and in the corners, lone points, constant bags and densities that
    vanish nearly everywhere: finite features and no warning."""
    bags = [
        [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]],
        [[0.5, 1.0]],
        [[0.0, 0.0]],
        np.full((300, 2), 0.25),
        np.concatenate([np.full((500, 2), 1e-7), np.ones((1, 2))]),
    ]
    for bandwidth in ("auto", 0.01, 0.5):
        embedding = HDDEmbedding(distance, bandwidth=bandwidth, dtype=dtype).fit(bags)
        out = embedding.transform(bags)
        assert np.isfinite(out).all()
        assert out.dtype == dtype
        mass = sum(embedding.spec_.weights)
        if distance not in ("tv", "l2"):
            assert ((out.astype(float) ** 2).sum(axis=1) < 1.2 * mass).all()


def test_same_density_same_place():
    """Bags whose points are copies of another's lie at distance 0 of it, others do not."""
    bags = [UNIT[1], np.repeat(UNIT[1], 3, axis=0), UNIT[1] ** 2]
    out = HDDEmbedding(bandwidth=0.05, dtype="float64").fit_transform(bags)
    np.testing.assert_allclose(out[0], out[1], atol=1e-12)
    assert ((out[0] - out[2]) ** 2).sum() > 0.01


def test_box_is_scaled_to_the_unit_cube():
    """Bags moved and stretched with their box embed as before."""
    box = [(-10, 10), (0, 4)]
    moved = [bag * [20, 4] + [-10, 0] for bag in UNIT]
    a = HDDEmbedding(bandwidth=0.05, dtype="float64").fit_transform(UNIT)
    b = HDDEmbedding(bandwidth=0.05, box=box, dtype="float64").fit_transform(moved)
    np.testing.assert_allclose(a, b, atol=1e-9)


def test_out_of_box():
    """clip moves points to the wall, drop leaves them out, error names the bag; they are
    counted."""
    inside, outside = UNIT[1], np.concatenate([UNIT[1], [[0.5, 1.5], [-1.0, 0.5]]])
    walls = np.concatenate([UNIT[1], [[0.5, 1.0], [0.0, 0.5]]])
    box, bags = [(0, 1), (0, 1)], Bags.from_list([inside, outside])

    def embed(mode, bags=bags):
        embedding = HDDEmbedding(bandwidth=0.05, out_of_box=mode, box=box, dtype="float64")
        spec = embedding.fit(bags).spec_
        out = np.empty((len(bags), spec.n_features))
        return out, spec.embed(bags, out)

    clipped, n_outside = embed("clip")
    assert n_outside == 2
    np.testing.assert_allclose(clipped[1], embed("clip", Bags.from_list([walls]))[0][0], atol=1e-12)
    dropped, n_outside = embed("drop")
    assert n_outside == 2
    np.testing.assert_allclose(dropped[1], dropped[0], atol=1e-12)
    with pytest.raises(DataError, match="bag 1: 2 points lie outside the box"):
        embed("error")
    with pytest.raises(DataError, match="bag 2: no point lies inside the box"):
        embed("drop", Bags.from_list([inside, inside, [[3.0, 3.0]]]))


def test_dropping_in_one_marginal():
    """A bag that is empty in its last marginal alone is refused, and named by its position
    though it is not in the first block."""
    good = RNG.random((3, 3))
    bags = Bags.from_list([good] * 50 + [good + np.array([0, 0, 7])])
    parameters = {"bandwidth": 0.05, "marginals": 1, "n_per_dim": 3, "grid": 4096}
    embedding = HDDEmbedding(out_of_box="drop", box=[(0, 1)] * 3, **parameters)
    with pytest.raises(DataError, match="bag 50: no point lies inside the box"):
        embedding.transform(bags)


@pytest.mark.parametrize("n_dims", [3, 4, 5, 6])
@pytest.mark.parametrize("marginals", [1, 2])
def test_marginals(n_dims, marginals):
    """Many dimensions are embedded by coordinate or by pair."""
    bags = [RNG.random((size, n_dims)) for size in (1, 40)]
    out = HDDEmbedding(n_per_dim=4, marginals=marginals).fit_transform(bags)
    n_groups = n_dims if marginals == 1 else n_dims * (n_dims - 1) // 2
    assert out.shape == (2, n_groups * 6 * 4**marginals)
    assert np.isfinite(out).all()


def test_too_many_dimensions():
    """Beyond three dimensions marginals are asked for."""
    with pytest.raises(ParameterError, match="4 dimensions are out of reach; use marginals=1"):
        HDDEmbedding().fit([RNG.random((5, 4))])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"distance": "kl"}, "distance is 'kl'"),
        ({"distance": None}, "distance is None"),
        ({"n_per_dim": 0}, "n_per_dim is 0"),
        ({"n_per_dim": 2.5}, "n_per_dim is 2.5"),
        ({"n_per_dim": "auto"}, "n_per_dim is 'auto'"),
        ({"max_norm": -1}, "max_norm is -1"),
        ({"max_norm": np.nan}, "max_norm is nan"),
        ({"n_lambdas": 0}, "n_lambdas is 0"),
        ({"n_lambdas": 9}, "n_lambdas = 8"),
        ({"nodes": "best"}, "nodes is 'best'"),
        ({"bandwidth": 0}, "bandwidth is 0"),
        ({"bandwidth": 1.5}, "bandwidth is 1.5"),
        ({"bandwidth": "scott"}, "bandwidth is 'scott'"),
        ({"bandwidth": 0.002}, "in 2 dimensions expected at least 0.007"),
        ({"order": 0}, "order is 0"),
        ({"order": 5}, "order is 5; expected a number, 0 < order ≤ 4"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": None}, "seed is None"),
        ({"floor": 0}, "floor is 0"),
        ({"floor": np.inf}, "floor is inf"),
        ({"grid": 1}, "grid is 1"),
        ({"grid": 40.0}, "grid is 40.0"),
        ({"marginals": 3}, "marginals is 3; expected an integer from 1 to 2"),
        ({"marginals": 0}, "marginals is 0"),
        ({"marginals": True}, "marginals is True"),
        ({"out_of_box": "wrap"}, "out_of_box is 'wrap'"),
        ({"dtype": "float16"}, "dtype is 'float16'"),
    ],
)
def test_bad_parameters(parameters, message):
    """Each is refused by name at fit."""
    with pytest.raises(ParameterError, match=message):
        HDDEmbedding(**parameters).fit(UNIT)


def test_bags_of_another_dimension():
    """The spec's dimension is that of the fit."""
    with pytest.raises(DataError, match="dimension 3"):
        HDDEmbedding(bandwidth=0.1).fit(UNIT).transform([RNG.random((2, 3))])


@pytest.mark.parametrize("max_norm", [None, 4.5])
def test_spec_travels(max_norm):
    """A pickled spec and one that went through JSON embed as the first."""
    embedding = HDDEmbedding("tv", n_per_dim=5, max_norm=max_norm, n_lambdas=4).fit(UNIT)
    spec = embedding.spec_
    copies = (
        pickle.loads(pickle.dumps(spec)),
        HDDSpec.from_dict(json.loads(json.dumps(spec.to_dict()))),
    )
    out = embedding.transform(UNIT)
    for copy in copies:
        assert copy == spec
        again = np.empty_like(out)
        copy.embed(Bags.from_list(UNIT), again)
        np.testing.assert_array_equal(again, out)
    assert len(pickle.dumps(spec)) < 2000


def test_foreign_fields_are_refused():
    """A description with a field too few or too many is not read."""
    values = HDDEmbedding(bandwidth=0.1).fit(UNIT).spec_.to_dict()
    with pytest.raises(ParameterError, match="not those of a HDDSpec"):
        HDDSpec.from_dict({**values, "sharpness": 1})
    with pytest.raises(ParameterError, match="not those of a HDDSpec"):
        HDDSpec.from_dict({name: values[name] for name in list(values)[1:]})


def test_scikit_learn_conventions():
    """clone and set_params work, the constructor only stores, and fit leaves parameters alone."""
    embedding = HDDEmbedding("chi2", 4, bandwidth=0.1, box=[(0, 1), (0, 2)])
    params = embedding.get_params()
    copy = clone(embedding).set_params(distance="js")
    assert copy.distance == "js"
    assert embedding.fit(UNIT) is embedding
    assert embedding.get_params() == params
    assert not hasattr(clone(embedding), "spec_")
    assert pickle.loads(pickle.dumps(embedding)).spec_ == embedding.spec_


def test_fit_on_a_store(tmp_path):
    """A store's box and its own bags decide, as bags in memory do."""
    store = BagStore.create(tmp_path / "bags.zarr", n_dims=2, target_names=["y"])
    store.append(Bags.from_list(UNIT), targets={"y": [1.0, 2.0, 3.0]})
    stored = HDDEmbedding().fit(store)
    memory = HDDEmbedding().fit(store.read())
    assert stored.spec_ == memory.spec_
    assert stored.spec_.box == Box.unit(2)
    with pytest.raises(DataError, match=r"use bagbasis\.features"):
        stored.transform(store)


@pytest.mark.parametrize("distance", DISTANCES)
def test_inside_the_double_basis_regressor(distance, tmp_path):
    """The estimator learns the spread of a bag, from memory and from a store alike."""
    rng = np.random.default_rng(1)
    y = rng.uniform(0.05, 0.25, 300)
    bags = Bags.from_list(
        [np.clip(0.5 + spread * rng.standard_normal((60, 2)), 0, 1) for spread in y]
    )
    store = BagStore.create(tmp_path / "bags.zarr", n_dims=2, target_names=["y"])
    store.append(bags[:200], targets={"y": y[:200]})
    model = DoubleBasisRegressor(
        embedding=HDDEmbedding(distance, n_per_dim=6),
        random_features=RandomFourierFeatures(n_features=200, seed=0),
        precision="float64",
    )
    in_memory = clone(model).fit(store.read(), y[:200]).predict(bags[200:])
    stored = clone(model).fit(store, target="y").predict(bags[200:])
    np.testing.assert_allclose(stored, in_memory, rtol=1e-6)
    assert np.sqrt(np.mean((stored - y[200:]) ** 2)) < 0.35 * y[200:].std()
