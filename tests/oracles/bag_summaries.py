"""Summary statistics of one bag, which trees and lines have."""

from __future__ import annotations

import numpy as np


def summary_of(bag):
    """Mean, covariance, minimum, maximum, log n; of more than 300 covariances variances."""
    d, bag = bag.shape[1], bag.astype(np.float64)
    gaps = bag - bag.mean(axis=0)
    pairs = [(i, j) for i in range(d) for j in range(i, d)]
    pairs = pairs if len(pairs) <= 300 else [(j, j) for j in range(d)]
    second = [np.mean(gaps[:, i] * gaps[:, j]) for i, j in pairs]
    return [*bag.mean(axis=0), *second, *bag.min(axis=0), *bag.max(axis=0), np.log(len(bag))]
