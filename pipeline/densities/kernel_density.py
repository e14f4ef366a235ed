"""`kde_at`: exact kernel density estimates of bags at given points."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..core import Real, checked
from ..core.arrays import Floats
from ..core.errors import DataError
from ..data.bags.bags import BagsInMemory, as_bags
from ..data.bags.box import Box
from ..data.labelled.labelled import box_of_bags
from ..embeddings.base import OF_SIDE, BoxLike
from ..execution.pool import even_edges, run_kernel
from .density_checks import box_contains, box_volume, checked_points, in_unit_cube
from .reflected_kernels import POINTS_AT_ONCE, reflected_density

_SECONDS_PER_GAP = 1e-8  # for a pair of coordinates with their mirror images
REACH_IN_BANDWIDTHS = 9.0  # e^{−81/2} is below the rounding of a double


@checked
def kde_at(
    bags: BagsInMemory, points: ArrayLike, *, bandwidth: float, box: BoxLike | None = None
) -> Floats:
    """Evaluate the kernel density estimate of each bag at given points.

    The estimate is p̂(y) = (1/n) Σ_j Π_l k_h(x_jl, y_l) for each bag and each point (Oliva 2018, eq.
    2.27-2.29).

    k_h is the Gaussian kernel (2.28) with mirror images at the edges of the box, so that p̂
    integrates to one in the box. The time for each point is proportional to the number n of points
    in the bag. Use `kde_at` to check `estimate_densities`, or if `estimate_densities` would need
    too many functions.

    Parameters
    ----------
    bags : Bags, or list of (n_i, d) arrays
        Bags of points. Points outside the box are moved to its edge.
    points : array_like or table, shape (m, d)
        Points in the units of the data; in one dimension, shape (m,) is accepted, too. If the
        coordinates of the bags have names, columns of a table are put in their order.
    bandwidth : float in (0, 1]
        Bandwidth h as a fraction of the box's side in each dimension.
    box : Box, or sequence of (lo, hi), optional
        Range of each coordinate. Default: the unit cube if it contains the points of the bags, else
        their range plus 1 % on each side.

    Returns
    -------
    float64, shape (n_bags, m)
        Densities per unit of volume of the data; zero outside the box.

    Raises
    ------
    DataError
        If there are no bags, or the points have another dimension, other names, or values that are
        not finite.
    ParameterError
        If the bandwidth is outside (0, 1].

    See Also
    --------
    estimate_densities : Estimate the density of each bag.
    median_bandwidth : Bandwidth from distances between points.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(0, s, (40, 1)) for s in (1.0, 1.1, 3.0)]
    >>> from bagbasis.densities import kde_at
    >>> kde_at(X, [[0.0], [2.0]], bandwidth=0.1).shape
    (3, 2)
    """
    data = as_bags(bags)
    if len(data) == 0:
        raise DataError("no bags to estimate densities of")
    h = check_bandwidth(bandwidth)
    box = box_of_bags(data) if box is None else Box.of(box, data.n_dims)
    x = checked_points(points, data.n_dims, data.coordinate_names)
    inside = box_contains(box, x)
    out = np.zeros((len(data), len(x)))
    values = np.empty((len(data), int(inside.sum())))
    n_units = len(data) * -(-values.shape[1] // POINTS_AT_ONCE)
    per_unit = POINTS_AT_ONCE * len(data.points) / len(data) * data.n_dims
    run_kernel(
        reflected_density,
        even_edges(n_units, _SECONDS_PER_GAP * per_unit),
        in_unit_cube(box, data.points),
        data.offsets,
        in_unit_cube(box, x[inside]),
        h,
        REACH_IN_BANDWIDTHS * h,
        int(np.ceil(0.5 * (1 + REACH_IN_BANDWIDTHS * h))),
        values,
    )
    out[:, inside] = values / box_volume(box)
    return out


def check_bandwidth(bandwidth: object) -> float:
    """Return the bandwidth if it is a fraction of the box's side; ParameterError otherwise."""
    return Real(le=1, gt=0, kind=OF_SIDE).check("bandwidth", bandwidth)
