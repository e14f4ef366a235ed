"""Images of scenes, as bags of the responses of filters at their patches (001, §5.4).

Windows of the photographs that scikit-learn comes with, and generated scenes of shared textures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_sample_images
from sklearn.decomposition import PCA

from bagbasis import Bags
from bagbasis.core.arrays import Floats
from bagbasis.data.bags.bags import offsets_of

_Labels = NDArray[np.int64]

WINDOW, PATCH = 32, 8  # pixels of an image's and of a patch's side
_ROWS, COLUMNS = 2, 4  # places per photograph, of 213 × 160 pixels
TEXTURES, CANVAS = 12, 128  # textures that all scenes share, and the side of what they are cut from
EVENNESS = 0.5  # Dirichlet parameter of a scene's shares of textures: small ones differ much
CLOSENESS = 10.0  # Dirichlet weight of the scene in an image's shares: large ones differ little
CELLS = 6  # regions of one texture each in an image
WAVES, BREADTH = (4.0, 16.0), 0.4  # pixels per wave of a texture, and deviation of its logarithm
TILT = 1.0  # deviations of log amplitudes along and across a texture's direction
_GAIN = 0.2  # deviation of the logarithm of an image's brightness
N_FITTED = 10_000  # patches that filters are made from
TENTH = np.log(9.0)  # the squashing gives this .9, and its negative .1


def photographs(n: int, n_classes: int, part: int, seed: int) -> tuple[Floats, _Labels]:
    """Return windows of places in photographs, (n, WINDOW, WINDOW, 3), and the place of each.

    Windows of part 0 are from the left half of a place, those of part 1 from its right half: they
    share no pixel.
    """
    rng, labels = np.random.default_rng([seed, part]), np.arange(n) % n_classes
    photos = load_photos()
    _, height, width, _ = photos.shape
    photo, row, column = np.unravel_index(labels, (len(photos), _ROWS, COLUMNS))
    high, half = height // _ROWS, width // COLUMNS // 2
    top = row * high + rng.integers(0, high - WINDOW + 1, n)
    left = (2 * column + part) * half + rng.integers(0, half - WINDOW + 1, n)
    cut = zip(photo, top, left, strict=True)
    return np.array([photos[i, y : y + WINDOW, x : x + WINDOW] for i, y, x in cut]), labels


def textures(n: int, n_classes: int, part: int, seed: int) -> tuple[Floats, _Labels]:
    """Return generated scenes, (n, WINDOW, WINDOW, 3), and the class of each.

    A class has shares of the textures, from which those of an image differ. Each of an image's
    regions, cells of random centres, shows one. Parts are cut from other halves of the canvases.
    """
    world, rng = np.random.default_rng([seed, 2]), np.random.default_rng([seed, part])
    canvases = np.array([texture(world) for _ in range(TEXTURES)])
    classes, labels = (
        world.dirichlet(np.full(TEXTURES, EVENNESS), n_classes),
        np.arange(n) % n_classes,
    )
    y, x = np.indices((WINDOW, WINDOW))
    images = np.empty((n, WINDOW, WINDOW, 3))
    for image, label in zip(images, labels, strict=True):
        shares = rng.dirichlet(CLOSENESS * classes[label] + 1e-3)
        shown = rng.choice(TEXTURES, CELLS, p=shares)
        centres = rng.uniform(0, WINDOW, (CELLS, 2, 1, 1))
        cell = ((np.array([y, x]) - centres) ** 2).sum(axis=1).argmin(axis=0)
        top = rng.integers(0, CANVAS - WINDOW + 1)
        left = part * CANVAS // 2 + rng.integers(0, CANVAS // 2 - WINDOW + 1)
        image[:] = canvases[shown[cell], top + y, left + x] * rng.lognormal(0, _GAIN)
    return images, labels


def texture(rng: np.random.Generator) -> Floats:
    """Return waves of about one length and direction in mixed colours, (CANVAS, CANVAS, 3)."""
    frequency = np.fft.fftfreq(CANVAS)
    v, u = np.meshgrid(frequency, frequency, indexing="ij")
    length, direction = np.exp(rng.uniform(*np.log(WAVES))), rng.uniform(0, np.pi)
    logs = np.log(np.hypot(u, v) * length + 1e-9)
    angles = np.arctan2(v, u) - direction
    amplitude = np.exp(-(logs**2) / (2 * BREADTH**2) + TILT * np.cos(2 * angles))
    noise = rng.standard_normal((CANVAS, CANVAS, 3)) @ rng.standard_normal((3, 3))
    waves = np.fft.ifft2(np.fft.fft2(noise, axes=(0, 1)) * amplitude[..., None], axes=(0, 1)).real
    return np.asarray(rng.uniform(0.4, 0.6, 3) + 0.15 * waves / waves.std())


@dataclass(frozen=True)
class Filters:
    """Principal components of patches; their responses are squashed as in 001, footnote 3.

    Attributes
    ----------
    components : PCA
    high, low : float64, shape (n_filters,)
        The 90th percentile of a filter's positive responses and minus the 10th of negative ones.
    """

    components: PCA
    high: Floats
    low: Floats

    @classmethod
    def of(cls, images: Floats, n_filters: int, rng: np.random.Generator) -> Filters:
        """Return the filters of training images."""
        per_image = -(-N_FITTED // len(images))
        patches = patches_of(images, per_image, rng)
        axes = PCA(n_filters, svd_solver="covariance_eigh").fit(patches)
        responses = axes.transform(patches).T
        high = [np.quantile(each[each > 0], 0.9) for each in responses]
        low = [-np.quantile(each[each < 0], 0.1) for each in responses]
        return cls(axes, np.array(high), np.array(low))

    def bags(self, images: Floats, n_points: int, rng: np.random.Generator) -> Bags:
        """Return bags of the responses at some patches of each image, in [0, 1]^n_filters."""
        responses = self.components.transform(patches_of(images, n_points, rng))
        scaled = TENTH * responses / np.where(responses > 0, self.high, self.low)
        squashed = 1 / (1 + np.exp(-scaled))
        return Bags(squashed.astype(np.float32), offsets_of(np.full(len(images), n_points)))


def patches_of(images: Floats, n_points: int, rng: np.random.Generator) -> Floats:
    """Return patches at random places of each image, flat, in the images' order."""
    windows = np.lib.stride_tricks.sliding_window_view(images, (PATCH, PATCH), axis=(1, 2))
    image = np.repeat(np.arange(len(images)), n_points)
    at = rng.integers(0, WINDOW - PATCH + 1, (2, len(image)))
    patches: Floats = windows[image, at[0], at[1]].reshape(len(image), -1)
    return patches


@cache
def load_photos() -> Floats:
    """Return the photographs, of numbers in [0, 1]."""
    return np.array(load_sample_images().images) / 255


IMAGE_SOURCES: dict[str, Callable[[int, int, int, int], tuple[Floats, _Labels]]] = {
    "photographs": photographs,
    "textures": textures,
}
