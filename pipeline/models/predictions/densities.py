"""The densities of estimators that predict coefficients, and their score."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Generic, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from ...core import Integer, checked
from ...core.arrays import Floats
from ...core.errors import ParameterError
from ...data.bags.bags import Bags, BagsInMemory, as_bags
from ...data.bags.coordinates import Names
from ...data.bags.point_rows import points_in_order
from ...data.labelled.inputs import BagsLike
from ...data.store.store import BagStore
from ...densities.series import Densities
from ...embeddings.projection import ProjectionSpec
from ...execution.worker_threads import kernel_threads
from ..fitted_model import JudgedModel, PredictionArray, ScoringModel, mean_of
from ..outcomes.densities import DensityOutcome
from .outside import warning_of_outside


class AppliedModel(JudgedModel, Protocol):
    """A model that computes rows for the bags of a store, too."""

    def apply(
        self, X: BagStore, of_bags: Callable[[Bags], NDArray[Any]], *, tail: tuple[int, ...]
    ) -> PredictionArray:
        """Return the rows that ``of_bags`` computes, each of shape ``tail``, lazily."""
        ...


_Model = TypeVar("_Model", bound=AppliedModel)


class DensityPrediction(Generic[_Model]):
    """Mixin of estimators that predict densities, from the coefficients of their ``model_``."""

    model_: _Model

    @property
    def response_spec_(self) -> ProjectionSpec:
        """The fitted third basis."""
        return spec_of(self.model_)

    @property
    def mean_coefficients_(self) -> Floats:
        """Coefficients of the average response density of the bags fitted, shape (r,)."""
        return mean_of(self.model_)

    @checked
    def densities(self, X: BagsInMemory, *, project: bool = False) -> Densities:
        """Return the predicted densities of bags in memory.

        The result can be evaluated, sampled and reduced to marginals.

        Parameters
        ----------
        X : Bags or list of arrays
        project : bool
            Whether to return the nearest valid densities, which are nowhere negative.
        """
        check_is_fitted(self)
        bags = as_bags(X)
        with warning_of_outside(bags):
            return predicted_densities(self.model_, bags, project)

    @checked
    def predict_density(
        self,
        X: BagsLike,
        at: ArrayLike | None = None,
        *,
        grid: int | None = None,
        project: bool = False,
    ) -> PredictionArray:
        """Evaluate the predicted densities, per unit of volume in the responses' coordinates.

        The densities integrate to one over the response box and are 0 outside.

        Parameters
        ----------
        X : Bags, list of arrays, or BagStore
            Bags to predict. The result is a numpy array for bags in memory, and a lazy dask.array
            for a BagStore.
        at : array_like or table, shape (n_points, k)
            Points in the coordinates of the responses. Columns of a table are matched by name. Pass
            either ``at`` or ``grid``.
        grid : int
            Number of midpoints per dimension of the response box (`Densities.grid_axes`).
        project : bool
            Whether to return the nearest valid densities, which are nowhere negative. In L2, they
            are at most as far from the true density as the predicted ones.

        Returns
        -------
        float64, shape (n_bags, n_points), or (n_bags, grid, …, grid)
        """
        check_is_fitted(self)
        model = self.model_
        points, grid = where(at, grid, response_names_of(model))
        if isinstance(X, BagStore):
            n_dims = spec_of(model).n_dims
            tail = (len(points),) if points is not None else (int(grid or 0),) * n_dims
            values = partial(density_values, model, at=points, grid=grid, project=project)
            return model.apply(X, values, tail=tail)
        bags = as_bags(X)
        with warning_of_outside(bags):
            return density_values(model, bags, points, grid, project)

    @checked
    def sample(
        self, X: BagsInMemory, n: int, *, seed: Annotated[int | np.random.Generator, Integer()] = 0
    ) -> Bags:
        """Draw ``n`` points from each predicted density, made nonnegative by projection."""
        assert isinstance(seed, int)  # `checked` has drawn it
        return self.densities(X, project=True).sample(n, seed=seed)


def spec_of(model: ScoringModel) -> ProjectionSpec:
    """Return the third basis of a model of densities."""
    return cast(DensityOutcome, model.outcome).spec


def response_names_of(model: ScoringModel) -> list[str] | None:
    """Return the names of the coordinates of the responses; None if they had no names."""
    names = cast(DensityOutcome, model.outcome).response_names
    return None if names is None else list(names)


def predicted_densities(model: ScoringModel, bags: Bags, project: bool) -> Densities:
    """Return the result of `DensityPrediction.densities`."""
    spec = spec_of(model)
    rows, names = model.decision_rows(bags), response_names_of(model)
    predicted = Densities(
        rows, spec.indices, basis=spec.basis, box=spec.box, coordinate_names=names
    )
    return predicted.valid() if project else predicted


def density_values(
    model: ScoringModel, bags: Bags, at: Floats | None, grid: int | None, project: bool
) -> Floats:
    """Return the result of `DensityPrediction.predict_density`."""
    predicted = predicted_densities(model, bags, project)
    with kernel_threads():
        return predicted.at(at) if at is not None else predicted.on_grid(int(grid or 0))


def where(at: ArrayLike | None, grid: int | None, names: Names) -> tuple[Floats | None, int | None]:
    """Return the points, or the size of a grid; ParameterError unless one of them is given.

    Columns of a table of points are put in the order of ``names``.
    """
    if (at is None) == (grid is None):
        raise ParameterError("give the points at=… or the number of points per dimension grid=…")
    if at is None:
        return None, grid
    points, _ = points_in_order(at, names, "at", "the model predicts densities of", np.float64)
    return points.astype(np.float64, copy=False), grid
