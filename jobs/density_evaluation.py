"""The evaluation of a model that predicts densities: the rows of 004, Table 3.1, and slices."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagbasis import Bags, BagStore, KernelSmoother
from bagbasis.densities import Densities
from bagbasis.errors import ConfigError
from bagbasis.evaluation import density_errors
from bagbasis.regression.stored_predictions import members

from .pictures.densities import draw_densities

SEARCHED = 65_536  # bags looked at for those that are pictured or smoothed


def evaluate_densities(
    model: Any, store: BagStore, subset: str, smoothed: int, progress: Any
) -> dict[str, Any]:
    """Errors in squared L2 distance on the unit cube, and with ``smoothed`` > 0 those of the
    kernel smoother of the same training bags on as many bags."""
    errors = density_errors(model, store, subset=subset, progress=progress)
    result = {"n_unlabelled": errors.n_unlabelled, **errors.result()}
    if smoothed:
        result["smoother"] = _smoother_errors(model, store, subset, smoothed, progress)
    return result


def draw_slices(
    path: Path, model: Any, store: BagStore, subset: str, n_pictured: int, names: list[str]
) -> Path:
    """A few bags: their own density where it compares, their response's and the predicted one."""
    rows = chosen_bags(model, store, subset, n_pictured)
    bags, answers = _read(store, rows)
    spec = model.response_spec_
    columns: dict[str, Densities] = {}
    kinds = {"bag": bags, "response": answers} if store.box == spec.box else {"response": answers}
    for kind, points in kinds.items():
        coefficients = np.empty((len(points), spec.n_features))
        spec.embed(points, coefficients)
        columns[kind] = Densities(coefficients, spec.indices, spec.basis, spec.box)
    columns["predicted"] = model.densities(bags)
    titles = [f"bag {store.ids(int(row), int(row) + 1)[0]}" for row in rows]
    return draw_densities(path, columns, titles, names)


def chosen_bags(model: Any, store: BagStore, subset: str, n: int) -> NDArray[np.int64]:
    """Up to n bags of the subset that have a response, evenly spread."""
    stop = min(store.n_bags, SEARCHED)
    present = np.diff(store.response_offsets(0, stop)) > 0
    rows = np.flatnonzero(members(model, subset, 0, stop) & present)
    return rows[np.linspace(0, len(rows) - 1, min(n, len(rows))).astype(np.int64)]


def response_names(names: list[str] | None, store: BagStore) -> list[str]:
    """Names of the response's coordinates: as given, the source's, or numbers.

    Raises
    ------
    ConfigError
        Another number of names than coordinates.
    """
    k = int(store.response_dims or 0)
    if names is not None:
        if len(names) != k:
            raise ConfigError(
                f"key 'coordinate_names' has {len(names)} names; the responses in {store.url} have "
                f"{k} coordinates"
            )
        return names
    return [f"coordinate {j + 1}" for j in range(k)]


def table_rows(errors: dict[str, Any]) -> list[list[Any]]:
    """Rows of method, MSE, determination against the average density, and seconds a bag."""
    rows: list[list[Any]] = [["3BE", errors["mse"], errors["r2"]]]
    if errors["input_mse"] is not None:
        rows.append(["the bag's own density", errors["input_mse"], errors["input_r2"]])
    rows.append(["average density", errors["average_mse"], 0.0])
    rows.append(["noise of the responses", errors["noise_mse"], None])
    return rows


def _smoother_errors(
    model: Any, store: BagStore, subset: str, n: int, progress: Any
) -> dict[str, Any]:
    training = BagStore.open(model.report_["data_url"])
    smoother = KernelSmoother(
        embedding=model.embedding, response_embedding=model.response_embedding
    ).fit(training, holdout=model.holdout_, progress=progress)
    rows = chosen_bags(model, store, subset, n)
    bags, answers = _read(store, rows)
    truth = np.empty((len(answers), model.response_spec_.n_features))
    model.response_spec_.embed(answers, truth)
    begun = time.perf_counter()
    smoothed = smoother.coefficients(bags)
    done = time.perf_counter()
    predicted = model.coefficients(bags)
    return {
        "n": len(rows),
        "mse": float(((smoothed - truth) ** 2).sum(axis=1).mean()),
        "model_mse": float(((predicted - truth) ** 2).sum(axis=1).mean()),
        "bandwidth": smoother.bandwidth_,
        "seconds_a_bag": (done - begun) / len(rows),
        "model_seconds_a_bag": (time.perf_counter() - done) / len(rows),
    }


def _read(store: BagStore, rows: NDArray[np.int64]) -> tuple[Bags, Bags]:
    bags = [store.read(int(row), int(row) + 1)[0] for row in rows]
    answers = [store.responses(int(row), int(row) + 1).points for row in rows]
    return Bags.from_list(bags), Bags.from_list(answers)
