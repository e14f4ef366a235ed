"""Planted truths: coordinates that a target depends on, mixed sources, and moved images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter, map_coordinates

from bagbasis.core.arrays import Floats

PLANTED = 3  # coordinates the target depends on
_NOISE = 0.3  # standard deviation added to the target's three terms
_COPIED = 0.5  # standard deviation of what copies differ by


def planted_rows(
    n: int, n_dims: int, *, seed: int, copies: bool = False
) -> tuple[Floats, Floats, tuple[int, ...]]:
    """Return rows (n, n_dims), a target (n,) and the coordinates that it depends on.

    y = sin(2 x_a) + ½ x_b² + sign(x_c) + noise; none of the three has a copy's information. With
    ``copies`` as many other coordinates are x_a, x_b and x_c with noise.
    """
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, n_dims))
    order = rng.permutation(n_dims)
    a, b, c = order[:PLANTED].tolist()
    if copies:
        x[:, order[PLANTED : 2 * PLANTED]] = (
            x[:, [a, b, c]] + _COPIED * rng.standard_normal((n, PLANTED))
        ) / (1 + _COPIED**2) ** 0.5
    y = np.sin(2 * x[:, a]) + 0.7 * (x[:, b] ** 2 - 1) + np.sign(x[:, c])
    return x, y + _NOISE * rng.standard_normal(n), (a, b, c)


def mixed_sources(sizes: Sequence[int], n: int, *, seed: int) -> tuple[Floats, Floats]:
    """Return mixtures (n, d) of groups of sources, and the mixing matrix (d, d).

    A group is a direction drawn evenly, times a heavy-tailed length that its coordinates share:
    uncorrelated and dependent. A group of one is Laplacian.
    """
    rng = np.random.default_rng(seed)
    sources = [
        rng.standard_normal((n, size)) * (rng.exponential(size=(n, 1)) + 0.05) for size in sizes
    ]
    x = np.concatenate(sources, axis=1)
    x /= x.std(axis=0)
    d = x.shape[1]
    mixing = np.linalg.qr(rng.standard_normal((d, d)))[0] * rng.uniform(0.5, 2, d)
    return x @ mixing.T, mixing


def amari(product: Floats, sizes: Sequence[int]) -> float:
    """Return the Amari index of W A, 0 to 1: 0 where each group found is one of the sources'."""
    ends = np.cumsum(sizes)
    cuts = [slice(end - size, end) for end, size in zip(ends.tolist(), sizes, strict=True)]
    norms = np.array([[np.linalg.norm(product[r, c]) for c in cuts] for r in cuts])
    total = 0.0
    for matrix in (norms, norms.T):
        total += float((matrix.sum(axis=1) / matrix.max(axis=1) - 1).sum())
    k = len(cuts)
    return total / (2 * k * (k - 1))


_MARGIN = 24  # pixels around what is seen, so that a moved image is whole


def wave_image(size: int, seed: int) -> Floats:
    """Return a smooth random image with shapes of several sizes, from 0 to 1."""
    rng = np.random.default_rng(seed)
    layers = [gaussian_filter(rng.standard_normal((size, size)), width) * width
              for width in (2, 4, 8)]  # fmt: skip
    image = sum(layers)
    return (image - image.min()) / (image.max() - image.min())


def warped_pair(
    size: int, outliers: float, *, seed: int, same_intensities: bool = False
) -> tuple[Floats, Floats, dict[str, Any]]:
    """Return a reference, an image of the same scene after a motion, and the motion.

    Intensities of the second are a function of the first's that is not monotone; in both a share
    ``outliers`` of pixels is replaced by random values.
    """
    rng = np.random.default_rng(seed)
    whole = wave_image(size + 2 * _MARGIN, seed)
    shift, angle, scale = rng.uniform(-5, 5, 2), rng.uniform(-12, 12), rng.uniform(0.92, 1.08)
    cos, sin = np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))
    fixed = whole[_MARGIN:-_MARGIN, _MARGIN:-_MARGIN]
    # the reference's pixel x is seen at x'; so the image has at x' what the reference has at x
    back = np.linalg.inv(scale * np.array([[cos, -sin], [sin, cos]]))
    centre = (size - 1) / 2
    pixels = np.indices((size, size)).reshape(2, -1) - centre - shift[:, None]
    places = back @ pixels + centre + _MARGIN
    moving = map_coordinates(whole, places, order=3).reshape(size, size)
    if not same_intensities:
        moving = np.cos(4 * moving) + 0.3 * moving
    for image in (fixed := fixed.copy(), moving):
        wild = rng.random(image.shape) < outliers
        image[wild] = rng.uniform(image.min(), image.max(), int(wild.sum()))
    return fixed, moving, {"shift": shift, "angle": angle, "scale": scale}
