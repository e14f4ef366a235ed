"""Generated energies of photons that a small sensor counts in a second, with or without a source.

Energies are in keV. A photon emitted at a line is counted at its energy, or loses a part of it on
the way or in the sensor. The sensor blurs all energies.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from bagbasis import Bags
from bagbasis.core.arrays import Floats

from .samples import bags_by_owner

_Owners = NDArray[np.int64]
Lines = Mapping[float, float]
"""Intensities of lines, by energy; only their ratios matter."""

_LOWEST, _HIGHEST = 30.0, 3000.0  # that are counted
# of the roots of energies, whose blur is the same everywhere
ROOT_BOX = (_LOWEST**0.5, _HIGHEST**0.5)
ELECTRON = 511.0  # energy at rest
_BLUR = 0.07 / 2.355 * 662**0.5  # deviation over the root: 7 % full width at 662, as NaI has it
PEAK = 0.7  # share of photons of 100 keV that are counted whole; it falls as E^-½
ASTRAY = 0.5  # of the background's photons that lose energy in ground and air before
CONTINUUM = 250.0  # mean energy of such a photon, and of those that come from above

# Potassium, the chains of uranium and thorium; of what comes from above the continuum alone
URANIUM: Lines = {186: 4, 242: 7, 295: 18, 352: 36, 609: 45, 1120: 15, 1765: 15}
THORIUM: Lines = {239: 43, 338: 11, 583: 30, 911: 26, 969: 16, 2615: 36}
NATURAL: dict[str, Lines | None] = {
    "potassium": {1461: 1}, "uranium": URANIUM, "thorium": THORIUM, "sky": None,
}  # fmt: skip
_RATES = (15.0, 30.0, 30.0, 25.0)  # photons per second of each, in the median
WANDER = (0.4, 0.5, 0.4, 0.1)  # deviations of the logarithms of these rates
_MEMORY = 60.0  # seconds after which the correlation of a rate with itself has fallen by e

SOURCES: dict[str, Lines] = {
    "Cs-137": {662: 1},
    "Co-60": {1173: 1, 1332: 1},
    "Ba-133": {81: 33, 276: 7, 303: 18, 356: 62, 384: 9},
    "Ir-192": {296: 29, 308: 30, 317: 83, 468: 48, 604: 8, 612: 5},
    "I-131": {284: 6, 364: 82, 637: 7},
    "Am-241": {59.5: 1},
    "Co-57": {122: 86, 136: 11},
    "U-235": {144: 11, 163: 5, 186: 57, 205: 5},
    "Na-22": {511: 180, 1275: 100},
    "Ra-226": URANIUM,  # as in the background
}


def background(n: int, rng: np.random.Generator) -> Bags:
    """Return roots of the energies of n seconds that follow each other, in R^1."""
    counts = rng.poisson(_RATES * np.exp(WANDER * wander(n, len(_RATES), rng))).T
    parts = [
        _counted(lines, np.repeat(np.arange(n), of), ASTRAY, rng)
        for lines, of in zip(NATURAL.values(), counts, strict=True)
    ]
    points, seconds = (np.concatenate(each) for each in zip(*parts, strict=True))
    return bags_by_owner(points, seconds, n)


def inject(
    bags: Bags, source: str, strengths: Floats, rng: np.random.Generator
) -> tuple[Bags, _Owners]:
    """Return bags with a source's photons in addition to their own, and how many of these each has.

    Parameters
    ----------
    strengths : float64, shape (n_bags,)
        Expected numbers of photons that reach the sensor; it counts most of them.
    """
    n = len(bags)
    own = np.repeat(np.arange(n), bags.sizes)
    sent = np.repeat(np.arange(n), rng.poisson(strengths))
    more, owners = _counted(SOURCES[source], sent, 0.0, rng)
    points = np.concatenate([bags.points, more])
    made = bags_by_owner(points, np.concatenate([own, owners]), n)
    return made, np.bincount(owners, minlength=n)


def _counted(
    lines: Lines | None, owners: _Owners, astray: float, rng: np.random.Generator
) -> tuple[Floats, _Owners]:
    """Return roots of the energies of those photons that are counted, (n, 1), and their owners."""
    energy = energies(lines, len(owners), astray, rng)
    counted = (energy >= _LOWEST) & (energy <= _HIGHEST)
    return np.sqrt(energy[counted])[:, None], owners[counted]


def energies(lines: Lines | None, n: int, astray: float, rng: np.random.Generator) -> Floats:
    """Return the energies at which n photons of lines arrive, blurred; None: of the continuum."""
    if lines is None:
        return _LOWEST + rng.exponential(CONTINUUM, n)
    shares = np.array(list(lines.values()), dtype=float)
    emitted = rng.choice(np.array(list(lines), dtype=float), n, p=shares / shares.sum())
    lost = rng.random(n) < astray
    scattered = _LOWEST + rng.exponential(CONTINUUM, n) % (emitted - _LOWEST)
    energy = np.where(lost, scattered, emitted)
    part = ~lost & (rng.random(n) > PEAK * np.minimum(1, (100 / energy) ** 0.5))
    energy = np.where(part, rng.random(n) * edge(energy), energy)
    return np.asarray(energy + _BLUR * np.sqrt(energy) * rng.standard_normal(n))


def edge(energy: Floats) -> Floats:
    """Return the most energy that a photon leaves to an electron that it bounces off (Compton)."""
    return 2 * energy**2 / (ELECTRON + 2 * energy)


def wander(n: int, k: int, rng: np.random.Generator) -> Floats:
    """Return k stationary series of n normal numbers of variance 1 with `_MEMORY`, (n, k)."""
    keep = np.exp(-1 / _MEMORY)
    steps = rng.standard_normal((n, k))
    steps[1:] *= (1 - keep**2) ** 0.5
    return np.asarray(lfilter([1.0], [1.0, -keep], steps, axis=0))
