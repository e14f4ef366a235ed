"""Changes of variables with cheap determinants (Oliva 2018, §8.2.2).

z = q(x), log |det dq/dx| and x = q⁻¹(z), each of one point (d,); a condition (c,) of a bag may
change the shifts.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from typing_extensions import override

LEAKY_SLOPE = 0.3  # slope of the leaky unit below 0: α of (8.9)
HIDDEN_LAYERS = 2  # layers of the nets m


class Transformation(eqx.Module):
    """Base: forward with its log-determinant, and back."""

    def forward(self, x: jax.Array, condition: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return z and log |det dz/dx|."""
        raise NotImplementedError

    def inverse(self, z: jax.Array, condition: jax.Array) -> jax.Array:
        """Return x."""
        raise NotImplementedError


class Linear(Transformation):
    """z = L U x + b with unit lower L and upper U (8.8): the determinant is U's diagonal's."""

    lower: jax.Array
    upper: jax.Array
    log_diagonal: jax.Array
    signs: tuple[float, ...] = eqx.field(static=True)
    shift: jax.Array

    def __init__(self, n_dims: int, key: jax.Array) -> None:
        keys = jax.random.split(key)
        scale = 0.1 / n_dims**0.5
        self.lower = scale * jax.random.normal(keys[0], (n_dims, n_dims))
        self.upper = scale * jax.random.normal(keys[1], (n_dims, n_dims))
        self.log_diagonal, self.shift = jnp.zeros(n_dims), jnp.zeros(n_dims)
        self.signs = (1.0,) * n_dims

    def _factors(self) -> tuple[jax.Array, jax.Array]:
        n = len(self.shift)
        diagonal = jnp.array(self.signs) * jnp.exp(self.log_diagonal)
        return jnp.tril(self.lower, -1) + jnp.eye(n), jnp.triu(self.upper, 1) + jnp.diag(diagonal)

    @override
    def forward(self, x: jax.Array, condition: jax.Array) -> tuple[jax.Array, jax.Array]:
        L, U = self._factors()
        return L @ (U @ x) + self.shift, self.log_diagonal.sum()

    @override
    def inverse(self, z: jax.Array, condition: jax.Array) -> jax.Array:
        L, U = self._factors()
        inner = jax.scipy.linalg.solve_triangular(L, z - self.shift, lower=True, unit_diagonal=True)
        return jax.scipy.linalg.solve_triangular(U, inner)


class Recurrent(Transformation):
    """z_i = r_α(y x_i + wᵀs_{i−1} + b), s_i = r(u x_i + v s_{i−1} + a) (8.9-8.11).

    y > 0, as e to a parameter. As s_i ∈ R^p and "v" of the paper is a vector, s_i = r(u x_i +
    V s_{i−1} + a) with a matrix V here.
    """

    log_y: jax.Array
    w: jax.Array
    b: jax.Array
    u: jax.Array
    V: jax.Array
    a: jax.Array

    def __init__(self, n_state: int, key: jax.Array) -> None:
        keys = jax.random.split(key, 3)
        scale = 0.3 / n_state**0.5
        self.log_y, self.b = jnp.array(0.0), jnp.array(0.0)
        self.w = scale * jax.random.normal(keys[0], (n_state,))
        self.u = jax.random.normal(keys[1], (n_state,)) / n_state**0.5
        self.V = scale * jax.random.normal(keys[2], (n_state, n_state))
        self.a = jnp.zeros(n_state)

    @override
    def forward(self, x: jax.Array, condition: jax.Array) -> tuple[jax.Array, jax.Array]:

        def step(s: jax.Array, x_i: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
            t = jnp.exp(self.log_y) * x_i + self.w @ s + self.b
            slope = jnp.where(t >= 0, 1.0, LEAKY_SLOPE)
            return self._next(s, x_i), (slope * t, jnp.log(slope))

        _, (z, logs) = jax.lax.scan(step, jnp.zeros(len(self.w)), x)
        return z, logs.sum() + len(x) * self.log_y

    @override
    def inverse(self, z: jax.Array, condition: jax.Array) -> jax.Array:

        def step(s: jax.Array, z_i: jax.Array) -> tuple[jax.Array, jax.Array]:
            t = jnp.where(z_i >= 0, z_i, z_i / LEAKY_SLOPE)
            x_i = (t - self.w @ s - self.b) * jnp.exp(-self.log_y)
            return self._next(s, x_i), x_i

        return jax.lax.scan(step, jnp.zeros(len(self.w)), z)[1]

    def _next(self, s: jax.Array, x_i: jax.Array) -> jax.Array:
        return jax.nn.relu(self.u * x_i + self.V @ s + self.a)


class RecurrentShift(Transformation):
    """z_i = x_i + m(s_{i−1}), s_i = g(x_i, s_{i−1}), g a gated recurrent unit (8.12-8.13)."""

    cell: eqx.nn.GRUCell
    net: eqx.nn.MLP
    n_state: int = eqx.field(static=True)

    def __init__(self, n_state: int, n_hidden: int, n_condition: int, key: jax.Array) -> None:
        keys = jax.random.split(key)
        self.n_state = n_state
        self.cell = eqx.nn.GRUCell(1, n_state, key=keys[0])
        self.net = small_net(n_state + n_condition, 1, n_hidden, keys[1])

    def _shift(self, s: jax.Array, condition: jax.Array) -> jax.Array:
        return self.net(jnp.concatenate([s, condition]))[0]

    @override
    def forward(self, x: jax.Array, condition: jax.Array) -> tuple[jax.Array, jax.Array]:

        def step(s: jax.Array, x_i: jax.Array) -> tuple[jax.Array, jax.Array]:
            return self.cell(x_i[None], s), x_i + self._shift(s, condition)

        return jax.lax.scan(step, jnp.zeros(self.n_state), x)[1], jnp.array(0.0)

    @override
    def inverse(self, z: jax.Array, condition: jax.Array) -> jax.Array:

        def step(s: jax.Array, z_i: jax.Array) -> tuple[jax.Array, jax.Array]:
            x_i = z_i - self._shift(s, condition)
            return self.cell(x_i[None], s), x_i

        return jax.lax.scan(step, jnp.zeros(self.n_state), z)[1]


class Additive(Transformation):
    """z = (x_<, x_≥ + m(x_<)) with the point cut in halves (8.18).

    One coordinate alone is shifted by the condition.
    """

    net: eqx.nn.MLP
    half: int = eqx.field(static=True)

    def __init__(self, n_dims: int, n_hidden: int, n_condition: int, key: jax.Array) -> None:
        self.half = n_dims // 2
        inputs = self.half + n_condition
        self.net = small_net(max(1, inputs), n_dims - self.half, n_hidden, key)

    def _shift(self, first: jax.Array, condition: jax.Array) -> jax.Array:
        seen = jnp.concatenate([first, condition])
        return self.net(seen if len(seen) else jnp.zeros(1))

    @override
    def forward(self, x: jax.Array, condition: jax.Array) -> tuple[jax.Array, jax.Array]:
        first = x[: self.half]
        z = jnp.concatenate([first, x[self.half :] + self._shift(first, condition)])
        return z, jnp.array(0.0)

    @override
    def inverse(self, z: jax.Array, condition: jax.Array) -> jax.Array:
        first = z[: self.half]
        return jnp.concatenate([first, z[self.half :] - self._shift(first, condition)])


class Reverse(Transformation):
    """The coordinates from the last to the first."""

    @override
    def forward(self, x: jax.Array, condition: jax.Array) -> tuple[jax.Array, jax.Array]:
        return x[::-1], jnp.array(0.0)

    @override
    def inverse(self, z: jax.Array, condition: jax.Array) -> jax.Array:
        return z[::-1]


class Rescale(Transformation):
    """z = x e^s, one s per coordinate."""

    logs: jax.Array

    def __init__(self, n_dims: int) -> None:
        self.logs = jnp.zeros(n_dims)

    @override
    def forward(self, x: jax.Array, condition: jax.Array) -> tuple[jax.Array, jax.Array]:
        return x * jnp.exp(self.logs), self.logs.sum()

    @override
    def inverse(self, z: jax.Array, condition: jax.Array) -> jax.Array:
        return z * jnp.exp(-self.logs)


def small_net(n_inputs: int, n_outputs: int, n_hidden: int, key: jax.Array) -> eqx.nn.MLP:
    """Return a fully connected net whose outputs are 0 before training, nearly."""
    net = eqx.nn.MLP(n_inputs, n_outputs, n_hidden, HIDDEN_LAYERS, key=key)
    last = net.layers[-1]
    small = eqx.tree_at(lambda layer: layer.weight, last, 0.1 * last.weight)
    shrunk: eqx.nn.MLP = eqx.tree_at(lambda network: network.layers[-1], net, small)
    return shrunk


# What stands before "+" in the paper's tables, each with its parts in order.
CHAINS: dict[str, tuple[str, ...]] = {
    "none": (),
    "rnn": ("recurrent",),
    "2xrnn": ("recurrent", "reverse", "recurrent"),
    "4xadd+re": ("additive", "reverse") * 3 + ("additive", "rescale"),
    "4xsrnn+re": ("shift", "reverse") * 3 + ("shift", "rescale"),
    "rnn+4xadd+re": ("recurrent",) + ("additive", "reverse") * 3 + ("additive", "rescale"),
    "rnn+4xsrnn+re": ("recurrent",) + ("shift", "reverse") * 3 + ("shift", "rescale"),
}


def make_chain(
    name: str, linear: bool, n_dims: int, n_hidden: int, n_condition: int, key: jax.Array
) -> tuple[Transformation, ...]:
    """Return the transformations of a name in `CHAINS`, behind a linear one or not."""
    parts = (("linear",) if linear else ()) + CHAINS[name]
    made: list[Transformation] = []
    for part, part_key in zip(parts, jax.random.split(key, max(1, len(parts))), strict=False):
        if part == "linear":
            made.append(Linear(n_dims, part_key))
        elif part == "recurrent":
            made.append(Recurrent(n_hidden // 2 or 1, part_key))
        elif part == "shift":
            made.append(RecurrentShift(n_hidden // 2 or 1, n_hidden, n_condition, part_key))
        elif part == "additive":
            made.append(Additive(n_dims, n_hidden, n_condition, part_key))
        else:
            made.append(Reverse() if part == "reverse" else Rescale(n_dims))
    return tuple(made)
