"""`merge_stores`: copies the bags of several stores, without the removed ones, into a new store."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np

from ...core import Instance, ListOf, Url, UrlOrPath, checked
from ...core.arrays import Integers
from ...core.errors import DataError, ParameterError, shown, warn
from ..bags.bags import AnyRagged, take_rows
from ..bags.box import TIMES_OTHER_UNIT, Box
from ..bags.coordinates import Names, order_of
from ..storage.urls import is_same_place, normalize_url
from .reading import partitions
from .schema import MEDIANS, medians_of
from .store import BagStore

EQUAL_FIELDS = ("n_dims", "target_names", "response_dims", "stored_dtype")


@checked
def merge_stores(
    stores: Annotated[
        Sequence[BagStore | str | os.PathLike[str]], ListOf(Instance("BagStore") | Url)
    ],
    url: UrlOrPath,
    *,
    overwrite: bool = False,
) -> BagStore:
    """Write the bags of several stores, one store after the other, into a new store, atomically.

    Removed bags are left out. Labels are the current labels, and the new box contains all boxes.
    Coordinates are in the order of the first store whose coordinates have names. Bags get new
    indices, so holdouts choose other bags. `retrain` refuses the new store for a model of an old
    store.

    Parameters
    ----------
    stores : sequence of BagStore, or their URLs
        Stores to merge, at least one. No id may occur in two stores.
    url, overwrite
        As `BagStore.create`.

    Raises
    ------
    DataError
        If the stores differ in dimensions, names of coordinates, targets, classes, responses,
        dtypes or medians of missing cells, or if two stores have the same id.
    ParameterError
        If no store is given, or ``url`` is the place of one of them.
    StoreError
        As `BagStore.open` and `BagStore.create`.

    See Also
    --------
    BagStore : Bags on disk or in object storage.
    bagbasis.ingest.ingest_tables : Read Parquet, Arrow and CSV files.

    Examples
    --------
    >>> import numpy as np
    >>> from bagbasis import BagStore, merge_stores
    >>> for name in ('a.zarr', 'b.zarr'):
    ...     store = BagStore.create(name, n_dims=2).append([np.ones((3, 2))], ids=[name])
    >>> merged = merge_stores(['a.zarr', 'b.zarr'], 'both.zarr')
    >>> list(merged.ids())
    ['a.zarr', 'b.zarr']
    """
    opened = [s if isinstance(s, BagStore) else BagStore.open(s) for s in stores]
    if not opened:
        raise ParameterError("stores is empty; give the stores to merge")
    first = opened[0]
    place = normalize_url(url)
    for store in opened:
        if is_same_place(store.url, place):
            raise ParameterError(
                f"url is {shown(url)}, which is one of the stores to merge; give another place"
            )
    for store in opened[1:]:
        pairs = {name: (getattr(first, name), getattr(store, name)) for name in EQUAL_FIELDS}
        pairs["class_names"] = first.meta.class_names, store.meta.class_names
        for name, (ours, theirs) in pairs.items():
            if ours != theirs:
                raise DataError(f"{store.url}: its {name} is {theirs}, that of {first.url} {ours}")
    _check_ids(opened)  # before a store that is there is replaced
    names, orders = _one_order(opened, "coordinate_names")
    medians = medians_of(first.meta, first.url)
    for store in opened[1:]:
        if (theirs := medians_of(store.meta, store.url)) != medians:
            raise DataError(
                f"{store.url}: its missing cells hold the medians {theirs}, those of {first.url} "
                f"{medians}; append its table to that store, which keeps the medians"
            )
    response_names, response_orders = _one_order(opened, "response_coordinate_names")
    of_responses = [
        (store.response_box, order) for store, order in zip(opened, response_orders, strict=True)
    ]
    boxes = [box.in_order(order) for box, order in of_responses if box is not None]
    of_points = [store.box.in_order(order) for store, order in zip(opened, orders, strict=True)]
    _warn_of_units(opened, of_points)
    merged = BagStore.create(
        url,
        first.n_dims,
        target_names=first.target_names,
        box=None if all(store.meta.is_measured for store in opened) else _around(of_points),
        response_dims=first.response_dims,
        response_box=(
            _around(boxes)
            if boxes and not all(store.meta.measures_responses for store in opened)
            else None
        ),
        class_names=first.meta.class_names,
        dtype=first.stored_dtype,
        overwrite=overwrite,
    )
    with merged.appending({MEDIANS: medians} if medians else None) as session:
        session.mark_merged()
        for store in opened:
            for a, b in partitions(store, 0, store.n_bags):
                rows = np.flatnonzero(store.present(a, b))
                session.write(
                    _named(take_rows(store.read(a, b), rows), names),
                    store.targets(a, b)[rows],
                    store.ids(a, b)[rows],
                    responses=(
                        _named(take_rows(store.responses(a, b), rows), response_names)
                        if boxes
                        else None
                    ),
                )
    return merged


def _warn_of_units(stores: Sequence[BagStore], boxes: Sequence[Box]) -> None:
    """Warn about a coordinate that reaches much farther from 0 in one store than in another."""
    named = [(store.url, box) for store, box in zip(stores, boxes, strict=True) if store.n_points]
    if len(named) < 2:
        return
    reach = np.array([np.maximum(np.abs(box.lo), np.abs(box.hi)) for _, box in named])
    times = reach.max(axis=0) / np.where(reach.min(axis=0) > 0, reach.min(axis=0), np.inf)
    j = int(np.argmax(times))
    if times[j] > TIMES_OTHER_UNIT:
        names = stores[0].coordinate_names
        near, far = (named[int(at)] for at in (np.argmin(reach[:, j]), np.argmax(reach[:, j])))
        ranges = [f"{box.lo[j]:.4g} to {box.hi[j]:.4g} in {url}" for url, box in (near, far)]
        warn(
            f"coordinate {j if names is None else repr(names[j])} reaches from {ranges[0]}, and "
            f"from {ranges[1]}: check their units"
        )


def _check_ids(stores: Sequence[BagStore]) -> None:
    """Raise DataError for an id that two bags have, or for numbers and texts as ids."""
    parts = [(store.url, store.ids()[store.present()]) for store in stores]
    parts = [(url, ids) for url, ids in parts if len(ids)]
    for url, ids in parts[1:]:
        if ids.dtype != parts[0][1].dtype:
            raise DataError(
                f"{url}: its ids are {ids.dtype}, those of {parts[0][0]} {parts[0][1].dtype}"
            )
    if not parts:
        return
    every = np.concatenate([ids for _, ids in parts])
    order = np.argsort(every, kind="stable")
    repeated = np.flatnonzero(every[order][1:] == every[order][:-1])[:1]
    for place in repeated:
        ends = np.cumsum([len(ids) for _, ids in parts])
        owners = np.searchsorted(ends, order[place : place + 2], side="right")
        first, second = (parts[owner][0] for owner in owners)
        raise DataError(
            f"duplicate bag id {every[order[place]]!s}: {first} and {second} have it; remove it "
            "from one of them"
        )


def _one_order(
    stores: Sequence[BagStore], kind: Literal["coordinate_names", "response_coordinate_names"]
) -> tuple[Names, list[Integers | None]]:
    """Return the names of the first store that has names, and their positions in each store."""
    of_each: list[Names] = [getattr(store, kind) for store in stores]
    first = next((i for i, names in enumerate(of_each) if names is not None), 0)
    reference = f"those of {stores[first].url} are"
    return of_each[first], [
        order_of(names, of_each[first], store.url, reference)
        for store, names in zip(stores, of_each, strict=True)
    ]


def _named(sets: AnyRagged, names: Names) -> AnyRagged:
    """Return sets with these names; sets without names get them by position."""
    return sets if names is None or sets.coordinate_names is not None else sets.named(names)


def _around(boxes: Sequence[Box]) -> Box:
    bounds = np.array([box.bounds for box in boxes])
    return Box.of(np.column_stack([bounds[..., 0].min(0), bounds[..., 1].max(0)]).tolist(), None)
