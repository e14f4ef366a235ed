"""Goodness of fit by Stein's identity: KSD of all pairs, FSSD at a few locations (Szabó).

For a density p with score s = ∇ log p, E_p[s(x) k(x, v) + ∇_x k(x, v)] = 0 at any v. If p ends at
edges, the kernel is multiplied by b(x) b(y) with b zero at the edges, and the identity holds for
the product. A `ScoreFunction` therefore gives t(x) = b s + ∇b and b(x). The normalising constant of
p is not needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigvalsh
from scipy.spatial.distance import cdist

from ...core.arrays import Floats, Integers
from ...core.sums import Sums
from ...execution.products import multiply
from ..kernels.kernels import tiles
from ..samples.held_out import climb
from .scores import Scored

WAVE_ROWS = 4096  # rows whose waves are in memory: 4 MiB of 64 frequencies
# Added to the criterion's deviation, so that the ratio is finite where both vanish.
_MIN_DEVIATION = 1e-3


def stein_kernel(x: Scored, y: Scored, bandwidth: float) -> Floats:
    """h_p of all pairs, shape (n, m), for the Gaussian kernel of width σ.

    h_p = t(x)ᵀt(y) k + b(y) t(x)ᵀ∇_y k + b(x) t(y)ᵀ∇_x k + b(x) b(y) tr ∇_x∇_y k.
    """
    width = bandwidth**2
    squares = cdist(x.points, y.points, "sqeuclidean")
    inner = x.slopes @ y.slopes.T
    along_x = (x.slopes * x.points).sum(axis=1)[:, None] - x.slopes @ y.points.T
    along_y = x.points @ y.slopes.T - (y.slopes * y.points).sum(axis=1)
    inner += (y.weights * along_x - x.weights[:, None] * along_y) / width
    inner += np.outer(x.weights, y.weights) * (x.points.shape[1] - squares / width) / width
    squares /= -2 * width
    inner *= np.exp(squares, out=squares)
    return inner


@dataclass(frozen=True, eq=False)
class SteinSums:
    """Sums over all pairs of points, from one pass.

    Attributes
    ----------
    rows : float64, shape (n,)
        Σ_{j≠i} h_p(x_i, x_j).
    signed : float64, shape (n_draws,)
        Σ_{i≠j} w_i w_j h_p(x_i, x_j) / (n (n − 1)) of each row of signs.
    """

    rows: Floats
    signed: Floats

    @classmethod
    def of(cls, scored: Scored, bandwidth: float, signs: Floats) -> SteinSums:
        """Go over all pairs of tiles.

        Parameters
        ----------
        signs : shape (n_draws, n)
            Signs of the wild bootstrap.
        """
        n = len(scored)
        rows, signed = np.zeros(n), np.zeros(len(signs))
        for a in tiles(n):
            for b in tiles(n):
                values = stein_kernel(scored[a], scored[b], bandwidth)
                if a == b:
                    np.fill_diagonal(values, 0.0)
                rows[a] += values.sum(axis=1)
                signed += np.einsum("ij,ij->i", signs[:, a] @ values, signs[:, b])
        return cls(rows, signed / (n * (n - 1)))

    @property
    def statistic(self) -> float:
        """KSD²_u, 0 on average for points from p."""
        n = len(self.rows)
        return float(self.rows.sum() / (n * (n - 1)))

    @property
    def standard_error(self) -> float:
        """Return the standard error of the statistic over new points, to first order."""
        n = len(self.rows)
        return float(2 * (self.rows / (n - 1)).std(ddof=1) / n**0.5)


def stein_wave_sums(
    scored: Scored, units: Integers, frequencies: Floats, n_widths: int = 1
) -> Floats:
    """Return the sums over each unit's points of Stein features of waves.

    The feature of a frequency ω is (t(x) + i b(x) ω) e^{iωᵀx}, in d coordinates; products of two
    points' are h_p on average over ω of the kernel's spectrum.

    Parameters
    ----------
    units : shape (n,)
        Unit of each point, numbered from 0.
    frequencies : shape (d, R)
        Frequencies of the widest kernel; each further kernel has half the width of the previous
        kernel.

    Returns
    -------
    shape (n_widths, n_units, 2 d R)
    """
    n_dims, n_frequencies = frequencies.shape
    shape = n_widths, int(units.max()) + 1, n_dims, n_frequencies
    sums = np.zeros(shape, np.complex128)
    order = np.argsort(units, kind="stable")
    for start in range(0, len(order), WAVE_ROWS):
        rows = order[start : start + WAVE_ROWS]
        part = scored[rows]
        own_units, firsts = np.unique(units[rows], return_index=True)
        waves = np.exp(1j * (part.points @ frequencies))
        for k in range(n_widths):
            if k:
                waves *= waves  # twice the phase: seven widths lose two digits of sixteen
            of_b = np.add.reduceat(part.weights[:, None] * waves, firsts, axis=0)
            for j in range(n_dims):
                of_t = np.add.reduceat(part.slopes[:, j, None] * waves, firsts, axis=0)
                sums[k, own_units, j] += of_t + 1j * 2**k * frequencies[j] * of_b
    scale = n_frequencies**-0.5
    columns: Floats = scale * sums.reshape(*shape[:2], -1).view(np.float64)
    return columns


def stein_of_waves(
    scored: Scored, units: Integers, frequencies: Floats, signs: Floats, n_widths: int = 1
) -> tuple[Floats, Floats]:
    """Return `SteinSums.statistic` and ``signed`` of the kernels that waves approximate, in O(n).

    Parameters
    ----------
    units, frequencies
        See `stein_wave_sums`.
    signs : shape (n_draws, n_units)

    Returns
    -------
    shape (n_widths,), shape (n_draws, n_widths)
    """
    n = len(scored)
    slopes, weights = (scored.slopes**2).sum(), (scored.weights**2).sum()
    lengths = (frequencies**2).sum(axis=0).mean()
    estimates = []
    for k, sums in enumerate(stein_wave_sums(scored, units, frequencies, n_widths)):
        moved = np.vstack([sums.sum(axis=0), multiply(signs, sums)])
        own = slopes + weights * lengths * 4**k  # of points with themselves
        estimates.append((np.einsum("ij,ij->i", moved, moved) - own) / (n * (n - 1)))
    values = np.column_stack(estimates)
    return values[0], values[1:]


@dataclass(frozen=True, eq=False)
class SteinMoments(Sums):
    """n, Στ, Σ‖τ‖² and Σττᵀ of τ(x) ∈ R^{dJ}: FSSD's state, mergeable and subtractable."""

    n: int
    first: Floats
    squares: float
    second: Floats

    @classmethod
    def of(cls, tau: Floats) -> SteinMoments:
        """Sum over rows of `stein_features`."""
        return cls(len(tau), tau.sum(axis=0), float(np.vdot(tau, tau)), tau.T @ tau)

    def statistic(self) -> float:
        """FSSD²_u = Σ_{i≠j} τ_iᵀτ_j / (n (n − 1)), 0 on average for points from p."""
        return float((self.first @ self.first - self.squares) / (self.n * (self.n - 1)))

    def weights(self) -> Floats:
        """Return ω: n FSSD² → Σ ω (χ²_1 − 1) for points from p, of which τ is 0 on average.

        That mean is known, and so not estimated.
        """
        weights: Floats = eigvalsh(self.second / self.n)
        return weights

    def standard_error(self) -> float:
        """Return the standard error of FSSD² over new points: 2 (μᵀ Σ μ / n)^½."""
        mean = self.first / self.n
        variance = float(mean @ self.second @ mean) / self.n - float(mean @ mean) ** 2
        return float(2.0 * max(0.0, variance / self.n) ** 0.5)


def stein_features(scored: Scored, v: Floats, bandwidth: float) -> Floats:
    """τ(x) = [t(x) k(x, v_j) + b(x) ∇_x k(x, v_j)]_j / √(d J), shape (n, J d)."""
    k, xi = _parts(scored, v, bandwidth)
    tau: Floats = (k[:, :, None] * xi).reshape(len(scored), -1)
    return tau / float(tau.shape[1] ** 0.5)


def learn_stein_locations(scored: Scored, v: Floats, bandwidth: float) -> tuple[Floats, float]:
    """Return the locations and the bandwidth that maximise FSSD² / its deviation.

    That ratio decides the power of the test. See `climb`.
    """
    (v,), (width,) = climb(
        lambda locations, widths: fssd_gradient(scored, locations[0], widths[0]), (v,), (bandwidth,)
    )
    return v, width


def fssd_gradient(scored: Scored, v: Floats, bandwidth: float) -> tuple[float, Floats]:
    """FSSD² / (its deviation + 1e-3), and the gradient in (v, log σ), shape (J d + 1,)."""
    n, (J, d) = len(scored), v.shape
    k, xi = _parts(scored, v, bandwidth)
    tau = (k[:, :, None] * xi).reshape(n, -1) / (J * d) ** 0.5
    total = tau.sum(axis=0)
    mean = total / n
    along = tau @ mean
    value = (total @ total - np.vdot(tau, tau)) / (n * (n - 1))
    variance = 4 * max(0.0, float(along @ along) / n - float(mean @ mean) ** 2)
    deviation = variance**0.5
    by_value = 2 * (total - tau) / (n * (n - 1))
    by_variance = 8 / n * (np.outer(along, mean) + (along @ tau / n - 2 * (mean @ mean) * mean))
    scale = deviation + _MIN_DEVIATION
    by_tau = by_value / scale
    if deviation:
        by_tau = by_tau - value / scale**2 * by_variance / (2 * deviation)
    by_tau = by_tau.reshape(n, J, d) / (J * d) ** 0.5
    # τ = k ξ with ξ = t − b (x − v) / σ²
    width = bandwidth**2
    gaps = scored.points[:, None, :] - v
    by_k = np.einsum("njd,njd->nj", by_tau, xi) * k
    pulled = scored.weights[:, None, None] * k[:, :, None] * by_tau
    by_v = (by_k[:, :, None] * gaps + pulled).sum(axis=0) / width
    by_log = (by_k * (gaps**2).sum(axis=2)).sum() + 2 * np.vdot(pulled, gaps)
    return float(value / scale), np.append(by_v.ravel(), by_log / width)


def _parts(scored: Scored, v: Floats, bandwidth: float) -> tuple[Floats, Floats]:
    """Return k, shape (n, J), and ξ = t − b (x − v) / σ², shape (n, J, d)."""
    gaps = scored.points[:, None, :] - v
    k = np.exp((gaps**2).sum(axis=2) / (-2 * bandwidth**2))
    xi = scored.slopes[:, None, :] - scored.weights[:, None, None] * gaps / bandwidth**2
    return k, xi
