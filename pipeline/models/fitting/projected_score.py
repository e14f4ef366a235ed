"""`ProjectedScore`: judges solutions by the nearest valid densities that they predict."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Floats
from ...core.errors import DataError
from ...data.bags.bags import Bags, concatenate
from ...data.store.sampling import JUDGED_SAMPLE
from ...densities.series import Densities
from ...densities.valid_densities import MAX_GRID_DIMS, quasi_random_points
from ...embeddings.projection import ProjectionSpec
from ..ridge.ridge import RidgeSolution
from .plan import FitPlan


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
    def of(cls, plan: FitPlan, spec: ProjectionSpec) -> ProjectedScore:
        """Return the score on the labelled bags of validation, among evenly spread runs.

        Raises
        ------
        DataError
            If there are no such bags.
        """
        blocks, responses = [], []
        held = replace(plan.bags, only=plan.validation)
        for batch in held.batches_of(JUDGED_SAMPLE.ranges(held.start, held.end)):
            if len(batch):
                blocked = plan.features.blocks(batch.bags, plan.precision)
                blocks += [z.copy() for _, z, _ in blocked]
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
        predicted = Densities(coefficients, spec.indices, basis=spec.basis, box=spec.box).valid()
        total = 0.0
        for i in range(len(predicted)):
            values = predicted.volume * _values_over_box(predicted[i])
            at_points = predicted.volume * predicted[i].at(self.responses[i])
            total += float((values**2).mean() - 2 * at_points.mean())
        return total / len(predicted)


def _values_over_box(densities: Densities) -> Floats:
    """Values where `Densities.valid` solves: their means are means over the box."""
    if densities.n_dims <= MAX_GRID_DIMS:
        return densities.on_grid()
    lo, hi = np.array(densities.box.lo), np.array(densities.box.hi)
    return densities.at(lo + quasi_random_points(densities.n_dims) * (hi - lo))
