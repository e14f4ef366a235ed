"""The fast HDD path against exact distances, reflected density estimates and direct integration."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import Bags, Box, ParameterError
from bagbasis.embeddings import HDDSpec
from bagbasis.embeddings.hdd_measures import DISTANCES, ORDERS, lambda_nodes
from bagbasis.embeddings.hdd_spec import reached
from tests.oracles.hdd import direct_embedding, kappa, kappa_of_nodes, midpoints, reflected_density
from tests.oracles.series import index_set_by_loop

# two strictly positive densities a dimension, as {α: coefficient of cos(πα_1 x_1) cos(πα_2 x_2) …}
SERIES = {
    1: ({(1,): 0.6, (3,): 0.25}, {(1,): -0.3, (2,): 0.5}),
    2: ({(1, 0): 0.5, (1, 2): 0.3}, {(0, 1): -0.4, (2, 1): 0.3, (1, 1): 0.2}),
    3: ({(1, 0, 0): 0.5, (1, 1, 0): 0.3}, {(0, 0, 1): -0.4, (0, 2, 1): 0.3}),
}


def spec(distance, n_dims, n_lambdas=3, n_per_dim=10, kind="fitted", order=None, **fields):
    lambdas, weights = lambda_nodes(distance, n_lambdas, kind)
    order = order or ORDERS[distance]
    values = {"bandwidth": 0.03, "floor": 1e-3, "n_coefficients": 32, "grid": 32, "max_norm": None}
    values |= {"box": Box.unit(n_dims)} | fields
    return HDDSpec(
        distance=distance,
        order=order,
        lambdas=lambdas,
        weights=weights,
        n_per_dim=n_per_dim,
        **values,
    )


def density(series, at):
    value = np.ones(len(at))
    for alpha, amplitude in series.items():
        value += amplitude * np.prod(np.cos(np.pi * np.array(alpha) * at), axis=1)
    return value


def coefficients(series, n_dims, k):
    tensor = np.zeros((k,) * n_dims)
    tensor[(0,) * n_dims] = 1
    for alpha, amplitude in series.items():
        tensor[alpha] = amplitude / np.sqrt(2) ** np.count_nonzero(alpha)
    return tensor.ravel()


@pytest.mark.long
@pytest.mark.parametrize("n_dims", [1, 2, 3])
@pytest.mark.parametrize(
    ("distance", "order", "rtol"),
    [
        ("js", 1, 1e-4),
        ("chi2", 1, 2e-4),
        ("hellinger", 1, 1e-4),
        ("tv", 1, 0.05),
        ("l2", 2, 1e-9),
        ("js", 0.5, 1e-3),
        ("js", 1.5, 1e-4),
        ("js", 2, 1e-4),
        ("chi2", 3, 1e-3),
        ("tv", 2, 0.05),
        ("hellinger", 2, 1e-9),
        ("l2", 1, 1e-4),
    ],
)
def test_distances_of_known_densities(n_dims, distance, order, rtol):
    """‖A(p) − A(q)‖² is ∫ κ(p, q), integrated numerically, in one to three dimensions."""
    p, q = SERIES[n_dims]
    n = {1: 24, 2: 16, 3: 12}[n_dims]
    fields = {"bandwidth": 0.0, "n_coefficients": 6, "grid": 3 * n, "order": order}
    made = spec(distance, n_dims, 8, 6 if made_linear(distance, order) else n, **fields)
    out = np.empty((2, made.n_features))
    made.embed_estimates(np.stack([coefficients(s, n_dims, 6) for s in (p, q)]), out)
    at = midpoints({1: 4000, 2: 300, 3: 80}[n_dims], n_dims)
    true = kappa(distance, density(p, at), density(q, at), order).mean()
    assert density(p, at).min() > 0.1
    assert ((out[0] - out[1]) ** 2).sum() == pytest.approx(true, rel=rtol)


def made_linear(distance, order):
    return distance in ("hellinger", "l2") and order == 2


@pytest.mark.long
@pytest.mark.parametrize("n_dims", [1, 2, 3])
@pytest.mark.parametrize("distance", ["js", "tv", "chi2", "hellinger"])
def test_as_many_functions_as_midpoints(n_dims, distance):
    """With grid = n_per_dim nothing is cut off: ‖A‖² is the mass, and d² the midpoint rule for
    the nodes' κ."""
    n = {1: 32, 2: 16, 3: 10}[n_dims]
    made = spec(distance, n_dims, 5, n, bandwidth=0.0, n_coefficients=6, grid=n)
    out = np.empty((2, made.n_features))
    made.embed_estimates(np.stack([coefficients(s, n_dims, 6) for s in SERIES[n_dims]]), out)
    p, q = (density(s, midpoints(n, n_dims)) for s in SERIES[n_dims])
    rule = kappa_of_nodes(made.lambdas, made.weights, p, q).mean()
    assert ((out[0] - out[1]) ** 2).sum() == pytest.approx(rule, rel=1e-10)
    mass = sum(made.weights)
    np.testing.assert_allclose((out**2).sum(axis=1), mass, rtol=1e-10)
    fine = midpoints({1: 4000, 2: 300, 3: 80}[n_dims], n_dims)
    true = kappa(distance, *(density(s, fine) for s in SERIES[n_dims])).mean()
    assert rule == pytest.approx(true, rel=0.06 if distance == "tv" else 0.01)


@pytest.mark.parametrize("distance", ["js", "tv", "chi2", "hellinger"])
def test_norm_is_the_mass(distance):
    """‖A‖² nears κ(1, 0) from below: every p^{½+iλ} of a density has norm 1."""
    p = coefficients(SERIES[2][0], 2, 6)[None]
    made = spec(distance, 2, 3, 24, bandwidth=0.0, n_coefficients=6, grid=72)
    out = np.empty((1, made.n_features))
    made.embed_estimates(p, out)
    assert (out**2).sum() == pytest.approx(kappa(distance, 1.0, 1e-300), rel=1e-3)


@pytest.mark.parametrize(("n_dims", "size"), [(1, 20), (2, 40), (3, 60)])
@pytest.mark.parametrize(
    ("bandwidth", "n_coefficients", "atol"),
    [
        (0.06, 32, 1e-6),
        (0.15, 32, 1e-6),
        (0.015, None, 1e-8),
        (0.05, None, 1e-8),
        (0.1, None, 1e-8),
    ],
)
def test_estimates_are_the_reflected_estimate(n_dims, size, bandwidth, n_coefficients, atol):
    """The density on the grid is the sum over points and their mirror images: from damped
    coefficients, or from points spread on one midpoint, on eight or on sixteen."""
    rng = np.random.default_rng(0)
    bag = rng.random((size, n_dims))
    bag[0], bag[1] = 0, 1
    made = spec("js", n_dims, bandwidth=bandwidth, n_coefficients=n_coefficients, grid=12)
    values = made.densities(Bags.from_list([bag, bag[:1]]))
    assert values.shape == (2, 1, *(12,) * n_dims)
    direct = reflected_density(bag, bandwidth, midpoints(12, n_dims))
    np.testing.assert_allclose(values[0].ravel(), direct, atol=atol * direct.max())
    direct = reflected_density(bag[:1], bandwidth, midpoints(12, n_dims))
    np.testing.assert_allclose(values[1].ravel(), direct, atol=atol * direct.max())


@pytest.mark.long
@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize(("n_dims", "n_per_dim"), [(1, 10), (2, 6)])
def test_against_direct_integration(distance, n_dims, n_per_dim):
    """The fast path is the density estimate at n_e points, raised and projected there."""
    rng = np.random.default_rng(1)
    bags = [rng.beta(2, 3, (size, n_dims)) for size in (1, 7, 120)]
    made = spec(distance, n_dims, n_per_dim=n_per_dim, bandwidth=0.1, floor=1e-2, grid=60)
    at = midpoints(60, n_dims)
    indices = index_set_by_loop(n_dims, n_per_dim, None, "cosine")
    nodes, floor = (made.lambdas, made.weights), 0.0 if made.is_linear else 1e-2
    direct = [direct_embedding(bag, 0.1, floor, nodes, indices, at, made.order) for bag in bags]
    for dtype, atol in ((np.float64, 1e-6), (np.float32, 2e-5)):
        out = np.empty((3, made.n_features), dtype)
        assert made.embed(Bags.from_list(bags), out) == 0
        np.testing.assert_allclose(out, direct, atol=atol)


@pytest.mark.parametrize(("distance", "rtol"), [("js", 0.02), ("hellinger", 0.04)])
@pytest.mark.parametrize(("bandwidth", "k", "grid"), [(0.03, 26, 20), (0.02, 39, 22)])
def test_coarse_default_grid(distance, rtol, bandwidth, k, grid):
    """The default numbers of midpoints, and of coefficients, for a bandwidth give distances within
    a few percent of far larger ones."""
    rng = np.random.default_rng(3)
    bags = Bags.from_list([rng.beta(a, 3, (200, 2)) for a in (1, 2, 3, 4, 5)])
    distances = []
    few = [{"n_coefficients": n, "grid": grid} for n in (k, None)]
    for sizes in (*few, {"n_coefficients": 64, "grid": 180}):
        made = spec(distance, 2, bandwidth=bandwidth, **sizes)
        out = np.empty((5, made.n_features))
        made.embed(bags, out)
        distances.append(((out[:-1] - out[1:]) ** 2).sum(axis=1))
    np.testing.assert_allclose(distances[:2], [distances[2]] * 2, rtol=rtol)


@pytest.mark.parametrize(
    ("bandwidth", "grid", "expected"),
    [(0.02, 6, 0), (0.01, 13, 4), (0.03, 20, 4), (0.06, 20, 8), (0.07, 20, 0), (0.15, 7, 0)],
)
def test_where_points_are_spread(bandwidth, grid, expected):
    """Midpoints to a side; none for bandwidths that leave a gap or reach too far, and such a spec
    needs coefficients."""
    assert reached(bandwidth, grid) == expected
    if not expected:
        with pytest.raises(ParameterError, match=r"n_coefficients is None; a bandwidth of"):
            spec("js", 2, bandwidth=bandwidth, grid=grid, n_coefficients=None)


@pytest.mark.long
@pytest.mark.parametrize("n_dims", [1, 2, 3])
def test_spread_points(n_dims):
    """Blocks of points, a large bag, single precision and points outside: as by a sum in double;
    a bag of which nothing is kept has none."""
    rng = np.random.default_rng(7)
    bags = Bags.from_list([rng.random((n, n_dims)) * 1.2 for n in (3, 700)] + [[[2.0] * n_dims]])
    selected = [bag[(bag <= 1).all(axis=1)] for bag in bags]
    made = spec("js", n_dims, n_coefficients=None, grid=16, out_of_box="drop")
    values = made.densities(bags).reshape(3, -1)
    for i in range(2):
        direct = reflected_density(selected[i], 0.03, midpoints(16, n_dims))
        np.testing.assert_allclose(values[i], direct, atol=1e-8 * direct.max())
    assert np.isnan(values[2]).all()
    out, single = (np.empty((2, made.n_features), dtype) for dtype in ("float64", "float32"))
    lost = sum(len(bag) - len(rest) for bag, rest in zip(bags[:2], selected, strict=False))
    assert made.embed(bags[:2], out) == made.embed(bags[:2], single) == lost
    np.testing.assert_allclose(out, single, atol=1e-5)


@pytest.mark.parametrize("n_coefficients", [32, None])
@pytest.mark.parametrize("marginals", [1, 2])
@pytest.mark.parametrize("n_dims", [3, 6])
def test_marginals_are_embeddings_of_their_columns(marginals, n_dims, n_coefficients):
    """One embedding a coordinate or a pair, concatenated in order of the columns."""
    rng = np.random.default_rng(4)
    bags = Bags.from_list([rng.random((size, n_dims)) for size in (3, 40)])
    lo, hi = (-1.0, -2.0, 0.0, 0.0, -1.0, 0.0)[:n_dims], (1.0,) * n_dims
    fields = {"n_per_dim": 4, "n_coefficients": n_coefficients, "grid": 20}
    made = spec("js", n_dims, marginals=marginals, box=Box(lo, hi), **fields)
    out = np.empty((2, made.n_features))
    made.embed(bags, out)
    width = out.shape[1] // len(made.groups)
    for g, group in enumerate(made.groups):
        box = Box(tuple(np.array(lo)[group]), tuple(np.array(hi)[group]))
        alone = spec("js", marginals, box=box, **fields)
        columns = np.empty((2, alone.n_features))
        alone.embed(Bags.from_list([bag[:, group] for bag in bags]), columns)
        np.testing.assert_allclose(out[:, g * width : (g + 1) * width], columns, atol=1e-12)
