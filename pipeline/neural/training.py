"""Minibatch descent of any neural network: one loop, one state, checkpoints that resume.

A step is a function of (seed, number of the step): which examples it sees, and what is dropped. So
training that goes on from a checkpoint has the same bits as training that was never interrupted,
on the same machine and version of JAX.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import equinox as eqx
import jax
import numpy as np
import optax

from ..core.errors import DataError
from ..execution.progress import Progress, note
from .declared import TrainingParameters
from .files import read_leaves, write_leaves

logger = logging.getLogger(__name__)

TrainingBatch = tuple[Any, ...]
"""Arrays, of numpy or within a step of JAX, with the examples on the first axis."""
Network = Any
"""A pytree of equinox; its class is the estimator's."""

Loss = Callable[[Network, Any, jax.Array], jax.Array]
"""(network, batch, key) to the mean loss of a batch; the key is of what is dropped."""


class Batches(Protocol):
    """Examples to train on, and others to judge by."""

    def batch(self, step: int) -> TrainingBatch:
        """Return the minibatch of a step; a pure function of its number."""
        ...

    def validation(self) -> list[TrainingBatch]:
        """Return the batches that the network is judged by; empty: by nothing."""
        ...


def optimiser_of(schedule: TrainingParameters) -> optax.GradientTransformation:
    """Return the chain: clipping, then the steps."""
    rate = optax.exponential_decay(
        schedule.learning_rate, schedule.decay_steps, schedule.decay, staircase=True
    )
    kind = {"adam": optax.adam, "sgd": optax.sgd}[schedule.optimizer]
    return optax.chain(optax.clip_by_global_norm(schedule.clip), kind(rate))


class TrainingState(NamedTuple):
    """All that training has come to: a pytree of arrays and numbers."""

    step: int
    network: Network
    moments: Any
    best: Network
    best_loss: float
    worse: int
    """Looks since the best one."""


@dataclass(frozen=True, eq=False)
class Trained:
    """The network of the least validation loss, and the losses of all looks.

    Attributes
    ----------
    network : equinox module
    loss : float
        Loss of the validation examples; without any, of the last minibatches.
    n_steps : int
    history : list of (step, loss)
    n_steps_resumed : int
        Number of these steps that a checkpoint had.
    """

    network: Network
    loss: float
    n_steps: int
    history: list[tuple[int, float]]
    n_steps_resumed: int


def train(
    network: Network,
    loss: Loss,
    batches: Batches,
    schedule: TrainingParameters,
    progress: Progress | None = None,
    fingerprint: str = "",
) -> Trained:
    """Return the network that minimises a loss over minibatches.

    Parameters
    ----------
    fingerprint : str
        Fingerprint of the estimator and the data: a checkpoint with another fingerprint is refused.

    Raises
    ------
    DataError
        The loss is not finite from the first look on, or the checkpoint is of another training.
    """
    optimiser = optimiser_of(schedule)
    arrays, static = eqx.partition(network, eqx.is_inexact_array)
    state = TrainingState(0, arrays, optimiser.init(arrays), arrays, math.inf, 0)
    history: list[tuple[int, float]] = []
    if schedule.checkpoints is not None:
        saved = read_leaves(schedule.checkpoints, state, fingerprint)
        if saved is not None:
            state, history = saved[0], [(int(a), float(b)) for a, b in saved[1]]
            logger.info("training goes on from step %d of %s", state.step, schedule.checkpoints)

    n_resumed = state.step

    @eqx.filter_jit
    def step(arrays: Any, moments: Any, batch: Any, key: jax.Array) -> tuple[Any, Any, jax.Array]:
        def value_of(arrays: Any) -> jax.Array:
            return loss(eqx.combine(arrays, static), batch, key)

        value, gradient = jax.value_and_grad(value_of)(arrays)
        updates, moments = optimiser.update(gradient, moments, arrays)
        return optax.apply_updates(arrays, updates), moments, value

    @eqx.filter_jit
    def judge(arrays: Any, batch: Any) -> jax.Array:
        return loss(eqx.nn.inference_mode(eqx.combine(arrays, static)), batch, jax.random.key(0))

    held_out, seed = batches.validation(), schedule.seed % 2**32
    running: list[float] = []
    while state.step < schedule.n_steps and state.worse < schedule.patience:
        key = jax.random.fold_in(jax.random.key(seed), state.step)
        network_now, moments, value = step(
            state.network, state.moments, batches.batch(state.step), key
        )
        state = state._replace(step=state.step + 1, network=network_now, moments=moments)
        running.append(float(value))
        if state.step % schedule.validate_every and state.step < schedule.n_steps:
            continue
        now = _mean_loss(judge, state.network, held_out) if held_out else float(np.mean(running))
        running = []
        state = _judged(state, now)
        history.append((state.step, now))
        note(progress, f"loss {state.best_loss:.4g}")
        if progress is not None:
            progress(state.step, schedule.n_steps)
        if not math.isfinite(state.best_loss):
            raise DataError(
                f"the loss is {now} after {state.step} steps: take a smaller learning_rate, or "
                "look for wild values among the points"
            )
        if schedule.checkpoints is not None:
            write_leaves(schedule.checkpoints, state, history, fingerprint)
    if progress is not None:
        progress(schedule.n_steps, schedule.n_steps)
    best = eqx.nn.inference_mode(eqx.combine(state.best, static))
    return Trained(best, state.best_loss, state.step, history, n_resumed)


def _judged(state: TrainingState, loss: float) -> TrainingState:
    if loss < state.best_loss:
        return state._replace(best=state.network, best_loss=loss, worse=0)
    return state._replace(worse=state.worse + 1)


def _mean_loss(judge: Callable[..., jax.Array], arrays: Any, batches: list[TrainingBatch]) -> float:
    """Return the mean over examples; batches hold their number of examples last."""
    losses = [float(judge(arrays, batch)) for batch in batches]
    return float(np.average(losses, weights=[len(batch[0]) for batch in batches]))
