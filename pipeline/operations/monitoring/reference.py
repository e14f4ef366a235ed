"""The summary of a reference that a `DriftDetector` keeps, and its file format."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

import numpy as np

from ...core.arrays import Floats
from ...core.errors import BagbasisError, ModelError
from ...core.saved import Format, newer_error, read_saved
from ...core.versions import version
from ...data.storage.files import reading, writing
from ...data.storage.urls import normalize_url
from ...embeddings.registered import spec_from_dict, spec_to_dict
from ...hypotheses.kernels.scales import Scales
from ...models.fitting.partials import read_arrays, write_arrays
from .watched import Watched

_T = TypeVar("_T")

DETECTOR_FORMAT = Format("drift detector")
_ARRAYS = ("unit", "rows", "fixed", "blocks", "sizes")


@dataclass(frozen=True, eq=False)
class Reference:
    """Fixed-size summary of a reference.

    Attributes
    ----------
    watched : Watched
        Kind, columns and embedding of the data.
    scales : Scales
        Kernels and bandwidths of the test.
    unit : shape (n_dims,)
        Divisor of each column of the rows.
    rows : shape (n_kept, d)
        Single rows, which permutations may move.
    fixed : shape (K, 2 R)
        Sums of features over the rows on which the bandwidths were chosen. Permutations do not move
        these rows.
    n_fixed : int
        Number of rows in ``fixed``.
    blocks : shape (K, n_buckets, 2 R)
        Sums of features of all other rows, per bucket.
    sizes : shape (n_buckets,)
        Number of rows of each bucket.
    length : int
        Number of rows in a bucket; 1 if all rows are kept and there are no buckets.
    """

    watched: Watched
    scales: Scales
    unit: Floats
    rows: Floats
    fixed: Floats
    n_fixed: int
    blocks: Floats
    sizes: Floats
    length: int

    @property
    def n_rows(self) -> int:
        """Number of rows of the reference."""
        others = len(self.rows) if self.length == 1 else int(self.sizes.sum())
        return self.n_fixed + others


def write_reference(
    url: str | os.PathLike[str], reference: Reference, params: dict[str, Any], overwrite: bool
) -> None:
    """Write a reference and the detector's parameters to one file, atomically.

    Raises
    ------
    ModelError
        If something exists at the URL that must not be replaced.
    StoreError
        If the URL cannot be written.
    """
    url = normalize_url(url)
    _check_place(url, overwrite)
    spec = reference.watched.spec
    meta = {
        "kind": DETECTOR_FORMAT.kind,
        DETECTOR_FORMAT.key: DETECTOR_FORMAT.version,
        "version": version("bagbasis"),
        "params": params,
        "watched": {
            **asdict(replace(reference.watched, spec=None)),
            "spec": None if spec is None else spec_to_dict(spec),
        },
        "scales": reference.scales.to_dict(),
        "n_fixed": reference.n_fixed,
        "length": reference.length,
    }
    arrays = {
        "meta": np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8),
        **{name: getattr(reference, name) for name in _ARRAYS},
        **({} if spec is None else {f"spec.{k}": v for k, v in spec.arrays().items()}),
    }
    with writing(url) as path:
        write_arrays(path, arrays, {})


def read_reference(
    url: str | os.PathLike[str], make: Callable[[Reference, dict[str, Any]], _T]
) -> _T:
    """Read a file of `write_reference` and return ``make(reference, parameters)``.

    Raises
    ------
    ModelError
        If no detector exists at the URL, or the file is damaged or of an unsupported format
        version.
    StoreError
        If the storage cannot be read.
    """
    url = normalize_url(url)
    meta, arrays = _read(url)
    meta = DETECTOR_FORMAT.strip(meta, url, ModelError)
    try:
        own = {k.removeprefix("spec."): v for k, v in arrays.items() if k.startswith("spec.")}
        watched = dict(meta["watched"])
        if watched["spec"] is not None:
            watched["spec"] = spec_from_dict(watched["spec"], own or None)
        watched["columns"] = tuple(watched["columns"])
        reference = Reference(
            watched=Watched(**watched),
            scales=read_saved(Scales, meta["scales"]),
            **{name: arrays[name] for name in _ARRAYS},
            n_fixed=meta["n_fixed"],
            length=meta["length"],
        )
        return make(reference, meta["params"])
    except (AttributeError, TypeError, KeyError, ValueError, BagbasisError) as error:
        newer = newer_error(error, meta)
        reason = newer or f"a damaged drift detector ({type(error).__name__}: {error})"
        raise ModelError(f"{url}: {reason}") from newer or error


def _check_place(url: str, overwrite: bool) -> None:
    try:
        with reading(url) as path:
            is_there = path.exists()
    except FileNotFoundError:
        return
    if not is_there:
        return
    _read(url)  # raises if the file is not a detector
    if not overwrite:
        raise ModelError(f"{url}: a detector is there; say overwrite=True to replace it")


def _read(url: str) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        with reading(url) as path:
            arrays = read_arrays(path)
        meta = json.loads(arrays.pop("meta").tobytes())
        if meta["kind"] != DETECTOR_FORMAT.kind:
            raise KeyError("kind")
    except FileNotFoundError as error:
        raise ModelError(f"{url}: no drift detector there") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelError(f"{url}: not a drift detector, or a damaged one: {error}") from error
    return meta, arrays
