"""`HDDEmbedding`: embed bags so that distances are Jensen-Shannon, TV, χ², Hellinger or L2."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from typing_extensions import override

from ..core import Integer, None_, OneOf, RandomSeed, Real
from ..core.errors import ParameterError
from ..core.moved import without_gone
from ..data.bags.box import Box
from .base import OF_SIDE, ChoiceSample, Embedding, Functions, Marginals, check_marginals
from .bases.smoothness import choose_bandwidth
from .hdd_measures import DISTANCES, ORDERS, Distance, NodeRule, lambda_nodes
from .hdd_spec import (
    MAX_COEFFICIENTS,
    MAX_GRID,
    Floor,
    HDDSpec,
    Order,
    reached,
)
from .kinds import embedding
from .projection import Norm, ProjectionEmbedding

_RESOLUTION = 2.4  # beyond the frequency 2.4 / πh the Gaussian leaves 5.6 % of a coefficient
_MIN_RESOLVED = 1.5  # smallest πhK: the Gaussian leaves a third of the last of K coefficients
GRID_SPACING = 2.3  # bandwidths between midpoints
BANDWIDTH_FACTOR = 0.7  # see the notes of `HDDEmbedding`
N_PER_DIM, N_LAMBDAS = 10, 3  # the papers' set; fitted nodes: .12 % error of κ
# If `marginals` is None: all coordinates together up to 3 dimensions, pairs up to 6 (at most 15
# pairs of 600 features), else single coordinates.
JOINT_DIMS, _PAIRED_DIMS = 3, 6
TV_PER_DIM, TV_LAMBDAS = {1: 32, 2: 20, 3: 10}, 5  # see the notes of `HDDEmbedding`


@embedding("hdd", HDDSpec, short_names={name: {"distance": name} for name in DISTANCES})
class HDDEmbedding(Embedding[HDDSpec]):
    """Embed bags so that Euclidean distances approximate a distance between their densities.

    The distance is Jensen-Shannon, Hellinger, χ², total variation or L2. These distances are
    homogeneous (Sutherland et al. 2016, §3; Oliva 2018, §4.1; Sutherland 2016, §4.3).

    ‖A(X) − A(Y)‖² approximates d²(p, q) = ∫ κ(p, q), where p and q are the density estimates of
    the bags X and Y. Random features of A then give the kernel exp(−d²/2σ²).

    Parameters
    ----------
    distance
        Distance between densities; "tv" is ∫|p − q|. `hdd_measures` defines κ and its units. "l2"
        is the distance of `ProjectionEmbedding`, and A then consists of its coefficients.
    n_per_dim
        Number of functions per dimension (tensor index set) on which powers of the density are
        projected. Default: 10; for "tv" 32, 20 or 10 in one, two or three dimensions.
    max_norm
        Radius of a ball index set ‖α‖₂ ≤ max_norm, which replaces n_per_dim.
    n_lambdas
        Number of nodes for the integral over λ. Default: 3; the relative error of κ is then at most
        0.12 % for JS and 0.5 % for χ². For "tv", whose κ has a kink, the default is 5, with a mean
        error of 3.5 %. Hellinger and L2 always use one node.
    nodes
        Rule for the nodes; see `hdd_measures.lambda_nodes`.
    order
        Homogeneity α ≤ 4 of κ_α(x, y) = ∫ |x^{α/2+iλ} − y^{α/2+iλ}|² dμ(λ) (Sutherland 2016,
        §4.3.2), where μ is the measure of the distance. Default: 2 for "l2", 1 for all other
        distances.
    bandwidth
        Bandwidth h of the Gaussian density estimate, as a fraction of the box's side. It must be at
        least 0.0075 in two dimensions and 0.02 in three. "auto" is 0.7 times the minimiser of the
        leave-one-out score (Oliva 2018, eq. 2.32), averaged over bags of the data. The factor
        0.7 smooths less, because smoothing harms distances of powers of p more than p itself. For
        "l2", where A is linear in the density, "auto" means no smoothing.
    floor
        Smallest density value (the uniform density is 1). Smaller values are replaced by it. Not
        used by "l2".
    grid
        Number of midpoints per dimension at which densities are evaluated. Default: one for every
        2.3 bandwidths, but at least twice n_per_dim. This changes JS distances by one percent. For
        "tv" the default is n_per_dim.
    seed
        Seed for drawing the nodes if nodes="random".
    marginals
        Number of coordinates that are embedded together: 1 for single coordinates, 2 for pairs, 3
        for triples. Default: all coordinates together up to three dimensions, pairs up to six
        dimensions (not for "tv"), else single coordinates.

    Attributes
    ----------
    spec_ : HDDSpec
        The fitted embedding, with all parameters that `fit` chose.

    Notes
    -----
    "tv" needs powers with a large λ, which oscillate faster than any affordable set of functions.
    The default grid for "tv" therefore has as many midpoints as functions, and no frequency is cut
    off. ‖A‖² is then κ(1, 0), and ‖A − A'‖² is the midpoint rule for ∫ κ(p, q). This takes 4,000
    coefficients in two dimensions. `CoefficientPCA` reduces their number.

    See Also
    --------
    ProjectionEmbedding : L2 distances between densities, at a lower cost.
    HistogramEmbedding : Histograms instead of densities.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import HDDEmbedding
    >>> embedding = HDDEmbedding('hellinger', n_per_dim=4).fit(X)
    >>> embedding.transform(X).shape[0]
    80
    """

    smoothness: ClassVar = ProjectionEmbedding.smoothness
    distance: Distance = field(default="js", kw_only=False)
    n_per_dim: Functions | None = None
    max_norm: Norm | None = None
    n_lambdas: Annotated[int, Integer(1)] | None = None
    nodes: NodeRule = "fitted"
    order: Order | None = None
    bandwidth: Annotated[float, Real(gt=0, lt=1, kind=OF_SIDE)] | Annotated[str, OneOf("auto")] = (
        "auto"
    )
    floor: Floor = 1e-3
    grid: Annotated[int, Integer(2)] | None = None
    seed: RandomSeed = 0
    marginals: Marginals = None

    @override
    def decide(self, sample: ChoiceSample, out_of_box: str, box: Box) -> HDDSpec:
        # the sample is read only for bandwidth="auto"
        n_dims, marginals = box.n_dims, self.marginals
        check_marginals(marginals, n_dims)
        if marginals is None and n_dims > JOINT_DIMS:
            marginals = 2 if n_dims <= _PAIRED_DIMS and self.distance != "tv" else 1
        size = marginals or n_dims
        n_lambdas = self.n_lambdas
        if n_lambdas is None:
            n_lambdas = TV_LAMBDAS if self.distance == "tv" else N_LAMBDAS
        lambdas, weights = lambda_nodes(self.distance, n_lambdas, self.nodes, self.seed)
        n_per_dim, max_norm = self._index_set(size)
        spec = HDDSpec(
            distance=self.distance,
            order=ORDERS[self.distance] if self.order is None else self.order,
            n_per_dim=n_per_dim,
            max_norm=max_norm,
            lambdas=lambdas,
            weights=weights,
            bandwidth=0.5,
            floor=self.floor,
            n_coefficients=1,
            grid=2,
            marginals=marginals,
            out_of_box=out_of_box,
            box=box,
        )
        bandwidth = self._bandwidth(spec, sample)
        n_functions = int(spec.indices.max()) + 1
        grid = (Integer(2, MAX_GRID[size]) | None_).check("grid", self.grid)
        if grid is None and (spec.is_linear or (self.distance == "tv" and self.max_norm is None)):
            grid = max(2, n_functions)
        elif grid is None:
            grid = max(int(np.ceil(1 / (GRID_SPACING * bandwidth))), 2 * n_functions)
        n_coefficients = None
        if spec.is_linear:
            n_coefficients = n_functions
        elif not reached(bandwidth, grid):
            needed = int(np.ceil(_RESOLUTION / (np.pi * bandwidth)))
            n_coefficients = min(max(needed, n_functions + 2), MAX_COEFFICIENTS[size])
        return replace(spec, bandwidth=bandwidth, n_coefficients=n_coefficients, grid=grid)

    @classmethod
    @override
    def from_params(cls, params: dict[str, Any]) -> Self:
        return cls(**without_gone("HDDEmbedding", params))

    def _index_set(self, size: int) -> tuple[int | None, float | None]:
        """Return (n_per_dim, max_norm); one of them is None."""
        if self.max_norm is not None:
            return None, self.max_norm
        if self.n_per_dim is not None:
            return self.n_per_dim, None
        return (TV_PER_DIM.get(size, 1) if self.distance == "tv" else N_PER_DIM), None

    def _bandwidth(self, spec: HDDSpec, sample: ChoiceSample) -> float:
        """Return the bandwidth, given or chosen; 0 if the embedding is linear in the density."""
        bandwidth, size = self.bandwidth, spec.group_size
        if not isinstance(bandwidth, str):
            least = _MIN_RESOLVED / (np.pi * MAX_COEFFICIENTS[size])
            if bandwidth < least and not spec.is_linear:
                raise ParameterError(
                    f"bandwidth is {bandwidth}; in {size} dimensions expected at least {least:.4f}"
                )
            return bandwidth
        if spec.is_linear:
            return 0.0
        most, drop = MAX_COEFFICIENTS[size], spec.out_of_box == "drop"
        return BANDWIDTH_FACTOR * choose_bandwidth(sample(), spec.groups, spec.box, most, drop)
