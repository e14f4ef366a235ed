"""`Radiation`: sources found by the energies of photons, at few false alarms (000, §5.4).

On generated background that changes with time, and sources injected into it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import RidgeCV

from bagbasis import Bags, DoubleBasisRegressor, ProjectionEmbedding
from bagbasis.core.arrays import Floats

from ...terminal import Callback
from ..data.photons import ROOT_BOX, SOURCES, background, energies, inject
from ..data.samples import bags_by_owner
from ..kit.experiment import Experiment, Measure, Params, Scale
from ..kit.learning import Learner, Model
from ..kit.plots import GroupedBars

LIST_MODE, _SHARE = _OURS = ("list mode regression", "share of source photons")
_COUNTS, WINDOWS, COMPONENTS, FILTER = _PEERS = (
    "total counts",
    "censored energy windows",
    "principal components",
    "matched filter",
)
_METHODS = (*_OURS, *_PEERS)
_RATES = (1e-3, 1e-2, 1e-1)  # of false alarms
_N_BINS = 128  # of spectra, alike in roots of energies: a blur's deviation there is one bin
_N_COMPONENTS = 5  # of spectra; the background is made of four
FLOOR = 1e-3  # photons per bin and second, where the background has next to none
_PENALTIES = 10.0 ** np.arange(0, 6)  # of regressions on counts, chosen by leave-one-out errors
N_KNOWN = 20_000  # photons of a source that its spectrum is known from
MIN_PHOTONS = 0.5  # photons predicted at least, so that scores are finite
_MULTIPLIERS = (1.0, 4.0)  # σ over the median distance, to choose from
_QUIET = 0.3  # share of the training seconds without a source, of those that learn its share


class Sizes(Scale):
    """Numbers of drives and spectra, sizes of the methods, and the sources looked for."""

    n_repeats: int
    n_train: int
    n_quiet: int
    n_test: int
    n_choose: int
    n_features: int
    n_per_dim: int
    strengths: list[float]
    typical: float
    sources: list[str]


class Radiation(Experiment[Sizes]):
    """A point is one source in one drive, looked for by each method."""

    name = "radiation"
    title = "Detecting sources of radiation"
    source = "000, §5.4"
    kind = Sizes
    pictures = (
        GroupedBars(file="detection.png", x="source", y="power.*", label="share that is detected"),
    )

    def measures(self) -> list[Measure]:
        s = self.settings
        over = {"repeat": range(s.n_repeats), "source": s.sources}
        fixed = s.model_dump(exclude={"n_repeats", "sources"})
        return [Measure("", self._powers, "{source} {repeat}", over, {"seed": self.seed, **fixed})]

    def _powers(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return the fraction of seconds with a source that each method finds."""
        s, source, key = self.settings, p["source"], list(SOURCES).index(p["source"])
        train, quiet, test = (
            _drive(self.seed, p["repeat"], part, n)
            for part, n in enumerate((s.n_train, s.n_quiet, s.n_test))
        )
        rng = self.rng(p["repeat"], 3, key)
        detectors = Detectors(train, source, s, self.seed, rng)
        alarms = {
            name: np.quantile(scores, 1 - np.array(_RATES))
            for name, scores in detectors.scores(quiet).items()
        }
        progress(1, 1 + len(s.strengths))
        powers: dict[str, list[list[float]]] = {name: [] for name in _METHODS}
        for done, strength in enumerate(s.strengths, 2):
            bags, _ = inject(test, source, np.full(len(test), strength), rng)
            for name, scores in detectors.scores(bags).items():
                powers[name].append([float((scores > level).mean()) for level in alarms[name]])
            progress(done, 1 + len(s.strengths))
        return {"power": powers}


class Detectors:
    """All methods, fitted to background and, but for total counts, told of one source."""

    def __init__(
        self, train: Bags, source: str, sizes: Sizes, seed: int, rng: np.random.Generator
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
            LIST_MODE: excess(within, self._list_mode.predict(others) * others.sizes),
            _SHARE: self._share.predict(bags) * np.sqrt(bags.sizes),
            _COUNTS: bags.sizes.astype(float),
            WINDOWS: excess(within, self._by_windows.predict(outside)),
            COMPONENTS: counts @ self._by_components,
            FILTER: (counts - self._mean) @ self._filter,
        }

    def _outside(self, bags: Bags) -> Bags:
        """Return the photons at other energies than the source's."""
        keep = ~self.window[bins(bags)]
        return bags_by_owner(bags.points[keep], owners(bags)[keep], len(bags))

    def _strengths(self, n: int, sizes: Sizes, rng: np.random.Generator) -> Floats:
        drawn = rng.uniform(0, 2 * sizes.typical, n)
        return np.where(rng.random(n) < _QUIET, 0.0, drawn)

    def _learn(self, learner: Learner, bags: Bags, y: Floats, sizes: Sizes) -> Model:
        first = ProjectionEmbedding(n_per_dim=sizes.n_per_dim, box=[ROOT_BOX])
        few, n = (bags[: sizes.n_choose], y[: sizes.n_choose]), sizes.n_features
        choice = learner.choose([first], _MULTIPLIERS, few, n // 2)
        return learner.fit_choice(choice, (bags, y), n)


def excess(seen: Floats, predicted: Floats) -> Floats:
    """Return (y − ŷ) / √ŷ, the paper's score."""
    expected = np.maximum(predicted, MIN_PHOTONS)
    return np.asarray((seen - expected) / np.sqrt(expected))


def choose_window(template: Floats, mean: Floats) -> NDArray[np.bool_]:
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


def bins(bags: Bags) -> NDArray[np.int64]:
    """Return the bin of each photon."""
    at = (bags.points[:, 0] - ROOT_BOX[0]) / (ROOT_BOX[1] - ROOT_BOX[0]) * _N_BINS
    whole: NDArray[np.int64] = np.minimum(at.astype(np.int64), _N_BINS - 1)
    return whole


def owners(bags: Bags) -> NDArray[np.int64]:
    """Return the bag of each point."""
    return np.repeat(np.arange(len(bags)), bags.sizes)


def spectra(bags: Bags) -> Floats:
    """Return the numbers of photons per bin, shape (n_bags, N_BINS)."""
    flat = np.bincount(owners(bags) * _N_BINS + bins(bags), minlength=len(bags) * _N_BINS)
    return flat.reshape(len(bags), _N_BINS).astype(float)


@lru_cache(maxsize=3)
def _drive(seed: int, repeat: int, part: int, n: int) -> Bags:
    """Return the seconds of a part of a drive: the same ones for all sources."""
    return background(n, np.random.default_rng([seed, repeat, part]))
