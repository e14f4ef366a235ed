"""One million bags on this machine's workers: generate, fit, predict; times and peak memory."""

from __future__ import annotations

import os
import sys
import time

from rich.console import Console
from rich.table import Table

from pipeline import BagStore, DoubleBasisRegressor, ProjectionEmbedding, RandomFourierFeatures
from pipeline import connect as open_cluster
from pipeline.datasets import generate, make_dataset
from pipeline.models import write_predictions
from pipeline.regression.accumulate import task_ranges

from .data import OUTPUT, peak_mib

N_BAGS, N_FEATURES = 1_000_000, 2048


def main(n_workers: int) -> None:
    OUTPUT.mkdir(exist_ok=True)
    train, predictions = OUTPUT / "million.zarr", OUTPUT / "million-predictions.parquet"
    seconds: dict[str, float] = {}
    with open_cluster("local", n_workers=n_workers) as client:
        clock = time.perf_counter()
        generate(make_dataset("gmm_components", seed=1), train, N_BAGS, overwrite=True)
        seconds["generate"] = time.perf_counter() - clock
        store = BagStore.open(train)
        clock = time.perf_counter()
        model = DoubleBasisRegressor(
            ProjectionEmbedding(n_per_dim=10), RandomFourierFeatures(N_FEATURES), alpha="gcv"
        ).fit(store, holdout=0.01)
        seconds["fit"] = time.perf_counter() - clock
        clock = time.perf_counter()
        write_predictions(model, store, predictions, format="parquet", overwrite=True)
        seconds["predict"] = time.perf_counter() - clock
        peaks = client.run(peak_mib)
    table = Table(
        title=f"{N_BAGS:,} bags of 200 points in R², 10² coefficients, D = {N_FEATURES:,}"
    )
    table.add_column("what")
    table.add_column("measured")
    for stage, taken in seconds.items():
        table.add_row(stage, f"{taken:.1f} s")
    table.add_row("fit, of that", ", ".join(f"{k} {v:.1f} s" for k, v in _stages(model).items()))
    table.add_row("peak memory of the workers", " + ".join(f"{p:.0f} MiB" for p in peaks.values()))
    table.add_row(
        "tasks of the fit", str(len(task_ranges(N_BAGS, store.n_points, model.features_)))
    )
    table.add_row("workers, cores", f"{n_workers}, {os.cpu_count()}")
    Console().print(table)


def _stages(model: DoubleBasisRegressor) -> dict[str, float]:
    return dict(model.report_["seconds"])


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
