"""`HDDEmbedding`: bags under Jensen-Shannon, total-variation, χ² or Hellinger geometry."""

from __future__ import annotations

from itertools import combinations
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from ..bags import Box
from ..bases import index_set
from ..errors import ParameterError
from .bandwidth import choose_bandwidth
from .hdd_measures import lambda_nodes
from .hdd_spec import HDDSpec
from .spec import Sample
from .transform import BagTransformer

MAX_COEFFICIENTS = {1: 256, 2: 64, 3: 24}
MAX_GRID = {1: 4096, 2: 512, 3: 96}
RESOLUTION = 2.75  # beyond the frequency 2.75 / πh the Gaussian leaves 2.3 % of a coefficient
OF_BEST_BANDWIDTH = 0.8  # see the notes of `HDDEmbedding`


class HDDEmbedding(BagTransformer, TransformerMixin, BaseEstimator):
    """The first basis under a homogeneous density distance (001, §3; 004, §4.1).

    ‖A(X) − A(Y)‖² approximates d²(p, q) = ∫ κ(p, q) of the bags' density estimates, so that
    random features of A give the kernel exp(−d²/2σ²).

    Parameters
    ----------
    distance : {"js", "tv", "chi2", "hellinger"}
        See `hdd_measures` for κ and its units; "tv" is ∫|p − q|.
    n_per_dim : int, default 10
        Tensor index set of the functions that the powers of the density are projected on.
    max_norm : float, optional
        Ball index set ‖α‖₂ ≤ max_norm instead.
    n_lambdas : int, default 3
        Nodes of the integral over λ. Three fitted nodes leave a relative error of κ of at most
        0.12 % for JS and 0.5 % for χ², and on average 6 % for TV (3.5 % with five), whose κ has
        a kink. Hellinger needs one and takes one.
    nodes : {"fitted", "quantile", "random"}
        See `hdd_measures.lambda_nodes`.
    bandwidth : float or "auto"
        h of the Gaussian density estimate, as a share of the box's side; in two dimensions at
        least 0.0075, in three 0.02. "auto": 0.8 times the minimiser of the leave-one-out score
        (004, eq. 2.32) averaged over bags of the data. The score weighs squared errors of p;
        distances of powers of p suffer more from what smoothing takes away.
    floor : float
        Density values below count as this one (uniform density is 1).
    grid : int, optional
        Midpoints a dimension on which densities are evaluated; default one a coefficient that
        the Gaussian leaves (2.75 / πh), which changes JS distances by half a percent.
    marginals : 1, 2 or 3, optional
        One embedding a coordinate, pair or triple; needed for more than three dimensions.
    out_of_box : {"clip", "drop", "error"}
        What becomes of points outside the box; clipped and dropped ones are counted.
    box : sequence of (lo, hi), optional
        Scaled to [0, 1]^d. Default as in `ProjectionEmbedding`.
    dtype : {"float32", "float64"}
        Of what `transform` returns.

    Attributes
    ----------
    spec_ : HDDSpec
        What was decided at `fit`.

    Notes
    -----
    The kernel exp(−d²/2σ²), 2σ² twice the median true d², of 50 mixtures in [0, 1]² from 2,500
    points each (001, §5.1 and Appendix A), squared correlation with the true kernel and
    determination 1 − SSE/SST, medians of five seeds with the defaults, from A and from 7,000
    random features of A (orthogonal ones: plain ones have .986 and .971 for JS):

    ========== ====== ====== ============ ============
    distance   A      A      features     features
    ========== ====== ====== ============ ============
    js         .993   .979   .992         .980
    hellinger  .993   .986   .992         .984
    chi2       .992   .960   .991         .962
    tv         .981   −.15   .979         −.16
    ========== ====== ====== ============ ============

    TV shrinks: the powers of large λ oscillate faster than 10 functions a dimension, which keep
    seven eighths of ‖A‖², and with them a share of every distance alike. Where σ is a multiple of
    the median distance, as in `RandomFourierFeatures`, that share does not matter (determination
    .91 with σ from A's own median); for distances themselves take n_lambdas=5, n_per_dim=20
    (.989 and .74; .97 with the own median) at seven times the length.

    Counting the components of a mixture (001, §5.2; 200 points, 5,000 random features), error
    with 4,000 and 16,000 training bags: JS 1.51 and 1.47, Hellinger 1.51 and 1.48, χ² 1.51, TV
    1.51; `ProjectionEmbedding` 1.64 and 1.56. h hardly matters there.

    A bag of 200 points in R² takes 24 times as long as in a `ProjectionEmbedding`.
    """

    def __init__(
        self,
        distance: str = "js",
        n_per_dim: int = 10,
        max_norm: float | None = None,
        n_lambdas: int = 3,
        nodes: str = "fitted",
        bandwidth: float | str = "auto",
        floor: float = 1e-3,
        grid: int | None = None,
        marginals: int | None = None,
        out_of_box: str = "clip",
        box: Any = None,
        dtype: str = "float32",
    ) -> None:
        self.distance = distance
        self.n_per_dim = n_per_dim
        self.max_norm = max_norm
        self.n_lambdas = n_lambdas
        self.nodes = nodes
        self.bandwidth = bandwidth
        self.floor = floor
        self.grid = grid
        self.marginals = marginals
        self.out_of_box = out_of_box
        self.box = box
        self.dtype = dtype

    def resolve(self, n_dims: int, box: Box, sample: Sample) -> HDDSpec:
        """The spec for points in R^n_dims; ``sample()`` is read only for bandwidth="auto"."""
        size = self._check(n_dims)
        box = box if self.box is None else Box.of(self.box, n_dims)
        lambdas, weights = lambda_nodes(self.distance, self.n_lambdas, self.nodes)
        groups = np.array(list(combinations(range(n_dims), size)), dtype=np.int64)
        bandwidth: Any = self.bandwidth
        if bandwidth == "auto":
            drop = self.out_of_box == "drop"
            best = choose_bandwidth(sample(), groups, box, MAX_COEFFICIENTS[size], drop)
            bandwidth = OF_BEST_BANDWIDTH * best
        elif np.pi * MAX_COEFFICIENTS[size] * bandwidth < 1.5:
            least = 1.5 / (np.pi * MAX_COEFFICIENTS[size])
            raise ParameterError(
                f"bandwidth is {bandwidth}; in {size} dimensions expected at least {least:.3f}"
            )
        n_per_dim: int | None = self.n_per_dim
        max_norm = self.max_norm
        if max_norm is not None:
            n_per_dim = None
        n_functions = int(index_set(size, n_per_dim, max_norm).max()) + 1
        needed = int(np.ceil(RESOLUTION / (np.pi * float(bandwidth))))
        n_coefficients = min(max(needed, n_functions + 2), MAX_COEFFICIENTS[size])
        return HDDSpec(
            self.distance,
            None if n_per_dim is None else int(n_per_dim),
            None if max_norm is None else float(max_norm),
            lambdas,
            weights,
            float(bandwidth),
            float(self.floor),
            n_coefficients,
            int(self.grid or max(n_coefficients, 2 * n_functions)),
            None if self.marginals is None else int(self.marginals),
            self.out_of_box,
            box,
        )

    def _check(self, n_dims: int) -> int:
        """Raise ParameterError for what can not be used; the dimensions of one marginal."""
        self.check_common()
        size = n_dims if self.marginals is None else self.marginals
        if not _is_integer(size) or not 1 <= size <= n_dims:
            raise ParameterError(f"marginals is {size!r}; expected 1 to {n_dims} or None")
        if size > max(MAX_COEFFICIENTS):
            raise ParameterError(
                f"density estimates in {size} dimensions are out of reach; use marginals=1, 2 or 3"
            )
        if self.max_norm is None and not (_is_integer(self.n_per_dim) and self.n_per_dim >= 1):
            raise ParameterError(f"n_per_dim is {self.n_per_dim!r}; expected an integer ≥ 1")
        if self.max_norm is not None and not _is_number(self.max_norm, 0):
            raise ParameterError(f"max_norm is {self.max_norm!r}; expected a finite number ≥ 0")
        bandwidth: Any = self.bandwidth
        if bandwidth != "auto" and not (_is_number(bandwidth, 1e-6) and bandwidth < 1):
            raise ParameterError(
                f"bandwidth is {bandwidth!r}; expected a share of the box's side or 'auto'"
            )
        if not _is_number(self.floor, 1e-30):
            raise ParameterError(f"floor is {self.floor!r}; expected a number > 0")
        most = MAX_GRID[int(size)]
        if self.grid is not None and not (_is_integer(self.grid) and 2 <= self.grid <= most):
            raise ParameterError(f"grid is {self.grid!r}; expected 2 to {most} midpoints or None")
        return int(size)


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_number(value: Any, least: float) -> bool:
    return isinstance(value, Real) and least <= float(value) < np.inf
