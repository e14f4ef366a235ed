"""`LearnedSpectrum`: frequencies learnt from labels, compared with Gaussian ones (004, §6.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets

from bagbasis import (
    Bags,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    LearnedFourierFeatures,
    MomentsEmbedding,
    ProjectionEmbedding,
)
from bagbasis.core.arrays import Floats
from bagbasis.data.labelled.labelled import box_of_bags
from bagbasis.datasets import Digits, GMMComponents

from ..kit import Callback, Curves, Experiment, GroupedBars, Measure, Params, Settings
from ..kit.learning import ALPHAS, Learner, Model, constant_of, draw_from, random_feature_rows

WIDTHS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)  # of the median that the second one is chosen from
SYNTHETIC = "6.4.1"
TRUE_FREQUENCIES = 250  # that the synthetic responses are made of
TEST_SHARE = 0.25  # of a bundled set
LAGS = np.linspace(0, 8, 201)  # where kernels are compared


class SpectrumProblem(NamedTuple):
    """Bags to fit and to judge, with what they are embedded by."""

    embedding: Any
    train: Bags
    y: Floats
    test: Bags
    truth: Floats
    is_class: bool = False


class LearnedSpectrum(Experiment):
    name = "learned-spectrum"
    title = "Frequencies that are learnt (BaNK)"
    source = "004, §6.4"
    pictures = (
        GroupedBars("errors.png", "error.*", x="data", label="error"),
        Curves("kernel.png", "drawn.*", where={"data": SYNTHETIC}),
    )

    def measures(self) -> list[Measure]:
        over = {"data": list(_DATA), "repeat": range(self.settings.n_repeats)}
        return [Measure("", self._errors, "{data} {repeat}", over, self.shared())]

    def _errors(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return the error of each method on bags held out, over a constant's."""
        rng = self.rng(p["repeat"], list(_DATA).index(p["data"]))
        problem = _DATA[p["data"]](self.settings, rng)
        models = fit_all(problem, self.settings, self.seed + p["repeat"])
        errors = {n: _error(problem, model.predict(problem.test)) for n, model in models.items()}
        measured: dict[str, Any] = {"error": errors}
        if p["data"] == SYNTHETIC:
            kernels = {name: _kernel(model) for name, model in models.items()}
            # 004, §6.4.1's: half its frequencies are N(0, ¼), half N(¾π, ¼)
            truth = np.exp(-(LAGS**2) / 8) * (0.5 + 0.5 * np.cos(0.75 * np.pi * LAGS))
            gaps = {name: kernel - truth for name, kernel in kernels.items()}
            measured["kernel"] = {n: np.sqrt(np.mean(gap**2)) for n, gap in gaps.items()}
            if p["repeat"] == 0:
                measured["drawn"] = {n: kernel.round(4).tolist() for n, kernel in kernels.items()}
        return measured


def fit_all(problem: SpectrumProblem, sizes: Settings, seed: int) -> dict[str, Model]:
    """Return the model of each method; all choose λ by generalised cross-validation."""
    kind = DoubleBasisClassifier if problem.is_class else DoubleBasisRegressor
    learner = Learner(kind, seed, "gcv", "float64")
    training, d = (problem.train, problem.y), sizes.n_features
    width = learner.choose([problem.embedding], WIDTHS, training, d).multiplier
    learned = kind(
        problem.embedding,
        LearnedFourierFeatures(n_features=d, n_sweeps=sizes.n_sweeps, seed=seed),
        alpha="gcv",
        alphas=len(problem.train) * np.array(ALPHAS),
        precision="float64",
    )
    return {
        "Gaussian, median width": learner.fit(problem.embedding, 1.0, training, d, ALPHAS),
        "Gaussian, best width": learner.fit(problem.embedding, width, training, d, ALPHAS),
        "learned": learned.fit(*training),
    }


def _error(problem: SpectrumProblem, predicted: NDArray[Any]) -> float:
    """Return the mean squared error over a constant's, or the error rate over it."""
    truth, y = problem.truth, problem.y
    if not problem.is_class:
        return float(np.mean((predicted - truth) ** 2) / np.mean((truth - y.mean()) ** 2))
    return float(np.mean(predicted != truth) / np.mean(truth != constant_of(y, True)))


def _kernel(model: Model) -> Floats:
    """Return what features of a model make of distances: sines and cosines know no place."""
    points = Bags(LAGS[:, None], np.arange(len(LAGS) + 1))
    z = random_feature_rows(model, points)
    return z @ z[0]


def _synthetic(sizes: Settings, rng: np.random.Generator) -> SpectrumProblem:
    omega = rng.choice([0, 0.75 * np.pi], TRUE_FREQUENCIES) + 0.5 * rng.standard_normal(
        TRUE_FREQUENCIES
    )
    beta = rng.standard_normal((2, TRUE_FREQUENCIES)) / TRUE_FREQUENCIES**0.5
    x = 4 * rng.standard_normal((sizes.n_synthetic + sizes.n_test, 1))
    f = np.sin(x * omega) @ beta[0] + np.cos(x * omega) @ beta[1]
    y = f + rng.standard_normal(len(f))
    return _of_points(x, y, sizes.n_synthetic, truth=f)


def _friedman(sizes: Settings, rng: np.random.Generator) -> SpectrumProblem:
    n, seed = sizes.n_bags + sizes.n_test, int(rng.integers(2**31))
    x, y = datasets.make_friedman1(n, 10, noise=1.0, random_state=seed)
    return _of_points(x, y, sizes.n_bags)


def _bundled(load: Callable[[], Any], is_class: bool) -> Callable[..., SpectrumProblem]:
    def draw(sizes: Settings, rng: np.random.Generator) -> SpectrumProblem:
        dataset = load()
        order = rng.permutation(len(dataset.target))
        n = min(sizes.n_bags, int((1 - TEST_SHARE) * len(order)))
        return _of_points(dataset.data[order], dataset.target[order], n, is_class)

    return draw


def _of_points(
    x: Floats, y: Floats, n: int, is_class: bool = False, truth: Floats | None = None
) -> SpectrumProblem:
    """Rows as bags of one point each, standardised by the first n."""
    bags = Bags(x.astype(np.float64), np.arange(len(x) + 1))
    first = MomentsEmbedding(covariance=False, box=box_of_bags(bags), dtype="float64")
    test = y[n:] if truth is None else truth[n:]
    return SpectrumProblem(first, bags[:n], y[:n], bags[n:], test, is_class)


def _mixtures(sizes: Settings, rng: np.random.Generator) -> SpectrumProblem:
    data = GMMComponents(n_points=100, seed=int(rng.integers(2**31)))
    bags, y = draw_from(data, sizes.n_bags + sizes.n_test)
    n = sizes.n_bags
    return SpectrumProblem(
        ProjectionEmbedding(n_per_dim=6, box=data.box), bags[:n], y[:n], bags[n:], y[n:]
    )


def _digits(sizes: Settings, rng: np.random.Generator) -> SpectrumProblem:
    bags, y = draw_from(Digits(seed=int(rng.integers(2**31))))
    n = min(sizes.n_bags, int((1 - TEST_SHARE) * len(y)))
    first = ProjectionEmbedding(n_per_dim=6, box=[(0, 1)] * bags.n_dims)
    return SpectrumProblem(first, bags[:n], y[:n], bags[n:], y[n:], is_class=True)


# By what people see: a problem of sizes and a generator
_DATA: dict[str, Callable[[Settings, np.random.Generator], SpectrumProblem]] = {
    SYNTHETIC: _synthetic,
    "mixture counting": _mixtures,
    "digits": _digits,
    "friedman 1": _friedman,
    "diabetes": _bundled(datasets.load_diabetes, False),
    "breast cancer": _bundled(datasets.load_breast_cancer, True),
    "wine": _bundled(datasets.load_wine, True),
}
