"""``bags info``: describes a store or a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from ...configs.config import ReportConfig
from ...terminal import Terminal

if TYPE_CHECKING:
    from bagbasis import BagStore

    from ...pictures.model_part import JobModel

_MAX_CLASSES = 10  # classes whose names are shown; a report has all names
# Quantiles of the sizes of bags.
_QUANTILES = {"min": 0.0, "q05": 0.05, "median": 0.5, "q95": 0.95, "max": 1.0}


class Config(ReportConfig):
    """Keys of ``configs/info.yaml``."""

    url: str = Field(examples=["example-output/bags.zarr"], description="a store or a model")


def run(config: Config, console: Terminal) -> dict[str, Any]:
    """Describe what is at the URL; returns the report."""
    from bagbasis import BagStore
    from bagbasis.core.errors import ModelError, StoreError
    from bagbasis.data.storage.urls import normalize_url
    from bagbasis.data.storage.zarr_stores import exists

    from ..model_place import open_model

    model: JobModel | None = None
    url = normalize_url(config.url)
    if not exists(url):
        raise StoreError(f"{url}: not found")
    try:
        report = describe_store(BagStore.open(url))
    except StoreError as no_store:
        try:
            model = open_model(url)
            report = describe_model(model)
        except ModelError as no_model:
            raise StoreError(f"{no_store}; and as a model: {no_model}") from no_model
    if model is None or not _show_summary(url, model, console):
        console.values(url, with_short_classes(report))
    return report


def _show_summary(url: str, model: JobModel, console: Terminal) -> bool:
    """Print what was chosen, how good it is and what to do next; False for a network."""
    from bagbasis.models.base import DoubleBasis

    if not isinstance(model, DoubleBasis):
        return False
    following = {"next": f"bags evaluate {url} DATA, on bags with labels"}
    console.values(url, {"kind": type(model).__name__, **model.summary().rows, **following})
    console.line("All that is saved: bags info -v, or --json")
    console.details.values(url, with_short_classes(describe_model(model)))
    return True


def with_short_classes(report: dict[str, Any]) -> dict[str, Any]:
    """Return a report for the terminal: of many classes, the first names and their number."""
    shown = dict(report)
    if isinstance(shown.get("classes"), dict):
        shown["classes"] = {name: _short(values) for name, values in shown["classes"].items()}
    if "source" in shown:
        shown["source"] = _without_missing(shown["source"])
    return shown


def _without_missing(source: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return where a store comes from, without tables that were not given."""
    return {
        key: [item for item in value if item is not None] if isinstance(value, list) else value
        for key, value in (source or {}).items()
    }


def _short(names: Sequence[str]) -> Sequence[str] | str:
    if len(names) <= _MAX_CLASSES:
        return names
    return f"{len(names):,} classes: {', '.join(names[:3])}, …, {names[-1]}"


def describe_store(store: BagStore) -> dict[str, Any]:
    """Return counts, targets, box and source of a store; its points are not read."""
    return {
        "kind": "bag store",
        "n_bags": store.n_bags,
        "n_removed": store.n_removed,
        "n_points": store.n_points,
        "n_dims": store.n_dims,
        "points_per_bag": _size_range(store, store.offsets)[1],
        "dtype": str(store.stored_dtype),
        "ids": store.meta.id_kind,
        "targets": list(store.target_names),
        "labelled": _labelled(store),
        "classes": {name: list(values) for name, values in store.meta.class_names.items()},
        "box": store.box.bounds,
        **({"box_is_measured": True} if store.meta.is_measured else {}),
        **describe_responses(store),
        "chunk_points": store.chunk_points,
        "points_an_object": store.object_points,
        "source": store.meta.source,
    }


def describe_responses(store: BagStore) -> dict[str, Any]:
    """Return dimension, box, number and sizes of the responses; an empty dict without them."""
    if store.response_box is None:
        return {}
    n_bags, sizes = _size_range(store, store.response_offsets)
    return {
        "n_response_dims": store.response_dims,
        "bags_with_response": n_bags,
        "n_response_points": store.n_response_points,
        "points_per_response": sizes,
        "response_box": store.response_box.bounds,
    }


def describe_model(model: JobModel) -> dict[str, Any]:
    """Return what was fitted, to which data, and how large the model is."""
    from bagbasis.models.base import DoubleBasis

    if isinstance(model, DoubleBasis):
        embedding, second = model.features_.embedding, model.features_.second
        fitted = {
            "n_dims": model.features_.n_dims,
            "embedding": embedding.to_dict(),
            "n_coefficients": embedding.n_features,
            "random_features": second and second.to_dict(),
            **({} if model.baseline is None else {"baseline": model.baseline}),
            "n_features": model.features_.n_features,
            "alpha": model.alpha_,
        }
    else:
        params = {key: value for key, value in model.get_params().items() if key != "checkpoints"}
        fitted = {"n_dims": model.n_features_in_, **params}
    return {
        "kind": type(model).__name__,
        "targets": list(model.target_names_),
        **fitted,
        "holdout": model.holdout_,
        "fit": model.report_,
        "versions": model.versions_,
        **model.outcome_.describe(),
    }


def _size_range(store: BagStore, offsets: Callable[[int, int], Any]) -> tuple[int, dict[str, Any]]:
    """Return the number of bags with points, and the mean and quantiles of their sizes."""
    import numpy as np

    counts: Counter[int] = Counter()
    for start, stop in _blocks(store):
        ends = offsets(start, stop)
        sizes = ends[1:] - ends[:-1]
        lengths, times = np.unique(sizes[sizes > 0], return_counts=True)
        counts.update(dict(zip(lengths.tolist(), times.tolist(), strict=True)))
    if not counts:
        return 0, {}
    values = np.array(sorted(counts))
    up_to = np.cumsum([counts[n] for n in values.tolist()])
    n_bags, n_points = int(up_to[-1]), sum(n * count for n, count in counts.items())
    at = {name: values[np.searchsorted(up_to, q * n_bags)] for name, q in _QUANTILES.items()}
    return n_bags, {"mean": n_points / n_bags, **{name: int(n) for name, n in at.items()}}


def _labelled(store: BagStore) -> dict[str, int]:
    """Count the bags that have each target."""
    counts = dict.fromkeys(store.target_names, 0)
    for start, stop in _blocks(store):
        targets = store.targets(start, stop)
        for name, column in zip(store.target_names, targets.T, strict=True):
            counts[name] += int((column == column).sum())  # NaN: not labelled
    return counts


def _blocks(store: BagStore) -> list[tuple[int, int]]:
    step = 2**20
    return [(start, min(store.n_bags, start + step)) for start in range(0, store.n_bags, step)]
