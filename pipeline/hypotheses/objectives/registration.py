"""`register_images`: align two images by maximising the dependence of their pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh
from scipy.ndimage import gaussian_filter, map_coordinates, median_filter
from scipy.optimize import minimize

from ...core import Integer, OneOf, Pair, Real, checked, documented
from ...core.arrays import Floats, as_array
from ...core.errors import DataError
from ...execution.worker_threads import kernel_threads
from .variable_features import VariableFeatures

_CORRELATION_RIDGE = (
    1e-3  # penalty of the canonical correlation, of features whose variance is about 1 / 2L
)
# Fraction of the reference's pixels: a smaller overlap can look dependent by chance.
MIN_OVERLAP = 0.3
MAX_PIXELS = 2**14  # pixels of the reference that are compared, evenly spread
BLUR_PIXELS = (4.0, 2.0, 0.8)  # standard deviations of the blur, coarse to fine
LONGEST_SHIFT = 1e6  # pixels, more than an image has
MEDIAN_PIXELS = 3  # size of the median filter in each direction
N_STARTS = 3  # best motions of the coarse grid, from which searches start
N_PER_AXIS = 7  # values on the coarse grid for each shift and the angle; three scales


@dataclass(frozen=True, eq=False, kw_only=True)
class Registration:
    """Result of `register_images`: the motion from the reference to the other image.

    The reference pixel x lies at x' = centre + scale · R(angle) (x − centre) + shift in the other
    image, in pixels (row, column).

    Attributes
    ----------
    shift : tuple of float
        Shift of the centre in rows and in columns.
    angle : float
        Rotation in degrees, from rows to columns.
    scale : float
        Scale factor.
    dependence : float
        Dependence of the overlapping pixels, from 0 to 1.
    measure : str
        Name of the dependence measure.

    See Also
    --------
    register_images : Align two images.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> from scipy.ndimage import gaussian_filter
    >>> from bagbasis.hypotheses import register_images
    >>> image = gaussian_filter(rng.normal(size=(24, 24)), 3)
    >>> result = register_images(image, -image, max_shift=4.0)  # brightness reversed, in place
    >>> print(round(abs(result.angle)), round(result.scale, 1))
    0 1.0
    >>> result.apply(-image, image.shape).shape, result.places(image.shape).shape
    ((24, 24), (2, 24, 24))
    """

    shift: tuple[float, float]
    angle: float
    scale: float
    dependence: float
    measure: str

    @checked
    def places(self, shape: Annotated[tuple[int, int], Pair(Integer(1), Integer(1))]) -> Floats:
        """Return the position x' of each pixel of a reference, shape (2, rows, columns)."""
        pixels = np.indices(shape).reshape(2, -1).astype(np.float64)
        moved = _move(pixels, shape, np.array([*self.shift, self.angle, np.log(self.scale)]))
        return moved.reshape(2, *shape)

    def apply(self, image: ArrayLike, shape: tuple[int, int]) -> Floats:
        """Resample an image on the pixels of the reference, of shape ``shape``; NaN outside."""
        values = _image("image", image)
        moved: Floats = map_coordinates(values, self.places(shape), order=1, cval=np.nan)
        return moved


@documented
@checked
def register_images(
    reference: ArrayLike,
    image: ArrayLike,
    *,
    measure: Annotated[str, OneOf("kcca", "hsic")] = "kcca",
    max_shift: Annotated[float, Real(ge=0, le=LONGEST_SHIFT)] = 8.0,
    max_angle: Annotated[float, Real(ge=0, le=180)] = 20.0,
    max_scale: Annotated[float, Real(ge=1, le=4)] = 1.2,
    n_features: Annotated[int, Integer(2, 1000, even=True)] = 10,
) -> Registration:
    """Find the rigid motion and scale that maximise the dependence of two images' pixels.

    The intensities of the images need not agree, but only depend on each other. The images may
    therefore come from different sensors or have different contrast. The features of intensities
    are bounded, so that outlying pixels have no more influence than other pixels.

    Parameters
    ----------
    reference, image : array_like, shape (rows, columns)
        Images of one channel each; their sizes may differ.
    measure
        Dependence measure: the largest canonical correlation of features of both intensities, or
        the alignment of their kernels.
    max_shift
        Largest shift that is searched, in pixels each way.
    max_angle
        Largest rotation that is searched, in degrees each way.
    max_scale
        Largest scale that is searched; the smallest is its inverse.
    n_features
        Number of random features of each intensity.

    Raises
    ------
    DataError
        If an image has values that are not finite, is constant, or is smaller than 8 by 8.

    See Also
    --------
    Registration : Result of `register_images`.

    Notes
    -----
    Szabó (outlier-robust image registration; Kybic 2004, Neemuchwala et al. 2007): the objective is
    I(y_ref, y(θ)). Motions of blurred images are searched on a grid, and the best motions are
    refined on sharper images. A median filter of nine pixels is applied first, so that single
    outlying pixels are not blurred.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> from scipy.ndimage import gaussian_filter, shift
    >>> from bagbasis.hypotheses import register_images
    >>> reference = gaussian_filter(rng.normal(size=(24, 24)), 3)
    >>> image = shift(reference, (2, -1))
    >>> result = register_images(reference, image, max_shift=4.0, max_angle=0.0)
    >>> print(np.round(result.shift))
    [ 2. -1.]
    """
    images = _image("reference", reference), _image("image", image)
    fixed, moving = (median_filter(pixels, MEDIAN_PIXELS) for pixels in images)
    limits = np.array([max_shift, max_shift, max_angle, np.log(max_scale)])
    with kernel_threads():
        motions: list[Floats] = []
        for width in BLUR_PIXELS:
            blurred = [gaussian_filter(pixels, width) for pixels in (fixed, moving)]
            step = max(1, round(width / 2))  # neighbours of a blurred pixel say little more
            overlap = Overlap.of(blurred[0], blurred[1], measure, n_features, step)
            if not motions:
                motions = _coarse(overlap, limits)
            refined = [_refine(overlap, motion, limits, width) for motion in motions]
            refined.sort(key=overlap)
            motions = refined[:1] if width != BLUR_PIXELS[0] else refined
        best = motions[0]
    return Registration(
        shift=(float(best[0]), float(best[1])),
        angle=float(best[2]),
        scale=float(np.exp(best[3])),
        dependence=-overlap(best),
        measure=measure,
    )


@dataclass(frozen=True, eq=False)
class Overlap:
    """The negative dependence of two images at a motion (shift, shift, degrees, log scale)."""

    shape: tuple[int, int]
    pixels: Floats
    fixed: Floats
    moving: Floats
    features: VariableFeatures
    measure: str

    @classmethod
    def of(
        cls, fixed: Floats, moving: Floats, measure: str, n_features: int, least: int
    ) -> Overlap:
        """Take the features of the reference, of every ``least``-th pixel or fewer."""
        step = max(least, int(np.ceil((fixed.size / MAX_PIXELS) ** 0.5)))
        pixels = np.indices(fixed.shape)[:, ::step, ::step].reshape(2, -1).astype(np.float64)
        values = fixed[::step, ::step].reshape(-1, 1)
        rows = VariableFeatures.of(values, n_features, 0)(values)
        features = VariableFeatures.of(moving.reshape(-1, 1), n_features, 1)
        return cls((fixed.shape[0], fixed.shape[1]), pixels, rows, moving, features, measure)

    def __call__(self, motion: Floats) -> float:
        """Return minus the dependence; 1 where too few pixels overlap."""
        places = _move(self.pixels, self.shape, motion)
        ends = np.array(self.moving.shape)[:, None] - 1
        inside = ((places >= 0) & (places <= ends)).all(axis=0)
        if inside.mean() < MIN_OVERLAP:
            return 1.0
        values = map_coordinates(self.moving, places[:, inside], order=1)
        return -_dependence(self.fixed[inside], self.features(values[:, None]), self.measure)


def _dependence(x: Floats, y: Floats, measure: str) -> float:
    """Return the canonical correlation, or the alignment, of features of pairs, from 0 to 1."""
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    xx, yy, xy = (a.T @ b / len(x) for a, b in ((x, x), (y, y), (x, y)))
    if measure == "hsic":
        scale = np.linalg.norm(xx) * np.linalg.norm(yy)
        return float((xy**2).sum() / max(scale, 1e-300))
    for gram in (xx, yy):
        gram[np.diag_indices_from(gram)] += _CORRELATION_RIDGE / len(gram)
    squares = eigh(xy @ np.linalg.solve(yy, xy.T), xx, eigvals_only=True)
    return float(max(squares[-1], 0.0) ** 0.5)


def _move(pixels: Floats, shape: tuple[int, int], motion: Floats) -> Floats:
    """Return the places of pixels (2, n) of a reference after a motion."""
    centre = (np.array(shape)[:, None] - 1) / 2
    angle, scale = np.deg2rad(motion[2]), np.exp(motion[3])
    turn = scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    moved: Floats = centre + turn @ (pixels - centre) + motion[:2, None]
    return moved


def _coarse(overlap: Overlap, limits: Floats) -> list[Floats]:
    """Return the best motions of a grid."""
    axes = [
        np.linspace(-limit, limit, n if limit else 1)
        for limit, n in zip(limits, (N_PER_AXIS, N_PER_AXIS, N_PER_AXIS, 3), strict=True)
    ]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 4)
    values = [overlap(motion) for motion in grid]
    return [grid[i] for i in np.argsort(values, kind="stable")[:N_STARTS]]


def _refine(overlap: Overlap, motion: Floats, limits: Floats, width: float) -> Floats:
    """Return the best motion near one, within the limits, by Nelder and Mead's search."""
    reach = np.array([width, width, 2 * width, 0.02 * width])  # a turn of 2° moves the rim as far
    free = limits > 0
    simplex = np.repeat(motion[None], free.sum() + 1, axis=0)
    for i, j in enumerate(np.flatnonzero(free)):
        simplex[i + 1, j] += reach[j] * (-1 if motion[j] > 0 else 1)

    def value(some: Floats) -> float:
        full = motion.copy()
        full[free] = some
        outside = np.maximum(np.abs(full) - limits, 0)
        return overlap(np.clip(full, -limits, limits)) + float(outside.sum())

    if not free.any():
        return motion
    optimum = minimize(
        value,
        motion[free],
        method="Nelder-Mead",
        options={"initial_simplex": simplex[:, free], "xatol": 1e-3, "fatol": 1e-7, "maxfev": 400},
    )
    best = motion.copy()
    best[free] = optimum.x
    return np.clip(best, -limits, limits)


def _image(name: str, image: ArrayLike) -> Floats:
    values = as_array(name, image, np.float64)
    if values.ndim != 2 or min(values.shape) < 8:
        raise DataError(f"{name} has shape {values.shape}; expected one channel, 8 by 8 or more")
    if not np.isfinite(values).all():
        raise DataError(f"{name} holds NaN or infinity")
    if values.std() <= 1e-12 * np.abs(values).max():
        raise DataError(f"{name} is constant: nothing depends on it")
    return values
