"""Transformations and conditionals by their equations; densities that integrate to one."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bagbasis import BagbasisError, Bags
from bagbasis.neural import TANDensity, load_network
from bagbasis.neural.conditionals import CONDITIONALS, TransformedDensity, log_mixture
from bagbasis.neural.transformations import Additive, Linear, Recurrent, make_chain
from tests.oracles import networks

SMALL = {"n_hidden": 8, "n_components": 3, "batch_size": 64}
PLAIN = {**SMALL, "conditional": "multi_ind", "transformation": "none"}  # compiled in no time
NOTHING = np.zeros(0)


@pytest.fixture
def double():
    """Double precision, so that twins agree to ten digits."""
    with jax.enable_x64(True):
        yield


def shaken(network, key=7, by=0.4):
    """A network with all its arrays changed at random: nothing is 0 any more."""
    arrays, static = eqx.partition(network, eqx.is_inexact_array)
    leaves, tree = jax.tree.flatten(arrays)
    keys = jax.random.split(jax.random.key(key), len(leaves))
    new = [
        a + by * jax.random.normal(k, a.shape, a.dtype) for a, k in zip(leaves, keys, strict=True)
    ]
    return eqx.combine(jax.tree.unflatten(tree, new), static)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "d"),
    [
        *((name, 5) for name in ("linear", "2xrnn", "4xadd+re", "4xsrnn+re")),
        ("rnn+4xsrnn+re", 2),
        ("4xadd+re", 1),  # a half of it is empty
    ],
)
def test_inverse_and_determinant(double, name, d):
    """Back is back, and log |det| is that of the matrix of derivatives; with a condition, too."""
    n_condition = 3
    chain = make_chain("none" if name == "linear" else name, name == "linear", d, 6, n_condition,
                       jax.random.key(1))  # fmt: skip
    chain = [shaken(first, i) for i, first in enumerate(chain)]
    rng = np.random.default_rng(d)
    condition = rng.standard_normal(n_condition)

    def forward(x):
        total = 0.0
        for item in chain:
            x, log_det = item.forward(x, condition)
            total = total + log_det
        return x, (x, total)

    @jax.jit  # one program: it is compiled for longer than it runs
    def there_and_back(x):
        jacobian, (z, log_det) = jax.jacfwd(forward, has_aux=True)(x)
        back = z
        for item in reversed(chain):
            back = item.inverse(back, condition)
        return jacobian, log_det, back

    for x in 2 * rng.standard_normal((3, d)):
        jacobian, log_det, back = there_and_back(x)
        np.testing.assert_allclose(back, x, rtol=1e-9, atol=1e-9)
        assert log_det == pytest.approx(np.linalg.slogdet(jacobian)[1], abs=1e-9)


@pytest.mark.long
def test_recurrent_by_its_equations(double):
    """Coordinate by coordinate, in numpy."""
    single = shaken(Recurrent(4, jax.random.key(0)))
    for x in np.random.default_rng(0).standard_normal((4, 6)):
        z, log_det = single.forward(x, NOTHING)
        exact, exact_det = networks.recurrent_transformation(single, x)
        np.testing.assert_allclose(z, exact, rtol=1e-10)
        assert log_det == pytest.approx(exact_det)


@pytest.mark.long
def test_additive_and_linear_by_their_equations(double):
    """(8.18) with the halves, and A = L U as a matrix."""
    x = np.random.default_rng(0).standard_normal(5)
    single = shaken(Additive(5, 6, 0, jax.random.key(0)))
    shift = np.asarray(single.net(x[:2]))
    np.testing.assert_allclose(
        single.forward(x, NOTHING)[0], np.concatenate([x[:2], x[2:] + shift])
    )
    other = shaken(Linear(5, jax.random.key(0)))
    L = np.tril(other.lower, -1) + np.eye(5)
    U = np.triu(other.upper, 1) + np.diag(np.exp(other.log_diagonal))
    np.testing.assert_allclose(other.forward(x, NOTHING)[0], L @ U @ x + other.shift, rtol=1e-10)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "oracle"), [("lam", networks.lam_states), ("tied", networks.tied_states)]
)
def test_states_by_their_equations(double, name, oracle):
    """(8.5) and (8.16)."""
    single = shaken(CONDITIONALS[name](4, 5, 6, 3, 0, jax.random.key(0)))
    z = np.random.default_rng(1).standard_normal(4)
    np.testing.assert_allclose(single.states(z, NOTHING), oracle(single, z), rtol=1e-10)


@pytest.mark.long
@pytest.mark.parametrize("name", CONDITIONALS)
def test_conditionals_know_only_what_came_before(double, name):
    """h_i does not change with z_j for j ≥ i; log p is the sum of mixtures' logarithms."""
    single = shaken(CONDITIONALS[name](4, 5, 6, 3, 2, jax.random.key(0)))
    condition = np.array([0.3, -1.0])
    z = np.random.default_rng(2).standard_normal(4)
    slopes = jax.jacfwd(lambda at: single.states(at, condition))(z)
    for i in range(4):
        np.testing.assert_array_equal(slopes[i, :, i:], 0)
    states = single.states(z, condition)
    logs = [np.log(networks.mixture_density(z[i], single.mixture(states[i], i))) for i in range(4)]
    assert single.log_density(z, condition) == pytest.approx(sum(logs))


@pytest.mark.long
def test_mixture_far_from_its_components(double):
    """No underflow: the logarithm is that of the nearest component."""
    mixture = jnp.array([[0.0, 0.0], [-1.0, 1.0], [0.0, 0.0]])
    assert log_mixture(60.0, mixture) == pytest.approx(
        np.log(0.5) - 0.5 * np.log(2 * np.pi) - 59**2 / 2
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("conditional", "transformation", "d"),
    [
        ("lam", "2xrnn", 2),
        ("multi_ind", "rnn+4xadd+re", 2),
        ("ram", "4xsrnn+re", 1),
        ("tied", "none", 1),
    ],
)
def test_densities_integrate_to_one(conditional, transformation, d):
    """By midpoints, within 10⁻³, of networks whose arrays are all drawn."""
    chain = make_chain(transformation, True, d, 6, 0, jax.random.key(2))
    made = CONDITIONALS[conditional](d, 5, 6, 3, 0, jax.random.key(3))
    network = shaken(TransformedDensity(chain, made, d), by=0.2)
    keys = jax.random.split(jax.random.key(4), 4000)
    drawn = np.asarray(jax.jit(jax.vmap(network.sample, (None, 0)))(NOTHING, keys), np.float64)
    lo, hi = drawn.min(axis=0), drawn.max(axis=0)
    lo, hi = lo - 0.5 * (hi - lo), hi + 0.5 * (hi - lo)  # all but 10⁻³ of the mass lies within
    n = 4000 if d == 1 else 600
    axes = [(np.arange(n) + 0.5) / n * (hi[j] - lo[j]) + lo[j] for j in range(d)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, d)
    values = jax.jit(jax.vmap(network.log_density, (0, None)))(grid.astype(np.float32), NOTHING)
    total = np.exp(np.asarray(values, np.float64)).sum() * np.prod((hi - lo) / n)
    assert total == pytest.approx(1, abs=1e-3)


def ring(n, seed):
    """Points on a noisy ring: uncorrelated, and each coordinate has two modes given the other."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, n)
    points = np.column_stack([np.cos(angle), np.sin(angle)]) * (
        1 + 0.1 * rng.standard_normal((n, 1))
    )
    return points * [3.0, 0.2] + [10.0, -1.0]


@pytest.mark.long
def test_a_ring_is_learnt(tmp_path):
    """Log density ahead of the normal density's, near the truth's; samples, anomalies and files."""
    train, test = ring(3000, 0), ring(1000, 1)
    model = TANDensity(n_hidden=32, n_components=8, n_steps=300, batch_size=128).fit(train)
    covariance = np.cov(train.T)
    normal = -0.5 * (np.linalg.slogdet(2 * np.pi * np.e * covariance)[1])
    assert model.score(test) > normal + 0.5
    assert -model.loss_ == pytest.approx(model.score(test), abs=0.2)
    drawn = model.sample(1000, seed=3)
    radius = np.linalg.norm((drawn - [10, -1]) / [3, 0.2], axis=1)
    assert np.abs(radius - 1).mean() < 0.25
    np.testing.assert_array_equal(drawn, model.sample(1000, seed=3))
    centre = model.score_samples([[10.0, -1.0]])
    assert (centre < np.quantile(model.score_samples(test), 0.05)).all()
    model.save(tmp_path / "tan.npz")
    np.testing.assert_array_equal(
        load_network(tmp_path / "tan.npz").log_density(test), model.log_density(test)
    )


@pytest.mark.long
def test_units_of_the_data():
    """Stretched points have a density per stretched volume; points of bags are taken together."""
    x = ring(200, 2)
    arguments = {**PLAIN, "n_steps": 20, "validate_every": 10}
    single = TANDensity(**arguments).fit(x).log_density(x)
    other = TANDensity(**arguments).fit(8 * x).log_density(8 * x)
    np.testing.assert_allclose(other, single - 2 * np.log(8), rtol=1e-4, atol=1e-3)
    bags = Bags(x, [0, 150, 200])
    np.testing.assert_allclose(
        TANDensity(**arguments).fit(bags).log_density(x), single, rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TANDensity().log_density([[1.0]]), "call fit first"),
        (lambda: TANDensity(**PLAIN, n_steps=1).fit(ring(20, 0)).log_density([[1.0]]), r"\(n, 2\)"),
    ],
)
def test_refusals(call, message):
    """Each says what is wrong."""
    with pytest.raises(BagbasisError, match=message):
        call()
