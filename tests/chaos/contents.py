"""What is there: the same for the same content; whatever a reader could not use is raised."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bagbasis import BagStore, InterruptedStoreError, StoreError, load_model
from bagbasis.data.storage.files import names_in
from bagbasis.data.storage.zarr_stores import exists, is_empty, is_taken
from bagbasis.models import read_predictions
from bagbasis.operations import Registry

N_ROUNDS = 3  # of the line that is looked at


@dataclass(frozen=True)
class Place:
    """Where a trial works: a folder, local or among objects, and a local one for tables."""

    url: str
    local: Path

    @property
    def is_local(self) -> bool:
        return "://" not in self.url

    @property
    def store(self) -> str:
        return f"{'' if self.is_local else 'icechunk+'}{self.url}/bags.zarr"

    def at(self, name: str) -> str:
        return f"{self.url}/{name}"


def digest(*parts: Any) -> str:
    """A hash of arrays and of anything that can be printed."""
    result = hashlib.sha256()
    for part in parts:
        array = np.asarray(part)
        result.update(f"{array.dtype.kind}{array.shape}".encode())
        is_plain = array.dtype.kind in "iufb"
        result.update(array.tobytes() if is_plain else repr(array.tolist()).encode())
    return result.hexdigest()[:12]


def bags_of(place: Place) -> list[str] | None:
    """A hash of every bag of a store that was verified; None where none was ever made."""
    url = place.store
    try:
        store = BagStore.open(url)
    except InterruptedStoreError:
        return None
    except StoreError:
        if not exists(url) or is_empty(url):
            return None
        raise
    store.verify()
    points, targets, ids = store.read(), store.targets(), store.ids()
    responses = store.responses() if store.response_dims is not None else None
    parts = [points, targets, ids, *([responses] if responses is not None else [])]
    return [digest(*(part[i] for part in parts)) for i in range(store.n_bags)]


def store_of(place: Place) -> str | None:
    """A hash of all bags, of which the job writes all or none."""
    bags = bags_of(place)
    return digest(bags) if bags else None


def model_of(place: Place) -> str | None:
    return model_at(place.at("m.zarr"))


def model_at(url: str) -> str | None:
    """A hash of a saved model; None where there is none."""
    if not is_taken(url):
        return None
    model = load_model(url)
    return digest(model.coef_, model.intercept_, model.alpha_)


def predictions_at(url: str, format: str) -> str | None:
    """A hash of written predictions and their ids."""
    if not is_taken(url):
        return None
    table = read_predictions(url)
    return digest(*(table[name] for name in table))


def changes_of(place: Place) -> list[str]:
    """Every change of the champion; all models load.

    By the models' content: their names depend on the snapshots of a store kept by Icechunk.
    """
    registry = Registry(place.at("registry"))
    history = registry.history()
    assert registry.current() == (history[-1].name if history else None)
    assert all(record.damage is None for record in registry.list())
    models = {change.name: model_at(registry.model_url(change.name)) for change in history}
    return [f"{change.action} {models[change.name]}" for change in history]


def line_of(place: Place) -> Any:
    """Changes of the champion, then the reports; a registry that is not there has none."""
    reports = [name for name in names_in(place.at("rounds")) if not name.startswith(".")]
    return [*changes_of(place), *(reports if len(reports) == N_ROUNDS else [])]
