"""Permutation-invariant networks of bags (Zaheer et al. 2017)."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

LAYERS = 2


class DeepSet(eqx.Module):
    """ρ(mean_j γ(x_j)): a network of each point, the mean over points, a network of the mean."""

    of_point: eqx.nn.MLP
    of_mean: eqx.nn.MLP

    def __init__(
        self, n_dims: int, n_pooled: int, n_hidden: int, n_outputs: int, key: jax.Array
    ) -> None:
        keys = jax.random.split(key)
        self.of_point = eqx.nn.MLP(n_dims, n_pooled, n_hidden, LAYERS, key=keys[0])
        self.of_mean = eqx.nn.MLP(n_pooled, n_outputs, n_hidden, 1, key=keys[1])

    def __call__(
        self, points: jax.Array, mask: jax.Array, key: jax.Array | None = None
    ) -> jax.Array:
        """Return the outputs of a bag: points (m, d) where the mask (m,) is 1."""
        rows = jax.vmap(self.of_point)(points) * mask[:, None]
        return self.of_mean(rows.sum(axis=0) / jnp.maximum(mask.sum(), 1))

    def without_each(self, points: jax.Array, mask: jax.Array) -> jax.Array:
        """Return the outputs of the bag without each of its points, shape (m, n_outputs)."""
        rows = jax.vmap(self.of_point)(points) * mask[:, None]
        others = rows.sum(axis=0) - rows
        return jax.vmap(self.of_mean)(others / jnp.maximum(mask.sum() - mask, 1)[:, None])
