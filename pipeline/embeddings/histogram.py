"""`HistogramEmbedding`: embed a bag as its histogram under an additive homogeneous kernel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ..core import Integer, OneOf
from ..core.arrays import Floats, Integers
from ..core.errors import ParameterError
from ..data.bags.bags import Bags
from ..data.bags.box import Box
from .base import ChoiceSample, Embedding, Marginals, MarginalSpec
from .bases.functions import MAX_FUNCTIONS
from .description import Description
from .hdd_measures import NodesOfSpec, WeightsOfSpec, check_nodes, count_parts, lambda_nodes
from .kernels.histogram_kernels import histogram_powers
from .kinds import embedding

# The measure over λ for each distance; the features of "l2" are the histogram itself.
_MEASURES = {"js": "js", "chi2": "chi2", "intersection": "tv", "l2": None}
AT_ZERO = ((0.0,), (1.0,))  # the node of "l2": λ = 0 with weight 1

HistogramDistance = Annotated[str, OneOf("js", "chi2", "intersection", "l2")]
Bins = Annotated[int, Integer(1)]

COUNTS_IN_TABLE = 512  # powers of smaller counts are tabulated; most bins hold fewer points


@dataclass(frozen=True, kw_only=True)
class HistogramSpec(MarginalSpec):
    """A fitted histogram embedding; see `HistogramEmbedding` for the fields.

    ``lambdas`` and ``weights`` are the nodes of the integral over λ.

    See Also
    --------
    bagbasis.HistogramEmbedding : Histograms of coordinates.
    EmbeddingSpec : Base class of fitted embeddings.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import HistogramEmbedding
    >>> spec = HistogramEmbedding(n_bins=4).fit(X).spec_
    >>> spec.n_features
    96
    """

    distance: HistogramDistance
    n_bins: Bins
    lambdas: NodesOfSpec
    weights: WeightsOfSpec

    @override
    def check_together(self) -> None:
        super().check_together()
        if self.n_features > MAX_FUNCTIONS:
            raise ParameterError(
                f"n_bins is {self.n_bins}: {self.n_features} features in {self.n_dims} "
                f"dimensions, more than {MAX_FUNCTIONS}; use fewer bins or marginals=1 or 2"
            )
        check_nodes(self.lambdas, self.weights)

    @property
    def exponent(self) -> float:
        """Exponent of the real power: features are √w h^{exponent + iλ}."""
        return 1.0 if _MEASURES[self.distance] is None else 0.5

    @property
    def n_features(self) -> int:
        """Length of the embedding."""
        return len(self.groups) * count_parts(self.lambdas) * int(self.n_bins**self.group_size)

    @property
    @override
    def seconds_per_point(self) -> float:
        return 4e-9 * self.groups.size + 1e-11 * self.n_features

    @override
    def describe(self) -> Description:
        bins = f"{self.n_bins**self.group_size:,} bins"
        each = "" if self.is_joint else f" per {self.group_size} coordinates"
        return Description(f"histogram of {bins}{each} under {self.distance}")

    @override
    def fill(self, bags: Bags, out: NDArray[Any], outside: Integers) -> None:
        self.run_kernel(
            histogram_powers,
            bags,
            self.n_bins,
            self.exponent,
            np.array(self.lambdas),
            np.sqrt(self.weights),
            _tables(self.lambdas, self.exponent),
            out,
            outside,
        )


@lru_cache(maxsize=8)
def _tables(lambdas: tuple[float, ...], exponent: float) -> Floats:
    """Return real and imaginary parts of c^{exponent + iλ}, shape (M, 2, COUNTS_IN_TABLE)."""
    counts = np.arange(1, COUNTS_IN_TABLE)
    tables = np.zeros((len(lambdas), 2, COUNTS_IN_TABLE))
    for m, rate in enumerate(lambdas):
        powers = counts ** (exponent + 1j * rate)
        tables[m, :, 1:] = powers.real, powers.imag
    return tables


@embedding("histogram", HistogramSpec)
class HistogramEmbedding(Embedding[HistogramSpec]):
    """Histograms of coordinates, compared by additive kernels.

    This is the baseline "Hist JS" of Sutherland et al. 2016, §5 (Oliva 2018, §4.3).

    h is the fraction of a bag's points in each bin of the box. Each h is transformed by the
    homogeneous map of Vedaldi and Zisserman (2012), √w_m h^{½+iλ_m}. The nodes λ_m are fitted to κ
    (`hdd_measures`) instead of regularly spaced. ‖A(X) − A(Y)‖² then approximates Σ_bins κ(h, h').
    The features of an empty bin are exactly 0, and its distance from any other bin is exactly κ.

    Parameters
    ----------
    distance
        Distance κ(x, y) of two bins: ½x log(2x/(x+y)) + ½y log(2y/(x+y)) for "js", (x−y)²/(x+y) for
        "chi2", |x−y| for "intersection", (x−y)² for "l2". The inner product A(X)ᵀA(Y) approximates
        Σ k(h, h') with κ = k(x,x) + k(y,y) − 2k(x,y). This k is 2xy/(x+y) for "chi2", min(x, y) for
        "intersection" and xy for "l2".
    n_bins
        Number of bins per dimension, n_bins^d in all (Sutherland et al. 2016, §5: 10).
    n_lambdas
        Number of nodes for the integral over λ, at most eight. Each node gives two features per
        bin. Not used by "l2", whose features are the histogram.
    marginals
        Number of coordinates of each histogram. One histogram is made for each set of this many
        coordinates, and all histograms are concatenated. Use it for d ≳ 4.

    Attributes
    ----------
    spec_ : HistogramSpec
        The fitted embedding, with all parameters that `fit` chose.

    See Also
    --------
    HDDEmbedding : The same distances between densities.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import HistogramEmbedding
    >>> embedding = HistogramEmbedding(distance='chi2', n_bins=5).fit(X)
    >>> embedding.transform(X).shape[0]
    80
    """

    smoothness: ClassVar = {"n_bins": {}}
    distance: HistogramDistance = "js"
    n_bins: Bins = 10
    n_lambdas: Annotated[int, Integer(1)] = 3
    marginals: Marginals = None

    @override
    def decide(self, sample: ChoiceSample, out_of_box: str, box: Box) -> HistogramSpec:
        # nothing is chosen from the sample
        measure = _MEASURES[self.distance]
        nodes = AT_ZERO if measure is None else lambda_nodes(measure, self.n_lambdas)
        return HistogramSpec(
            distance=self.distance,
            n_bins=self.n_bins,
            lambdas=nodes[0],
            weights=nodes[1],
            marginals=self.marginals,
            out_of_box=out_of_box,
            box=box,
        )
