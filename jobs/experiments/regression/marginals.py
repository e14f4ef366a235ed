"""`MarginalGeometries` and `Scenes`: one embedding per dimension of a bag (001, §5.4 and Figure 5).

Bags of `marginals` are generated responses of 64 filters, which depend on each other or not, those
of `scenes` are principal components of patches, of photographs' windows and of generated scenes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_sample_images
from sklearn.decomposition import PCA
from sklearn.linear_model import RidgeClassifierCV

from bagbasis import Bags, DoubleBasisClassifier, MomentsEmbedding
from bagbasis.core.arrays import Floats, Integers
from bagbasis.data.bags.bags import offsets_of

from ..data.samples import Patches
from ..kit import Callback, Experiment, GroupedBars, Measure, Params, counted
from ..kit.learning import Learner, describe, describe_all, geometries

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


def photographs(n: int, n_classes: int, part: int, seed: int) -> tuple[Floats, Integers]:
    """Return windows of places in photographs, (n, WINDOW, WINDOW, 3), and the place of each.

    Part 0 is from the left half of a place, part 1 from its right half: they share no pixel.
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


def textures(n: int, n_classes: int, part: int, seed: int) -> tuple[Floats, Integers]:
    """Return generated scenes, (n, WINDOW, WINDOW, 3), and the class of each.

    A class has shares of the textures, from which those of an image differ. Each of an image's
    regions, cells of random centres, shows one. Parts are cut from other halves of the canvases.
    """
    world, rng = np.random.default_rng([seed, 2]), np.random.default_rng([seed, part])
    canvases = np.array([texture(world) for _ in range(TEXTURES)])
    classes = world.dirichlet(np.full(TEXTURES, EVENNESS), n_classes)
    labels = np.arange(n) % n_classes
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

    By the 90th percentile of a filter's positive responses and minus the 10th of negative ones.
    """

    components: PCA
    high: Floats
    low: Floats

    @classmethod
    def of(cls, images: Floats, n_filters: int, rng: np.random.Generator) -> Filters:
        """Return the filters of training images."""
        patches = patches_of(images, -(-N_FITTED // len(images)), rng)
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
    return windows[image, at[0], at[1]].reshape(len(image), -1)


@cache
def load_photos() -> Floats:
    return np.array(load_sample_images().images) / 255


IMAGE_SOURCES: dict[str, Callable[[int, int, int, int], tuple[Floats, Integers]]] = {
    "photographs": photographs,
    "textures": textures,
}
Labelled = tuple[Bags, Integers]
FILTERS = {"independent": False, "dependent": True}
_SHOWN = ("linear", "rbf")
LINEAR_ALPHAS = 10.0 ** np.arange(-3.0, 2.5, 0.5)  # of embeddings of unit variance


class MarginalGeometries(Experiment):
    name = "marginals"
    title = "High-dimensional bags, one embedding per dimension"
    source = "001, §5.4"
    pictures = (
        GroupedBars("marginals.png", _SHOWN, x="method", panels="filters", label="accuracy"),
    )
    n_filters: ClassVar[int] = 64  # dimensions; the paper has 512
    axis: ClassVar[str] = "filters"  # the parameter that says which images
    shown: ClassVar[str] = "{filters} filters"
    images: ClassVar[Sequence[str]] = tuple(FILTERS)

    def methods(self) -> dict[str, list[Any]]:
        """Return the embeddings to choose from, by method: most of them one per dimension."""
        box = [(0, 1)] * self.n_filters
        common, tv = {"marginals": 1, "box": box}, {"n_per_dim": 10, "grid": 40}
        methods = geometries(self.settings.geometries, common, {}, tv, 2048)
        return {**methods, "moments": [MomentsEmbedding(box=box, standardize=False)]}

    def measures(self) -> list[Measure]:
        shared = {k: v for k, v in vars(self.settings).items() if k != "geometries"}
        methods = describe_all(self.methods())
        over: dict[str, list[Any]] = {self.axis: list(self.images), "method candidates": methods}
        return [Measure("", self._accuracies, self.shown + ", {method}", over, shared)]

    def _accuracies(self, p: Params, progress: Callback) -> dict[str, Any]:
        s, candidates = self.settings, self.methods()[p["method"]]
        learner = Learner(DoubleBasisClassifier, self.seed)
        values: dict[str, Any] = {"linear": [], "rbf": [], "choices": []}
        for repeat in counted(range(s.n_repeats), progress):
            train, test = self.draw_images(p[self.axis], repeat)
            linear, chosen = linear_accuracy(candidates, train, test)
            choice = learner.choose(candidates, s.multipliers, train, s.choose_features)
            model = learner.fit_choice(choice, train, s.n_features)
            values["linear"].append(linear)
            values["rbf"].append(float((model.predict(test[0]) == test[1]).mean()))
            values["choices"].append({"linear": chosen, "rbf": choice.values})
        return values

    def draw_images(self, kind: str, repeat: int) -> tuple[Labelled, Labelled]:
        s, seed = self.settings, 100 * self.seed + repeat
        patches = Patches(
            n_classes=s.n_classes, n_filters=self.n_filters, n_points=s.n_points,
            dependent=FILTERS[kind], seed=seed,
        )  # fmt: skip
        train = _patches(patches, s.n_classes * s.n_train, 0)
        return train, _patches(patches, s.n_classes * s.n_test, 1)


class Scenes(MarginalGeometries):
    name = "scenes"
    title = "Scenes by the patches of their images"
    pictures = (GroupedBars("scenes.png", _SHOWN, x="method", panels="images", label="accuracy"),)
    n_filters = 24
    axis = "images"
    shown = "{images}"
    images = tuple(IMAGE_SOURCES)

    def methods(self) -> dict[str, list[Any]]:
        """Those of `marginals`, and the mean response of each filter."""
        box = [(0, 1)] * self.n_filters
        means = MomentsEmbedding(covariance=False, box=box, standardize=False)
        return {**super().methods(), "means": [means]}

    def draw_images(self, kind: str, repeat: int) -> tuple[Labelled, Labelled]:
        """Return training and test images; filters are those of the former."""
        s, seed = self.settings, 100 * self.seed + repeat
        return _scenes(kind, seed, s.n_classes, s.n_train, s.n_test, s.n_points, self.n_filters)


def linear_accuracy(
    candidates: Sequence[Any], train: Labelled, test: Labelled
) -> tuple[float, dict[str, Any]]:
    """Return a linear classifier's accuracy on the embedding that leave-one-out errors choose."""
    best, accuracy, chosen = -np.inf, np.nan, None
    for candidate in candidates:
        embedding = clone(candidate).fit(train[0])
        rows, queries = (embedding.transform(bags).astype(float) for bags in (train[0], test[0]))
        unit = rows.var(axis=0).sum() ** 0.5
        model = RidgeClassifierCV(LINEAR_ALPHAS).fit(rows / unit, train[1])
        if model.best_score_ > best:
            accuracy = float((model.predict(queries / unit) == test[1]).mean())
            best, chosen = model.best_score_, candidate
    return accuracy, describe(chosen)


@lru_cache(maxsize=2)
def _patches(patches: Patches, n: int, index: int) -> Labelled:
    return patches.images(n, index)


@lru_cache(maxsize=2)
def _scenes(
    kind: str, seed: int, n_classes: int, n_train: int, n_test: int, n_points: int, n_filters: int
) -> tuple[Labelled, Labelled]:
    rng = np.random.default_rng([seed, 3])
    draw, sizes = IMAGE_SOURCES[kind], (n_train, n_test)
    parts = [draw(n * n_classes, n_classes, part, seed) for part, n in enumerate(sizes)]
    filters = Filters.of(parts[0][0], n_filters, rng)
    train, test = ((filters.bags(images, n_points, rng), labels) for images, labels in parts)
    return train, test
