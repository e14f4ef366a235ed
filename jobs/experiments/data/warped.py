"""Pairs of images: a motion, other intensities, and wild pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter, map_coordinates

from bagbasis.core.arrays import Floats
from bagbasis.hypotheses import Registration

_MARGIN = 24  # pixels around what is seen, so that a moved image is whole


def wave_image(size: int, seed: int) -> Floats:
    """Return a smooth random image with shapes of several sizes, from 0 to 1."""
    rng = np.random.default_rng(seed)
    layers = [gaussian_filter(rng.standard_normal((size, size)), width) * width
              for width in (2, 4, 8)]  # fmt: skip
    image = sum(layers)
    scaled: Floats = (image - image.min()) / (image.max() - image.min())
    return scaled


def warped_pair(
    size: int, outliers: float, *, seed: int, same_intensities: bool = False
) -> tuple[Floats, Floats, dict[str, Any]]:
    """Return a reference, an image of the same scene after a motion, and the motion.

    Intensities of the second are a function of the first's that is not monotone; in both a share
    ``outliers`` of pixels is replaced by random values.
    """
    rng = np.random.default_rng(seed)
    whole = wave_image(size + 2 * _MARGIN, seed)
    truth = Registration(
        shift=tuple(rng.uniform(-5, 5, 2).tolist()),
        angle=float(rng.uniform(-12, 12)),
        scale=float(rng.uniform(0.92, 1.08)),
        dependence=0.0,
        measure="",
    )
    fixed = whole[_MARGIN:-_MARGIN, _MARGIN:-_MARGIN]
    # the reference's pixel x is seen at x'; so the image has at x' what the reference has at x
    back = np.linalg.inv(_matrix(truth))
    centre = (size - 1) / 2
    pixels = np.indices((size, size)).reshape(2, -1) - centre - np.array(truth.shift)[:, None]
    places = back @ pixels + centre + _MARGIN
    moving = map_coordinates(whole, places, order=3).reshape(size, size)
    if not same_intensities:
        moving = np.cos(4 * moving) + 0.3 * moving
    for image in (fixed := fixed.copy(), moving):
        wild = rng.random(image.shape) < outliers
        image[wild] = rng.uniform(image.min(), image.max(), int(wild.sum()))
    return fixed, moving, {"shift": truth.shift, "angle": truth.angle, "scale": truth.scale}


def _matrix(motion: Registration) -> Floats:
    angle = np.deg2rad(motion.angle)
    return motion.scale * np.array(
        [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    )
