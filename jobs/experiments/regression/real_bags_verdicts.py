"""Tables of `real-bags`: the default and `tune` compared with the best of five peers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from bagbasis.models.tuning.leads import Losses, difference

from ..kit.experiment import Result, ResultTable
from ..kit.frame import as_table, frame
from .real_bags_peers import BEST_OF, PEERS

CONSTANT, DEFAULT, TUNED = "constant", "default", "tune"
_OURS = (DEFAULT, TUNED)
COMPARED = (CONSTANT, *_OURS, *PEERS)
_BEHIND = "{}: behind, s.e."
_DIGITS = 9  # of a distance
WITHIN = (1, 2, 3)  # standard errors behind the best peer


def verdicts(results: Sequence[Result]) -> list[ResultTable]:
    """Return errors by set and method, and a count of the sets by distance to the best peer."""
    rows = frame(results)
    sets = pd.DataFrame([_of_set(part) for _, part in rows.groupby("data", sort=False)])
    sets = sets.sort_values(_BEHIND.format(DEFAULT), ascending=False)
    ranks = sets[[name for name in (*_OURS, *BEST_OF) if name in sets]].rank(axis=1).mean()
    seconds = (rows["seconds"] / rows["n_folds"]).groupby(rows["method"]).mean()
    counts = []
    for name in [name for name in _OURS if name in sets]:
        for use, part in sets.groupby("use"):
            behind = part[_BEHIND.format(name)]
            counts.append(
                {"method": name, "use": use, "sets": len(part), "ahead": (behind < 0).sum()}
                | {f"within {k} s.e.": (behind <= k).sum() for k in WITHIN}
                | {"furthest behind, s.e.": behind.max(), "mean rank": ranks[name]}
                | {"CPU seconds per fit": seconds[name]}
            )
    return [
        as_table("Errors of bags in folds not seen", sets),
        as_table("Sets by distance to the best peer", pd.DataFrame(counts)),
    ]


def _of_set(rows: pd.DataFrame) -> dict[str, Any]:
    """Return the row of a set. Distances are over the standard error of the paired difference."""
    first = rows.iloc[0]
    names = {"set": "data", "use": "use", "bags": "n_bags", "points": "n_points", "d": "n_dims"}
    losses = {}
    for method in COMPARED:
        part = rows[rows["method"] == method].dropna(subset=["losses"])
        if len(part):
            means, counts = np.mean([*part["losses"]], axis=0), np.array(part["counts"].iloc[0])
            losses[method] = Losses(np.arange(len(means)), means, counts)
    errors = {name: np.average(of.values, weights=of.weights) for name, of in losses.items()}
    best = min((name for name in BEST_OF if name in errors), key=errors.__getitem__)
    behind = {}
    for ours in [name for name in _OURS if name in losses]:
        gap, error = difference(losses[best], losses[ours])
        # rounded: equal means of equal losses in another order differ in their last digits
        behind[_BEHIND.format(ours)] = round(gap / error, _DIGITS) + 0.0 if error else 0.0
    return {**{k: first[v] for k, v in names.items()}, **errors, "best peer": best, **behind}
