"""`GMMOrder` and `DirichletParameters`: a parameter of a distribution, learnt over sample sizes.

004, §3.5.2, §3.5.3 and Figures 3.19, 3.20: the 2BE and the Kernel-Kernel estimator learn from
labelled bags what a classical estimator computes from one bag alone.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma, gammaln, polygamma
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from bagbasis.core.arrays import Floats, Integers
from bagbasis.data.bags.bags import offsets_of
from bagbasis.datasets import Dirichlet, GMMComponents
from bagbasis.datasets.base import RandomDataset
from bagbasis.datasets.dirichlet import ALPHA_RANGE

from ..kit import Callback, Curves, Experiment, Measure, Params, counted, kernel_kernel as kk
from ..kit.learning import draw_from, mean_squares
from ..timing import least_in_turn, timed

N_CATEGORIES = 3  # of Dirichlet distributions; the paper does not say how many
_MAX_STEPS, _MAX_HALVINGS = 100, 40  # of Newton's method, and of one step
_TOLERANCE = 1e-8  # of a parameter, relative
MAX_COMPONENTS = 10  # components of an EM fit, as of the mixtures
_N_FOLDS = 5  # of cross-validation
CRITERIA = ("aic", "bic")


class OverSizes(Experiment):
    """Two points per n: what learns, and the classical estimators."""

    classical: ClassVar[str]
    classical_params: ClassVar[Mapping[str, Any]]

    @abstractmethod
    def dataset(self, n_points: int, seed: int) -> RandomDataset: ...

    @abstractmethod
    def measure_classical(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return mse and se of ``methods`` on the first test bags, and seconds of some."""

    def test_set(self, n_points: int) -> Any:  # noqa: ANN401 - of `dataset`
        return self.dataset(n_points, 2 * self.seed + 1)

    def measures(self) -> list[Measure]:
        over = self.picked("n_points")
        data = self.picked("n_test n_classical")
        learned = {**self.picked("n_train candidates"), "n_queries": kk.N_QUERIES}
        label, classical = f"{self.classical}, n {{n_points}}", self.classical_params
        return [
            Measure("learned", self._learned, "2BE and KK, n {n_points}", over,
                    {**data, **learned, "n_rounds": kk.N_ROUNDS}),
            Measure("classical", self.measure_classical, label, over, {**data, **classical}),
        ]  # fmt: skip

    def _learned(self, p: Params, progress: Callback) -> dict[str, Any]:
        s, n_few = self.settings, self.settings.candidates["n_choose"]
        train = draw_from(self.dataset(p["n_points"], 2 * self.seed), s.n_train)
        bags, y = draw_from(self.test_set(p["n_points"]), s.n_test)
        few = train[0][:n_few], train[1][:n_few]
        double, of_double = kk.fit_double_basis(train, few, s.candidates, self.seed)
        kernel, of_kernel = kk.fit_kernel_kernel(train, few, s.candidates)
        predicted, first = double.predict(bags), slice(None, s.n_classical)
        constant = np.broadcast_to(train[1].mean(axis=0), y.shape)
        return {
            "methods": {
                "2BE": mean_squares(predicted, y),
                "KK": mean_squares(kk.smooth(kernel, bags), y),
                "constant": mean_squares(constant, y),
            },
            "2be_first": mean_squares(predicted[first], y[first]),
            "choices": {"2BE": of_double, "KK": of_kernel},
            "seconds": kk.measure_times(double, kernel, train, bags),
        }


class GMMOrder(OverSizes):
    """AIC, BIC and cross-validation (CV) choose among EM fits of 1 to 10."""

    name = "gmm-order"
    title = "Choosing the order of a Gaussian mixture"
    source = "004, §3.5.2"
    pictures = (Curves("order.png", "methods.*.mse", x="n_points", log="xy"),)
    classical = "AIC, BIC, CV"
    classical_params: ClassVar = {"n_folds": _N_FOLDS}

    def dataset(self, n_points: int, seed: int) -> GMMComponents:
        return GMMComponents(n_points=n_points, seed=seed, variant="004")

    def measure_classical(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Fit EM by scikit-learn, one bag after the other; AIC and BIC share their fits."""
        n_bags = p["n_classical"]
        bags, y = draw_from(self.test_set(p["n_points"]), n_bags)
        fits, seconds = [], []
        with threadpool_limits(1):  # threads only cost time where matrices are this small
            for i in counted(range(n_bags), progress):
                sizes, folds = (bags[i], MAX_COMPONENTS), (_N_FOLDS, 0)
                criteria, once = timed(orders_by_criteria, *sizes, 0)
                crossed, often = timed(order_by_cross_validation, *sizes, *folds)
                fits.append((criteria["aic"], criteria["bic"], crossed))
                seconds.append((once, once, often))
        methods, medians = {}, np.median(seconds, axis=0).tolist()
        columns = zip(("AIC", "BIC", "CV"), np.array(fits, dtype=float).T, medians, strict=True)
        for name, predicted, took in columns:
            methods[name] = {
                **mean_squares(predicted, y),
                "seconds": {"batch": took, "single": took},
                "mean": float(predicted.mean()),
            }
        return {"methods": methods}


def orders_by_criteria(points: ArrayLike, most: int, seed: int) -> dict[str, int]:
    """Return the number of components, 1 … most, of least AIC ("aic") and of least BIC ("bic")."""
    x = np.asarray(points, dtype=np.float64)
    mixtures = [_mixture(x, k, seed) for k in range(1, most + 1)]
    return {name: 1 + int(np.argmin([getattr(m, name)(x) for m in mixtures])) for name in CRITERIA}


def order_by_cross_validation(points: ArrayLike, most: int, n_folds: int, seed: int) -> int:
    """Return the number of components, 1 … most, of largest likelihood of the points left out.

    Orders above the points that a fold leaves are not tried.
    """
    x = np.asarray(points, dtype=np.float64)
    folds = list(KFold(n_folds, shuffle=True, random_state=seed).split(x))
    most = min(most, *(len(train) for train, _ in folds))
    scores = [
        sum(_mixture(x[train], k, seed).score_samples(x[out]).sum() for train, out in folds)
        for k in range(1, most + 1)
    ]
    return int(np.argmax(scores)) + 1


def _mixture(x: Floats, k: int, seed: int) -> GaussianMixture:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the likelihood hardly moves any more
        return GaussianMixture(k, random_state=seed).fit(x)


class DirichletParameters(OverSizes):
    """The paper does not say how many categories: here three."""

    name = "dirichlet"
    title = "Dirichlet parameters of small samples"
    source = "004, §3.5.3"
    pictures = (Curves("parameters.png", "methods.*.mse", x="n_points", log="xy"),)
    classical = "MLE"
    classical_params: ClassVar = {"n_categories": N_CATEGORIES, "n_rounds": kk.N_ROUNDS}

    def dataset(self, n_points: int, seed: int) -> Dirichlet:
        return Dirichlet(n_points=n_points, seed=seed, n_categories=N_CATEGORIES)

    def measure_classical(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Newton's method for all bags at once, and clipped to the range that alpha comes from."""
        n, n_bags = p["n_points"], p["n_classical"]
        dataset = self.test_set(n)
        blocks = [dataset.proportions(i) for i in range(-(-n_bags // dataset.block_bags))]
        proportions = np.concatenate([points for points, _, _ in blocks])[: n_bags * n]
        alpha = np.concatenate([targets for _, _, targets in blocks])[:n_bags]
        estimates = fit_dirichlets(proportions, offsets_of(np.full(n_bags, n)))
        n_batch = min(kk.N_QUERIES, n_bags)
        single, batch = (offsets_of(np.full(count, n)) for count in (1, n_batch))
        calls = {
            "batch": lambda: fit_dirichlets(proportions[: batch[-1]], batch),
            "single": lambda: fit_dirichlets(proportions[:n], single),
        }
        seconds = least_in_turn(calls, kk.N_ROUNDS)
        seconds["batch"] /= n_batch
        progress(n_bags, n_bags)
        return {
            "methods": {
                "MLE": {**mean_squares(estimates, alpha), "seconds": seconds},
                "MLE, clipped": mean_squares(np.clip(estimates, *ALPHA_RANGE), alpha),
            }
        }


def fit_dirichlets(proportions: Floats, offsets: Integers) -> Floats:
    """Return the alpha of largest likelihood of each bag, shape (n_bags, d), by Newton's method.

    Minka, Estimating a Dirichlet distribution (2000), as the peer of 004, §3.5.3: the Hessian is
    a diagonal and a matrix of rank one, so that a step takes O(d). The likelihood is concave; a
    step that leaves the positive alphas or lowers it is halved, and one that stays so, as where
    alpha is too large for the digits of the Hessian, ends it. Begins at the moments' estimate.
    """
    n = np.diff(offsets)[:, None]
    mean_logs = np.add.reduceat(np.log(proportions), offsets[:-1]) / n
    means = np.add.reduceat(proportions, offsets[:-1]) / n
    variances = np.add.reduceat(proportions**2, offsets[:-1]) / n - means**2
    alpha = _by_moments(means, np.maximum(variances, np.finfo(np.float64).tiny))
    moving = np.arange(len(alpha))
    for _ in range(_MAX_STEPS):
        before = alpha[moving]
        after = _step(before, mean_logs[moving])
        alpha[moving] = after
        moving = moving[(np.abs(after - before) > _TOLERANCE * before).any(axis=1)]
        if not len(moving):
            break
    return alpha


def log_likelihood(alpha: Floats, mean_logs: Floats) -> Floats:
    """Return log likelihoods per point, shape (n_bags,), from the means of log proportions."""
    total = gammaln(alpha.sum(axis=1)) - gammaln(alpha).sum(axis=1)
    return np.asarray(total + ((alpha - 1) * mean_logs).sum(axis=1))


def _by_moments(means: Floats, variances: Floats) -> Floats:
    """Estimate alpha: means times the geometric mean of the categories' precisions."""
    precisions = np.maximum(means * (1 - means) / variances - 1, 1e-3)
    return means * np.exp(np.log(precisions).mean(axis=1, keepdims=True))


def _step(alpha: Floats, mean_logs: Floats) -> Floats:
    total = alpha.sum(axis=1, keepdims=True)
    gradient = digamma(total) - digamma(alpha) + mean_logs
    diagonal, shared = -polygamma(1, alpha), polygamma(1, total)
    with np.errstate(divide="ignore", invalid="ignore"):  # of a step that is not finite, see below
        common = (gradient / diagonal).sum(axis=1, keepdims=True)
        common /= 1 / shared + (1 / diagonal).sum(axis=1, keepdims=True)
        step = (gradient - common) / diagonal
    least = log_likelihood(alpha, mean_logs)
    least -= 1e-12 * np.abs(least)
    after: Floats = alpha - step
    worse = np.arange(len(alpha))
    for _ in range(_MAX_HALVINGS):
        positive = (after[worse] > 0).all(axis=1)
        accepted = np.zeros(len(worse), dtype=bool)
        inside = worse[positive]
        accepted[positive] = log_likelihood(after[inside], mean_logs[inside]) >= least[inside]
        worse = worse[~accepted]
        if not len(worse):
            return after
        step[worse] /= 2
        after[worse] = alpha[worse] - step[worse]
    after[worse] = alpha[worse]
    return after
