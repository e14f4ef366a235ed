"""HSIC at 25 pairs of widths in linear time: each corrected, `hsic_agg`; fused, `hsic_fuse`.

HSIC is the mean, over frequencies ω of one kernel's spectrum and υ of the other's, of
|E e^{i(ωx + υy)} − E e^{iωx} E e^{iυy}|². So R pairs of frequencies estimate it in time linear in
rows, for each pair of widths (Schrab et al. 2022; 003 for HSIC).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import softmax

from ...arrays import Floats
from ...parameters import Integer, Table
from ..kernels.pair_grams import CentredGram
from ..nulls.draws import generator_of
from ..registry import Measured
from ..two_samples.aggregated import aggregate
from ..two_samples.fused import fused, temperature_of
from .pairs import DependenceStatistic, Pairs

WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)  # times the median distance of each variable
NORM_ROWS = 512  # that the kernels' norms are of: 130,000 pairs
LEAST_NORM = 1e-6  # of kernels of norm 1: less is rounding, of rows that are nearly all alike


@dataclass(frozen=True)
class ManyWidths(DependenceStatistic):
    """Base of statistics of five widths per variable.

    Parameters
    ----------
    n_frequencies : int from 1 to 4,096, default 64
        Pairs of frequencies of each pair of widths.
    """

    nulls: ClassVar[tuple[str, ...]] = ("permutation", "shift")
    n_frequencies: int = 64

    PARAMETERS: ClassVar[Table] = {"n_frequencies": Integer(1, 4096)}

    def _waves(self, pairs: Pairs, i: int) -> Floats:
        """Return e^{iωx} of centred rows, shape (R, n, 5): complex."""
        kernel, rows = pairs.kernels[i], pairs.rows[i] - pairs.rows[i].mean(axis=0)
        seed = (pairs.seed + i) % 2**64
        phases = rows @ kernel.frequencies(rows.shape[1], self.n_frequencies, seed)
        waves: Floats = np.exp(1j * phases.T[:, :, None] / np.array(WIDTHS))
        return waves

    def _draw(self, pairs: Pairs) -> tuple[Floats, Floats, Floats]:
        """Return HSIC of each pair of widths, (25,), its mean over orders, and it in orders."""
        X, Y = (self._waves(pairs, i) for i in range(2))
        drawn = [dependence(X, Y[:, order]) for block in pairs.orders() for order in block]
        return dependence(X, Y), mean_dependence(X, Y), np.array(drawn)


@dataclass(frozen=True)
class HSICAggregate(ManyWidths):
    """HSIC at five widths per variable, and which pairs of them reject, corrected.

    Parameters
    ----------
    n_frequencies : int from 1 to 4,096, default 64
        Pairs of frequencies of each pair of widths.
    """

    name: ClassVar[str] = "hsic_agg"

    def measure(self, pairs: Pairs) -> Measured:
        """See `DependenceStatistic`."""
        values, _, drawn = self._draw(pairs)
        found = aggregate(values, drawn, pairs.null)
        widths = pairs_of_widths(pairs)
        scales = {**widths, "hsic": values.tolist(), **found.columns()}
        details = {**found.counted(names_of(widths)), "pairs_of_scales": scales}
        return Measured(found.statistic, found.null, details=details)


@dataclass(frozen=True)
class HSICFuse(ManyWidths):
    """HSIC-FUSE: a soft maximum of HSIC at 25 pairs of widths, each over its kernels' norm.

    T = log(mean exp(λ r_k)) / λ with λ = √(n(n − 1)) of n units. r_k is HSIC less its mean over all
    orders, divided by the root mean squares of both centred kernels, as MMD-FUSE divides MMD².

    Parameters
    ----------
    n_frequencies : int from 1 to 4,096, default 64
        Pairs of frequencies of each pair of widths.
    """

    name: ClassVar[str] = "hsic_fuse"

    def measure(self, pairs: Pairs) -> Measured:
        """See `DependenceStatistic`."""
        values, means, drawn = self._draw(pairs)
        norms = np.outer(*(self._norms(pairs, i) for i in range(2))).ravel()
        temperature = temperature_of(len(np.unique(pairs.units)))
        values = values - means
        found = float(fused(values, norms, temperature))
        null = pairs.order_null(found, fused(drawn - means, norms, temperature), 1 / norms.min())
        weights = softmax(temperature * values / norms)
        widths = pairs_of_widths(pairs)
        top = int(np.argmax(weights))
        details = {
            "largest_weight": f"{names_of(widths)[top]}: {weights[top]:.0%}",
            "pairs_of_scales": {**widths, "hsic": values.tolist(), "weight": weights.tolist()},
        }
        effect = float(weights @ (values / norms))
        return Measured(found, null, effect=effect, details=details)

    def _norms(self, pairs: Pairs, i: int) -> Floats:
        """Return (mean K̃_ij²)^½ of each width's centred kernel, of rows drawn at random."""
        kernel, rows = pairs.kernels[i], pairs.rows[i]
        if len(rows) > NORM_ROWS:
            # which rows these are does not depend on their partners: the test stays exact
            generator = generator_of(pairs.seed + i, "scales")
            rows = rows[generator.choice(len(rows), NORM_ROWS, replace=False)]
        centred = [CentredGram.of(kernel, rows / width).whole() for width in WIDTHS]
        norms = np.array([float((gram**2).mean()) ** 0.5 for gram in centred])
        return np.maximum(norms, LEAST_NORM)


def dependence(X: Floats, Y: Floats) -> Floats:
    """Return the HSIC of each pair of widths, shape (25,).

    Parameters
    ----------
    X, Y : complex, shape (R, n, 5)
    """
    n = X.shape[1]
    joint = X.swapaxes(1, 2) @ Y / n
    joint -= X.mean(axis=1)[:, :, None] * Y.mean(axis=1)[:, None, :]
    squares: Floats = (np.abs(joint) ** 2).mean(axis=0).ravel()
    return squares


def mean_dependence(X: Floats, Y: Floats) -> Floats:
    """Return the mean of `dependence` over all orders of Y's rows, shape (25,).

    Of n waves that are centred it is E|Σ a_i b_π(i) / n|² = var(a) var(b) / (n − 1).
    """
    a, b = (1 - np.abs(Z.mean(axis=1)) ** 2 for Z in (X, Y))
    means: Floats = np.einsum("ri,rj->ij", a, b).ravel() / (len(X) * (X.shape[1] - 1))
    return means


def pairs_of_widths(pairs: Pairs) -> dict[str, list[float]]:
    """Return the widths of either variable, pair by pair, for a report."""
    x, y = ([float(kernel.bandwidth * w) for w in WIDTHS] for kernel in pairs.kernels)
    return {
        "bandwidth_of_x": np.repeat(x, len(WIDTHS)).tolist(),
        "bandwidth_of_y": y * len(WIDTHS),
    }


def names_of(widths: dict[str, list[float]]) -> list[str]:
    """Return what reports call pairs of widths."""
    both = zip(widths["bandwidth_of_x"], widths["bandwidth_of_y"], strict=True)
    return [f"bandwidths {a:.4g} and {b:.4g}" for a, b in both]
