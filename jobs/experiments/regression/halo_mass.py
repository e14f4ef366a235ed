"""`HaloMass`: predicts masses of galaxy clusters from the velocities of their galaxies (000, §5.1).

Generated halos of the profile of Navarro, Frenk and White and Jeans' velocities, each seen along
one line of sight. Masses are in M☉/h, lengths in Mpc/h, velocities in 1,000 km/s, at redshift 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.integrate import cumulative_trapezoid
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression

from bagbasis import Bags, DoubleBasisRegressor, HDDEmbedding, ProjectionEmbedding
from bagbasis.core.arrays import Floats, Integers

from ..data.samples import bags_by_owner
from ..kit import Callback, Experiment, GroupedBars, Measure, Params, counted
from ..kit.learning import Learner, predict_by_kl

CRITICAL = 2.775e11  # h² M☉/Mpc³; the mean density of a halo is 200 times this
MASSES = (14.0, 15.3)  # log10 of the mass, uniform: the paper draws rare heavy halos more often
_GALAXIES, _SLOPE = 25.0, 0.8  # median number of galaxies at 10^14, and its growth
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


@dataclass(frozen=True)
class Clusters:
    """Bags of galaxies, (|v|, R): velocity along the line of sight, distance from the middle."""

    bags: Bags
    log_mass: Floats

    @property
    def velocities(self) -> Bags:
        return Bags(self.bags.points[:, :1].copy(), self.bags.offsets)

    def __getitem__(self, chosen: slice) -> Clusters:
        return Clusters(self.bags[chosen], self.log_mass[chosen])


def clusters(n: int, has_interlopers: bool, rng: np.random.Generator) -> Clusters:
    """Return n clusters; of a generator, the same members with and without interlopers."""
    members, field = rng.spawn(2)
    log_mass = members.uniform(*MASSES, n)
    points, owner = observe(10**log_mass, members)
    if has_interlopers:
        beside, theirs = interlopers(n, field)
        points, owner = np.concatenate([points, beside]), np.concatenate([owner, theirs])
    return Clusters(bags_by_owner(points, owner, n), log_mass)


def observe(mass: Floats, rng: np.random.Generator) -> tuple[Floats, Integers]:
    """Return (|v|, R) of the members within the cylinder, and their halos."""
    expected = _GALAXIES * (mass / 1e14) ** _SLOPE * rng.lognormal(0, COMPLETENESS, len(mass))
    counts = np.maximum(MIN_GALAXIES, rng.poisson(expected))
    owner = np.repeat(np.arange(len(mass)), counts)
    places, velocities = galaxies(mass, owner, rng)
    seen = np.column_stack([np.abs(velocities[:, 2]), np.hypot(*places[:, :2].T)])
    inside = (seen <= [LARGEST_VELOCITY, APERTURE]).all(axis=1)
    return seen[inside], owner[inside]


def interlopers(n: int, rng: np.random.Generator) -> tuple[Floats, Integers]:
    """Return galaxies of the field, uniform in n cylinders, and whose they are."""
    owner = np.repeat(np.arange(n), rng.poisson(rng.lognormal(np.log(FIELD), CROWDING, n)))
    radii = APERTURE * rng.random(len(owner)) ** 0.5
    return np.column_stack([LARGEST_VELOCITY * rng.random(len(owner)), radii]), owner


def galaxies(mass: Floats, owner: Integers, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return places and velocities of galaxies relative to their halos, each (n, 3)."""
    radius = speed = virial(mass)
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


def relaxed(mass: Floats, owner: Integers, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return places and velocities in round halos at rest."""
    radius = speed = virial(mass)
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


def virial(mass: Floats) -> Floats:
    """Return R200: also the circular velocity at it, 10 H0 R200, in these units."""
    return (mass / (800 * np.pi / 3 * CRITICAL)) ** (1 / 3)


def enclosed(x: Floats) -> Floats:
    """Return the mass within x scale radii, in units of 4π ρ_s r_s³."""
    return np.log1p(x) - x / (1 + x)


def dispersions(concentration: Floats, beta: Floats) -> Floats:
    """Return the radial dispersion over V200 at `TABLE_RADII`, shape (n_halos, len(RADII)).

    Jeans' equation with constant β: ρ σ_r² r^2β is the integral of ρ r^2β G M / r² from r on.
    """
    force = TABLE_RADII ** (2 * beta[:, None] - 3) / (1 + TABLE_RADII) ** 2 * enclosed(TABLE_RADII)
    within = cumulative_trapezoid(force * TABLE_RADII, np.log(TABLE_RADII), axis=1, initial=0)
    outer = within[:, -1:] - within
    squares = TABLE_RADII ** (1 - 2 * beta[:, None]) * (1 + TABLE_RADII) ** 2 * outer
    return np.sqrt(squares * (concentration / enclosed(concentration))[:, None])


def directions(n: int, rng: np.random.Generator) -> Floats:
    """Return unit vectors, shape (n, 3)."""
    drawn = rng.standard_normal((n, 3))
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


JOINT = "JS, |v| and R"
_KINDS = {"members alone": False, "with interlopers": True}
_ALPHAS = tuple(10.0 ** np.arange(-8.0, 0.5, 0.5))  # per bag: often the least of the usual ones
_QUANTILES = np.arange(0.05, 1, 0.1)  # of each coordinate, for gradient boosting
_RATE = 0.1  # of its trees' shares
N_STEPS = 200  # of expectation maximisation
# Least σ_v: the likelihood has no bound if a normal distribution narrows around one galaxy.
MIN_DISPERSION = 0.3
CENTRAL = (0.16, 0.84)  # the quantiles that 68 % of the errors lie between


class HaloMass(Experiment):
    name = "halo-mass"
    title = "Masses of dark-matter halos"
    source = "000, §5.1"
    pictures = (GroupedBars("errors.png", "rmse.*", panels="kind", label="RMSE, dex"),)

    def measures(self) -> list[Measure]:
        over = {"repeat": range(self.settings.n_repeats), "kind": list(_KINDS)}
        return [Measure("", self._errors, "{kind} {repeat}", over, self.shared("n_repeats"))]

    def _errors(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return errors of each method in dex: root mean square, and half the width of 68 %."""
        s, has_interlopers = self.settings, _KINDS[p["kind"]]
        every = clusters(s.n_train + s.n_test, has_interlopers, self.rng(p["repeat"]))
        train, test = every[: s.n_train], every[s.n_train :]
        predicted = {}
        learner = Learner(DoubleBasisRegressor, self.seed, precision="float64")
        for name, candidates in counted(self._methods().items(), progress):
            bags, queries = (c.bags if name == JOINT else c.velocities for c in (train, test))
            training, n = (bags, train.log_mass), s.choose_features
            choice = learner.choose(candidates, s.multipliers, training, n, _ALPHAS)
            predicted[name] = learner.fit_choice(choice, training, s.n_features).predict(queries)
        predicted |= by_power_laws(train, test, has_interlopers)
        predicted |= by_boosting(train, test, s.n_trees, self.seed)
        few = train[: s.n_gram]
        by_gram, _ = predict_by_kl(few.velocities, few.log_mass[:, None], test.velocities)
        predicted["sKL by neighbours, |v|"] = by_gram[:, 0]
        errors = {name: values - test.log_mass for name, values in predicted.items()}
        return {
            "rmse": {name: np.sqrt(np.mean(e**2)) for name, e in errors.items()},
            "width": {name: np.ptp(np.quantile(e, CENTRAL)) / 2 for name, e in errors.items()},
        }

    def _methods(self) -> dict[str, list[Any]]:
        s, box = self.settings, [(0.0, LARGEST_VELOCITY), (0.0, APERTURE)]

        def js(k: int, factor: float, box: list[tuple[float, float]]) -> list[Any]:
            widths = [factor * h for h in s.bandwidths]
            return [HDDEmbedding("js", n_per_dim=k, bandwidth=h, box=box) for h in widths]

        return {
            "JS, |v|": js(max(s.functions), 1, box[:1]),
            "L2, |v|": [ProjectionEmbedding(n_per_dim=n, box=box[:1]) for n in s.functions],
            JOINT: js(s.joint_functions, 2, box),
        }


def by_power_laws(train: Clusters, test: Clusters, has_interlopers: bool) -> dict[str, Floats]:
    """Predict by a line through log M over log σ_v, with interlopers modelled, and richness."""
    spreads = [
        (velocity_spread(c.bags, False), velocity_spread(c.bags, has_interlopers), c.bags.sizes)
        for c in (train, test)
    ]
    columns = {"power law": [0], "power law, interlopers modelled": [1],
               "power law, modelled, and richness": [1, 2]}  # fmt: skip
    x, new = (np.log10(np.column_stack(each)) for each in spreads)
    return {
        name: LinearRegression().fit(x[:, of], train.log_mass).predict(new[:, of])
        for name, of in columns.items()
    }


def velocity_spread(bags: Bags, has_interlopers: bool) -> Floats:
    """Return σ_v of each bag, the root mean square of |v|, which ends at `LARGEST_VELOCITY`.

    With interlopers it is that of the normal part of a mixture of a normal and a uniform
    distribution, fitted by maximum likelihood.
    """
    n, owner = len(bags), np.repeat(np.arange(len(bags)), bags.sizes)
    squares = bags.points[:, 0] ** 2
    variance = np.bincount(owner, squares, n) / bags.sizes
    if not has_interlopers:
        return np.sqrt(variance)
    share, variance = np.full(n, 0.8), variance / 2
    for _ in range(N_STEPS):
        density = np.sqrt(2 / (np.pi * variance))[owner] * np.exp(-squares / (2 * variance)[owner])
        member = share[owner] * density
        member /= member + (1 - share)[owner] / LARGEST_VELOCITY
        total = np.bincount(owner, member, n)
        variance = np.maximum(np.bincount(owner, member * squares, n) / total, MIN_DISPERSION**2)
        share = total / bags.sizes
    return np.sqrt(variance)


def by_boosting(train: Clusters, test: Clusters, n_trees: int, seed: int) -> dict[str, Floats]:
    """Predict by gradient boosting from quantiles of |v|, and of R too."""
    x, new = (
        np.array([np.quantile(bag, _QUANTILES, axis=0).T.ravel() for bag in c.bags])
        for c in (train, test)
    )
    predicted = {}
    for name, n in (("|v|", len(_QUANTILES)), ("|v| and R", 2 * len(_QUANTILES))):
        params = {"learning_rate": _RATE, "max_iter": n_trees, "random_state": seed}
        trees = HistGradientBoostingRegressor(**params).fit(x[:, :n], train.log_mass)
        predicted[f"gradient boosting, {name}"] = trees.predict(new[:, :n])
    return predicted
