"""Flips of single bits in every file of stores, models and registries: found, or without effect.

Run as ``python -m tests.chaos.flips --flips 14000``; `make chaos` does a seeded part of it.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bagbasis import (
    BagbasisError,
    BagStore,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    ProjectionEmbedding,
    RandomFourierFeatures,
    TripleBasisRegressor,
    as_bags,
    load_model,
)
from bagbasis.operations import Registry
from tests.chaos.accounting import Campaign, Tally, Wrong

DTYPES = ("float32", "float64", "uint16", "uint8")
HARMLESS = ("found", "same")
FLIPS = 40  # of a trial of `make chaos`
RNG = np.random.default_rng(0)
BAGS = [RNG.random((n, 2)) for n in (5, 30, 1, 40, 16, 8, 3, 12, 7, 9, 4, 21)]
Y = np.array([bag.mean() for bag in BAGS])


class Damaged(BagbasisError):
    """A registry says that something in it is damaged."""


@dataclass(frozen=True)
class Subject:
    """Files in a folder, and what a reader gets from them.

    Attributes
    ----------
    name : str
    url : Path
        The folder.
    read : callable
        Returns all that a reader gets, and raises where something is damaged.
    """

    name: str
    url: Path
    read: Callable[[Path], Any]

    def files(self) -> list[Path]:
        """Return all files that hold something."""
        files = [path for path in sorted(self.url.rglob("*")) if path.is_file()]
        return [path for path in files if path.stat().st_size and path.suffix != ".lock"]


def make_store(url: Path, dtype: str) -> Subject:
    """Make a store with classes, responses and changes, in several objects."""
    rng = np.random.default_rng(0)
    store = BagStore.create(
        url,
        2,
        target_names=["y", "c"],
        box=[(0, 255)] * 2,
        response_dims=1,
        response_box=[(0, 255)],
        class_names={"c": ["red", "blue"]},
        dtype=dtype,
        chunk_points=2,
    )
    sizes = (5, 30, 1, 40, 16, 8)
    bags = [rng.integers(0, 255, (n, 2)).astype(float) for n in sizes]
    responses = [rng.integers(0, 255, (3, 1)).astype(float) for _ in sizes]
    targets = {"y": rng.normal(size=6), "c": rng.integers(0, 2, 6)}
    store.append(bags, targets, responses=responses)
    store.relabel("y", {1: 2.0})
    store.remove([3])
    return Subject(f"store of {dtype}", url, read_store)


def read_store(url: Path) -> Any:
    """Return all of a store that verifies, as bytes and texts."""
    store = BagStore.open(url)
    store.verify()
    bags, responses = store.read(), store.responses()
    arrays = (bags.points, bags.offsets, responses.points, responses.offsets, store.targets())
    return [repr(store.meta), store.ids().tolist(), *(a.tobytes() for a in arrays)]


def fitted(kind: type) -> Any:
    """Return a small model with everything that models of its kind may have."""
    parts = _parts()
    if kind is TripleBasisRegressor:
        return kind(*parts, response_embedding=ProjectionEmbedding(n_per_dim=3), alpha=0.1).fit(
            BAGS, [bag[:, :1] for bag in BAGS]
        )
    if kind is DoubleBasisClassifier:
        classes = np.where(np.median(Y) < Y, "much", "little")
        return kind(*parts, alpha=0.1).fit(BAGS, classes)
    return kind(*parts, alpha=0.1, uncertainty=True).fit(BAGS, Y, holdout=0.3)


def read_model(url: Path) -> Any:
    """Return what a model says of itself and of some bags."""
    return said_by(load_model(url))


def said_by(model: Any) -> Any:
    """Return parameters, report and predictions, to the last bit."""
    answers = model.model_.predicted(as_bags(BAGS)).arrays()
    calibration = model.model_.calibration
    more = [] if calibration is None else [calibration.errors.tobytes()]
    if model.model_.posterior is not None:
        more.append(model.predict(BAGS, return_std=True)[1].tobytes())
    arrays = {name: np.asarray(array).tobytes() for name, array in answers.items()}
    return [repr(model.get_params()), repr(model.model_.report), arrays, *more]


def make_model(url: Path, kind: type) -> Subject:
    """Save a model."""
    fitted(kind).save(url)
    return Subject(kind.__name__, url, read_model)


def make_registry(url: Path) -> Subject:
    """Make a registry of two models, each of which was champion."""
    registry = Registry(url)
    for alpha in (0.1, 1.0):
        model = DoubleBasisRegressor(*_parts(), alpha=alpha).fit(BAGS, Y)
        registry.promote(registry.register(model, report={"alpha": alpha}))
    return Subject("registry", url, read_registry)


def _parts() -> Any:
    return ProjectionEmbedding(n_per_dim=3), RandomFourierFeatures(n_features=8)


def read_registry(url: Path) -> Any:
    """Return champion, history and records, and what all models say."""
    registry = Registry(url)
    records = registry.list()
    damages = [record.damage for record in records if record.damage is not None]
    if damages:
        raise Damaged(damages[0])
    models = [said_by(load_model(record.url)) for record in records]
    return [registry.current(), repr(registry.history()), repr(records), models]


def subjects(folder: Path) -> list[Subject]:
    """Make stores of every dtype, models of every kind, and a registry."""
    kinds = (DoubleBasisRegressor, DoubleBasisClassifier, TripleBasisRegressor)
    return [
        *(make_store(folder / f"{dtype}.zarr", dtype) for dtype in DTYPES),
        *(make_model(folder / f"{kind.__name__}.zarr", kind) for kind in kinds),
        make_registry(folder / "registry"),
    ]


def flip(subject: Subject, n_flips: int, seed: int) -> Counter[str]:
    """Flip bits of random files, one at a time; return how many flips ended in which way.

    "found" is an error of ours, "same" that all is read as before. Whatever else happens is a
    fault: "silent" numbers, or a "raw" error.
    """
    rng, ends = random.Random(seed), Counter[str]()
    files = subject.files()
    metadata = [path for path in files if path.suffix == ".json"]
    expected = subject.read(subject.url)
    for _ in range(n_flips):
        # half of the flips in metadata, whose few bytes say most
        path = rng.choice(metadata if rng.random() < 0.5 else files)
        whole = path.read_bytes()
        at, bit = rng.randrange(len(whole)), rng.randrange(8)
        damaged = bytearray(whole)
        damaged[at] ^= 1 << bit
        path.write_bytes(damaged)
        try:
            try:
                end = "same" if subject.read(subject.url) == expected else "silent"
            except BagbasisError:
                end = "found"
            except Exception as error:
                end = f"raw {type(error).__name__}"
        finally:
            path.write_bytes(whole)
        ends[end] += 1
        if end not in HARMLESS:
            place = path.relative_to(subject.url)
            print(f"{end}: {subject.name}, {place}, byte {at}, bit {bit}", flush=True)
    return ends


class Flips(Campaign):
    """Trials of some flips each."""

    name = "flips"

    def begin(self, folder: Path) -> None:
        self._subjects = subjects(folder)

    def trial(self, rng: np.random.Generator, folder: Path, tally: Tally) -> None:
        subject = self._subjects[rng.integers(len(self._subjects))]
        ends = flip(subject, FLIPS, int(rng.integers(2**31)))
        tally.kills += ends.total()
        faults = {end: n for end, n in ends.items() if end not in HARMLESS}
        if faults:
            raise Wrong(f"{subject.name}: flips of single bits: {faults}")


CAMPAIGNS = (Flips(),)


def main() -> int:
    """Flip bits of every subject; 1 where a flip was neither found nor harmless."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flips", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    total = Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        made = subjects(Path(folder))
        for subject in made:
            ends = flip(subject, options.flips // len(made), options.seed)
            print(subject.name, dict(ends), flush=True)
            total += ends
    print("all", dict(total), flush=True)
    return int(bool(set(total) - set(HARMLESS)))


if __name__ == "__main__":
    raise SystemExit(main())
