# mypy: disallow-untyped-defs=False
"""One point scaled to the unit cube: where the kernels of several embeddings begin."""

from __future__ import annotations

from ...core.compiling import subkernel


@subkernel()
def confine(point, columns, lo, inverse, x):
    """Scale the box to [0, 1]^g and clip; returns whether the point was inside.

    Parameters
    ----------
    point : float32 or float64, shape (d,)
    columns : int64, shape (g,)
        The coordinates that are taken.
    lo, inverse : float64, shape (d,)
        x ↦ (x − lo) · inverse scales the box to [0, 1].
    x : shape (g,), written
    """
    inside = True
    for j in range(len(columns)):
        c = columns[j]
        v = (point[c] - lo[c]) * inverse[c]
        inside &= not (v < 0.0 or v > 1.0)
        v = 0.0 if v < 0.0 else v
        x[j] = 1.0 if v > 1.0 else v
    return inside
