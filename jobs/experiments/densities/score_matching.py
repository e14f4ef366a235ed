"""`ScoreMatching`: densities exp f from features compared with the closed form, and tests of fit.

003 has the family; the peer is Sriperumbudur et al. 2017, with all n d × n d derivatives.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import solve

from bagbasis.core.arrays import Floats
from bagbasis.densities import ExponentialFamilyDensity
from bagbasis.execution.worker_threads import use_cores
from bagbasis.hypotheses import fit_test

from ..kit import Callback, Curves, Experiment, Measure, Params, counted
from ..timing import timed

_APART = 1.5  # half the distance of the modes per coordinate, in their standard deviation
_ALPHA, _WIDTH = 0.03, 1.0  # of features and closed form, where they are compared
_LEVEL = 0.05
_TESTS = ("ksd", "fssd")
_GRID = 200  # places of the pictured density


class ScoreMatching(Experiment):
    name = "score-matching"
    title = "Densities of unknown constant by score matching"
    source = "003"
    pictures = (
        Curves("divergence.png", "divergence.*", measure="divergence", x="n", panels="d", log="xy"),
        Curves("density.png", ("curve.model", "curve.truth"), measure="divergence", where={"d": 1}),
    )

    def measures(self) -> list[Measure]:
        s, seed = self.settings, {"seed": self.seed}
        sizes = {**self.picked("n_fitted n_tested n_tests"), "n_features": s.n_features_tested}
        return [
            Measure("divergence", self._divergence, "divergence n {n} d {d}",
                    {"d": s.dims, "n": s.n_points},
                    {**self.picked("n_features n_held_out n_repeats"), **seed}),
            Measure("level", self._level, "level d {d} {test}",
                    {"d": s.dims_tested, "test": _TESTS}, {**sizes, **seed}),
        ]  # fmt: skip

    def _divergence(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return the Fisher divergence from the truth of each way, and its seconds."""
        gaps: dict[str, list[float]] = defaultdict(list)
        seconds: dict[str, list[float]] = defaultdict(list)
        curve: dict[str, Any] = {}
        with use_cores(1):
            for i in counted(range(p["n_repeats"]), progress):
                x = two_modes(p["n"], p["d"], self.rng(i, p["n"], p["d"]))
                fresh = two_modes(p["n_held_out"], p["d"], self.rng(i, 0, p["d"], 1))
                same: dict[str, Any] = {"bandwidth": _WIDTH, "alpha": _ALPHA}
                fits = {
                    "features, chosen": ExponentialFamilyDensity(p["n_features"]),
                    "features": ExponentialFamilyDensity(p["n_features"], **same),
                }
                scores = {"normal distribution": normal_score(x)(fresh)}
                for name, model in fits.items():
                    seconds[name].append(timed(model.fit, x)[1])
                    scores[name] = model.log_density_gradient(fresh)
                score, fitting = timed(closed_form_score, x, _WIDTH, _ALPHA)
                scores["closed form"], scoring = timed(score, fresh)
                seconds["closed form"].append(fitting + scoring)
                for name, score in scores.items():
                    gap = ((score - true_score(fresh)) ** 2).sum(axis=1).mean()
                    gaps[name].append(float(gap))
                if i == 0 and p["d"] == 1:
                    curve = density_curve(fits["features, chosen"])
        return {
            "divergence": {name: float(np.mean(values)) for name, values in gaps.items()},
            "ratio": [a / b for a, b in zip(gaps["features"], gaps["closed form"], strict=True)],
            "seconds": {name: float(np.median(values)) for name, values in seconds.items()},
            "curve": curve,
        }

    def _level(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return how often `fit_test` rejects samples of the model and of a normal distribution."""
        x = two_modes(p["n_fitted"], p["d"], self.rng(p["d"], 2))
        n, rejected, noticed = p["n_tested"], 0, 0
        with use_cores(1):
            model = ExponentialFamilyDensity(p["n_features"]).fit(x)
            drawn = model.sample(n * p["n_tests"], n_steps=50, seed=self.seed)
            mean, root = x.mean(axis=0), np.linalg.cholesky(np.atleast_2d(np.cov(x.T)))
            for i in counted(range(p["n_tests"]), progress):
                own = drawn[i * n : (i + 1) * n]
                normal = mean + self.rng(i, 3).standard_normal(own.shape) @ root.T
                options: dict[str, Any] = {"statistic": p["test"], "n_draws": 199, "seed": i}
                rejected += fit_test(own, model, **options).p_value <= _LEVEL
                noticed += fit_test(normal, model, **options).p_value <= _LEVEL
        return {"level": rejected / p["n_tests"], "power": noticed / p["n_tests"]}


def two_modes(n: int, d: int, rng: np.random.Generator) -> Floats:
    """Return points (n, d) of an even mixture of two normal distributions."""
    return _APART * rng.choice([-1.0, 1.0], (n, 1)) + rng.standard_normal((n, d))


def true_score(x: Floats) -> Floats:
    """Return ∇ log of the density of `two_modes`."""
    return _APART * np.tanh(_APART * x.sum(axis=1))[:, None] - x


def normal_score(x: Floats) -> Any:  # noqa: ANN401 - a function
    """Return the score of the normal distribution with the moments of points."""
    mean, precision = x.mean(axis=0), np.linalg.inv(np.atleast_2d(np.cov(x.T)))
    return lambda points: (mean - points) @ precision


def density_curve(model: ExponentialFamilyDensity) -> dict[str, list[float]]:
    x = np.linspace(-5, 5, _GRID)
    values = np.exp(model.log_density(x) - model.log_density(x).max())
    values /= values.sum() * (x[1] - x[0])
    truth = sum(np.exp(-((x - s * _APART) ** 2) / 2) for s in (-1, 1)) / (8 * np.pi) ** 0.5
    return {"x": x.tolist(), "model": values.tolist(), "truth": truth.tolist()}


def closed_form_score(x: Floats, width: float, alpha: float) -> Callable[[Floats], Floats]:
    """Return the score of the density whose f minimises the objective over the whole RKHS.

    Sriperumbudur et al. 2017, Theorem 5, with the Gaussian kernel on standardised coordinates and
    the normal distribution of the points as base: f = −(ξ − Σ γ_aj ∂_j k(·, x_a)) / α.
    """
    centre, scale = x.mean(axis=0), x.std(axis=0)
    z = (x - centre) / scale
    n, d = z.shape
    precision = np.linalg.inv(np.atleast_2d(np.cov(z.T, bias=True)))
    base = -z @ precision

    def along_xi(mixed: Floats, third: Floats) -> Floats:
        return (third + np.einsum("aibj,bj->aib", mixed, base)).mean(axis=2)

    mixed, third = derivatives(z, z, width)
    system = mixed.reshape(n * d, n * d) + n * alpha * np.eye(n * d)
    gamma = solve(system, along_xi(mixed, third).ravel(), assume_a="pos").reshape(n, d)

    def score(points: Floats) -> Floats:
        new = (points - centre) / scale
        mixed, third = derivatives(new, z, width)
        slope = along_xi(mixed, third) - np.einsum("aibj,bj->ai", mixed, gamma)
        return (-new @ precision - slope / alpha) / scale

    return score


def derivatives(x: Floats, y: Floats, width: float) -> tuple[Floats, Floats]:
    """Return ∂_i ∂'_j k of all pairs, (n, d, m, d), and Σ_j ∂_i ∂'_j² k, (n, d, m)."""
    d = x.shape[1]
    gap = (x[:, None] - y[None]) / width**2
    k = np.exp(-0.5 * width**2 * (gap**2).sum(axis=2))
    mixed = -np.einsum("abi,abj,ab->aibj", gap, gap, k)
    for j in range(d):
        mixed[:, j, :, j] += k / width**2
    squares = (gap**2).sum(axis=2) - d / width**2
    third = (2 / width**2 - squares)[..., None] * gap * k[..., None]
    return mixed, third.transpose(0, 2, 1)
