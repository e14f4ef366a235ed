"""`DirichletParameters`: the parameters of a Dirichlet distribution, by 2BE and by likelihood.

004, §3.5.3 and Figure 3.20.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagbasis.bags.bags import offsets_of
from bagbasis.datasets import Dirichlet
from bagbasis.datasets.base import RandomDataset
from bagbasis.datasets.dirichlet import ALPHA_RANGE

from ..terminal import Callback
from .dirichlet_likelihood import fit_dirichlets
from .experiment import Result
from .learners import N_ROUNDS, Candidates, mean_squares, quickest
from .over_sizes import OverSizes, Sizes
from .over_sizes_report import CONSTANT, WAYS, AtSize, at_sizes, draw_over_sizes

N_CATEGORIES = 3
SIZES = {
    "small": Sizes(
        n_points=(10, 50),
        n_train=4_000,
        n_test=1_000,
        n_classical=1_000,
        candidates=Candidates(
            n_per_dim=(5,),
            multipliers=(1.0, 2.0),
            alphas_a_bag=(-10.0, 0.0),
            bandwidths=(0.06, 0.1),
            n_features=512,
            n_choose=2_000,
            precision="float64",
        ),
    ),
    "paper": Sizes(
        n_points=(10, 25, 50, 200, 500, 1000),
        n_train=28_000,
        n_test=2_000,
        n_classical=2_000,
        candidates=Candidates(
            n_per_dim=(4, 5, 6, 8),
            multipliers=(0.7, 1.0, 2.0),
            alphas_a_bag=(-13.0, 0.0),
            bandwidths=(0.025, 0.04, 0.07, 0.12, 0.2),
            n_features=3072,
            n_choose=7_000,
            choose_features=1024,
            precision="float64",
        ),
    ),
}

Floats = NDArray[np.float64]


class DirichletParameters(OverSizes):
    """See the module; the paper does not say how many categories: here three."""

    name = "dirichlet"
    title = "Dirichlet parameters of small samples"
    source = "004, §3.5.3"
    scales = SIZES
    target = "the parameters of a Dirichlet distribution"
    classical = "MLE"

    def dataset(self, n_points: int, seed: int) -> RandomDataset:
        return Dirichlet(n_points=n_points, seed=seed, n_categories=N_CATEGORIES)

    def classical_params(self) -> dict[str, Any]:
        return {"n_categories": N_CATEGORIES, "n_rounds": N_ROUNDS}

    def measure_classical(
        self, dataset: RandomDataset, n_bags: int, progress: Callback
    ) -> dict[str, Any]:
        """Newton's method for all bags at once, and clipped to the range that alpha comes from."""
        assert isinstance(dataset, Dirichlet)
        blocks = [dataset.proportions(i) for i in range(-(-n_bags // dataset.block_bags))]
        n = int(blocks[0][1][0])
        proportions = np.concatenate([points for points, _, _ in blocks])[: n_bags * n]
        alpha = np.concatenate([targets for _, _, targets in blocks])[:n_bags]
        estimates = fit_dirichlets(proportions, offsets_of(np.full(n_bags, n)))
        n_batch = min(self.settings.n_queries, n_bags)
        one, batch = (offsets_of(np.full(count, n)) for count in (1, n_batch))
        calls = {
            "batch": lambda: fit_dirichlets(proportions[: batch[-1]], batch),
            "single": lambda: fit_dirichlets(proportions[:n], one),
        }
        seconds = quickest(calls)
        seconds["batch"] /= n_batch
        progress(n_bags, n_bags)
        return {
            "methods": {
                "MLE": {**mean_squares(estimates, alpha), "seconds": seconds},
                "MLE, clipped": mean_squares(np.clip(estimates, *ALPHA_RANGE), alpha),
            }
        }

    def remarks(self, results: Sequence[Result]) -> list[str]:
        sizes = at_sizes(results)
        lower = "; ".join(
            f"{name}: at n = {_numbers([s.n_points for s in sizes if s.mse('2BE') < s.mse(name)])}"
            for name in ("KK", "MLE", "MLE, clipped")
        )
        return [
            "The paper: the 2BE has the lowest error and the lowest time at every n, against "
            f"maximum likelihood as it comes. Here its error is lower than that of {lower}. "
            f"Lowest of all: {_lowest(sizes)}; within two of its standard errors of the 2BE: "
            f"{_level(sizes)}.",
            "Maximum likelihood knows no upper bound of alpha: of a few points that lie close "
            f"together it makes a very large one. Clipped to {ALPHA_RANGE[0]:g} … "
            f"{ALPHA_RANGE[1]:g}, the range that the 2BE knows from its training bags, it is a "
            "stronger peer than the paper has. The more points, the less is there to know "
            "beforehand: likelihood is efficient, and the 2BE can but come near it, for it adds "
            "the error of its own approximation, which training bags and features lower.",
            f"{N_CATEGORIES} categories (the paper does not say how many it has); the error is the "
            "mean over parameters. Newton's method (Minka 2000) takes all bags of a batch at once, "
            "in numpy, and their points in double precision; its time does not depend on training "
            f"bags, and {_where_fastest(sizes)}. The paper's, of a MATLAB toolbox, was slower than "
            "its 2BE.",
        ]

    def draw(self, results: Sequence[Result]) -> list[Path]:
        path = self.out_dir / "parameters.png"
        return [draw_over_sizes(path, results, "Dirichlet parameters", "parameter²")]


def _lowest(sizes: Sequence[AtSize]) -> str:
    """Where each method has the least error; those that have it nowhere are left out."""
    found: dict[str, list[int]] = {}
    for size in sizes:
        best = min((name for name in size.methods if name != CONSTANT), key=size.mse)
        found.setdefault(best, []).append(size.n_points)
    return "; ".join(f"{name} at n = {_numbers(n_points)}" for name, n_points in found.items())


def _level(sizes: Sequence[AtSize]) -> str:
    """Where likelihood, clipped, differs from the 2BE by too little to say which is better."""
    near = [
        size.n_points
        for size in sizes
        if abs(size.mse("MLE, clipped") - size.mse("2BE")) <= 2 * size.methods["2BE"]["se"]
    ]
    return f"MLE, clipped at n = {_numbers(near)}" if near else "none"


def _where_fastest(sizes: Sequence[AtSize]) -> str:
    """At which n maximum likelihood is faster than both learners, a way to predict."""
    found = {}
    for way, text in WAYS.items():
        won = [s.n_points for s in sizes if s.time("MLE", way) == min(
            s.time(name, way) for name in s.timed)]  # fmt: skip
        found[text] = "at every n" if len(won) == len(sizes) else f"at n = {_numbers(won)}"
    if set(found.values()) == {"at every n"}:
        return "it is the fastest at every n, in both ways"
    return "it is the fastest " + ", ".join(f"{where} ({text})" for text, where in found.items())


def _numbers(values: Sequence[int]) -> str:
    return ", ".join(f"{value:,}" for value in values) or "none"
