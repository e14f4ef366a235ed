"""Homogeneous density distances and the measures μ(λ) they are integrals over.

κ(x, y) = ∫_{λ ≥ 0} |x^{α/2+iλ} − y^{α/2+iλ}|² dμ(λ), homogeneous of order α: κ(tx, ty) =
t^α κ(x, y) (001, §3.1; 000, §4.3.2; Fuglede 2005). The measures printed for JS in 001 (Table 1),
for TV in 001 and 004 (Table 4.1), and for TV and Hellinger in 000 are wrong; these are checked
against κ. Here, in nats, for the distance's own order:

========== = ============================================== ============================ ======
distance   α κ(x, y)                                        dμ(λ)                        κ(1,0)
========== = ============================================== ============================ ======
js         1 ½x log(2x/(x+y)) + ½y log(2y/(x+y))            dλ / (cosh(πλ)(1 + 4λ²))     ½ ln 2
tv         1 |x − y|                                        (4/π) dλ / (1 + 4λ²)         1
chi2       1 (x − y)² / (x + y)                             2 dλ / cosh(πλ)              1
hellinger  1 ½(√x − √y)²                                    ½ δ(λ = 0)                   ½
l2         2 (x − y)²                                       δ(λ = 0)                     1
========== = ============================================== ============================ ======

"tv" is ∫|p − q|; the total variation distance in the usual sense is half of it. With another
order, Z = κ(1,0) and κ of the table, κ_α(x, y) = Z(x^α + y^α) − (xy)^{(α−1)/2} (Z(x + y) −
κ(x, y)) for a κ of order 1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..checks import is_integer
from ..errors import ParameterError
from .hdd_nodes import FITTED, Nodes

TOTAL_MASS = {"js": 0.5 * np.log(2.0), "tv": 1.0, "chi2": 1.0, "hellinger": 0.5, "l2": 1.0}
DISTANCES = tuple(TOTAL_MASS)
ORDERS = {"js": 1.0, "tv": 1.0, "chi2": 1.0, "hellinger": 1.0, "l2": 2.0}
POINT_MASSES = ("hellinger", "l2")  # at λ = 0
NODES = ("fitted", "quantile", "random")


def lambda_nodes(distance: str, n_lambdas: int, kind: str = "fitted", seed: int = 0) -> Nodes:
    """Nodes λ_m and weights w_m with κ(x, y) ≈ Σ_m w_m |x^{α/2+iλ_m} − y^{α/2+iλ_m}|².

    Parameters
    ----------
    distance : {"js", "tv", "chi2", "hellinger", "l2"}
        Hellinger and L2 need one node, λ = 0, whatever is asked for.
    n_lambdas : int
        M ≥ 1; "fitted" goes to eight.
    kind : {"fitted", "quantile", "random"}
        "fitted": least relative error of κ, see `hdd_nodes`. "quantile": mid-quantiles of μ.
        "random": draws from μ, as in 001, §3.1.
    seed : int
        Of "random".

    Raises
    ------
    ParameterError
    """
    if distance not in TOTAL_MASS:
        raise ParameterError(f"distance is {distance!r}; expected one of {list(DISTANCES)}")
    if kind not in NODES:
        raise ParameterError(f"nodes is {kind!r}; expected one of {list(NODES)}")
    if not is_integer(n_lambdas, 1):
        raise ParameterError(f"n_lambdas is {n_lambdas!r}; expected an integer ≥ 1")
    n_lambdas = int(n_lambdas)
    mass = float(TOTAL_MASS[distance])
    if distance in POINT_MASSES:
        return (0.0,), (mass,)
    if kind == "fitted":
        sets = FITTED[distance]
        if n_lambdas > len(sets):
            raise ParameterError(f"fitted nodes go to n_lambdas = {len(sets)}; got {n_lambdas}")
        return sets[n_lambdas - 1]
    if kind == "quantile":
        shares = (np.arange(n_lambdas) + 0.5) / n_lambdas
    else:
        shares = np.random.default_rng([seed, n_lambdas]).random(n_lambdas)
    values = _QUANTILES[distance](shares)
    return tuple(values.tolist()), (mass / n_lambdas,) * n_lambdas


def _tv_quantile(u: NDArray[np.float64]) -> NDArray[np.float64]:
    return 0.5 * np.tan(0.5 * np.pi * u)


def _chi2_quantile(u: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.arcsinh(np.tan(0.5 * np.pi * u)) / np.pi


def _js_quantile(u: NDArray[np.float64]) -> NDArray[np.float64]:
    grid, distribution = _js_distribution()
    return np.interp(u, distribution, grid)


@lru_cache(maxsize=1)
def _js_distribution() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """μ([0, λ]) / μ(R₊) for JS on a fine grid; beyond λ = 12 lies less than 1e-18 of it."""
    grid = np.linspace(0.0, 12.0, 200_001)
    density = 1.0 / (np.cosh(np.pi * grid) * (1.0 + 4.0 * grid**2))
    steps = 0.5 * (density[1:] + density[:-1]) * np.diff(grid)
    distribution = np.concatenate([[0.0], np.cumsum(steps)])
    return grid, distribution / distribution[-1]


_QUANTILES: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "tv": _tv_quantile,
    "chi2": _chi2_quantile,
    "js": _js_quantile,
}
