# mypy: disallow-untyped-defs=False
"""Histograms of ragged bags and their homogeneous feature maps."""

from __future__ import annotations

import numpy as np

from ...core.compiling import kernel, subkernel
from .confine_kernels import confine


@subkernel()
def _count(points, start, stop, columns, lo, inverse, drop, n_bins, x, counts):
    """Points of each bin into ``counts``; returns points kept and points outside."""
    counts[:] = 0
    n_kept, outside = 0, 0
    for row in range(start, stop):
        inside = confine(points[row], columns, lo, inverse, 0.0, x)
        outside += not inside
        if inside or not drop:
            n_kept += 1
            cell = 0
            for j in range(len(columns)):
                cell = cell * n_bins + min(int(x[j] * n_bins), n_bins - 1)
            counts[cell] += 1
    return n_kept, outside


@subkernel()
def _powers(counts, total, exponent, rate, weight, table, out):
    """Write weight · (counts / total)^{exponent + i·rate}.

    Real parts come first, then imaginary ones unless rate = 0.
    Counts are small integers: powers below len(table[0]) are looked up, and that of ``total``
    is a factor of all. No point gives exactly 0.
    """
    n_cells, n_known = len(counts), table.shape[1]
    amplitude = weight * total**-exponent
    cosine, sine = np.cos(rate * np.log(total)), np.sin(rate * np.log(total))
    for q in range(n_cells):
        c = counts[q]
        if c < n_known:
            real, imaginary = table[0, c], table[1, c]
        else:
            root, phase = np.float64(c) ** exponent, rate * np.log(np.float64(c))
            real, imaginary = root * np.cos(phase), root * np.sin(phase)
        out[q] = amplitude * (real * cosine + imaginary * sine)
        if rate != 0:
            out[n_cells + q] = amplitude * (imaginary * cosine - real * sine)


@kernel()
def histogram_powers(
    begin,
    end,
    points,
    offsets,
    groups,
    lo,
    inverse,
    drop,
    n_bins,
    exponent,
    rates,
    weights,
    tables,
    out,
    n_outside,
):
    """Powers of each bag's fraction of points in each bin.

    Parameters
    ----------
    begin, end : int
        The bags that are embedded.
    points, offsets, groups, lo, inverse, drop
        See `bases.kernel_arguments`.
    n_bins : int
        A dimension; n_bins^g bins in all.
    exponent : float
    rates, weights : float64, shape (M,)
    tables : float64, shape (M, 2, n)
        Real and imaginary parts of c^{exponent + i·rate} for counts c < n.
    out : float32 or float64, shape (n_bags, n_groups · n_parts · n_bins^g), written
        NaN where no point was kept.
    n_outside : int64, shape (n_bags,), written
        Points of the bag outside the box, in the group where they are most.
    """
    n_groups, g = groups.shape
    n_cells = n_bins**g
    width = out.shape[1] // n_groups
    counts = np.empty(n_cells, np.int64)
    x = np.empty(g, np.float64)
    for i in range(begin, end):
        n_outside[i] = 0
        for group in range(n_groups):
            n_kept, outside = _count(
                points,
                offsets[i],
                offsets[i + 1],
                groups[group],
                lo,
                inverse,
                drop,
                n_bins,
                x,
                counts,
            )
            n_outside[i] = max(n_outside[i], outside)
            at = group * width
            if n_kept == 0:
                out[i, at : at + width] = np.nan
                continue
            for m in range(len(rates)):
                _powers(
                    counts,
                    np.float64(n_kept),
                    exponent,
                    rates[m],
                    weights[m],
                    tables[m],
                    out[i, at:],
                )
                at += n_cells if rates[m] == 0 else 2 * n_cells
