"""A driver: ``python -m tests.execution.fitting STORE CHECKPOINTS OUT CLUSTER`` fits and leaves
coefficients and counts in OUT; what goes wrong is the text of the file instead."""

from __future__ import annotations

import json
import os
import sys
from contextlib import nullcontext
from pathlib import Path

from bagbasis import (
    BagbasisError,
    BagStore,
    DoubleBasisRegressor,
    ProjectionEmbedding,
    RandomFourierFeatures,
    connect as connected,
)
from tests.execution.logged import LoggedBags, checkpoints, many_tasks
from tests.oracles.labelled import labelled
from tests.oracles.planned import chosen_features, posed


def regressor() -> DoubleBasisRegressor:
    return DoubleBasisRegressor(
        ProjectionEmbedding(n_per_dim=4),
        RandomFourierFeatures(n_features=64, scale=1.0),
        alpha="validation",
    )


def fitted(url, folder):
    """The model of a store, with checkpoints every four of 32 logged tasks."""
    bags = labelled(BagStore.open(url), kind=LoggedBags)
    model = regressor()
    features = chosen_features(model, posed(model, bags))
    with many_tasks(), checkpoints(folder, bags.data, features) as saved:
        return model.fit(bags, holdout=0.1, checkpoints=saved)


def main(url: str, folder: str, out: str, cluster: str) -> None:
    with nullcontext() if cluster == "none" else connected(cluster):
        try:
            model = fitted(url, folder)
            messages = {"coef": model.coef_.tolist(), **model.report_}
        except BagbasisError as error:
            messages = {"error": f"{type(error).__name__}: {error}"}
        partial = Path(f"{out}.{os.getpid()}")
        partial.write_text(json.dumps(messages))
        partial.replace(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
