"""The jobs that are killed: what is there before, and how a user runs each again.

Every function here runs in a child.
"""

from __future__ import annotations

import fcntl
import io
import os
import shutil
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bagbasis import BagStore, StoreError, merge_stores
from bagbasis.datasets import generate
from bagbasis.jobs.commands.retrain import CHAMPION_KEPT
from bagbasis.operations import Registry
from tests.chaos.children import tell
from tests.chaos.contents import (
    Place,
    bags_of,
    changes_of,
    line_of,
    model_of,
    predictions_at,
    store_of,
)
from tests.data.store.processes import BATCH, append_batch
from tests.datasets.generating import SHIFTED
from tests.jobs.running import bags, settings
from tests.operations.retraining.problems import create, estimator, grow
from tests.oracles.labelled import labelled_bags
from tests.passes import pass_limits

N_BAGS = 120
N_BATCHES = 4
N_CHANGES = 7
GROWTH = (80, 110, 140)  # bags of a growing store, round by round
CLUSTER = "CHAOS_CLUSTER"  # in a child's environment: the profile that its jobs run on
REFUSALS = ("OSError", "bagbasis.core.errors.")  # how errors of ours begin that a child ends with
ALONE = ("create", "promote")  # jobs of steps that each build on the one before
FITTED = {
    "model__embedding__n_per_dim": 3,
    "model__random_features__n_features": 16,
    "holdout": 0.2,
}


@dataclass(frozen=True)
class Job:
    """A job, as `Killed` needs it.

    Attributes
    ----------
    run : callable
        Does what is missing; run again after a kill until it returns.
    sweep : callable
        Next step of people with the same things: it removes what killed jobs left there.
    keeps : bool
        Whether what there was stays until what comes is there; a store that is overwritten is
        empty meanwhile.
    """

    name: str
    prepare: Callable[[Place], None]
    run: Callable[[Place], None]
    look: Callable[[Place], Any]
    sweep: Callable[[Place], None]
    keeps: bool = True
    grounds: tuple[str, ...] = ("files", "objects")


class RawError(Exception):
    """An error of a job that bagbasis does not raise."""


def job(name: str, **values: Any) -> None:
    """Run ``bags NAME``, where the test says on a cluster."""
    cluster = ("--cluster", os.environ[CLUSTER]) if CLUSTER in os.environ else ()
    with pass_limits(small_task_seconds=1e-9, small_tasks=4):
        command(name, *cluster, *settings(**values))


def command(*args: str) -> None:
    """Run ``bags ARGS``; where the result is refused because it is there, it was done before."""
    result = bags(*args)
    print(result.output)
    if result.exit_code in (0, CHAMPION_KEPT) or "exists already" in result.stderr:
        return
    is_ours = result.exit_code in (1, 4) and "--debug shows where" not in result.stderr
    message = result.stderr.strip().splitlines() or [repr(result.exception)]
    raise (OSError if is_ours else RawError)(message[-1])


# ------------------------------------------------------------------ stores


def nothing(place: Place) -> None:
    """Nothing is there before, or swept after."""


def empty_store(place: Place) -> None:
    BagStore.create(place.store, 2, target_names=["i"], response_dims=3)


def create_and_append(place: Place) -> None:
    """As a user does who knows what a refusal means."""
    try:
        done = BagStore.open(place.store).n_bags > 0
    except StoreError:
        done = False
    if not done:
        empty_store(place)
        append_batch(BagStore.open(place.store))


def append(place: Place) -> None:
    store = BagStore.open(place.store)
    while store.n_bags < BATCH * N_BATCHES:
        append_batch(store)
        tell(store.n_bags)


def append_one(place: Place) -> None:
    append_batch(BagStore.open(place.store))


def overwrite(place: Place) -> None:
    grow(BagStore.create(place.store, 2, target_names=["y"], dtype=np.float64, overwrite=True), 20)


def write_tables(place: Place) -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 40, 300)
    points = pd.DataFrame({"bag": rows, "x": rng.random(300), "y": rng.random(300)})
    points.to_csv(place.local / "points.csv", index=False)
    labels = pd.DataFrame({"bag": np.unique(rows)})
    labels.assign(label=labels.bag / 7).to_csv(place.local / "labels.csv", index=False)


def ingest(place: Place, **more: Any) -> None:
    job(
        "ingest",
        points=place.local / "points.csv",
        target_table=place.local / "labels.csv",
        url=place.store,
        id_column="bag",
        coordinates="[x,y]",
        targets="[label]",
        report=place.local / "ingest.json",
        **more,
    )


def generate_bags(place: Place, **more: Any) -> None:
    """Block by block, each with a commit of its own."""
    generate(SHIFTED, place.store, n_bags=3 * SHIFTED.block_bags - 1, commit_seconds=0, **more)


def change(place: Place) -> None:
    """Its two halves leave the same bags: the second deletes what the first has removed."""
    BagStore.open(place.store).remove(range(10, 50)).compact()


def relabel(place: Place) -> None:
    BagStore.open(place.store).relabel("y", {i: float(i) for i in range(0, N_BAGS, 3)})


def two_stores(place: Place) -> None:
    for name, first in (("one.zarr", 0), ("other.zarr", N_BAGS)):
        bags, y = labelled_bags(N_BAGS, seed=first, most=12)
        ids = range(first, first + N_BAGS)
        create(place.local / name).append(bags, y, ids=ids).remove(ids[:7])


def merge(place: Place, overwrite: bool = False) -> None:
    try:
        merge_stores(
            [place.local / "one.zarr", place.local / "other.zarr"],
            place.store,
            overwrite=overwrite,
        )
    except StoreError as error:
        if "exists already" not in str(error):
            raise


# ------------------------------------------------------------------ models


def labelled_store(place: Place) -> None:
    grow(create(place.store), N_BAGS)


def fit(place: Place, **more: Any) -> None:
    values = {"model_url": place.at("m.zarr"), "report": place.local / "fit.json", **FITTED, **more}
    checkpoints = {"checkpoints": place.at("checkpoints"), "checkpoint_seconds": 1e-6}
    job("fit", data_url=place.store, **checkpoints, **values)


def store_and_model(place: Place) -> None:
    labelled_store(place)
    fit(place)


def refit(place: Place) -> None:
    fit(place, overwrite="true", model__alpha=0.5)


def store_and_predictions(format: str) -> Callable[[Place], None]:
    def prepare(place: Place) -> None:
        """Predictions of another model."""
        store_and_model(place)
        predict(format)(place)
        refit(place)

    return prepare


def predict(format: str) -> Callable[[Place], None]:
    def run(place: Place) -> None:
        urls = {"model_url": place.at("m.zarr"), "output_url": place.at("p")}
        more = {"format": format, "overwrite": "true", "report": place.local / "p.json"}
        job("predict", data_url=place.store, **urls, **more)

    return run


def tune(place: Place, **more: Any) -> None:
    job(
        "tune",
        data_url=place.store,
        model_url=place.at("m.zarr"),
        out_dir=place.local / "tune",
        checkpoints=place.at("cache"),
        search__embedding="{n_per_dim: [2, 3]}",
        search__random_features__scale_multiplier="[0.7, 1.4]",
        search__first_bags=50,
        **FITTED,
        **more,
    )


# ------------------------------------------------------------------ lines of models


def three_models(place: Place) -> None:
    bags_in_memory = grow(create(place.local / "train.zarr"), 40)
    for alpha in (0.1, 0.2, 0.3):
        Registry(place.at("registry")).register(estimator(alpha=alpha).fit(bags_in_memory))


def change_champions(place: Place, n: int = N_CHANGES) -> None:
    """The i-th change is always the same one."""
    registry = Registry(place.at("registry"))
    names = [record.name for record in sorted(registry.list(), key=lambda record: record.name)]
    while (i := len(registry.history())) < n:
        if i % 3 == 2:
            command("models", "rollback", registry.url)
        else:
            command("models", "promote", registry.url, names[i % 3 + (i // 3) % 2])
        tell(i + 1)


def begun_line(place: Place) -> None:
    grow(create(place.store), GROWTH[0])
    retrain(place)


def retrain(place: Place) -> None:
    job(
        "retrain",
        data_url=place.store,
        registry_url=place.at("registry"),
        out_dir=place.at("rounds"),
        checkpoints=place.at("checkpoints"),
        checkpoint_seconds=1e-6,
        tolerance=10,
        drift__n_permutations=19,
        **FITTED,
    )


def retrain_as_it_grows(place: Place, growth: tuple[int, ...] = GROWTH[1:]) -> None:
    """A schedule: somebody appends, and a round is made; two callers do not append the same."""
    for n_bags in growth:
        with open(place.local / "growing.lock", "a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise OSError("another caller appends") from error
            store = BagStore.open(place.store)
            if store.n_bags < n_bags:
                grow(store, n_bags - store.n_bags)
        retrain(place)


JOBS = (
    Job("create", nothing, create_and_append, bags_of, append_one),
    Job("append", empty_store, append, bags_of, append_one),
    Job("overwrite", labelled_store, overwrite, bags_of, overwrite, keeps=False),
    Job("ingest", write_tables, ingest, bags_of, lambda p: ingest(p, overwrite="true")),
    Job(
        "generate",
        nothing,
        generate_bags,
        bags_of,
        lambda place: generate_bags(place, overwrite=True),
    ),
    Job("remove", labelled_store, change, store_of, change),
    Job("relabel", labelled_store, relabel, store_of, relabel),
    Job("merge", two_stores, merge, store_of, lambda place: merge(place, overwrite=True)),
    Job("fit", labelled_store, fit, model_of, refit),
    Job("refit", store_and_model, refit, model_of, refit),
    *(
        Job(
            f"predict-{format}",
            store_and_predictions(format),
            predict(format),
            lambda place, format=format: predictions_at(place.at("p"), format),
            predict(format),
            grounds=("files", "objects") if format == "zarr" else ("files",),
        )
        for format in ("zarr", "parquet")
    ),
    Job("tune", labelled_store, tune, model_of, lambda p: tune(p, overwrite="true")),
    Job(
        "promote",
        three_models,
        change_champions,
        changes_of,
        lambda place: change_champions(place, N_CHANGES + 2),
    ),
    Job(
        "retrain",
        begun_line,
        retrain_as_it_grows,
        line_of,
        lambda place: retrain_as_it_grows(place, (*GROWTH[1:], 160)),
    ),
)


def warm(folder: Path) -> None:
    """Do most of it once: kernels that this process has loaded are there in its children."""
    folder.mkdir()
    place = Place(str(folder), folder)
    with redirect_stdout(io.StringIO()):
        begun_line(place)
        fit(place)
        predict("zarr")(place)
    shutil.rmtree(folder)
