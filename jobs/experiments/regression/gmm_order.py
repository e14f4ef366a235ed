"""`GMMOrder`: the number of components of a Gaussian mixture, by 2BE and by model selection.

004, §3.5.2 and Figure 3.19.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from bagbasis.datasets import GMMComponents

from ...terminal import Callback
from ..kit.experiment import Params
from ..kit.learning import draw_bags, mean_squares
from ..kit.notes import remarks
from ..kit.over_sizes import AtSize, OverSizes
from .mixture_order import order_by_cross_validation, orders_by_criteria

MOST_COMPONENTS = 10  # of EM fits, as of the mixtures
N_FOLDS = 5  # of cross-validation
BEATEN = "it has the lowest error at each"


class GMMOrder(OverSizes):
    """See the module; AIC, BIC and cross-validation (CV) choose among EM fits of 1 to 10."""

    name = "gmm-order"
    title = "Choosing the order of a Gaussian mixture"
    source = "004, §3.5.2"
    target = subject = "the number of components"
    unit = "components²"
    classical = "AIC, BIC, CV"
    picture_name = "order.png"

    def dataset(self, n_points: int, seed: int) -> GMMComponents:
        return GMMComponents(n_points=n_points, seed=seed, variant="004")

    def classical_params(self) -> dict[str, Any]:
        return {"n_folds": N_FOLDS}

    def measure_classical(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Fit EM by scikit-learn, one bag after the other; AIC and BIC share their fits."""
        n_bags = p["n_classical"]
        bags, y = draw_bags(self.test_set(p["n_points"]), n_bags)
        found, seconds = [], []
        with threadpool_limits(1):  # threads only cost time where matrices are this small
            for i in range(n_bags):
                criteria, once = _timed(orders_by_criteria, bags[i], MOST_COMPONENTS, 0)
                crossed, often = _timed(
                    order_by_cross_validation, bags[i], MOST_COMPONENTS, N_FOLDS, 0
                )
                found.append((criteria["aic"], criteria["bic"], crossed))
                seconds.append((once, once, often))
                progress(i + 1, n_bags)
        orders, medians = np.array(found, dtype=float).T, np.median(seconds, axis=0).tolist()
        return {
            "methods": {
                name: {
                    **mean_squares(predicted, y),
                    "seconds": {"batch": took, "single": took},
                    "mean": float(predicted.mean()),
                }
                for name, predicted, took in zip(("AIC", "BIC", "CV"), orders, medians, strict=True)
            }
        }

    def remarks(self, sizes: Sequence[AtSize]) -> list[str]:
        n = self.settings.n_classical
        lost, near = _not_surely_beaten(sizes, 0.0), _not_surely_beaten(sizes, 2.0)
        close = f" (within two standard errors: {', '.join(near)})" if near else ""
        least = min(size.time("AIC", "single") / size.time("2BE", "batch") for size in sizes)
        most = max(size.time("CV", "single") / size.time("2BE", "batch") for size in sizes)
        verdict = f"it does not beat {', '.join(lost)}" if lost else BEATEN
        return remarks(
            "over_sizes", "gmm-order", verdict=verdict, close=close, least=least, most=most, n=n,
            n_test=self.settings.n_test, hours=_hours(sizes, self.settings.n_test), n_folds=N_FOLDS,
        )  # fmt: skip


def _not_surely_beaten(sizes: Sequence[AtSize], margin: float) -> list[str]:
    """Name methods whose error, less some standard errors, is not above the 2BE's."""
    return [
        f"{name} at n = {size.n_points:,} ({size.mse(name):.3g} ± "
        f"{size.methods[name]['se']:.2g} against {mse:.3g})"
        for size in sizes
        for name in (m for m in size.methods if m not in ("2BE", "constant"))
        for mse in [size.mse("2BE") if name == "KK" else size.first["mse"]]
        if size.mse(name) - margin * size.methods[name]["se"] <= mse
    ]


def _hours(sizes: Sequence[AtSize], n_bags: int) -> float:
    """Return hours of AIC and BIC (which share their fits) and CV on so many bags of each size."""
    return sum(s.time("AIC", "single") + s.time("CV", "single") for s in sizes) * n_bags / 3600


def _timed(call: Callable[..., Any], *args: object) -> tuple[Any, float]:
    begun = time.perf_counter()
    answer = call(*args)
    return answer, time.perf_counter() - begun
