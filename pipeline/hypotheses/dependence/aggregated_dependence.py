"""HSICAgg in linear time: dependence at 25 pairs of widths, corrected, `hsic_agg`.

HSIC is the mean, over frequencies ω of one kernel's spectrum and υ of the other's, of
|E e^{i(ωx + υy)} − E e^{iωx} E e^{iυy}|². So R pairs of frequencies estimate it in time linear in
rows, for each pair of widths (Schrab et al. 2022; 003 for HSIC).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...arrays import Floats
from ...parameters import Integer, Table
from ..registry import Measured
from ..two_samples.aggregated import aggregate
from .pairs import DependenceStatistic, Pairs

WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)  # times the median distance of each variable


@dataclass(frozen=True)
class HSICAggregate(DependenceStatistic):
    """HSIC at five widths per variable, and which pairs of them reject, corrected.

    Parameters
    ----------
    n_frequencies : int from 1 to 4,096, default 64
        Pairs of frequencies of each pair of widths.
    """

    name: ClassVar[str] = "hsic_agg"
    nulls: ClassVar[tuple[str, ...]] = ("permutation", "shift")
    n_frequencies: int = 64

    PARAMETERS: ClassVar[Table] = {"n_frequencies": Integer(1, 4096)}

    def measure(self, pairs: Pairs) -> Measured:
        """See `DependenceStatistic`."""
        X, Y = (self._waves(pairs, i) for i in range(2))
        values = dependence(X, Y)
        drawn = [dependence(X, Y[:, order]) for block in pairs.orders() for order in block]
        found = aggregate(values, np.array(drawn), pairs.null)
        widths = [[float(k.bandwidth * w) for w in WIDTHS] for k in pairs.kernels]
        names = [f"bandwidths {a:.4g} and {b:.4g}" for a in widths[0] for b in widths[1]]
        scales = {
            "bandwidth_of_x": np.repeat(widths[0], len(WIDTHS)).tolist(),
            "bandwidth_of_y": widths[1] * len(WIDTHS),
            "hsic": values.tolist(),
            **found.columns(),
        }
        details = {**found.counted(names), "pairs_of_scales": scales}
        return Measured(found.statistic, found.null, details=details)

    def _waves(self, pairs: Pairs, i: int) -> Floats:
        """Return e^{iωx} of centred rows, shape (R, n, 5): complex."""
        kernel, rows = pairs.kernels[i], pairs.rows[i] - pairs.rows[i].mean(axis=0)
        seed = (pairs.seed + i) % 2**64
        phases = rows @ kernel.frequencies(rows.shape[1], self.n_frequencies, seed)
        waves: Floats = np.exp(1j * phases.T[:, :, None] / np.array(WIDTHS))
        return waves


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
