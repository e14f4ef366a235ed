"""Recurrent units: the statistical recurrent unit, and gated units for comparison.

The units follow Oliva 2018, section 7.2.2. A unit has a state of fixed size. A step takes a point
and gives the next state, from which the outputs are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from typing_extensions import override

ACTIVATIONS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "relu": jax.nn.relu,
    "tanh": jnp.tanh,
}


class Unit(eqx.Module):
    """Base: a state, its step, and its outputs."""

    n_outputs: eqx.AbstractVar[int]

    def initial(self) -> jax.Array:
        """Return the state before any point."""
        raise NotImplementedError

    def step(self, state: jax.Array, point: jax.Array) -> jax.Array:
        """Return the state after a point."""
        raise NotImplementedError

    def output(self, state: jax.Array) -> jax.Array:
        """Return the outputs o, shape (n_outputs,)."""
        raise NotImplementedError

    def run(self, points: jax.Array, mask: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the outputs after each point, (T, n_outputs), and after the last one.

        Points whose mask is 0 leave the state as it is.
        """

        def advance(
            state: jax.Array, seen: tuple[jax.Array, jax.Array]
        ) -> tuple[jax.Array, jax.Array]:
            point, is_there = seen
            new = jnp.where(is_there > 0, self.step(state, point), state)
            return new, new

        last, states = jax.lax.scan(advance, self.initial(), (points, mask))
        return jax.vmap(self.output)(states), self.output(last)


class SRU(Unit):
    """The statistical recurrent unit (Oliva 2018, eq. 7.5-7.8).

    r = f(W_r μ + b_r), φ = f(W_φ r + W_x x + b_φ), μ^(α) ← α μ^(α) + (1 − α) φ for every scale
    α, and o = f(W_o μ + b_o). With n_recurrent = 0 statistics depend on the point alone.
    """

    recurrent: eqx.nn.Linear | None
    of_recurrent: eqx.nn.Linear | None
    of_point: eqx.nn.Linear
    of_averages: eqx.nn.Linear
    scales: tuple[float, ...] = eqx.field(static=True)
    n_stats: int = eqx.field(static=True)
    n_outputs: int = eqx.field(static=True)
    activation: str = eqx.field(static=True)

    def __init__(
        self,
        n_dims: int,
        n_outputs: int,
        n_stats: int,
        n_recurrent: int,
        scales: Sequence[float],
        activation: str,
        key: jax.Array,
    ) -> None:
        keys = jax.random.split(key, 4)
        size = n_stats * len(scales)
        self.recurrent = self.of_recurrent = None
        if n_recurrent:
            self.recurrent = eqx.nn.Linear(size, n_recurrent, key=keys[0])
            self.of_recurrent = eqx.nn.Linear(n_recurrent, n_stats, use_bias=False, key=keys[1])
        self.of_point = eqx.nn.Linear(n_dims, n_stats, key=keys[2])
        self.of_averages = eqx.nn.Linear(size, n_outputs, key=keys[3])
        self.scales, self.n_stats = tuple(scales), n_stats
        self.n_outputs, self.activation = n_outputs, activation

    @override
    def initial(self) -> jax.Array:
        return jnp.zeros(self.n_stats * len(self.scales))

    @override
    def step(self, state: jax.Array, point: jax.Array) -> jax.Array:
        f = ACTIVATIONS[self.activation]
        inner = self.of_point(point)
        if self.recurrent is not None and self.of_recurrent is not None:
            inner = inner + self.of_recurrent(f(self.recurrent(state)))
        statistics = f(inner)
        alphas = jnp.repeat(jnp.array(self.scales), self.n_stats)
        return alphas * state + (1 - alphas) * jnp.tile(statistics, len(self.scales))

    @override
    def output(self, state: jax.Array) -> jax.Array:
        return ACTIVATIONS[self.activation](self.of_averages(state))


class GRU(Unit):
    """The gated recurrent unit, whose state is its output."""

    cell: eqx.nn.GRUCell
    n_outputs: int = eqx.field(static=True)

    def __init__(self, n_dims: int, n_outputs: int, key: jax.Array) -> None:
        self.cell, self.n_outputs = eqx.nn.GRUCell(n_dims, n_outputs, key=key), n_outputs

    @override
    def initial(self) -> jax.Array:
        return jnp.zeros(self.n_outputs)

    @override
    def step(self, state: jax.Array, point: jax.Array) -> jax.Array:
        after: jax.Array = self.cell(point, state)
        return after

    @override
    def output(self, state: jax.Array) -> jax.Array:
        return state


class LSTM(Unit):
    """Long short-term memory: the state is [h, c], the output h."""

    cell: eqx.nn.LSTMCell
    n_outputs: int = eqx.field(static=True)

    def __init__(self, n_dims: int, n_outputs: int, key: jax.Array) -> None:
        self.cell, self.n_outputs = eqx.nn.LSTMCell(n_dims, n_outputs, key=key), n_outputs

    @override
    def initial(self) -> jax.Array:
        return jnp.zeros(2 * self.n_outputs)

    @override
    def step(self, state: jax.Array, point: jax.Array) -> jax.Array:
        h, c = self.cell(point, (state[: self.n_outputs], state[self.n_outputs :]))
        return jnp.concatenate([h, c])

    @override
    def output(self, state: jax.Array) -> jax.Array:
        return state[: self.n_outputs]


class SequenceNetwork(eqx.Module):
    """A unit over points in order, with a projection of its outputs.

    Attributes
    ----------
    per_point : bool
        Whether every point has a prediction, or the whole sequence one.
    adds_point : bool
        Whether the prediction is added to the point itself: the next point's difference is learnt.
    """

    unit: Unit
    head: eqx.nn.Linear
    dropout: eqx.nn.Dropout
    per_point: bool = eqx.field(static=True)
    adds_point: bool = eqx.field(static=True)

    def __call__(
        self, points: jax.Array, mask: jax.Array, key: jax.Array | None = None
    ) -> jax.Array:
        """Return predictions of one sequence (T, d): (T, k), or (k,)."""
        outputs, last = self.unit.run(points, mask)
        if not self.per_point:
            return self.head(self.dropout(last, key=key))
        predicted = jax.vmap(self.head)(self.dropout(outputs, key=key))
        return predicted + points if self.adds_point else predicted
