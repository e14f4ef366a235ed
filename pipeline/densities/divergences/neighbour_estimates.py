"""The divergences, and their k-NN estimates: a statistic of each pair of bags, and what follows.

X ∼ p has n points and Y ∼ q has m, in R^d; ρ_i is the distance of X_i to its k-th neighbour in X
without itself, ν_i to that in Y; c_d is the volume of the unit ball. Where densities are constant
over these balls, (k − 1) / ((n − 1) c_d ρ^d) is unbiased for p, and so on: no estimate below needs
k to grow with n. Sutherland 2016, §2.2 names the estimators and prints no formula; they are those
of Wang, Kulkarni and Verdú (2009) for KL, of Póczos and Schneider (2011) for ∫p^α q^(1−α), and of
Ross (2014) for Jensen-Shannon, which is the mutual information of a point and its bag.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np
from scipy.special import digamma, gammaln

from ...core import Integer, OneOf, Real
from ...core.arrays import Floats, Integers
from ...core.errors import ParameterError, shown
from .neighbours import BagBlock, NeighbourStatistic, Ranks, SearchableBags
from .resources import add_own

DIRECTED = ("kl", "renyi")  # the others are symmetric
BY_NEIGHBOURS = ("kl", "symmetric_kl", "renyi", "hellinger", "l2", "js")
BY_KERNEL = ("mmd", "mmd_unbiased")


_BANDWIDTH = Real(gt=0) | OneOf("median")
PointBandwidth = Annotated[float | str, _BANDWIDTH]


@dataclass(frozen=True)
class DivergenceSpec:
    """One divergence with its parameters decided; those it does not have stay at the defaults.

    Raises
    ------
    ParameterError
        An unknown name, or a parameter out of range.
    """

    name: str
    k: int = 3
    alpha: float = 0.8
    bandwidth: PointBandwidth = "median"

    def __post_init__(self) -> None:
        """Refuse a name or a parameter that cannot be used."""
        OneOf(*BY_NEIGHBOURS + BY_KERNEL).check("divergence", self.name)
        _BANDWIDTH.check("bandwidth", self.bandwidth)
        # of "l2": with k = 1 its estimates have no mean
        k = Integer(2 if self.name == "l2" else 1).check(f"k of {self.name!r}", self.k)
        alpha = Real(gt=0, lt=k + 1).check("alpha", self.alpha)
        if alpha == 1:
            raise ParameterError("alpha is 1, where Rényi's divergence is 'kl'")

    @classmethod
    def of(
        cls, name: str, k: int | None, alpha: float | None, bandwidth: float | str | None
    ) -> DivergenceSpec:
        """Return the spec of a divergence; None is the default.

        Raises
        ------
        ParameterError
            As the constructor, and for a parameter that this divergence does not have.
        """
        OneOf(*BY_NEIGHBOURS + BY_KERNEL).check("divergence", name)
        parameters = {"k": k, "alpha": alpha, "bandwidth": bandwidth}
        parameters = {key: value for key, value in parameters.items() if value is not None}
        for key in parameters.keys() - parameters_of_divergence(name):
            raise ParameterError(f"{key} is {shown(parameters[key])}, which {name!r} does not have")
        return cls(name, **parameters)  # type: ignore[arg-type]  # checked there

    @property
    def is_directed(self) -> bool:
        """Whether the divergence of p from q is another than that of q from p."""
        return self.name in DIRECTED


def parameters_of_divergence(divergence: str) -> set[str]:
    """Return the parameters that a divergence has."""
    if divergence in BY_KERNEL:
        return {"bandwidth"}
    return {"k", "alpha"} if divergence == "renyi" else {"k"}


@dataclass(frozen=True)
class DivergenceEstimator:
    """A k-NN estimate of one divergence.

    Attributes
    ----------
    ranks : Ranks
    statistic : callable
    finish : callable
        Makes the divergence, in place, of the statistics' matrix; of its sum with the one of the
        other direction when the divergence has none.
    """

    ranks: Ranks
    statistic: NeighbourStatistic
    finish: Callable[[Floats, SearchableBags, SearchableBags], None]


def estimator(spec: DivergenceSpec) -> DivergenceEstimator:
    """Return the estimator of a divergence by neighbours."""
    k, kth = spec.k, Ranks(lambda n, met: [spec.k])
    if spec.name == "renyi":
        statistic = partial(affinity, k=k, alpha=spec.alpha)
        return DivergenceEstimator(kth, statistic, partial(_finish_renyi, alpha=spec.alpha))
    if spec.name == "hellinger":
        return DivergenceEstimator(kth, partial(affinity, k=k, alpha=0.5), _finish_hellinger)
    if spec.name == "l2":
        return DivergenceEstimator(kth, partial(cross_density, k=k), partial(_finish_l2, k=k))
    if spec.name == "js":
        ranks = Ranks(partial(_mixture_ranks, k=k), with_counts=True, same_size=True)
        return DivergenceEstimator(ranks, partial(mixture_gap, k=k), _finish_js)
    return DivergenceEstimator(kth, partial(kullback_leibler, k=k), _leave)


def kullback_leibler(p: BagBlock, q: SearchableBags, j: int, k: int) -> Floats:
    """KL(p ‖ q) = (d / n) Σ log(ν_i / ρ_i) + log(m / (n − 1)), in nats."""
    ratios = q.log_distance_to(j, p.points, k) - p.log_distances[:, 0]
    divergences: Floats = q.n_dims * p.mean(ratios) + np.log(q.sizes[j] / (p.sizes - 1))
    return divergences


def affinity(p: BagBlock, q: SearchableBags, j: int, k: int, alpha: float) -> Floats:
    """∫p^α q^(1−α) = B ((n − 1) / m)^(1−α) mean (ρ_i / ν_i)^(d(1−α)).

    B = Γ(k)² / (Γ(k + 1 − α) Γ(k − 1 + α)).
    """
    log_b = 2 * gammaln(k) - gammaln(k + 1 - alpha) - gammaln(k - 1 + alpha)
    ratios = p.log_distances[:, 0] - q.log_distance_to(j, p.points, k)
    means = p.mean(np.exp(q.n_dims * (1 - alpha) * ratios))
    affinities: Floats = math.exp(log_b) * ((p.sizes - 1) / q.sizes[j]) ** (1 - alpha) * means
    return affinities


def cross_density(p: BagBlock, q: SearchableBags, j: int, k: int) -> Floats:
    """∫p q = mean (k − 1) / (m c_d ν_i^d)."""
    log_scale = math.log((k - 1) / q.sizes[j]) - _log_ball(q.n_dims)
    return p.mean(np.exp(log_scale - q.n_dims * q.log_distance_to(j, p.points, k)))


def self_density(bags: SearchableBags, k: int) -> Floats:
    """∫p² = mean (k − 1) / ((n − 1) c_d ρ_i^d), one value per bag."""
    log_ball, d = _log_ball(bags.n_dims), bags.n_dims
    means = [p.mean(np.exp(-log_ball - d * p.log_distances[:, 0])) for p in bags.blocks]
    return np.concatenate(means) * (k - 1) / (bags.sizes - 1)


def mixture_gap(p: BagBlock, q: SearchableBags, j: int, k: int) -> Floats:
    """E_p log(1 + q / p), in nats: log 2 less what p adds to twice the Jensen-Shannon divergence.

    In the ball about X_i that its K-th neighbour in X closes lie b_i points of Y. Both densities
    are seen at one scale, which keeps the bias small: with w = (n − 1) / m, q / p is about w b / K.
    K is k, or k w when X is the larger bag, so that the ball holds enough points of Y. Where
    distances tie, K counts all points of X as near.
    """
    m = int(q.sizes[j])
    column = p.ranks.index(_mixture_rank(int(p.sizes[0]), m, k))
    inside = q.points_within(j, p.points, p.distances[:, column])
    return p.mean(log_one_plus(p.counts[:, column], inside, (p.sizes[0] - 1) / m))


def log_one_plus(n_own: Integers, n_other: Integers, w: float) -> Floats:
    """Return an estimate of log(1 + w o), o the odds that a point is another bag's.

    The ball was grown until it held ``n_own`` points, and then found to hold ``n_other`` others.
    ψ(K + b) − ψ(K) is unbiased at w = 1. Otherwise the plug-in logarithms' difference is added,
    with their biases of first order in 1/K removed. What is left is below .01 for k = 3 and w from
    1/20 to 20, and has the opposite sign in the other direction, by which it is averaged.
    """
    x = n_other / n_own
    gap = np.log1p(w * x) - np.log1p(x)
    curvature = w**2 * x * (1 + x) / (1 + w * x) ** 2 - x / (1 + x)
    logs: Floats = digamma(n_own + n_other) - digamma(n_own) + gap + curvature / (2 * n_own)
    return logs


def _mixture_rank(n: int, m: int, k: int) -> int:
    return min(n - 1, max(k, math.ceil(k * (n - 1) / m)))


def _mixture_ranks(n: int, met: Integers, k: int) -> list[int]:
    return sorted({_mixture_rank(n, m, k) for m in met.tolist()})


def _log_ball(d: int) -> float:
    """Logarithm of the volume of the unit ball of R^d."""
    return d / 2 * math.log(math.pi) - math.lgamma(d / 2 + 1)


def _leave(matrix: Floats, p: SearchableBags, q: SearchableBags) -> None:
    """KL, and the sum of both directions."""


def _finish_js(matrix: Floats, p: SearchableBags, q: SearchableBags) -> None:
    """JS = log 2 − ½ E_p log(1 + q / p) − ½ E_q log(1 + p / q)."""
    matrix /= -2
    matrix += math.log(2)


def _finish_renyi(matrix: Floats, p: SearchableBags, q: SearchableBags, alpha: float) -> None:
    """log(∫p^α q^(1−α)) / (α − 1)."""
    np.log(matrix, out=matrix)
    matrix /= alpha - 1


def _finish_hellinger(matrix: Floats, p: SearchableBags, q: SearchableBags) -> None:
    """1 − ∫√(pq), the affinity averaged over both directions."""
    matrix /= -2
    matrix += 1


def _finish_l2(matrix: Floats, p: SearchableBags, q: SearchableBags, k: int) -> None:
    """∫p² + ∫q² − 2∫pq, the last averaged over both directions."""
    np.negative(matrix, out=matrix)
    add_own(matrix, self_density(p, k), self_density(q, k))
