"""Generated clusters of galaxies: halos of known mass, each seen along one line of sight.

Masses are in M☉/h, lengths in Mpc/h, velocities in 1,000 km/s, at redshift 0. A halo has the
profile of Navarro, Frenk and White; velocities are normal with the variances of Jeans' equation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import cumulative_trapezoid

from bagbasis import Bags
from bagbasis.core.arrays import Floats

from .samples import bags_by_owner

_Owners = NDArray[np.int64]
"""The halo of each galaxy."""

CRITICAL = 2.775e11  # h² M☉/Mpc³; the mean density of a halo is 200 times this
MASSES = (14.0, 15.3)  # log10 of the mass, uniform: the paper draws rare heavy halos more often
_RICHNESS, _SLOPE = 25.0, 0.8  # median number of galaxies at 10^14, and its growth
MIN_GALAXIES = 10
COMPLETENESS = 0.6  # deviation of the logarithm of their number: spectra are taken of some only
EXTENT = 2.0  # R200 to which galaxies are members; nothing ends at R200 itself
CONCENTRATION = (6.0, -0.085, 0.14)  # at 10^14, its growth with mass, and its scatter in dex
ANISOTROPY = (-0.1, 0.5)  # β: 1 − tangential / radial variance of velocities; differs by halo
STRETCH = 0.15  # deviation of the logarithms of a halo's axes, of places and velocities alike
MERGING, _SHARE = 0.25, (0.1, 0.4)  # of halos that have a second clump, and of its galaxies
BULK, _APART = (0.5, 1.5), (0.3, 0.8)  # its velocity over V200, and its distance over R200
# The cylinder that is observed: its radius, and the largest |v|.
APERTURE, LARGEST_VELOCITY = 1.6, 4.0
FIELD, CROWDING = 20.0, 0.5  # median number of interlopers, deviation of its logarithm

TABLE_RADII = np.geomspace(1e-3, 1e3, 300)  # over the scale radius: where profiles are tabulated
_BLOCK = 2000  # halos at a time: a table of profiles takes 5 MiB


@dataclass(frozen=True)
class Clusters:
    """Bags of galaxies, (|v|, R): velocity along the line of sight, distance from the middle.

    Attributes
    ----------
    bags : Bags
        float64, in the box [0, LARGEST_VELOCITY] × [0, APERTURE].
    log_mass : float64, shape (n_bags,)
    """

    bags: Bags
    log_mass: Floats

    @property
    def velocities(self) -> Bags:
        """Bags of the first coordinate alone."""
        return Bags(self.bags.points[:, :1].copy(), self.bags.offsets)

    def __getitem__(self, chosen: slice) -> Clusters:
        return Clusters(self.bags[chosen], self.log_mass[chosen])


def clusters(n: int, has_interlopers: bool, rng: np.random.Generator) -> Clusters:
    """Return n clusters; of a generator, the same members with and without interlopers."""
    members, field = rng.spawn(2)
    log_mass = members.uniform(*MASSES, n)
    parts = []
    for start in range(0, n, _BLOCK):
        points, owner = observe(10 ** log_mass[start : start + _BLOCK], members)
        parts.append((points, owner + start))
    points, owner = (np.concatenate(each) for each in zip(*parts, strict=True))
    if has_interlopers:
        beside, theirs = interlopers(n, field)
        points, owner = np.concatenate([points, beside]), np.concatenate([owner, theirs])
    return Clusters(bags_by_owner(points, owner, n), log_mass)


def observe(mass: Floats, rng: np.random.Generator) -> tuple[Floats, _Owners]:
    """Return (|v|, R) of the members within the cylinder, and their halos."""
    expected = _RICHNESS * (mass / 1e14) ** _SLOPE * rng.lognormal(0, COMPLETENESS, len(mass))
    counts = np.maximum(MIN_GALAXIES, rng.poisson(expected))
    owner = np.repeat(np.arange(len(mass)), counts)
    places, velocities = galaxies(mass, owner, rng)
    seen = np.column_stack([np.abs(velocities[:, 2]), np.hypot(*places[:, :2].T)])
    inside = (seen <= [LARGEST_VELOCITY, APERTURE]).all(axis=1)
    return seen[inside], owner[inside]


def interlopers(n: int, rng: np.random.Generator) -> tuple[Floats, _Owners]:
    """Return galaxies of the field, uniform in n cylinders, and whose they are."""
    owner = np.repeat(np.arange(n), rng.poisson(rng.lognormal(np.log(FIELD), CROWDING, n)))
    radii = APERTURE * rng.random(len(owner)) ** 0.5
    return np.column_stack([LARGEST_VELOCITY * rng.random(len(owner)), radii]), owner


def galaxies(mass: Floats, owner: _Owners, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return places and velocities of galaxies relative to their halos, each (n, 3)."""
    radius, speed = virial(mass)
    places, velocities = relaxed(mass, owner, rng)
    axes = np.linalg.qr(rng.standard_normal((len(mass), 3, 3)))[0]
    logs = STRETCH * rng.standard_normal((len(mass), 3))
    logs -= logs.mean(axis=1, keepdims=True)  # the volume stays
    stretch = np.einsum("hik,hk,hjk->hij", axes, np.exp(logs), axes)[owner]
    places, velocities = (np.einsum("gij,gj->gi", stretch, each) for each in (places, velocities))
    share = np.where(rng.random(len(mass)) < MERGING, rng.uniform(*_SHARE, len(mass)), 0.0)
    second = rng.random(len(owner)) < share[owner]
    shrink = np.where(second, share[owner] ** (1 / 3), 1.0)[:, None]  # as M^(1/3) both
    away = directions(len(mass), rng) * (rng.uniform(*_APART, len(mass)) * radius)[:, None]
    bulk = directions(len(mass), rng) * (rng.uniform(*BULK, len(mass)) * speed)[:, None]
    moved = second[:, None]
    return shrink * places + moved * away[owner], shrink * velocities + moved * bulk[owner]


def relaxed(mass: Floats, owner: _Owners, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return places and velocities in round halos at rest."""
    radius, speed = virial(mass)
    at14, growth, scatter = CONCENTRATION
    dex = growth * np.log10(mass / 1e14) + scatter * rng.standard_normal(len(mass))
    concentration, beta = at14 * 10**dex, rng.uniform(*ANISOTROPY, len(mass))
    inside = rng.random(len(owner)) * enclosed(EXTENT * concentration)[owner]
    scaled = np.interp(inside, enclosed(TABLE_RADII), TABLE_RADII)
    table, width = dispersions(concentration, beta), len(TABLE_RADII)
    at = np.interp(scaled, TABLE_RADII, np.arange(width))
    low = np.minimum(at.astype(np.int64), width - 2)
    spread = table[owner, low] + (at - low) * (table[owner, low + 1] - table[owner, low])
    outward = directions(len(owner), rng)
    places = outward * (scaled * (radius / concentration)[owner])[:, None]
    drawn = rng.standard_normal((len(owner), 3))
    radial = (drawn * outward).sum(axis=1, keepdims=True) * outward
    tangential = (drawn - radial) * ((1 - beta) ** 0.5)[owner, None]
    return places, (radial + tangential) * (spread * speed[owner])[:, None]


def virial(mass: Floats) -> tuple[Floats, Floats]:
    """Return R200 and the circular velocity at it, which is 10 H0 R200."""
    radius = (mass / (800 * np.pi / 3 * CRITICAL)) ** (1 / 3)
    return radius, radius


def enclosed(x: Floats) -> Floats:
    """Return the mass within x scale radii, in units of 4π ρ_s r_s³."""
    return np.log1p(x) - x / (1 + x)


def dispersions(concentration: Floats, beta: Floats) -> Floats:
    """Return the radial dispersion over V200 at `TABLE_RADII`, shape (n_halos, len(RADII)).

    Jeans' equation with constant β: ρ σ_r² r^2β is the integral of ρ r^2β G M / r² from r on.
    """
    force = TABLE_RADII ** (2 * beta[:, None] - 3) / (1 + TABLE_RADII) ** 2 * enclosed(TABLE_RADII)
    within = cumulative_trapezoid(force * TABLE_RADII, np.log(TABLE_RADII), axis=1, initial=0)
    squares = (
        TABLE_RADII ** (1 - 2 * beta[:, None]) * (1 + TABLE_RADII) ** 2 * (within[:, -1:] - within)
    )
    speeds: Floats = np.sqrt(squares * (concentration / enclosed(concentration))[:, None])
    return speeds


def directions(n: int, rng: np.random.Generator) -> Floats:
    """Return unit vectors, shape (n, 3)."""
    drawn = rng.standard_normal((n, 3))
    unit: Floats = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return unit
