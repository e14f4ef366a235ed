"""Homogeneous distances between densities, and the measures μ(λ) that define them.

κ(x, y) = ∫_{λ ≥ 0} |x^{α/2+iλ} − y^{α/2+iλ}|² dμ(λ), homogeneous of order α: κ(tx, ty) = t^α κ(x,
y) (Sutherland et al. 2016, §3.1; Sutherland 2016, §4.3.2; Fuglede 2005). Some printed measures are
wrong: for JS and TV in Sutherland et al. 2016 (Table 1), for TV in Oliva 2018 (Table 4.1), and for
TV and Hellinger in Sutherland 2016. The measures below are checked against κ. They are in nats, for
the default order of each distance:

========== = ============================================== ============================ ======
distance   α κ(x, y)                                        dμ(λ)                        κ(1,0)
========== = ============================================== ============================ ======
js         1 ½x log(2x/(x+y)) + ½y log(2y/(x+y))            dλ / (cosh(πλ)(1 + 4λ²))     ½ ln 2
tv         1 |x − y|                                        (4/π) dλ / (1 + 4λ²)         1
chi2       1 (x − y)² / (x + y)                             2 dλ / cosh(πλ)              1
hellinger  1 ½(√x − √y)²                                    ½ δ(λ = 0)                   ½
l2         2 (x − y)²                                       δ(λ = 0)                     1
========== = ============================================== ============================ ======

"tv" is ∫|p − q|; the usual total variation distance is half of it. For a κ of order 1 and another
order α, κ_α(x, y) = Z(x^α + y^α) − (xy)^{(α−1)/2} (Z(x + y) − κ(x, y)) with Z = κ(1,0) and κ from
the table.

`FITTED` has sets of one to eight nodes. They minimise the mean squared relative error of
κ(x, y) ≈ Σ w |x^{½+iλ} − y^{½+iλ}|² over log-ratios |log(x/y)| from 0.02 to 11, and Σ w = κ(1, 0)
holds exactly. The comment above each set is its largest relative error over that range. (Five
mid-quantiles of μ have errors 7.0e-2 for JS, 1.1e-1 for χ² and 9.5e-1 for TV; Gauss-Legendre in the
quantile has 3.1e-2, 4.7e-2 and 8.8e-1.) The largest error for TV comes from the kink at x = y,
which no finite sum reproduces. The mean error for TV is 3.5 % for five fitted nodes and 6.1 % for
mid-quantiles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Annotated

import numpy as np

from ..core import Integer, ListOf, OneOf, RandomSeed, Real, checked
from ..core.arrays import Floats
from ..core.errors import ParameterError

Nodes = tuple[tuple[float, ...], tuple[float, ...]]
"""Nodes λ and their weights."""

# κ(1, 0), the total mass of μ
TOTAL_MASS = {"js": 0.5 * np.log(2.0), "tv": 1.0, "chi2": 1.0, "hellinger": 0.5, "l2": 1.0}
DISTANCES = tuple(TOTAL_MASS)
# default order α of homogeneity of each distance
ORDERS = {"js": 1.0, "tv": 1.0, "chi2": 1.0, "hellinger": 1.0, "l2": 2.0}
POINT_MASSES = ("hellinger", "l2")  # at λ = 0
Distance = Annotated[str, OneOf("js", "tv", "chi2", "hellinger", "l2")]
NodeRule = Annotated[str, OneOf("fitted", "quantile", "random")]
NodesOfSpec = Annotated[tuple[float, ...], ListOf(Real(ge=0), 1)]
WeightsOfSpec = Annotated[tuple[float, ...], ListOf(Real(gt=0), 1)]


@checked
def lambda_nodes(
    distance: Distance,
    n_lambdas: Annotated[int, Integer(1)],
    nodes: NodeRule = "fitted",
    seed: RandomSeed = 0,
) -> Nodes:
    """Return nodes λ_m and weights w_m with κ(x, y) ≈ Σ_m w_m |x^{α/2+iλ_m} − y^{α/2+iλ_m}|².

    Parameters
    ----------
    distance : {"js", "tv", "chi2", "hellinger", "l2"}
        Name of the distance. Hellinger and L2 always use the single node λ = 0.
    n_lambdas : int
        Number M ≥ 1 of nodes; at most eight for "fitted".
    nodes : {"fitted", "quantile", "random"}
        Rule for the nodes. "fitted" minimises the relative error of κ, see above. "quantile" takes
        mid-quantiles of μ. "random" draws from μ, as in Sutherland et al. 2016, §3.1.
    seed : int
        Seed for drawing the nodes if they are "random".
    """
    mass = float(TOTAL_MASS[distance])
    if distance in POINT_MASSES:
        return (0.0,), (mass,)
    if nodes == "fitted":
        sets = FITTED[distance]
        if n_lambdas > len(sets):
            raise ParameterError(f"fitted nodes go to n_lambdas = {len(sets)}; got {n_lambdas}")
        return sets[n_lambdas - 1]
    if nodes == "quantile":
        shares = (np.arange(n_lambdas) + 0.5) / n_lambdas
    else:
        shares = np.random.default_rng([seed, n_lambdas]).random(n_lambdas)
    values = _QUANTILES[distance](shares)
    return tuple(values.tolist()), (mass / n_lambdas,) * n_lambdas


def count_parts(lambdas: Sequence[float]) -> int:
    """Return the number of real functions for the nodes: one for λ = 0, two for any other node."""
    return sum(1 if rate == 0 else 2 for rate in lambdas)


def check_nodes(lambdas: Sequence[float], weights: Sequence[float]) -> None:
    """Raise ParameterError if the numbers of nodes and weights differ."""
    if len(lambdas) != len(weights):
        raise ParameterError(f"{len(lambdas)} nodes, but {len(weights)} weights")


def _tv_quantile(u: Floats) -> Floats:
    return 0.5 * np.tan(0.5 * np.pi * u)


def _chi2_quantile(u: Floats) -> Floats:
    return np.arcsinh(np.tan(0.5 * np.pi * u)) / np.pi


def _js_quantile(u: Floats) -> Floats:
    grid, distribution = _js_distribution()
    return np.interp(u, distribution, grid)


@lru_cache(maxsize=1)
def _js_distribution() -> tuple[Floats, Floats]:
    """Return μ([0, λ]) / μ(R₊) for JS on a fine grid; less than 1e-18 of μ lies beyond λ = 12."""
    grid = np.linspace(0.0, 12.0, 200_001)
    density = 1.0 / (np.cosh(np.pi * grid) * (1.0 + 4.0 * grid**2))
    steps = 0.5 * (density[1:] + density[:-1]) * np.diff(grid)
    distribution = np.concatenate([[0.0], np.cumsum(steps)])
    return grid, distribution / distribution[-1]


_QUANTILES: dict[str, Callable[[Floats], Floats]] = {
    "tv": _tv_quantile,
    "chi2": _chi2_quantile,
    "js": _js_quantile,
}

# fmt: off
FITTED: dict[str, tuple[Nodes, ...]] = {
    "js": (
        # 6.0e-02
        ((0.2986698999,),
         (0.3465735903,)),
        # 6.3e-03
        ((0.2018159758, 0.7695084893),
         (0.304049013, 0.04252457727)),
        # 1.2e-03
        ((0.1755676695, 0.5975195128, 1.242225708),
         (0.2801599945, 0.06143846644, 0.00497512932)),
        # 2.0e-04
        ((0.1654985668, 0.5481431922, 1.042983158, 1.738958666),
         (0.269783458, 0.06826392248, 0.007923711419, 0.0006024983824)),
        # 3.4e-05
        ((0.1595231445, 0.522416547, 0.973432632, 1.515941134, 2.242577312),
         (0.2633759913, 0.07242482192, 0.009690792631, 0.001002616059, 7.936837117e-05)),
        # 5.6e-06
        ((0.1553032274, 0.5051636948, 0.9324837359, 1.430058835, 2.000471084, 2.747711161),
         (0.2587065706, 0.07537863332, 0.01104767488, 0.001293487964, 0.0001359755802,
          1.124795138e-05)),
        # 1.1e-06
        ((0.1523753019, 0.493499521, 0.9060720259, 1.380934963, 1.909525623, 2.504839779,
          3.28077017),
         (0.2553889885, 0.07741572095, 0.01205208259, 0.001519035473, 0.0001773014228,
          1.892203216e-05, 1.539291746e-06)),
        # 3.3e-07
        ((0.1504542498, 0.4859594386, 0.8893651569, 1.351114893, 1.860091583, 2.417141821,
          3.048107885, 3.887076376),
         (0.2531763364, 0.07874209677, 0.01274078843, 0.00167979444, 0.0002076672271,
          2.421045472e-05, 2.521365691e-06, 1.75201593e-07)),
    ),
    "tv": (
        # 9.9e-01
        ((0.6262851208,),
         (1,)),
        # 9.5e-01
        ((0.4793021293, 3.719640947),
         (0.8440500395, 0.1559499605)),
        # 8.4e-01
        ((0.4034728149, 2.018147519, 10.99252212),
         (0.7358997789, 0.2062945516, 0.05780566946)),
        # 6.4e-01
        ((0.359817204, 1.548465349, 4.921337105, 24.62669178),
         (0.6829158737, 0.2128680811, 0.07871409408, 0.0255019511)),
        # 4.0e-01
        ((0.330108508, 1.314570558, 3.34621638, 9.56808585, 43.94256352),
         (0.6458749312, 0.2151224534, 0.08636579817, 0.03885909394, 0.01377772336)),
        # 3.0e-01
        ((0.3077028012, 1.166025596, 2.651515841, 5.909299797, 15.7219576, 63.46111831),
         (0.6168235851, 0.2172891159, 0.08958873108, 0.04526935701, 0.02239821942,
          0.008630991572)),
        # 2.4e-01
        ((0.2901943847, 1.063343527, 2.272916278, 4.436806038, 9.232332192, 22.90855943,
          79.28014179),
         (0.5928160751, 0.2197893773, 0.09137931834, 0.04803224107, 0.02712198498,
          0.01434913471, 0.006511868489)),
        # 1.9e-01
        ((0.2748498168, 0.9812734384, 2.01555503, 3.646809975, 6.63187532, 13.10844339,
          30.38918738, 90.73165404),
         (0.5711232917, 0.2226653362, 0.09365460805, 0.0497644817, 0.0297516276, 0.01792124609,
          0.01004569406, 0.005073714619)),
    ),
    "chi2": (
        # 1.4e-01
        ((0.421619093,),
         (1,)),
        # 2.2e-02
        ((0.265413616, 1.016991357),
         (0.8251279289, 0.1748720711)),
        # 5.0e-03
        ((0.2157346763, 0.7254347251, 1.491463897),
         (0.7211494707, 0.2392843913, 0.03956613797)),
        # 1.6e-03
        ((0.1993960782, 0.6465756878, 1.190779375, 1.966013994),
         (0.6802546096, 0.2528544216, 0.05797006518, 0.008920903641)),
        # 4.1e-04
        ((0.1920144314, 0.6157209923, 1.104975089, 1.671379381, 2.453603675),
         (0.6613395431, 0.2587998011, 0.06482724621, 0.01310200835, 0.00193140121)),
        # 9.8e-05
        ((0.1869995141, 0.5965110837, 1.062033847, 1.577038603, 2.158390569, 2.946369376),
         (0.6483753579, 0.2633887783, 0.06966041878, 0.01528000619, 0.002883987789,
          0.0004114510895)),
        # 2.2e-05
        ((0.1831212793, 0.5821176293, 1.032274906, 1.523777386, 2.055879885, 2.648747888,
          3.442092383),
         (0.6382101107, 0.2669538827, 0.07360477711, 0.01703417269, 0.003483793175,
          0.0006263922555, 8.687127394e-05)),
        # 5.0e-06
        ((0.180011297, 0.5707573556, 1.009455089, 1.485594921, 1.994704841, 2.540167212,
          3.143622115, 3.944333191),
         (0.6299538585, 0.2697415735, 0.07685688959, 0.0185237677, 0.003994565381,
          0.0007770796535, 0.0001342600305, 1.800562788e-05)),
    ),
}
# fmt: on
