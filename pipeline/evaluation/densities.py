"""Errors of predicted densities on a store's response bags, beside what needs no model."""

from __future__ import annotations

import operator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bags import Bags, BagStore
from ..bags.plan import Range
from ..bags.reading import iter_pairs
from ..bases import project
from ..embeddings import ProjectionSpec
from ..errors import DataError
from ..execution import Progress, Report, map_reduce
from ..regression.feature_map import naming
from ..regression.stored_predictions import check_predictable, members, prediction_plan

ROWS_A_BLOCK = 2048


@dataclass(frozen=True)
class DensityErrors:
    """Sums over bags of squared L2 distances on the unit cube to the response's series.

    Attributes
    ----------
    n, n_unlabelled : int
        Bags with a response, and without.
    model, average, input : float
        Of the prediction, of the average response density of the bags fitted, and of the bag's
        own density (NaN where bags and responses do not share a box).
    noise : float
        How far the series of the responses lie from those of their densities, by the variance of
        the functions over their points: the part of every error that no model can lower.
    """

    n: int
    n_unlabelled: int
    model: float
    average: float
    input: float
    noise: float

    def __add__(self, other: DensityErrors) -> DensityErrors:
        return DensityErrors(
            *(getattr(self, f.name) + getattr(other, f.name) for f in fields(DensityErrors))
        )

    def result(self) -> dict[str, Any]:
        """Mean squared errors (``*_mse``), and determination: ``r2`` of the model against the
        average density, ``input_r2`` of the bag's own density."""
        n = self.n
        comparable = bool(np.isfinite(self.input))
        return {
            "n": n,
            "mse": self.model / n,
            "average_mse": self.average / n,
            "input_mse": self.input / n if comparable else None,
            "noise_mse": self.noise / n,
            "r2": 1 - self.model / self.average,
            "input_r2": 1 - self.input / self.average if comparable else None,
        }


@dataclass(frozen=True)
class _ErrorTask:
    model: Any
    store: BagStore
    subset: str

    def __call__(self, bag_range: Range, report: Report) -> DensityErrors:
        errors = DensityErrors(0, 0, 0.0, 0.0, 0.0, 0.0)
        for (a, b), bags, responses in iter_pairs(self.store, *bag_range):
            keep = members(self.model, self.subset, a, b)
            rows = np.flatnonzero(keep & (responses.sizes > 0))
            missing = int(keep.sum()) - len(rows)
            errors = errors + DensityErrors(0, missing, 0.0, 0.0, 0.0, 0.0)
            for first in range(0, len(rows), ROWS_A_BLOCK):
                block = rows[first : first + ROWS_A_BLOCK]
                with naming(self.store.url, a + block):
                    errors = errors + self._block(bags[block], responses, block)
            report(b - bag_range[0])
        return errors

    def _block(self, bags: Bags, responses: Any, rows: NDArray[np.int64]) -> DensityErrors:
        spec = self.model.response_spec_
        truth, _ = self.model.outcome_.rows(responses, rows)
        answers = responses.of(rows)
        return DensityErrors(
            len(rows),
            0,
            _squares(self.model.coefficients(bags) - truth),
            _squares(self.model.mean_coefficients_ - truth),
            _squares(_own(spec, self.store, bags) - truth),
            _noise(spec, answers, truth),
        )


def density_errors(
    model: Any, store: BagStore, *, subset: str = "all", progress: Progress | None = None
) -> DensityErrors:
    """Errors over the bags of a store that have a response, on the open cluster or here.

    Parameters
    ----------
    model : fitted `TripleBasisRegressor`
    subset : {"all", "holdout", "train"}
        As in `iter_predictions`.

    Raises
    ------
    DataError
        The store has no responses, or none of the subset's bags has one.
    ModelError
        Bags of another dimension, or subset="holdout" where the model held nothing out.
    """
    check_predictable(model, store, subset)
    k = model.response_spec_.n_dims
    if store.response_dims != k:
        raise DataError(
            f"{store.url}: responses have dimension {store.response_dims}, the model predicts "
            f"densities in {k}"
        )
    ranges = prediction_plan(model, store)
    sizes = [stop - start for start, stop in ranges]
    task = _ErrorTask(model, store, subset)
    empty = DensityErrors(0, 0, 0.0, 0.0, 0.0, 0.0)
    errors = (
        map_reduce(task, ranges, operator.add, sizes=sizes, progress=progress) if ranges else empty
    )
    if errors.n == 0:
        raise DataError(f"{store.url}: no bag with a response among the {subset} bags")
    return errors


def _own(spec: ProjectionSpec, store: BagStore, bags: Bags) -> NDArray[np.float64]:
    """The bag's own coefficients in the response basis; NaN where that makes no sense."""
    out = np.full((len(bags), spec.n_features), np.nan)
    if store.box == spec.box:
        project(bags, spec.indices, spec.groups, spec.basis, spec.box, out)
    return out


def _noise(spec: ProjectionSpec, responses: Bags, a: NDArray[np.float64]) -> float:
    """Σ_α Var(φ_α) / m over the responses of two points or more."""
    squares = np.empty_like(a)
    drop = spec.out_of_box == "drop"
    project(
        responses, spec.indices, spec.groups, spec.basis, spec.box, squares, drop=drop, squared=True
    )
    several = responses.sizes > 1
    variance = (squares - a**2)[several].sum(axis=1)
    return float((variance / (responses.sizes[several] - 1)).sum())


def _squares(gap: NDArray[np.float64]) -> float:
    return float((gap**2).sum())
