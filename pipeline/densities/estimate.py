"""`estimate_densities`: orthogonal-series and kernel estimates of the densities of bags."""

from __future__ import annotations

import logging
from typing import Annotated

import numpy as np

from ..core import OneOf, Real, checked
from ..core.errors import DataError, ParameterError
from ..data.bags.bags import BagsInMemory, as_bags
from ..data.bags.box import Box
from ..data.labelled.labelled import box_of_bags
from ..embeddings.base import BoxLike, OutOfBox
from ..embeddings.bases.coefficients import project
from ..embeddings.bases.functions import Basis
from ..embeddings.bases.index_sets import known_index_set
from ..embeddings.bases.smoothness import DensityKind, IndexShape, damping, limits_of
from ..embeddings.refusals import refuse_outside
from .density_checks import MAX_VALUES_BYTES
from .leave_one_out import check_estimate, check_smoothness, choose_smoothness, kernel_index_set
from .series import Densities

logger = logging.getLogger(__name__)


@checked
def estimate_densities(
    bags: BagsInMemory,
    method: DensityKind = "series",
    *,
    smoothness: Annotated[float | str, Real() | OneOf("loo")] = "loo",
    shape: IndexShape = "ball",
    basis: Basis = "cosine",
    box: BoxLike | None = None,
    out_of_box: OutOfBox = "clip",
) -> Densities:
    """Return the density estimate of each bag, as a series on one basis.

    A "series" estimate is p̃ = Σ_{α ∈ M} a_α(X) φ_α, where a_α(X) is the mean of φ_α over the bag
    (Oliva 2018, eq. 2.7-2.8). A "kde" estimate is the Gaussian kernel estimate (Oliva 2018, eq.
    2.27-2.29) with reflection at the edges of the box. Its cosine coefficients are
    a_α(X) e^{−½(πh)²‖α‖²}. Coefficients of norm up to 5.5 / πh are used, which changes values by
    less than 1e-6 of a kernel's peak. `kde_at` computes the exact sum.

    Parameters
    ----------
    bags : Bags, or list of (n_i, d) arrays
        Bags of points.
    method : {"series", "kde"}
        Kind of the estimate: an orthogonal series or a kernel estimate.
    smoothness : float or "loo"
        Smoothness of the estimates. For series, it is max_norm ≥ 0 of a ball or n_per_dim ≥ 1 of a
        tensor set. For kernel estimates, it is the bandwidth h in (0, 1], as a fraction of the
        box's side. "loo" takes the best value by `choose_smoothness` for these bags.
    shape : {"ball", "tensor"}
        Shape of the index set of a series; see `bases.index_set`.
    basis : {"cosine", "trigonometric", "legendre"}
        Basis of a series.
    box : Box, or sequence of (lo, hi), optional
        Range of each coordinate. Default: the unit cube if it contains the points, else the range
        of the points plus 1 % on each side.
    out_of_box : {"clip", "drop", "error"}
        How to treat points outside the box.

    Returns
    -------
    Densities
        One density per bag.

    Raises
    ------
    DataError
        If there are no bags, or smoothness="loo" and no bag has two points.
    BagError
        If out_of_box="error" and a bag has a point outside the box. If out_of_box="drop" and a bag
        has no point inside the box.
    ParameterError
        If a parameter has an unknown value or is out of range, or the estimates need more than
        200,000 functions or more than 8 GiB of coefficients.

    See Also
    --------
    Densities : Densities as series.
    choose_smoothness : Choose the number of basis functions.
    kde_at : Kernel density estimates.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(0, s, (40, 1)) for s in (1.0, 1.1, 3.0)]
    >>> from bagbasis.densities import estimate_densities
    >>> estimate_densities(X, 'series').at([[0.0], [2.0]]).shape
    (3, 2)
    """
    check_estimate(method, shape, basis)
    data = as_bags(bags)
    if len(data) == 0:
        raise DataError("no bags to estimate densities of")
    box = box_of_bags(data) if box is None else Box.of(box, data.n_dims)
    if isinstance(smoothness, str):
        value = choose_smoothness(
            data, method, shape=shape, basis=basis, box=box, out_of_box=out_of_box
        ).best
    else:
        value = smoothness
        check_smoothness(method, shape, value)
    if method == "kde":
        indices = kernel_index_set(data.n_dims, value)
    else:
        indices = known_index_set(data.n_dims, *limits_of(shape, value), basis)
    n_bytes = 8 * len(data) * len(indices)
    if n_bytes > MAX_VALUES_BYTES:
        raise ParameterError(
            f"{len(indices):,} coefficients of {len(data):,} densities take {n_bytes:,} bytes; "
            "estimate fewer bags at a time, or smoother"
        )
    coefficients = np.empty((len(data), len(indices)))
    drop, group = out_of_box == "drop", np.arange(data.n_dims)[None]
    outside = project(data, indices, group, basis, box, coefficients, drop=drop)
    refuse_outside(outside, coefficients, out_of_box, box)
    if outside.any():
        logger.info("%d points outside the box: %s", outside.sum(), out_of_box)
    if method == "kde":
        coefficients *= damping(indices, basis, value)
    coefficients.setflags(write=False)
    return Densities(
        coefficients, indices, basis=basis, box=box, coordinate_names=data.coordinate_names
    )
