"""`Radiation`: sources found by the energies of photons, at few false alarms (000, §5.4).

On generated background as a small sensor counts it in a second, and sources injected into it.
Energies are in keV. A photon is counted at its energy, or loses a part; the sensor blurs all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.signal import lfilter
from sklearn.linear_model import RidgeCV

from bagbasis import Bags, DoubleBasisRegressor, ProjectionEmbedding
from bagbasis.core.arrays import Bools, Floats, Integers

from ..data.samples import bags_by_owner
from ..kit import Callback, Experiment, GroupedBars, Measure, Params, Settings
from ..kit.learning import Learner, Model

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
_PHOTON_RATES = (15.0, 30.0, 30.0, 25.0)  # photons per second of each, in the median
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
    counts = rng.poisson(_PHOTON_RATES * np.exp(WANDER * wander(n, len(_PHOTON_RATES), rng))).T
    parts = [
        _counted(lines, np.repeat(np.arange(n), of), ASTRAY, rng)
        for lines, of in zip(NATURAL.values(), counts, strict=True)
    ]
    points, seconds = (np.concatenate(each) for each in zip(*parts, strict=True))
    return bags_by_owner(points, seconds, n)


def inject(
    bags: Bags, source: str, strengths: Floats, rng: np.random.Generator
) -> tuple[Bags, Integers]:
    """Return bags with photons of a source in addition, and how many of these each has."""
    n = len(bags)
    own = np.repeat(np.arange(n), bags.sizes)
    sent = np.repeat(np.arange(n), rng.poisson(strengths))
    more, owners = _counted(SOURCES[source], sent, 0.0, rng)
    points = np.concatenate([bags.points, more])
    made = bags_by_owner(points, np.concatenate([own, owners]), n)
    return made, np.bincount(owners, minlength=n)


def _counted(
    lines: Lines | None, owners: Integers, astray: float, rng: np.random.Generator
) -> tuple[Floats, Integers]:
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


_RATES = (1e-3, 1e-2, 1e-1)  # of false alarms
_N_BINS = 128  # of spectra, alike in roots of energies: a blur's deviation there is one bin
_N_COMPONENTS = 5  # of spectra; the background is made of four
FLOOR = 1e-3  # photons per bin and second, where the background has next to none
_PENALTIES = 10.0 ** np.arange(0, 6)  # of regressions on counts, chosen by leave-one-out errors
N_KNOWN = 20_000  # photons of a source that its spectrum is known from
MIN_PHOTONS = 0.5  # photons predicted at least, so that scores are finite
_MULTIPLIERS = (1.0, 4.0)  # σ over the median distance, to choose from
_QUIET = 0.3  # share of the training seconds without a source, of those that learn its share


class Radiation(Experiment):
    name = "radiation"
    title = "Detecting sources of radiation"
    source = "000, §5.4"
    pictures = (
        GroupedBars("detection.png", "power.*", x="source", label="share that is detected"),
    )

    def measures(self) -> list[Measure]:
        s = self.settings
        over = {"repeat": range(s.n_repeats), "source": s.sources}
        shared = self.shared("n_repeats", "sources")
        return [Measure("", self._powers, "{source} {repeat}", over, shared)]

    def _powers(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return the fraction of seconds with a source that each method finds."""
        s, source, key = self.settings, p["source"], list(SOURCES).index(p["source"])
        train, quiet, test = (
            _drive(self.seed, p["repeat"], part, n)
            for part, n in enumerate((s.n_train, s.n_quiet, s.n_test))
        )
        rng = self.rng(p["repeat"], 3, key)
        detectors = Detectors(train, source, s, self.seed, rng)
        levels, scores_of_quiet = 1 - np.array(_RATES), detectors.scores(quiet)
        alarms = {name: np.quantile(each, levels) for name, each in scores_of_quiet.items()}
        progress(1, 1 + len(s.strengths))
        powers: dict[str, list[list[float]]] = defaultdict(list)
        for done, strength in enumerate(s.strengths, 2):
            bags, _ = inject(test, source, np.full(len(test), strength), rng)
            for name, scores in detectors.scores(bags).items():
                powers[name].append([float((scores > level).mean()) for level in alarms[name]])
            progress(done, 1 + len(s.strengths))
        return {"power": powers}


class Detectors:
    """All methods, fitted to background and, but for total counts, told of one source."""

    def __init__(
        self, train: Bags, source: str, sizes: Settings, seed: int, rng: np.random.Generator
    ) -> None:
        known = energies(SOURCES[source], N_KNOWN, 0.0, rng)
        template = np.histogram(known, np.linspace(*ROOT_BOX, _N_BINS + 1) ** 2)[0] / N_KNOWN
        counts = spectra(train)
        mean = counts.mean(axis=0)
        self.window = choose_window(template, mean)
        within = counts[:, self.window].sum(axis=1)
        self._by_windows = RidgeCV(_PENALTIES).fit(counts[:, ~self.window], within)
        scale = (mean + FLOOR) ** -0.5  # counts in units of their own deviations
        basis = np.linalg.svd(counts * scale, full_matrices=False)[2][:_N_COMPONENTS]
        residual = template * scale
        self._by_components = scale * (residual - basis.T @ (basis @ residual))
        covariance = np.cov(counts.T) + FLOOR * np.eye(_N_BINS)
        self._mean, self._filter = mean, np.linalg.solve(covariance, template)
        learner = Learner(DoubleBasisRegressor, seed, "gcv")
        others = self._outside(train)
        injected, of_source = inject(train, source, self._strengths(len(train), sizes, rng), rng)
        self._list_mode, self._share = (
            self._learn(learner, bags, y, sizes)
            for bags, y in ((others, within / others.sizes), (injected, of_source / injected.sizes))
        )

    def scores(self, bags: Bags) -> dict[str, Floats]:
        """Return how much each second looks like one with the source, by each method."""
        counts, others = spectra(bags), self._outside(bags)
        within, outside = counts[:, self.window].sum(axis=1), counts[:, ~self.window]
        return {
            "list mode regression": excess(within, self._list_mode.predict(others) * others.sizes),
            "share of source photons": self._share.predict(bags) * np.sqrt(bags.sizes),
            "total counts": bags.sizes.astype(float),
            "censored energy windows": excess(within, self._by_windows.predict(outside)),
            "principal components": counts @ self._by_components,
            "matched filter": (counts - self._mean) @ self._filter,
        }

    def _outside(self, bags: Bags) -> Bags:
        keep = ~self.window[bins(bags)]
        return bags_by_owner(bags.points[keep], owners(bags)[keep], len(bags))

    def _strengths(self, n: int, sizes: Settings, rng: np.random.Generator) -> Floats:
        drawn = rng.uniform(0, 2 * sizes.typical, n)
        return np.where(rng.random(n) < _QUIET, 0.0, drawn)

    def _learn(self, learner: Learner, bags: Bags, y: Floats, sizes: Settings) -> Model:
        first = ProjectionEmbedding(n_per_dim=sizes.n_per_dim, box=[ROOT_BOX])
        few, n = (bags[: sizes.n_choose], y[: sizes.n_choose]), sizes.n_features
        choice = learner.choose([first], _MULTIPLIERS, few, n // 2)
        return learner.fit_choice(choice, (bags, y), n)


def excess(seen: Floats, predicted: Floats) -> Floats:
    """Return (y − ŷ) / √ŷ, the paper's score."""
    expected = np.maximum(predicted, MIN_PHOTONS)
    return np.asarray((seen - expected) / np.sqrt(expected))


def choose_window(template: Floats, mean: Floats) -> Bools:
    """Return the bins that have the largest signal over the root of the background together.

    At most half of the background, so that photons remain to predict it from.
    """
    order = np.argsort(-template / (mean + FLOOR))
    within = np.cumsum(mean[order] + FLOOR)
    ratio = np.cumsum(template[order]) / np.sqrt(within)
    n = 1 + np.where(within <= within[-1] / 2, ratio, 0.0).argmax()
    chosen = np.zeros(len(mean), dtype=bool)
    chosen[order[:n]] = True
    return chosen


def bins(bags: Bags) -> Integers:
    at = (bags.points[:, 0] - ROOT_BOX[0]) / (ROOT_BOX[1] - ROOT_BOX[0]) * _N_BINS
    return np.minimum(at.astype(np.int64), _N_BINS - 1)


def owners(bags: Bags) -> Integers:
    return np.repeat(np.arange(len(bags)), bags.sizes)


def spectra(bags: Bags) -> Floats:
    """Return the numbers of photons per bin, shape (n_bags, N_BINS)."""
    flat = np.bincount(owners(bags) * _N_BINS + bins(bags), minlength=len(bags) * _N_BINS)
    return flat.reshape(len(bags), _N_BINS).astype(float)


@lru_cache(maxsize=3)
def _drive(seed: int, repeat: int, part: int, n: int) -> Bags:
    return background(n, np.random.default_rng([seed, repeat, part]))
