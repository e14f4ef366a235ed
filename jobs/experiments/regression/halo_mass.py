"""`HaloMass`: predicts masses of galaxy clusters from the velocities of their galaxies (000, §5.1).

The clusters are generated, with and without galaxies of the field among them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression

from bagbasis import Bags, DoubleBasisRegressor, HDDEmbedding, ProjectionEmbedding
from bagbasis.core.arrays import Floats

from ...terminal import Callback
from ..data.halos import APERTURE, LARGEST_VELOCITY, Clusters, clusters
from ..kit.experiment import Experiment, Measure, Params, Scale
from ..kit.gram_peer import GramPeer
from ..kit.learning import Learner
from ..kit.plots import GroupedBars

JS, _L2, JOINT = _OURS = ("JS, |v|", "L2, |v|", "JS, |v| and R")
_POWER, CLEANED, _RICHNESS, _BOOSTING, _BOTH, GRAM = _PEERS = (
    "power law",
    "power law, interlopers modelled",
    "power law, modelled, and richness",
    "gradient boosting, |v|",
    "gradient boosting, |v| and R",
    "sKL by neighbours, |v|",
)
_KINDS = {"members alone": False, "with interlopers": True}
_ALPHAS = tuple(10.0 ** np.arange(-8.0, 0.5, 0.5))  # per bag: often the least of the usual ones
_QUANTILES = np.arange(0.05, 1, 0.1)  # of each coordinate, for gradient boosting
_RATE = 0.1  # of its trees' shares
N_STEPS = 200  # of expectation maximisation
# Least σ_v: the likelihood has no bound if a normal distribution narrows around one galaxy.
MIN_DISPERSION = 0.3
CENTRAL = (0.16, 0.84)  # the quantiles that 68 % of the errors lie between


class Sizes(Scale):
    """Numbers of haloes, and sizes of the embeddings and of the methods they are compared with."""

    n_train: int
    n_test: int
    n_repeats: int
    n_gram: int
    n_trees: int
    n_features: int
    choose_features: int
    multipliers: list[float]
    bandwidths: list[float]
    functions: list[int]
    joint_functions: int

    @property
    def methods(self) -> dict[str, list[Any]]:
        """The embeddings to choose from, by method."""
        box = [(0.0, LARGEST_VELOCITY), (0.0, APERTURE)]
        k = max(self.functions)
        return {
            JS: [
                HDDEmbedding("js", n_per_dim=k, bandwidth=h, box=box[:1]) for h in self.bandwidths
            ],
            _L2: [ProjectionEmbedding(n_per_dim=n, box=box[:1]) for n in self.functions],
            JOINT: [
                HDDEmbedding("js", n_per_dim=self.joint_functions, bandwidth=2 * h, box=box)
                for h in self.bandwidths
            ],
        }


class HaloMass(Experiment[Sizes]):
    """A point is one catalogue with all methods."""

    name = "halo-mass"
    title = "Masses of dark-matter halos"
    source = "000, §5.1"
    kind = Sizes
    pictures = (GroupedBars(file="errors.png", y="rmse.*", panels="kind", label="RMSE, dex"),)

    def measures(self) -> list[Measure]:
        over = {"repeat": range(self.settings.n_repeats), "kind": list(_KINDS)}
        shared = {"seed": self.seed, **self.settings.model_dump(exclude={"n_repeats"})}
        return [Measure("", self._errors, "{kind} {repeat}", over, shared)]

    def _errors(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return errors of each method in dex: root mean square, and half the width of 68 %."""
        s, has_interlopers = self.settings, _KINDS[p["kind"]]
        every = clusters(s.n_train + s.n_test, has_interlopers, self.rng(p["repeat"]))
        train, test = every[: s.n_train], every[s.n_train :]
        predicted = {
            **by_power_laws(train, test, has_interlopers),
            **by_boosting(train, test, s.n_trees, self.seed),
            GRAM: _by_gram(train[: s.n_gram], test),
        }
        learner = Learner(DoubleBasisRegressor, self.seed, precision="float64")
        for done, (name, candidates) in enumerate(s.methods.items()):
            bags, queries = (c.bags if name == JOINT else c.velocities for c in (train, test))
            few, training = s.choose_features, (bags, train.log_mass)
            choice = learner.choose(candidates, s.multipliers, training, few, _ALPHAS)
            predicted[name] = learner.fit_choice(choice, training, s.n_features).predict(queries)
            progress(done + 1, len(_OURS))
        errors = {name: predicted[name] - test.log_mass for name in (*_OURS, *_PEERS)}
        return {
            "rmse": {name: np.sqrt(np.mean(e**2)) for name, e in errors.items()},
            "width": {name: np.ptp(np.quantile(e, CENTRAL)) / 2 for name, e in errors.items()},
        }


def by_power_laws(train: Clusters, test: Clusters, has_interlopers: bool) -> dict[str, Floats]:
    """Predict by a line through log M over log σ_v, with interlopers modelled, and richness."""
    spreads = [
        (velocity_spread(c.bags, False), velocity_spread(c.bags, has_interlopers), c.bags.sizes)
        for c in (train, test)
    ]
    columns = {_POWER: [0], CLEANED: [1], _RICHNESS: [1, 2]}
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
    for name, n in ((_BOOSTING, len(_QUANTILES)), (_BOTH, 2 * len(_QUANTILES))):
        trees = HistGradientBoostingRegressor(
            learning_rate=_RATE, max_iter=n_trees, random_state=seed
        )
        predicted[name] = trees.fit(x[:, :n], train.log_mass).predict(new[:, :n])
    return predicted


def _by_gram(train: Clusters, test: Clusters) -> Floats:
    predicted, _ = GramPeer().predict(train.velocities, train.log_mass[:, None], test.velocities)
    return predicted[:, 0]
