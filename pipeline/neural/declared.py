"""Parameters of networks, declared so that configs are checked without the extra ``neural``."""

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
        Initial size of a step.
    optimizer
        Optimisation algorithm.
    decay
        Factor by which the learning rate is multiplied every ``decay_steps``.
    decay_steps
        Number of minibatches between two decays.
    clip
        Largest norm of a gradient.
    batch_size
        Number of bags in a minibatch.
    n_steps
        Largest number of minibatches.
    validation
        Fraction of the bags that are held out; the network with the smallest loss on them is kept.
    validate_every
        Number of steps between two evaluations on the held-out bags.
    patience
        Number of evaluations without a smaller loss after which training ends.
    checkpoints
        Folder on any storage that fsspec supports; interrupted training resumes from it, with
        bit-identical results on the same machine.
    seed
        Seed for drawing weights and minibatches.
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
        Recurrent unit: the statistical recurrent unit "sru", or a gated unit for comparison.
    n_units
        Number of outputs o of the unit, which a linear layer maps to the predictions.
    n_stats
        Number of statistics φ of "sru".
    n_recurrent
        Dimension of r, through which statistics depend on the past; 0: they depend on the current
        point alone.
    scales
        Factors A: the fraction of an average that is kept at each point (Oliva 2018, section 7.3).
    activation
        Activation function f of "sru".
    dropout
        Fraction of the outputs that are dropped in training.
    max_length
        Largest number of points of a sequence; longer sequences keep their last points. Memory and
        time grow with it. Default: the length of the longest sequence.
    seed
        Seed for drawing weights, minibatches and dropout.
    """

    unit: Annotated[str, OneOf("sru", "gru", "lstm")] = "sru"
    n_units: LayerWidth = 64
    n_stats: LayerWidth = 64
    n_recurrent: Annotated[int, Integer(0, 100_000)] = 32
    scales: Annotated[Sequence[float], ListOf(Real(ge=0, lt=1), 1)] = (0.0, 0.5, 0.9, 0.99, 0.999)
    activation: Annotated[str, OneOf("relu", "tanh")] = "relu"
    dropout: Annotated[float, FractionOrZero] = 0.0
    max_length: Annotated[int, Integer(1)] | None = None
