"""One million bags on this machine's workers: generate, fit, predict; times and peak memory.

``python -m tests.benchmarks.million [EMBEDDING ...]``: names as in ``--set embedding=``; or
``python -m tests.benchmarks.million test``: a million bags of 20 points against a million;
``python -m tests.benchmarks.million drift``: half a million rows of 32 columns against as many;
``python -m tests.benchmarks.million many``: 65,536 features by conjugate gradients against 4,096;
``python -m tests.benchmarks.million default``: a million bags of 16 to 64 points, and the default.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from shutil import rmtree

import numpy as np
from rich.console import Console
from rich.table import Table

from bagbasis import (
    Bags,
    BagStore,
    DoubleBasisRegressor,
    ProjectionEmbedding,
    RandomFourierFeatures,
    connect as open_cluster,
)
from bagbasis.datasets import generate, make_dataset
from bagbasis.hypotheses import two_sample_test
from bagbasis.jobs.configs.sections import build, embedding_section
from bagbasis.models import write_predictions
from bagbasis.operations import DriftDetector
from tests.oracles.labelled import labelled
from tests.oracles.planned import plan_of
from tests.passes import current_client

from .data import OUTPUT, mixture_store, peak_mib

N_BAGS, N_FEATURES = 1_000_000, 2048
N_ROWS, N_COLUMNS = 500_000, 32  # of a detector's reference, and of new data


def main(names: list[str], n_workers: int = 2) -> None:
    OUTPUT.mkdir(exist_ok=True)
    url = OUTPUT / "million.zarr"
    columns: dict[str, list[str]] = {}
    with open_cluster("local", n_workers=n_workers) as client:
        clock = time.perf_counter()
        generate(make_dataset("gmm_components", seed=1), url, n_bags=N_BAGS, overwrite=True)
        generated = time.perf_counter() - clock
        store = BagStore.open(url)
        for name in names:
            client.restart()
            columns[name] = measured(store, name)
    table = Table(title=f"{N_BAGS:,} bags of 200 points in R², D = {N_FEATURES:,}")
    table.add_column("what")
    for name in names:
        table.add_column(name)
    for i, what in enumerate(("fit", "of that", "predict", "peak memory of the workers", "tasks")):
        table.add_row(what, *[column[i] for column in columns.values()])
    console = Console()
    console.print(table)
    console.print(f"generate {generated:.1f} s; {n_workers} workers on {os.cpu_count()} cores")


def measured(store: BagStore, name: str) -> list[str]:
    """Times and memory of one embedding's fit and predictions, as text."""
    client = current_client()
    clock = time.perf_counter()
    model = DoubleBasisRegressor(
        build(embedding_section(name)), RandomFourierFeatures(n_features=N_FEATURES), alpha="gcv"
    ).fit(store, holdout=0.01)
    fitted = time.perf_counter()
    where = OUTPUT / f"million-{name}.parquet"
    write_predictions(model, store, where, format="parquet", overwrite=True)
    predicted = time.perf_counter()
    peaks = client.run(peak_mib)
    return [
        f"{fitted - clock:.1f} s",
        ", ".join(f"{stage} {taken:.1f} s" for stage, taken in model.report_["seconds"].items()),
        f"{predicted - fitted:.1f} s",
        " + ".join(f"{peak:.0f} MiB" for peak in peaks.values()),
        str(len(tasks(store, model))),
    ]


def many_features() -> None:
    """Fit with 4,096 features exactly, then with 65,536 by conjugate gradients: over half an hour.

    Run again after a kill, the second fit goes on where its checkpoint stands.
    """
    with open_cluster("local", n_workers=2, memory_limit="1.6GiB") as client:
        store = mixture_store(N_BAGS)
        data = make_dataset("gmm_components", seed=99)
        test = generate(data, OUTPUT / "gmm-test.zarr", n_bags=10_000)
        counts = np.ravel(test.targets())
        alpha: float | str = "gcv"
        for n_features, solver in ((4_096, "cholesky"), (65_536, "cg")):
            clock, cpu = time.perf_counter(), sum(client.run(time.process_time).values())
            model = DoubleBasisRegressor(
                ProjectionEmbedding(),
                RandomFourierFeatures(n_features=n_features, scale=1.0),
                alpha=alpha,
                solver=solver,
            ).fit(store, checkpoints=OUTPUT / "checkpoints")
            taken = time.perf_counter() - clock
            used = sum(client.run(time.process_time).values()) - cpu
            alpha = float(model.alpha_)  # of 4,096 features, for both
            peak = sum(client.run(peak_mib).values()) + peak_mib()
            error = np.sqrt(np.mean((model.predict(test).compute() - counts) ** 2))
            print(
                f"D = {n_features:,}: {taken:.0f} s, {used:.0f} s of the workers' CPU; "
                f"peaks add up to {peak:.0f} MiB; RMSE {error:.3f}"
            )


def compare() -> None:
    """Two-sample tests of two stores that do not differ, in this process: time and memory."""
    stores = []
    for seed in (1, 2):
        rng, step = np.random.default_rng(seed), N_BAGS // 10
        OUTPUT.mkdir(exist_ok=True)
        rmtree(OUTPUT / f"tested-{seed}.zarr", ignore_errors=True)
        stores.append(BagStore.create(OUTPUT / f"tested-{seed}.zarr", 2))
        for start in range(0, N_BAGS, step):
            points = rng.standard_normal((step, 20, 2)) + 0.5 * rng.standard_normal((step, 1, 2))
            stores[-1].append(list(points), ids=np.arange(start, start + step))
    for statistic in (None, "fourier", "me"):
        with seconds_of(f"{statistic or 'default'}"):
            two_sample_test(*stores, statistic=statistic)


def default(n_bags: int = N_BAGS) -> None:
    """Fit the default, in this process: what choosing adds to the fit that was chosen."""
    OUTPUT.mkdir(exist_ok=True)
    url, rng, step = OUTPUT / f"default-{n_bags}.zarr", np.random.default_rng(0), n_bags // 20
    store = BagStore.create(
        url, 2, target_names=["y"], box=[(-8, 8)] * 2, dtype="float32", overwrite=True
    )
    with seconds_of(f"{n_bags:,} bags of 16 to 64 points"):
        for _ in range(0, n_bags, step):
            sizes = rng.integers(16, 65, step)
            spread = rng.uniform(0.3, 2, step)
            points = rng.standard_normal((sizes.sum(), 2), dtype=np.float32)
            points[:, 0] *= np.repeat(spread, sizes)
            offsets = np.concatenate([[0], np.cumsum(sizes)])
            store = store.append(Bags(points, offsets), np.log(spread)[:, None])
    cpu = time.process_time()
    with seconds_of("fit"):
        model = DoubleBasisRegressor().fit(store, target="y")
    whole, choice = time.process_time() - cpu, model.report_["choice"]
    rest = whole - choice["seconds"]
    print(f"{choice['chosen']}: {whole:.1f} CPU seconds, {rest:.1f} without the choice")
    print(f"{whole / rest:.3f} times the fit of what was chosen")
    rmtree(url)


def watch() -> None:
    """Keep a reference of half a million rows, and test as many new ones, also against the file."""
    rng = np.random.default_rng(0)
    reference, new = (rng.standard_normal((N_ROWS, N_COLUMNS), dtype=np.float32) for _ in range(2))
    size = f"{N_ROWS:,} rows of {N_COLUMNS} columns"
    OUTPUT.mkdir(exist_ok=True)
    with seconds_of(f"fit and test, {size} each"):
        detector = DriftDetector().fit(reference)
        p = detector.test(new).p_value
    detector.save(OUTPUT / "detector.npz", overwrite=True)
    del reference, detector
    with seconds_of(f"load and test {size}"):
        assert DriftDetector.load(OUTPUT / "detector.npz").test(new).p_value == p


@contextmanager
def seconds_of(what: str) -> Iterator[None]:
    """Print what the block took in this process: seconds, CPU seconds, and the peak so far."""
    clock, cpu = time.perf_counter(), time.process_time()
    yield
    taken, used = time.perf_counter() - clock, time.process_time() - cpu
    print(f"{what}: {taken:.0f} s, {used:.1f} of CPU; {peak_mib():.0f} MiB", flush=True)


def tasks(store, model):
    """The ranges of the fit's tasks."""
    return plan_of(labelled(store, names=store.target_names), model.features_).ranges


if __name__ == "__main__":
    if sys.argv[1:] == ["test"]:
        compare()
    elif sys.argv[1:] == ["drift"]:
        watch()
    elif sys.argv[1:] == ["default"]:
        default()
    elif sys.argv[1:] == ["many"]:
        many_features()
    else:
        main(sys.argv[1:] or ["projection", "js"])
