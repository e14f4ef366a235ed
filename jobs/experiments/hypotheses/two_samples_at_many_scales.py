"""`TwoSamplesAtManyScales`: fine differences of wide samples, against the powers printed for FUSE.

Problems and powers are those of Biggs, Schrab and Gretton (2023). ``two_sample_test(a, b)`` without
an option is tested on more data sets than the other statistics, and of the perturbed distribution
of the plane also on the very data sets that the printed powers are of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from bagbasis.core.arrays import Floats
from bagbasis.hypotheses import two_sample_test

from ..kit import Callback, Curves, Experiment, Measure, Params
from ..kit.rates import shares

N_PUBLISHED = 200  # data sets of a size
FIRST_SEED = 42  # of the first of them
PUBLISHED_SIZES = (500, 1000, 1500, 2000, 2500, 3000)  # in the order in which seeds were given
_CENTRE = 20.0  # of the components of a mixture, in each coordinate and of either sign
BUMPS = (1, 2)  # places of a perturbation along a coordinate


def mixtures(rng: np.random.Generator, n: int, deviation: float) -> tuple[Floats, Floats]:
    """Draw two samples of Gaussians at (±20, ±20); that at (−20, −20) of the second deviates."""
    pair = []
    for own in (1.0, deviation):
        centres = rng.choice([-_CENTRE, _CENTRE], (n, 2))
        is_other = (centres < 0).all(axis=1)
        noise = rng.standard_normal((n, 2)) * np.where(is_other, own, 1.0)[:, None]
        pair.append(centres + noise)
    return pair[0], pair[1]


def perturbed_uniforms(
    rng: np.random.Generator, n: int, n_dims: int, scale: float
) -> tuple[Floats, Floats]:
    """Draw from the uniform distribution on [0, 1]^d and from one with bumps, shapes (n, d)."""
    signs = rng.choice([-1.0, 1.0], len(BUMPS) ** n_dims)
    perturbed = np.empty((0, n_dims))
    while len(perturbed) < n:
        drawn = rng.random((2 * n + 100, n_dims))
        accepted = rng.random(len(drawn)) * (1 + scale) < perturbed_density(drawn, signs, scale)
        perturbed = np.concatenate([perturbed, drawn[accepted]])
    return rng.random((n, n_dims)), perturbed[:n]


def published_perturbed_uniforms(
    i: int, n: int, n_dims: int, scale: float
) -> tuple[Floats, Floats]:
    """Return the authors' own data set ``i`` (0 to 199) of n points, in single precision.

    Their code says how seeds go on over sizes and data sets, and draws with numpy's legacy
    generator, whose numbers stay what they were: signs, then a point and a height at a time of the
    perturbed distribution, then the uniform distribution.
    """
    seed = FIRST_SEED + N_PUBLISHED * PUBLISHED_SIZES.index(n) + i
    legacy = np.random.RandomState
    signs = legacy(seed + 1).choice([-1, 1], len(BUMPS) ** n_dims)
    drawn = legacy(seed + 2).random_sample((round(n * (1 + scale) * 2), n_dims + 1))
    points, heights = drawn[:, :-1], drawn[:, -1] * (1 + scale)
    perturbed = points[heights <= perturbed_density(points, signs, scale)][:n]
    return perturbed, legacy(seed).random_sample((n, n_dims))


def perturbed_density(points: Floats, signs: Floats, scale: float) -> Floats:
    """Return 1 + scale · e^d Σ_j θ_j Π_r G(2 x_r − j_r), at most 1 + scale, shape (n,).

    The signs θ_j are those of the places j ∈ {1, 2}^d, the last coordinate fastest.
    """
    n_dims = points.shape[1]
    values = np.zeros(len(points))
    for sign, place in zip(signs, product(BUMPS, repeat=n_dims), strict=True):
        values += sign * _wave(len(BUMPS) * points - np.array(place)).prod(axis=1)
    return 1 + scale * np.e**n_dims * values


def _wave(x: Floats) -> Floats:
    """Return G(x), a smooth bump on (−1, −½) and its negative on (−½, 0)."""
    out = np.zeros_like(x)
    for low, sign in ((-1.0, 1.0), (-0.5, -1.0)):
        t = 4 * (x - low) - 1  # from −1 to 1 over the bump
        inside = np.abs(t) < 1
        out[inside] = sign * np.exp(-1 / (1 - t[inside] ** 2))
    return out


_LEVEL = 0.05

_Draw = Callable[[np.random.Generator, int], tuple[Floats, Floats]]

MIXTURE, _WIDE = "mixture, std 1.3", "mixture, std 2"
_LINE, PLANE = "perturbed, d = 1", "perturbed, d = 2"
_NOTHING = ("mixture, std 1", "uniform, d = 2")
_PROBLEMS: Mapping[str, _Draw] = {
    MIXTURE: partial(mixtures, deviation=1.3),
    _WIDE: partial(mixtures, deviation=2.0),
    _LINE: partial(perturbed_uniforms, n_dims=1, scale=0.2),
    PLANE: partial(perturbed_uniforms, n_dims=2, scale=0.4),
    _NOTHING[0]: partial(mixtures, deviation=1.0),
    _NOTHING[1]: partial(perturbed_uniforms, n_dims=2, scale=0.0),
}
PUBLISHED: Mapping[str, Callable[[int, int], tuple[Floats, Floats]]] = {
    PLANE: partial(published_perturbed_uniforms, n_dims=2, scale=0.4)
}
_DEFAULT, ON_THEIRS = "default", "published"
OTHERS = ("agg", "scf", "mmd_u")


class TwoSamplesAtManyScales(Experiment):
    name = "two-samples-at-many-scales"
    title = "Fine differences of wide samples"
    source = "Biggs, Schrab and Gretton 2023"
    pictures = (Curves("power.png", "default", measure="default", x="n", panels="problem"),)

    def measures(self) -> list[Measure]:
        s = self.settings
        problems = [(name, n) for name, sizes in s.n_points.items() for n in sizes]
        label = "{problem} n {n} block {block}"
        fixed = {"n_tests": s.n_tests}
        others = {**fixed, "n_permutations": s.n_permutations, "methods": list(OTHERS)}
        blocks = [(block, name, n) for block in range(max(s.n_blocks.values()))
                  for name, n in problems if block < s.n_blocks[str(n)]]  # fmt: skip
        return [
            Measure(_DEFAULT, self._rates, f"default {label}",
                    {"block problem n": blocks}, fixed),
            Measure(ON_THEIRS, self._rates, f"{ON_THEIRS} {label}",
                    {"problem n block": [(name, int(n), block) for name in PUBLISHED
                                         for n, of in s.published.items() for block in of]},
                    fixed),
            Measure("others", self._rates, f"others {label}",
                    {"block": [0], "problem n": problems}, others),
        ]  # fmt: skip

    def _rates(self, p: Params, progress: Callback) -> dict[str, Any]:
        def p_value(name: str, i: int) -> float:
            options: dict[str, Any] = {}
            if n := p.get("n_permutations"):
                options = {"statistic": name, "n_permutations": n, "standardize": False}
            return two_sample_test(*self._data(p, i), seed=i, **options).p_value

        tests = {name: partial(p_value, name) for name in p.get("methods", [p["measure"]])}
        return dict(shares(tests, p["n_tests"], _LEVEL, progress))

    def _data(self, p: Params, i: int) -> tuple[Floats, Floats]:
        problem, n = p["problem"], p["n"]
        if p["measure"] == ON_THEIRS:
            return PUBLISHED[problem](p["block"] * p["n_tests"] + i, n)
        which = [*_PROBLEMS].index(problem)
        return _PROBLEMS[problem](self.rng(which, n, p["block"], i), n)
