"""`Pairs`, the input of independence tests, and the base class of dependence statistics."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from ...core import ComponentRegistry, frozen_component
from ...core.arrays import Floats, Integers
from ...core.sums import Sums
from ...execution.costs import Cost
from ..kernels.kernels import Kernel, resolve_kernel
from ..nulls.distributions import Null, mixture_null, permutation_null
from ..nulls.orders import permuted_orders, shifted_orders
from ..registry import Measured, Statistic

MAX_WEIGHTS = 300  # weights of a mixture; further weights add less than the simulation error


@dataclass(frozen=True, eq=False)
class Pairs:
    """Rows of the variables, pair by pair, with the settings of the null distribution.

    Attributes
    ----------
    rows : tuple of float64, shape (n, d)
        Rows of x, of y and, for statistics of more variables, of each further variable.
    units : int64, shape (n,)
        The exchangeable unit of each pair.
    kernel : str
        Name of the kernel; empty for a statistic without a kernel. The bandwidth is the median
        distance of each variable.
    null : str
        Method for the null distribution.
    n_permutations : int
        Number of permutations, or of simulations of the spectral null.
    seed : int
        Random seed.
    strata : int64, shape (n,), optional
        Stratum of each pair; pairs are permuted within strata only.
    """

    rows: tuple[Floats, ...]
    units: Integers
    kernel: str
    null: str
    n_permutations: int
    seed: int
    strata: Integers | None = None

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.units)

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernel of each variable."""
        return tuple(resolve_kernel(self.kernel, "median", z) for z in self.rows)

    def orders(self, stream: int = 0) -> Iterator[Integers]:
        """Yield blocks of the orders of a permutation or shift null."""
        seed = (self.seed + stream) % 2**64
        if self.null == "shift":
            return shifted_orders(len(self), self.n_permutations, seed)
        return permuted_orders(self.units, self.n_permutations, seed, self.strata)

    def order_null(self, observed: float, values: Floats, scale: float) -> Null:
        """Return the null of the statistic's values in `orders`."""
        return replace(permutation_null(observed, values, scale), name=self.null)

    def take(self, chosen: Integers) -> Pairs:
        """Return some of the pairs."""
        units = np.unique(self.units[chosen], return_inverse=True)[1]
        strata = None if self.strata is None else self.strata[chosen]
        rows = tuple(z[chosen] for z in self.rows)
        return replace(self, rows=rows, units=units, strata=strata)


class PairMap(Protocol):
    """A function that sums over pairs of rows in a pass, with its cost."""

    def __call__(self, X: Floats, Y: Floats) -> Any:  # noqa: ANN401 - the map's kind of sums
        """Return the sums over rows (n, d_x) and (n, d_y)."""
        ...

    @property
    def cost(self) -> Cost:
        """Cost per pair of rows."""
        ...


@frozen_component
class DependenceStatistic(Statistic):
    """Base of the dependence statistics; large values are evidence of dependence.

    Attributes
    ----------
    n_variables : int
        Number of variables.
    takes_more : bool
        Whether the statistic accepts more variables than ``n_variables``.
    null_in_pass : tuple (str, int), optional
        Default null distribution for a store with at least so many bags.
    """

    n_variables: ClassVar[int] = 2
    takes_more: ClassVar[bool] = False
    null_in_pass: ClassVar[tuple[str, int] | None] = None

    @abstractmethod
    def measure(self, pairs: Pairs) -> Measured:
        """Return the statistic with its null distribution."""

    def pair_map(self, pairs: Pairs) -> PairMap | None:
        """Return the function that a pass sums for `of_sums`, fitted to a sample of the pairs.

        None if the statistic, or its null distribution, needs the rows themselves.
        """
        return None

    def of_sums(self, sums: Sums, pair_map: PairMap, pairs: Pairs) -> Measured:
        """Return the statistic of all pairs with its null; ``pairs`` is the sample only."""
        raise NotImplementedError


def product_null(
    observed: float, spectra: tuple[Floats, Floats], n: int, pairs: Pairs, centred: bool = False
) -> Null:
    """Return the null Σ_ij λ_i η_j χ²_1 / n of HSIC_b; for HSIC_u ``centred`` by its mean.

    Parameters
    ----------
    spectra : (shape (p,), shape (q,))
        Eigenvalues of K̃ / n and L̃ / n.
    n : int
        Number of pairs.
    """
    products = np.outer(*(np.maximum(values, 0.0) for values in spectra))
    weights = np.sort(products.ravel() / n)[::-1]
    small = float(weights[MAX_WEIGHTS:].sum())
    shift = small - float(weights.sum()) if centred else small
    return mixture_null(observed, weights[:MAX_WEIGHTS], pairs.n_permutations, pairs.seed, shift)


INDEPENDENCE: ComponentRegistry[DependenceStatistic] = ComponentRegistry(
    "statistic of dependence", "bagbasis.dependence_statistics", __package__
)
"""The statistics of dependence by name."""
