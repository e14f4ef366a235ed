"""For estimators that predict coefficients of densities: the densities, and their score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from ..arrays import Floats
from ..bags import Bags, as_bags, concatenate
from ..bags.labelled import LabelledBags
from ..bags.sampling import JUDGED_SAMPLE
from ..bags.splits import Membership
from ..densities import Densities
from ..densities.valid_densities import MOST_DIMS, quasi_random_points
from ..embeddings import Embedding, ProjectionEmbedding, ProjectionSpec
from ..embeddings.base import ChoiceSample
from ..errors import DataError, ParameterError
from ..execution import lane
from ..params import as_array, checked
from ..sklearn_bases import fresh
from .feature_map import FeatureMap
from .ridge import RidgeSolution


class DensityPrediction:
    """Densities from predicted coefficients.

    The estimator has `coefficients`, ``outcome_`` and ``mean_coefficients_``.
    """

    outcome_: Any
    mean_coefficients_: Floats

    @property
    def response_spec_(self) -> ProjectionSpec:
        """The third basis with everything decided."""
        spec: ProjectionSpec = self.outcome_.spec
        return spec

    def coefficients(self, bags: Bags) -> Floats:
        """Predict coefficients of bags in memory, shape (n_bags, r)."""
        raise NotImplementedError

    @checked
    def densities(self, X: Bags | Sequence[ArrayLike], project: bool = False) -> Densities:
        """Return the predicted densities of bags in memory.

        They can be evaluated, sampled and reduced to marginals.

        Parameters
        ----------
        X : Bags or list of arrays
        project : bool
            The nearest valid densities instead: nowhere negative.
        """
        check_is_fitted(self, "response_spec_")
        spec = self.response_spec_
        coefficients = self.coefficients(as_bags(X))
        predicted = Densities(coefficients, spec.indices, spec.basis, spec.box)
        return predicted.valid() if project else predicted

    @checked
    def predict_density(
        self,
        X: Bags | Sequence[ArrayLike],
        at: ArrayLike | None = None,
        *,
        grid: int | None = None,
        project: bool = False,
    ) -> Floats:
        """Evaluate the predicted densities, per unit of volume in the responses' coordinates.

        They integrate to one over the response box and are 0 outside.

        Parameters
        ----------
        X : Bags or list of arrays
        at : shape (n_points, k)
            Points in the responses' coordinates, or
        grid : int
            midpoints per dimension of the response box (`Densities.grid_axes`).
        project : bool
            Of the nearest valid densities: nowhere negative, and in L2 not farther from any
            density, the true one too, than those predicted.

        Returns
        -------
        float64, shape (n_bags, n_points), or (n_bags, grid, …, grid)
        """
        check_is_fitted(self, "response_spec_")
        return self.density_values(as_bags(X), *where(at, grid), project)

    def density_values(
        self, bags: Bags, at: Floats | None, grid: int | None, project: bool
    ) -> Floats:
        """`predict_density` for bags in memory."""
        predicted = self.densities(bags, project)
        with lane():
            return predicted.at(at) if at is not None else predicted.on_grid(int(grid or 0))

    @checked
    def sample(self, X: Bags | Sequence[ArrayLike], n: int, seed: int = 0) -> Bags:
        """Draw ``n`` points from each predicted density, or rather from the nearest valid one."""
        return self.densities(X, project=True).sample(n, seed=seed)

    def determination(self, pairs: LabelledBags) -> float:
        """Compute 1 − Σ ‖f̂(X) − q̂‖² / Σ ‖q̄ − q̂‖² over the bags with a response.

        q̂ the projections of the responses, q̄ the average density of the bags fitted.
        """
        residual = total = 0.0
        for batch in pairs.batches():
            if len(batch):
                targets, _ = self.outcome_.encode(batch.labels)
                residual += float(((self.coefficients(batch.bags) - targets) ** 2).sum())
                total += float(((self.mean_coefficients_ - targets) ** 2).sum())
        return 1.0 - residual / total


def where(at: ArrayLike | None, grid: int | None) -> tuple[Floats | None, int | None]:
    """Return the points, or the size of a grid; ParameterError unless one of them is given."""
    if (at is None) == (grid is None):
        raise ParameterError("give the points at=… or the number of points per dimension grid=…")
    return (None if at is None else as_array("at", at, np.float64)), grid


def resolve_response(third: Embedding | None, pairs: LabelledBags) -> ProjectionSpec:
    """Return the third basis for these responses.

    Raises
    ------
    ParameterError
        An embedding whose vectors are not the coefficients of a density.
    """
    embedding = fresh("response_embedding", third, Embedding, ProjectionEmbedding)
    if not isinstance(embedding, ProjectionEmbedding) or not (
        embedding.marginals is None and embedding.bandwidth is None
    ):
        raise ParameterError(
            "response_embedding has to be a ProjectionEmbedding without marginals and bandwidth: "
            "its coefficients are those of a density"
        )
    with lane():
        return embedding.resolve(
            pairs.response_dims,
            pairs.response_box,
            ChoiceSample(pairs, responses=True),
        )


@dataclass(frozen=True)
class ProjectedScore:
    """Judges solutions by the nearest valid densities that they predict for held-out bags.

    For a response of m points y the score of a density p is ∫p² − 2/m Σ p(y): without bias that
    is ‖p − q‖² − ‖q‖² for the density q which the points were drawn from, whatever the third
    basis leaves out of q.

    Attributes
    ----------
    features : shape (n, D)
        z of the held-out bags.
    responses : Bags
        n of them.
    spec : ProjectionSpec
        The third basis.
    """

    features: NDArray[Any]
    responses: Bags
    spec: ProjectionSpec

    @classmethod
    def of(
        cls,
        pairs: LabelledBags,
        spec: ProjectionSpec,
        features: FeatureMap,
        precision: str,
        validation: Membership,
    ) -> ProjectedScore:
        """Of the labelled bags that validation holds out, among evenly spread runs.

        Raises
        ------
        DataError
            There are none.
        """
        blocks, responses = [], []
        held = replace(pairs, only=validation)
        for batch in held.batches_of(JUDGED_SAMPLE.ranges(pairs.start, pairs.end)):
            if len(batch):
                blocks += [z.copy() for _, z, _ in features.blocks(batch.bags, precision)]
                responses.append(batch.labels.present)
        if not responses:
            raise DataError(
                "no bag with a response was held out for validation; hold out a larger fraction"
            )
        return cls(np.concatenate(blocks), concatenate(responses), spec)

    def __call__(self, solution: RidgeSolution) -> float:
        """Return the mean score, of densities on the unit cube; lower is better."""
        coefficients = self.features @ solution.coef.T + solution.intercept
        spec = self.spec
        predicted = Densities(coefficients, spec.indices, spec.basis, spec.box).valid()
        total = 0.0
        for i in range(len(predicted)):
            values = predicted.volume * _values_over_box(predicted[i])
            at_points = predicted.volume * predicted[i].at(self.responses[i])
            total += float((values**2).mean() - 2 * at_points.mean())
        return total / len(predicted)


def _values_over_box(densities: Densities) -> Floats:
    """Values where `Densities.valid` solves: their means are means over the box."""
    if densities.n_dims <= MOST_DIMS:
        return densities.on_grid()
    lo, hi = np.array(densities.box.lo), np.array(densities.box.hi)
    return densities.at(lo + quasi_random_points(densities.n_dims) * (hi - lo))
