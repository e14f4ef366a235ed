"""`DensityMapping`: a known map of densities in the plane, which rotates, shears and blurs."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np

from ..core import Integer, checked, frozen_component
from ..core.arrays import Integers
from ..data.bags.bags import Bags, offsets_of
from ..data.bags.responses import Responses
from .base import BLOCK, MAX_BAG_VALUES, RandomDataset, ResponseBlock, ResponseDataset, block_rng
from .mixtures import Mixtures
from .registered import DATASETS

_MAX_COMPONENTS = 3
# few points of p or f(p) are outside the box
_MEAN_RANGE, _SCALE_RANGE = (0.25, 0.75), (0.08, 0.16)
CENTRE = np.array([0.5, 0.5])  # fixed point of f
ANGLE, SHEAR, BLUR = np.pi / 6, 0.5, 0.1  # radians, a ratio, a standard deviation
MAP = np.array([[np.cos(ANGLE), -np.sin(ANGLE)], [np.sin(ANGLE), np.cos(ANGLE)]]) @ np.array(
    [[1.0, SHEAR], [0.0, 1.0]]
)


@DATASETS.register
@frozen_component
class DensityMapping(RandomDataset, ResponseDataset):
    """Bags from mixtures p of one to three round Gaussians; the response is drawn from f(p).

    f rotates p by 30° about (½, ½), shears it by ½ along the first axis and blurs it by a Gaussian
    of standard deviation 0.1. q = f(p) is therefore a known mixture, up to the truncation to the
    box, which removes at most a few points in a thousand. The points of a bag and of its response
    are drawn independently from p and q.

    Parameters
    ----------
    n_points : int or (lo, hi)
        Number of points in a bag.
    n_response_points
        Number of points in a response.
    seed
        Seed for drawing the bags.

    See Also
    --------
    SyntheticMapping : Bags in one dimension with a noiseless label.
    bagbasis.TripleBasisRegressor : Predict densities from bags.

    Examples
    --------
    >>> from bagbasis.datasets import DATASETS, DensityMapping
    >>> DATASETS[DensityMapping.name] is DensityMapping
    True
    """

    name: ClassVar[str] = "density_mapping"
    box: ClassVar = ((-0.5, 1.5), (-0.5, 1.5))
    n_dims = 2
    target_names = ()
    response_dims = 2
    response_box = box

    n_response_points: Annotated[int, Integer(1, MAX_BAG_VALUES // BLOCK)] = 200

    @checked
    def mixtures(self, index: int) -> Mixtures:
        """Return the densities from which the bags of a block are drawn."""
        return self._start(index)[2]

    @checked
    def response_block(self, index: int) -> ResponseBlock:
        """Return the bags of a block, drawn from p, and the responses, drawn from f(p)."""
        rng, sizes, p = self._start(index)
        answers = np.full(len(sizes), self.n_response_points)
        bags = Bags.trusted(p.draw_points(rng, sizes, self.box), offsets_of(sizes))
        responses = Responses.trusted(
            mapped(p).draw_points(rng, answers, self.box), offsets_of(answers)
        )
        return ResponseBlock(bags, np.empty((len(sizes), 0)), responses)

    def _start(self, index: int) -> tuple[np.random.Generator, Integers, Mixtures]:
        rng = block_rng(self.seed, index)
        sizes = self._sizes(rng)
        n = len(sizes)
        n_components = rng.integers(1, _MAX_COMPONENTS, n, endpoint=True)
        means = rng.uniform(*_MEAN_RANGE, (n, _MAX_COMPONENTS, 2))
        scales = rng.uniform(*_SCALE_RANGE, (n, _MAX_COMPONENTS))
        return rng, sizes, Mixtures(n_components, means, scales[..., None, None] * np.eye(2))


def mapped(p: Mixtures) -> Mixtures:
    """Return f(p): means are mapped, covariances are mapped and blurred."""
    means = (p.means - CENTRE) @ MAP.T + CENTRE
    factors = MAP @ p.factors
    covariances = factors @ np.swapaxes(factors, -1, -2) + BLUR**2 * np.eye(2)
    return Mixtures(p.n_components, means, np.linalg.cholesky(covariances))
