"""What a retraining can be given, by class; each class shows its table as ``PARAMETERS``."""

from __future__ import annotations

from .checks import Table
from .constraints import Instance, Integer, None_, OneOf, Open, Real, Share, Text
from .containers import ListOf, MappingOf
from .hypotheses import DRIFT_STATISTIC, PERMUTATIONS

MOST_DAYS = 36_525  # a hundred years; Python's dates end

TABLES: dict[str, Table] = {
    "Window": {
        "bags": Integer(1) | None_,
        "days": Real(gt=0, le=MOST_DAYS) | None_,
    },
    "DriftGate": {
        "alpha": Share,
        "horizon": Integer(1),
        "least_effect": Real(ge=0),
        "n_bags": Integer(2),
        "n_permutations": PERMUTATIONS,
        "action": OneOf("report", "refuse"),
        "statistic": DRIFT_STATISTIC | None_,
        "gate": OneOf("permutation", "e_process"),
    },
    "Retraining": {
        "data_url": Text,
        "registry_url": Text,
        "estimator": Instance("DoubleBasis"),
        "state_url": Text | None_,
        "target": Text | ListOf(Text) | None_,
        "holdout": Share | MappingOf(Text, Open()),
        "window": Instance("Window"),
        "evaluate_bags": Integer(1),
        "tolerance": Real(ge=0),
        "min_new_bags": Integer(1),
        "drift": Instance("DriftGate"),
        "recompute_every": Integer(1),
        "checkpoint_url": Text | None_,
        "checkpoint_seconds": Real(gt=0),
        "settings": MappingOf(Text, Open()),
        "sample_weight": Text | None_,
    },
}
