"""What networks of sequences can be given, by class; the room itself needs an extra."""

from __future__ import annotations

from .checks import Table
from .constraints import Integer, None_, OneOf, Real, Seed, ShareOrZero, Text
from .containers import ListOf

TRAINING: Table = {
    "learning_rate": Real(gt=0, le=10),
    "optimizer": OneOf("adam", "sgd"),
    "decay": Real(gt=0, le=1),
    "decay_steps": Integer(1, 10**9),
    "clip": Real(gt=0),
    "batch_size": Integer(1, 10**6),
    "n_steps": Integer(1, 10**9),
    "validation": ShareOrZero,
    "validate_every": Integer(1, 10**9),
    "patience": Integer(1, 10**9),
    "checkpoint": Text | None_,
    "seed": Seed,
}
"""Of all estimators that are trained by minibatches."""

SEQUENCE: Table = {
    "unit": OneOf("sru", "gru", "lstm"),
    "n_units": Integer(1, 100_000),
    "n_stats": Integer(1, 100_000),
    "n_recurrent": Integer(0, 100_000),
    "scales": ListOf(Real(ge=0, lt=1), 1),
    "activation": OneOf("relu", "tanh"),
    "dropout": ShareOrZero,
    "max_length": Integer(1) | None_,
    **TRAINING,
}

TABLES: dict[str, Table] = {"SequenceRegressor": SEQUENCE, "SequenceClassifier": SEQUENCE}
