# mypy: disallow-untyped-defs=False
"""One point scaled to the unit cube: where the kernels of several embeddings begin."""

from __future__ import annotations

from ...core.compiling import subkernel


@subkernel()
def confine(point, columns, lo, inverse, margin, x):
    """Scale the box to [0, 1]^g and clip beyond a margin; returns whether the point was inside.

    Parameters
    ----------
    point : float32 or float64, shape (d,)
    columns : int64, shape (g,)
        The coordinates that are taken.
    lo, inverse : float64, shape (d,)
        x ↦ (x − lo) · inverse scales the box to [0, 1].
    margin : float64
        How far outside the box, in its lengths, a point may stay; farther ones are moved to there.
    x : shape (g,), written
    """
    inside, least, most = True, 0.0 - margin, 1.0 + margin
    for j in range(len(columns)):
        c = columns[j]
        v = (point[c] - lo[c]) * inverse[c]
        inside &= not (v < 0.0 or v > 1.0)
        v = least if v < least else v
        x[j] = most if v > most else v
    return inside
