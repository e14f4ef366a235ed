"""Conditionals p(z_i | z_<i) as normal mixtures (Oliva 2018, §8.2.1), and the whole network."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from typing_extensions import override

from .transformations import Transformation, small_net

# Log scale of a component, in standard deviations of a coordinate: e^−7 = .001.
MIN_LOG_SCALE = -7.0
LOG_ROOT_2_PI = 0.9189385332046727
MEANS_RANGE = 2.0  # components' means begin at −2 … 2 standard deviations


class Conditional(eqx.Module):
    """Base: mixtures of each coordinate given those before it."""

    def states(self, z: jax.Array, condition: jax.Array) -> jax.Array:
        """Return h_i of all coordinates, (d, p): h_i is a function of z_<i alone."""
        raise NotImplementedError

    def mixture(self, h: jax.Array, i: jax.Array | int) -> jax.Array:
        """Return θ_i, shape (3, K): logits, means and log scales."""
        raise NotImplementedError

    def log_density(self, z: jax.Array, condition: jax.Array) -> jax.Array:
        """Return log p(z)."""
        states = self.states(z, condition)
        mixtures = jax.vmap(self.mixture)(states, jnp.arange(len(z)))
        return jax.vmap(log_mixture)(z, mixtures).sum()

    def sample(self, n_dims: int, condition: jax.Array, key: jax.Array) -> jax.Array:
        """Return a point, coordinate by coordinate."""

        def step(i: int, z: jax.Array) -> jax.Array:
            keys = jax.random.split(jax.random.fold_in(key, i))
            logits, means, logs = self.mixture(self.states(z, condition)[i], i)
            k = jax.random.categorical(keys[0], logits)
            scale = jnp.exp(jnp.maximum(logs[k], MIN_LOG_SCALE))
            return z.at[i].set(means[k] + scale * jax.random.normal(keys[1]))

        drawn: jax.Array = jax.lax.fori_loop(0, n_dims, step, jnp.zeros(n_dims))
        return drawn


class Heads(eqx.Module):
    """f of (8.3): a network that all coordinates share, and a bias per coordinate."""

    net: eqx.nn.MLP
    biases: jax.Array

    def __init__(
        self, n_dims: int, n_state: int, n_hidden: int, n_components: int, key: jax.Array
    ) -> None:
        self.net = small_net(n_state, 3 * n_components, n_hidden, key)
        self.biases = first_mixtures(n_dims, n_components)

    def __call__(self, h: jax.Array, i: jax.Array | int) -> jax.Array:
        """Return θ_i, shape (3, K)."""
        return self.net(jax.nn.relu(h)).reshape(3, -1) + self.biases[i]


class LAM(Conditional):
    """h_i = W^(i) z_<i + b^(i), with separate weights for each i (8.5)."""

    weights: jax.Array
    bias: jax.Array
    of_condition: eqx.nn.Linear
    heads: Heads

    def __init__(
        self, n_dims: int, n_state: int, n_hidden: int, n_components: int, n_condition: int,
        key: jax.Array,
    ) -> None:  # fmt: skip
        keys = jax.random.split(key, 4)
        scale = (n_dims + 1) ** -0.5
        self.weights = scale * jax.random.normal(keys[0], (n_dims, n_state, n_dims))
        self.bias = 0.1 * jax.random.normal(keys[1], (n_dims, n_state))
        self.of_condition = condition_layer(n_condition, n_state, keys[2])
        self.heads = Heads(n_dims, n_state, n_hidden, n_components, keys[3])

    @override
    def states(self, z: jax.Array, condition: jax.Array) -> jax.Array:
        before = jnp.tril(jnp.ones((len(z), len(z))), -1)
        h = jnp.einsum("ipj,ij,j->ip", self.weights, before, z) + self.bias
        return h + self.of_condition(padded_condition(condition))

    @override
    def mixture(self, h: jax.Array, i: jax.Array | int) -> jax.Array:
        return self.heads(h, i)


class Tied(Conditional):
    """h_i = W_<i z_<i + b, with one matrix for all i, shared as in NADE (8.16)."""

    weights: jax.Array
    bias: jax.Array
    of_condition: eqx.nn.Linear
    heads: Heads

    def __init__(
        self, n_dims: int, n_state: int, n_hidden: int, n_components: int, n_condition: int,
        key: jax.Array,
    ) -> None:  # fmt: skip
        keys = jax.random.split(key, 3)
        self.weights = (n_dims + 1) ** -0.5 * jax.random.normal(keys[0], (n_dims, n_state))
        self.bias = jnp.zeros(n_state)
        self.of_condition = condition_layer(n_condition, n_state, keys[1])
        self.heads = Heads(n_dims, n_state, n_hidden, n_components, keys[2])

    @override
    def states(self, z: jax.Array, condition: jax.Array) -> jax.Array:
        sums = jnp.cumsum(self.weights * z[:, None], axis=0)
        before = jnp.concatenate([jnp.zeros((1, sums.shape[1])), sums[:-1]])
        return before + self.bias + self.of_condition(padded_condition(condition))

    @override
    def mixture(self, h: jax.Array, i: jax.Array | int) -> jax.Array:
        return self.heads(h, i)


class RAM(Conditional):
    """h_i = g(z_{i−1}, h_{i−1}), g a gated recurrent unit (8.6)."""

    cell: eqx.nn.GRUCell
    of_condition: eqx.nn.Linear
    heads: Heads
    n_state: int = eqx.field(static=True)

    def __init__(
        self, n_dims: int, n_state: int, n_hidden: int, n_components: int, n_condition: int,
        key: jax.Array,
    ) -> None:  # fmt: skip
        keys = jax.random.split(key, 3)
        self.cell, self.n_state = eqx.nn.GRUCell(1, n_state, key=keys[0]), n_state
        self.of_condition = condition_layer(n_condition, n_state, keys[1])
        self.heads = Heads(n_dims, n_state, n_hidden, n_components, keys[2])

    @override
    def states(self, z: jax.Array, condition: jax.Array) -> jax.Array:

        def step(h: jax.Array, z_i: jax.Array) -> tuple[jax.Array, jax.Array]:
            return self.cell(z_i[None], h), h

        first = self.of_condition(padded_condition(condition))
        return jax.lax.scan(step, first, z)[1]

    @override
    def mixture(self, h: jax.Array, i: jax.Array | int) -> jax.Array:
        return self.heads(h, i)


class MultiInd(Conditional):
    """One mixture per coordinate, independent of the other coordinates."""

    mixtures: jax.Array
    of_condition: eqx.nn.Linear

    def __init__(
        self, n_dims: int, n_state: int, n_hidden: int, n_components: int, n_condition: int,
        key: jax.Array,
    ) -> None:  # fmt: skip
        self.mixtures = first_mixtures(n_dims, n_components)
        self.of_condition = condition_layer(n_condition, 3 * n_components, key)

    @override
    def states(self, z: jax.Array, condition: jax.Array) -> jax.Array:
        shift = self.of_condition(padded_condition(condition))
        return jnp.broadcast_to(shift, (len(z), len(shift)))

    @override
    def mixture(self, h: jax.Array, i: jax.Array | int) -> jax.Array:
        return self.mixtures[i] + h.reshape(3, -1)


class SingleInd(Conditional):
    """A standard normal distribution of each coordinate."""

    def __init__(
        self, n_dims: int, n_state: int, n_hidden: int, n_components: int, n_condition: int,
        key: jax.Array,
    ) -> None:  # fmt: skip
        """Accept the arguments of the other conditionals; nothing is learnt."""

    @override
    def states(self, z: jax.Array, condition: jax.Array) -> jax.Array:
        return jnp.zeros((len(z), 1))

    @override
    def mixture(self, h: jax.Array, i: jax.Array | int) -> jax.Array:
        return jnp.zeros((3, 1))


CONDITIONALS: dict[str, type[Conditional]] = {
    "lam": LAM,
    "ram": RAM,
    "tied": Tied,
    "multi_ind": MultiInd,
    "single_ind": SingleInd,
}


class TransformedDensity(eqx.Module):
    """log p(x) = Σ log |det q^(t)| + log p(q(x)) (8.15), of one point."""

    chain: tuple[Transformation, ...]
    conditional: Conditional
    n_dims: int = eqx.field(static=True)

    def log_density(self, x: jax.Array, condition: jax.Array) -> jax.Array:
        """Return log p(x | condition)."""
        total = jnp.array(0.0)
        for transformation in self.chain:
            x, log_det = transformation.forward(x, condition)
            total = total + log_det
        return total + self.conditional.log_density(x, condition)

    def sample(self, condition: jax.Array, key: jax.Array) -> jax.Array:
        """Return a point."""
        z = self.conditional.sample(self.n_dims, condition, key)
        for transformation in reversed(self.chain):
            z = transformation.inverse(z, condition)
        return z


def log_mixture(z: jax.Array, mixture: jax.Array) -> jax.Array:
    """Return the log density of a mixture of normal distributions, (3, K), at a number."""
    logits, means, logs = mixture
    logs = jnp.maximum(logs, MIN_LOG_SCALE)
    terms = -0.5 * ((z - means) * jnp.exp(-logs)) ** 2 - logs - LOG_ROOT_2_PI
    return jax.nn.logsumexp(jax.nn.log_softmax(logits) + terms)


def first_mixtures(n_dims: int, n_components: int) -> jax.Array:
    """Return mixtures that cover −2 … 2 evenly, shape (d, 3, K)."""
    means = (
        jnp.linspace(-MEANS_RANGE, MEANS_RANGE, n_components) if n_components > 1 else jnp.zeros(1)
    )
    logs = jnp.full(n_components, 0.0 if n_components == 1 else -0.5)
    mixture = jnp.stack([jnp.zeros(n_components), means, logs])
    return jnp.broadcast_to(mixture, (n_dims, 3, n_components))


def condition_layer(n_condition: int, n_outputs: int, key: jax.Array) -> eqx.nn.Linear:
    """Return a map of the condition, which without one is 0."""
    layer = eqx.nn.Linear(max(1, n_condition), n_outputs, use_bias=False, key=key)
    return layer


def padded_condition(condition: jax.Array) -> jax.Array:
    """Return the condition, or a 0 if the model has none."""
    return condition if len(condition) else jnp.zeros(1)
