"""Ridge regression of cosine coefficients in a cube that respects the cube's 48 symmetries.

A mirrored bag has the same coefficients, times (−1)^α_j; a bag with exchanged axes has them
exchanged. Take random features of all mirror images of a bag, and add them up with the signs of a
parity class (α mod 2): the sum changes its sign as the coefficients of this class do. So
coefficients of a class need the features of their class alone. D features then cost as much as D /
8, and a row counts as eight. Exchanging axes maps four of the eight classes to the other four;
exchanged axes give rows of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bagbasis import BagStore
from bagbasis.core.arrays import Floats, Integers
from bagbasis.embeddings import ProjectionSpec
from bagbasis.execution.worker_threads import kernel_threads
from bagbasis.models.ridge.penalties import Penalties
from bagbasis.models.ridge.ridge import RidgeSolution, solve_validation
from bagbasis.models.ridge.sums import RidgeStatistics, StatisticsBuilder

_Rows = NDArray[np.float32]
_Pairs = tuple[_Rows, _Rows]
"""Coefficients of bags and of their responses, on the same functions: (n, s) each."""

AXES = list(permutations(range(3)))
TURNS = [(0, 1, 2), (1, 2, 0), (2, 0, 1)]  # with mirror images each coefficient once in its class
SYMMETRY_CLASSES = (0, 4, 6, 7)  # parities (α₀ α₁ α₂) in binary digits; turned axes make the others
PENALTY_EXPONENTS = np.arange(-9.0, 0.5, 0.5)  # of penalties per row
_WIDTH = 2.0  # medians of the distance; others make no difference where the penalty is chosen
_BLOCK = 4096  # rows whose features are in memory at a time
_SIGNS = np.array([[(-1) ** (i & j).bit_count() for j in range(8)] for i in range(8)], np.float32)


def parities(indices: Integers) -> Integers:
    return indices % 2 @ np.array([4, 2, 1])


def exchange(indices: Integers, axes: tuple[int, ...]) -> Integers:
    """Return where each index has its axes exchanged: of a set that has all exchanges."""
    places = {tuple(index): i for i, index in enumerate(indices.tolist())}
    return np.array([places[tuple(index[list(axes)].tolist())] for index in indices])


@dataclass(frozen=True)
class AffineCopy:
    """Responses as an affine copy of the bag, with one slope for coefficients that are alike."""

    mean: Floats
    answer: Floats
    slopes: Floats

    @classmethod
    def of(cls, pairs: _Pairs, indices: Integers) -> Self:
        _, alike = np.unique(np.sort(indices, axis=1), axis=0, return_inverse=True)
        a, b = pairs
        even = parities(indices) == 0
        mean, answer = (
            _average(np.where(even, x.mean(axis=0, dtype=np.float64), 0), alike) for x in pairs
        )
        products, squares = np.zeros(len(indices)), np.zeros(len(indices))
        for start in range(0, len(a), _BLOCK):
            gap = a[start : start + _BLOCK] - mean
            products += (gap * (b[start : start + _BLOCK] - answer)).sum(axis=0)
            squares += (gap**2).sum(axis=0)
        products, squares = _average(products, alike), _average(squares, alike)
        moving = squares > 1e-9 * len(a)
        slopes = np.divide(products, squares, out=np.zeros_like(mean), where=moving)
        return cls(mean, answer, slopes)

    def predict(self, a: _Rows) -> Floats:
        return self.answer + self.slopes * (a - self.mean)


def _average(values: Floats, groups: Integers) -> Floats:
    return (np.bincount(groups, values) / np.bincount(groups))[groups]


@dataclass(frozen=True)
class SymmetricFeatures:
    """16 m random features, of the parity classes `SYMMETRY_CLASSES` those that they share."""

    indices: Integers
    frequencies: _Rows

    @classmethod
    def draw(
        cls, a: _Rows, indices: Integers, m: int, max_norm: float, bandwidth: float, seed: int
    ) -> Self:
        """Draw them for a Gaussian kernel of bags (n, s), indices up to a norm, smoothed."""
        squares = (indices**2).sum(axis=1)
        damping = np.exp(-0.5 * (np.pi * bandwidth) ** 2 * squares)
        damped = np.where(squares <= max_norm**2, damping, 0)
        some = a[:: max(1, len(a) // 512)] * damped
        products = some @ some.T
        norms = products.diagonal()
        distances = norms + norms[:, None] - 2 * products
        sigma = _WIDTH * np.median(distances[np.triu_indices(len(some), 1)]) ** 0.5
        drawn = np.random.default_rng(seed).standard_normal((len(indices), m))
        return cls(indices, (drawn * damped[:, None] / sigma).astype(np.float32))

    def rows(self, a: _Rows) -> _Rows:
        """Return the features of each of `SYMMETRY_CLASSES`, shape (4, n, 2 m)."""
        (_, m), n, classes = self.frequencies.shape, len(a), parities(self.indices)
        phases = np.empty((8, n, m), np.float32)
        for i in range(8):
            of = np.flatnonzero(classes == i)
            np.matmul(a[:, of], self.frequencies[of], out=phases[i])
        mirrored = _SIGNS @ phases.reshape(8, n * m)
        rows = np.empty((len(SYMMETRY_CLASSES), n, 2 * m), np.float32)
        for half, wave in enumerate((np.sin, np.cos)):
            columns = slice(half * m, (half + 1) * m)
            signs = _SIGNS[list(SYMMETRY_CLASSES)] / np.float32((64 * m) ** 0.5)
            rows[:, :, columns] = (signs @ wave(mirrored)).reshape(-1, n, m)
        return rows


@dataclass(frozen=True)
class SymmetricRegression:
    """What pairs of bags and responses have taught, of any of the 48 images of a bag alike."""

    copy: AffineCopy
    features: SymmetricFeatures
    solutions: list[RidgeSolution]

    @classmethod
    def fit(cls, train: _Pairs, held_out: _Pairs, features: SymmetricFeatures) -> Self:
        """Fit what pairs leave of an affine copy; those held out choose each class's penalty."""
        copy = AffineCopy.of(train, features.indices)
        fitted, apart = (_sums(pairs, copy, features) for pairs in (train, held_out))
        solutions = []
        for sums, held in zip(fitted, apart, strict=True):
            penalties = Penalties(sums.weight * 10**PENALTY_EXPONENTS)
            units = np.ones(len(sums.sum_y))
            solutions.append(solve_validation(sums, held, penalties, 0.0, units))
        return cls(copy, features, solutions)

    def predict(self, a: _Rows) -> Floats:
        """Return the mean of predictions from a bag with its axes exchanged, shape (n, s)."""
        indices, coefficients = self.features.indices, self.copy.predict(a)
        classes = parities(indices)
        more, seen = np.zeros_like(coefficients), np.zeros(len(indices))
        for axes in AXES:
            there = exchange(indices, axes)
            for start in range(0, len(a), _BLOCK):
                block = slice(start, start + _BLOCK)
                for i, z in enumerate(self.features.rows(a[block][:, there])):
                    of = there[classes == SYMMETRY_CLASSES[i]]
                    solution = self.solutions[i]
                    more[block, of] += z @ solution.coef.T + solution.intercept
            for c in SYMMETRY_CLASSES:
                seen[there[classes == c]] += 1
        return coefficients + more / seen


def _sums(pairs: _Pairs, copy: AffineCopy, features: SymmetricFeatures) -> list[RidgeStatistics]:
    """Return the sums of each of `SYMMETRY_CLASSES`, over bags and responses in all turns."""
    (a, b), classes, width = pairs, parities(features.indices), 2 * features.frequencies.shape[1]
    of = [np.flatnonzero(classes == c) for c in SYMMETRY_CLASSES]
    builders = [StatisticsBuilder(width, len(columns)) for columns in of]
    for axes in TURNS:
        there = exchange(features.indices, axes)
        for start in range(0, len(a), _BLOCK):
            block = slice(start, start + _BLOCK)
            residual = (b[block] - copy.predict(a[block]))[:, there]
            rows = features.rows(a[block][:, there])
            for builder, z, columns in zip(builders, rows, of, strict=True):
                builder.add(z, residual[:, columns])
    sums = [builder.finish() for builder in builders]
    # of an odd class the means over all mirror images are 0, whatever those of the bags are
    odd = [replace(each, sum_z=0 * each.sum_z, sum_y=0 * each.sum_y) for each in sums[1:]]
    return [sums[0], *odd]


def paired_coefficients(store: BagStore, spec: ProjectionSpec) -> _Pairs:
    """Return the coefficients of all bags that have a response, and of these."""
    pairs: list[_Pairs] = []
    for start in range(0, store.n_bags, _BLOCK):
        stop = min(start + _BLOCK, store.n_bags)
        responses, bags = store.responses(start, stop), store.read(start, stop)
        a = np.empty((len(bags), spec.n_features), np.float32)
        b = np.empty((len(responses.positions), spec.n_features), np.float32)
        with kernel_threads():
            spec.embed(bags, a)
            spec.embed(responses.present, b)
        pairs.append((a[responses.positions], b))
    a, b = (np.concatenate(rows) for rows in zip(*pairs, strict=True))
    return a, b


def residual_errors(
    train: _Pairs, test: _Pairs, n_last: int, features: SymmetricFeatures
) -> dict[str, Any]:
    """Return errors on test pairs of models of what 2LPT leaves; the last pairs choose λ."""
    (a, b), (new, truth) = train, test

    def mse(predicted: Floats) -> float:
        return float(((predicted - truth) ** 2).sum(axis=1).mean())

    copy = AffineCopy.of(train, features.indices)
    gap, answer = a - copy.mean.astype(np.float32), b - copy.answer.astype(np.float32)
    number = float(np.vdot(gap, answer) / np.vdot(gap, gap))
    parts = (a[:-n_last], b[:-n_last]), (a[-n_last:], b[-n_last:])
    model = SymmetricRegression.fit(*parts, features)
    return {
        "number": number,
        "scaled_mse": mse(copy.answer + number * (new - copy.mean)),
        "copy_mse": mse(copy.predict(new)),
        "linear_mse": mse(_linear(*parts, new)),
        "symmetric_mse": mse(model.predict(new)),
        "alphas_a_row": [s.alpha / (len(TURNS) * len(a)) for s in model.solutions],
    }


def _linear(train: _Pairs, held_out: _Pairs, new: _Rows) -> Floats:
    """Return predictions of a ridge on the coefficients alone."""
    sums = []
    for a, b in (train, held_out):
        builder = StatisticsBuilder(a.shape[1], b.shape[1], np.float64)
        builder.add(a, b.astype(np.float64))
        sums.append(builder.finish())
    penalties = Penalties(len(train[0]) * 10**PENALTY_EXPONENTS)
    fitted, apart = sums
    solution = solve_validation(fitted, apart, penalties, 0.0, np.ones(train[1].shape[1]))
    return new @ solution.coef.T + solution.intercept
