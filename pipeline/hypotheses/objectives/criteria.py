"""The criteria of `select_coordinates`, computed from moments of features alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.linalg import solve

from ...core.arrays import Floats
from .variable_features import Moments, alignments

LASSO_STEPS = 60  # penalties of the path, from one that selects nothing down to 10⁻⁴ of it
SWEEPS = 50  # sweeps of coordinate descent, for each penalty
_ADDITIVE_RIDGE = (
    1e-3  # penalty of the additive model per row; features have about this variance, 1 / 2 L
)

Scores = tuple[list[int], Floats]
"""The variables in the order in which they were selected, and a score of all of them."""


def mrmr(moments: Moments, folds: Sequence[int], blocks: Sequence[slice], k: int) -> Scores:
    """Select variables greedily by relevance less mean redundancy with the selected variables.

    The last block is the target (Peng, Long and Ding 2005, with HSIC instead of mutual
    information).
    """
    _, covariance, n = moments.centred(folds)
    aligned = alignments(covariance, blocks, n)
    relevance, redundancy = aligned[-1, :-1], aligned[:-1, :-1]
    chosen: list[int] = []
    while len(chosen) < k:
        gain = relevance - (redundancy[chosen].mean(axis=0) if chosen else 0.0)
        gain[chosen] = -np.inf
        chosen.append(int(np.argmax(gain)))
    return chosen, relevance


def hsic_lasso(moments: Moments, folds: Sequence[int], blocks: Sequence[slice], k: int) -> Scores:
    """Select the variables that enter a sparse non-negative fit to the target's Gram matrix.

    Minimises ½ ‖L̃ − Σ_j β_j K̃_j‖²_F + λ Σ β_j over β ≥ 0 for normalised Gram matrices, along a
    path of λ (Yamada et al. 2014). Only the alignments are needed.
    """
    _, covariance, n = moments.centred(folds)
    aligned = alignments(covariance, blocks, n)
    relevance, gram = aligned[-1, :-1], aligned[:-1, :-1]
    beta, chosen = np.zeros(len(relevance)), []
    scores = np.zeros(len(relevance))
    for penalty in np.geomspace(max(relevance.max(), 1e-12), 1e-4 * relevance.max(), LASSO_STEPS):
        for _ in range(SWEEPS):
            for j in range(len(beta)):
                rest = relevance[j] - gram[j] @ beta + gram[j, j] * beta[j]
                beta[j] = max(0.0, rest - penalty) / gram[j, j]
        entered = [j for j in np.argsort(-beta).tolist() if beta[j] > 0 and j not in chosen]
        chosen += entered
        scores = beta.copy()
        if len(chosen) >= k:
            break
    others = [j for j in np.argsort(-relevance).tolist() if j not in chosen]
    return (chosen + others)[:k], scores


def permutation(moments: Moments, folds: Sequence[int], blocks: Sequence[slice], k: int) -> Scores:
    """Select the variables whose permutation raises the held-out error of an additive model most.

    The model is a ridge regression of the target's features (the last block) on the features of all
    variables. The rise of its mean squared error if a variable is permuted between rows follows
    from the moments, so that nothing is drawn. Each fold is held out once.
    """
    inputs, target = slice(0, blocks[-1].start), blocks[-1]
    rise = np.zeros(len(blocks) - 1)
    for fold in folds:
        _, covariance, _ = moments.centred([other for other in folds if other != fold])
        gram = covariance[inputs, inputs]
        ridge = _ADDITIVE_RIDGE * np.trace(gram) / len(gram) * np.eye(len(gram))
        weights = solve(gram + ridge, covariance[inputs, target], assume_a="pos")
        _, held_out, n = moments.centred([fold])
        gram = held_out[inputs, inputs]
        errors = held_out[inputs, target] - gram @ weights  # their covariance with the features
        for j, b in enumerate(blocks[:-1]):
            rise[j] += 2 * n * ((errors[b] * weights[b]).sum())
            rise[j] += 2 * n * (gram[b, b] @ weights[b] * weights[b]).sum()
    _, covariance, n = moments.centred(folds)
    rise /= n * max(float(np.trace(covariance[target, target])), 1e-300)
    return np.argsort(-rise, kind="stable")[:k].tolist(), rise


SELECTION_CRITERIA: dict[str, Callable[[Moments, Sequence[int], Sequence[slice], int], Scores]] = {
    "mrmr": mrmr,
    "hsic_lasso": hsic_lasso,
    "permutation": permutation,
}
