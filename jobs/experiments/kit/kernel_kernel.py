"""The Double-Basis and the Kernel-Kernel estimator on the same bags: tuned alike, timed in turn.

The first training bags choose the first basis and the kernel width of the 2BE, by generalised
cross-validation, and the bandwidth of the density estimates of the KK, by leave-one-out error. All
of them choose the penalty and the smoothing bandwidth, in the same ways.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from bagbasis import Bags, BagStore, Box, DoubleBasisRegressor, KernelSmoother, ProjectionEmbedding
from bagbasis.core.arrays import Floats
from bagbasis.embeddings import Embedding, ProjectionSpec
from bagbasis.embeddings.base import ChoiceSample
from bagbasis.execution.worker_threads import kernel_threads

from ..timing import least_in_turn
from .learning import Learner, Training, count

N_QUERIES = 256  # bags predicted at once where batches are timed
QUERIES_PER_CALL = 256  # of the smoother: its exponents stay in the cache
BAGS_AT_ONCE = 8192  # training bags that a lean smoother embeds at a time
N_ROUNDS = 15  # of timing
_REACH = 2.65  # in units of 1 / πh: functions that are damped to 3 % and more are kept


_Fitted = tuple[Any, dict[str, Any]]
"""A model, and what was chosen for it in how many seconds."""
Grids = Mapping[str, Any]
"""What both may choose from, in a scale's YAML.

``n_per_dim``, functions per dimension of the 2BE's first basis; ``multipliers``, σ over the median
distance; ``alphas_a_bag``, the least and the largest decimal exponent of λ / N, of which there are
two values a decade; ``bandwidths`` of kernel density estimates, as shares of the box's side;
``n_features``, D of the 2BE; ``n_choose`` and ``choose_features``, the bags, and D, that the bases
are chosen with; ``precision`` of the 2BE: where labels have next to no noise the best λ lies below
what the products of float32 resolve.
"""


def fit_double_basis(training: Training, few: Training, grids: Grids, seed: int) -> _Fitted:
    """Return the 2BE of the best first basis, kernel width and penalty."""
    begun, c = time.perf_counter(), SimpleNamespace(**grids)
    learner = Learner(DoubleBasisRegressor, seed, "gcv", c.precision)
    lo, hi = c.alphas_a_bag
    alphas = 10.0 ** np.arange(lo, hi + 0.25, 0.5)
    bases = [ProjectionEmbedding(n_per_dim=n) for n in c.n_per_dim]
    best = learner.choose(bases, c.multipliers, few, c.choose_features, alphas)
    model = learner.fit(best.embedding, best.multiplier, training, c.n_features, alphas)
    choice = {
        "n_per_dim": best.embedding.n_per_dim,
        "multiplier": best.multiplier,
        "alpha_a_bag": model.alpha_ / model.report_["n_bags_fitted"],
        "seconds": time.perf_counter() - begun,
    }
    return model, choice


def fit_kernel_kernel(training: Training, few: Training, grids: Grids) -> _Fitted:
    """Return the Kernel-Kernel estimator of the best bandwidths; embeddings are kept in memory."""
    begun = time.perf_counter()
    scores = []
    for bandwidth in grids["bandwidths"]:
        smoother = KernelSmoother(KernelDensityEmbedding(bandwidth)).fit(*few)
        scores.append((float(smoother.bandwidth_scores_.min()), bandwidth))
    bandwidth = min(scores)[1]
    smoother = KernelSmoother(KernelDensityEmbedding(bandwidth), in_memory=True).fit(*training)
    choice = {
        "density_bandwidth": bandwidth,
        "bandwidth": smoother.bandwidth_,
        "n_coefficients": smoother.features_.n_features,
        "seconds": time.perf_counter() - begun,
    }
    return smoother, choice


def smooth(smoother: KernelSmoother, bags: Bags) -> Floats:
    """Predict by `KernelSmoother`, in batches that suit the cache."""
    parts = range(0, len(bags), QUERIES_PER_CALL)
    return np.concatenate([smoother.predict(bags[i : i + QUERIES_PER_CALL]) for i in parts])


class LeanSmoother:
    """A fitted `KernelSmoother` that predicts one bag with as little overhead as numpy allows.

    It has no blocks, which `KernelSmoother` needs for many queries.
    """

    def __init__(self, smoother: KernelSmoother, training: Training) -> None:
        bags, y = training
        n, self._smoother = count(bags), smoother
        parts = [slice(i, min(n, i + BAGS_AT_ONCE)) for i in range(0, n, BAGS_AT_ONCE)]
        if isinstance(bags, BagStore):
            self._rows = np.concatenate([self._embed(bags.read(p.start, p.stop)) for p in parts])
            y = bags.targets(0, n)[:, 0]
        else:
            self._rows = np.concatenate([self._embed(bags[p]) for p in parts])
        self._centre = self._rows.mean(axis=0)
        self._rows -= self._centre
        self._halves = 0.5 * np.einsum("ij,ij->i", self._rows, self._rows)
        self._targets = np.asarray(y).astype(self._rows.dtype)

    def predict(self, bag: Bags) -> Floats:
        with kernel_threads():
            exponents = self._rows @ (self._embed(bag)[0] - self._centre)
            exponents -= self._halves
            exponents *= exponents.dtype.type(self._smoother.bandwidth_**-2)
            exponents -= exponents.max()
            np.exp(exponents, out=exponents)
            answer: Floats = (exponents @ self._targets) / exponents.sum()
        return answer

    def _embed(self, bags: Bags) -> NDArray[Any]:
        return self._smoother.features_.embed(bags, self._smoother.precision)[0]


def measure_times(
    model: DoubleBasisRegressor, smoother: KernelSmoother, training: Training, test: Bags
) -> dict[str, Any]:
    """Time queries from points to targets, in memory: `N_QUERIES` bags per call, and one."""
    batch, single, lean = test[:N_QUERIES], test[:1], LeanSmoother(smoother, training)
    calls: dict[str, Callable[[], Any]] = {
        "2be_batch": lambda: model.predict(batch),
        "kk_batch": lambda: smooth(smoother, batch),
        "2be_single": lambda: model.predict(single),
        "kk_single": lambda: lean.predict(single),
    }
    seconds = least_in_turn(calls, N_ROUNDS)
    n_batch = len(batch)
    per_query = {k: t / (n_batch if k.endswith("batch") else 1) for k, t in seconds.items()}
    return {"n_queries": n_batch, **per_query}


class KernelDensityEmbedding(Embedding[ProjectionSpec]):
    """Cosine coefficients a_α(X) e^{−½(πh)²‖α‖²} of a Gaussian kernel density estimate.

    The estimate of 004, eq. 2.27-2.29, with reflection at the edges of the box: the Euclidean
    distance of two bags is the L2 distance of their estimates, which the Kernel-Kernel estimator
    of 004, eq. 3.4 takes, at the cost of the few coefficients that the kernel leaves of any size.
    The bandwidth h is a fraction of the box's side.
    """

    def __init__(self, bandwidth: float = 0.05) -> None:
        self.bandwidth = bandwidth

    @override
    def decide(self, sample: ChoiceSample, out_of_box: str, box: Box) -> ProjectionSpec:
        # nothing is chosen from the sample
        reach = _REACH / (np.pi * self.bandwidth)
        common: Any = {"out_of_box": out_of_box, "box": box}
        return ProjectionSpec(
            "cosine", n_per_dim=None, max_norm=reach, bandwidth=self.bandwidth, **common
        )
