"""Parameters of networks, declared without the extra, so that a config is checked without it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ..core import FractionOrZero, Integer, ListOf, OneOf, RandomSeed, Real, component

Rate = Annotated[float, Real(gt=0, le=10)]
Decay = Annotated[float, Real(gt=0, le=1)]
Count = Annotated[int, Integer(1, 10**9)]
BatchSize = Annotated[int, Integer(1, 10**6)]
LayerWidth = Annotated[int, Integer(1, 100_000)]


@component
class TrainingParameters:
    """Parameters of all estimators that are trained by minibatches.

    Parameters
    ----------
    learning_rate
        Length of a step, at the beginning.
    optimizer
        How steps follow gradients.
    decay
        Factor by which the rate is multiplied every ``decay_steps``.
    decay_steps
        Minibatches between two decays.
    clip
        Largest norm of a gradient.
    batch_size
        Bags of a minibatch.
    n_steps
        Minibatches, at most.
    validation
        Fraction of the bags held out; the network of their least loss is kept.
    validate_every
        Steps between two evaluations on the bags held out.
    patience
        Evaluations without a better loss after which training ends.
    checkpoints
        A folder, of any filesystem that fsspec knows; training started again there goes on, with
        the same bits on the same machine.
    seed
        Seed for weights, minibatches and dropout.
    """

    learning_rate: Rate = 0.003
    optimizer: Annotated[str, OneOf("adam", "sgd")] = "adam"
    decay: Decay = 0.9
    decay_steps: Count = 500
    clip: Annotated[float, Real(gt=0)] = 1.0
    batch_size: BatchSize = 32
    n_steps: Count = 3000
    validation: Annotated[float, FractionOrZero] = 0.1
    validate_every: Count = 100
    patience: Count = 10
    checkpoints: str | None = None
    seed: RandomSeed = 0


@component
class SequenceParameters(TrainingParameters):
    """Parameters of networks of sequences.

    Parameters
    ----------
    unit
        The statistical recurrent unit, or gated ones to compare with.
    n_units
        Outputs o, which a linear layer projects.
    n_stats
        Statistics φ of "sru".
    n_recurrent
        Length of r, by which statistics know the past; 0: they depend on the point alone.
    scales
        Factors A: how much of an average is kept at a point (Oliva 2018, §7.3).
    activation
        Function f of "sru".
    dropout
        Fraction of the outputs dropped in training.
    max_length
        Longer sequences keep their last points; default the longest there is. Memory and time
        grow with it.
    """

    unit: Annotated[str, OneOf("sru", "gru", "lstm")] = "sru"
    n_units: LayerWidth = 64
    n_stats: LayerWidth = 64
    n_recurrent: Annotated[int, Integer(0, 100_000)] = 32
    scales: Annotated[Sequence[float], ListOf(Real(ge=0, lt=1), 1)] = (0.0, 0.5, 0.9, 0.99, 0.999)
    activation: Annotated[str, OneOf("relu", "tanh")] = "relu"
    dropout: Annotated[float, FractionOrZero] = 0.0
    max_length: Annotated[int, Integer(1)] | None = None
