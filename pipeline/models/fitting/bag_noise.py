"""The variance of predictions due to the sampling of a bag; see `EmbeddingSpec.deviations`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ...core.arrays import Floats
from ...data.bags.bags import Bags
from .feature_map import FeatureMap

N_SIGN_ROWS = 32  # a power of two; with up to so many features, their noise is exact
_SEED = 4005  # for drawing the signs


def bag_variances(
    features: FeatureMap,
    bags: Bags,
    embeddings: NDArray[Any],
    predict: Callable[[NDArray[Any]], Floats],
) -> Floats:
    """Return the variance of predictions over the posterior of each bag's uncertain embedding.

    The variance is the mean of ((f(a + e) − f(a − e)) / 2)², where every entry of e is one standard
    deviation with a random sign. If f is linear near a, this is Σ (∂f/∂a_j)² V_j. It can be used
    with any random features.

    Parameters
    ----------
    features : FeatureMap
    bags : Bags
    embeddings : array (n, n_embedded)
        Embeddings of the bags.
    predict : callable
        Features (n, D) to predictions (n, k), in double.

    Returns
    -------
    float64, shape (n, k)
    """
    spec = features.embedding
    deviations = spec.deviations(spec.points_embedded(bags))
    moved = embeddings.copy()
    buffer = np.empty((len(bags), features.n_features), embeddings.dtype)
    variances = []
    for signs in _balanced_signs(spec.n_features):
        ends = []
        for steps in (signs * deviations, -signs * deviations):
            np.add(
                embeddings[:, : len(signs)], steps, out=moved[:, : len(signs)], casting="same_kind"
            )
            features.features_of(moved, buffer)
            ends.append(predict(buffer))
        variances.append((0.5 * (ends[0] - ends[1])) ** 2)
    means: Floats = np.mean(variances, axis=0)
    return means


def _balanced_signs(n: int) -> Floats:
    """Return rows of 1 and -1, shape (N_SIGN_ROWS, n), whose first columns are orthogonal."""
    rng = np.random.Generator(np.random.Philox(_SEED))
    orders = [rng.permutation(N_SIGN_ROWS) for _ in range(-(-n // N_SIGN_ROWS))]
    columns = np.concatenate(orders)[:n]
    signs: Floats = scipy.linalg.hadamard(N_SIGN_ROWS)[:, columns] * rng.choice((-1.0, 1.0), n)
    return signs
