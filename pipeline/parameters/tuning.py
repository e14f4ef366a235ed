"""What a search can be given; its class shows the table as ``PARAMETERS``."""

from __future__ import annotations

from .checks import Table
from .constraints import Boolean, Instance, Integer, None_, OneOf, Real, Seed
from .containers import ListOf

TABLES: dict[str, Table] = {
    "Search": {
        "embeddings": ListOf(Instance("Embedding"), 1),
        "scale_multipliers": ListOf(Real(gt=0), 1),
        "eta": Integer(2),
        "first_bags": Integer(1) | None_,
        "seed": Seed,
        "linear": ListOf(Instance("Embedding")),
        "join": Boolean,
        "heads": ListOf(OneOf("ridge", "trees", "stack"), 1) | None_,
        "choose": Boolean,
    },
}
