"""Flips of single bits in every file of a store: each is found, or changes nothing.

Run as ``python -m tests.chaos.flips --flips 14000``.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from bagbasis import BagStore
from bagbasis.core.errors import BagbasisError

DTYPES = ("float32", "float64", "uint16", "uint8")
ROOT = "zarr.json"


def make(url: Path, dtype: str) -> BagStore:
    """Make a store with classes, responses and changes, in several objects."""
    rng = np.random.default_rng(0)
    store = BagStore.create(
        url,
        2,
        ["y", "c"],
        [(0, 255)] * 2,
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
    return store.remove([3])


def content(url: Path) -> list[Any]:
    """Return all that a reader gets from a store, as bytes and texts."""
    store = BagStore.open(url)
    bags, responses = store.read(), store.responses()
    arrays = (bags.points, bags.offsets, responses.points, responses.offsets, store.targets())
    return [repr(store.meta), store.ids().tolist(), *(a.tobytes() for a in arrays)]


def flip(store: BagStore, n_flips: int, seed: int) -> Counter[str]:
    """Flip bits of random files, one at a time; return how many flips ended in which way.

    "found" is an error of ours from `verify`, "same" a store that verifies and reads as before.
    Whatever else happens is a fault: "silent" numbers, or a "raw" error.
    """
    url, rng, ends = Path(store.url), random.Random(seed), Counter[str]()
    files = [path for path in sorted(url.rglob("*")) if path.is_file() and path.stat().st_size]
    files = [path for path in files if not path.name.endswith(".lock")]
    expected = content(url)
    for _ in range(n_flips):
        # half of the flips in the root, whose few bytes say most
        path = url / ROOT if rng.random() < 0.5 else rng.choice(files)
        whole = path.read_bytes()
        at, bit = rng.randrange(len(whole)), rng.randrange(8)
        damaged = bytearray(whole)
        damaged[at] ^= 1 << bit
        path.write_bytes(damaged)
        try:
            try:
                BagStore.open(url).verify()
                end = "same" if content(url) == expected else "silent"
            except BagbasisError:
                end = "found"
            except Exception as error:
                end = f"raw {type(error).__name__}"
        finally:
            path.write_bytes(whole)
        ends[end] += 1
        if end not in ("found", "same"):
            print(f"{end}: {path.relative_to(url)}, byte {at}, bit {bit}", flush=True)
    return ends


def main() -> int:
    """Flip bits of stores of every dtype; 1 where a flip was neither found nor harmless."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flips", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    total = Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        for dtype in DTYPES:
            store = make(Path(folder, f"{dtype}.zarr"), dtype)
            ends = flip(store, options.flips // len(DTYPES), options.seed)
            print(dtype, dict(ends), flush=True)
            total += ends
    print("all", dict(total), flush=True)
    return int(bool(set(total) - {"found", "same"}))


if __name__ == "__main__":
    raise SystemExit(main())
