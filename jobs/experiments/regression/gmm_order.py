"""`GMMOrder`: the number of components of a Gaussian mixture, by 2BE and by model selection.

004, §3.5.2 and Figure 3.19.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from bagbasis.datasets import GMMComponents

from ...terminal import Callback
from ..kit.experiment import Params
from ..kit.learning import draw_from, mean_squares
from ..kit.over_sizes import OverSizes
from ..kit.plots import Curves
from .mixture_order import order_by_cross_validation, orders_by_criteria

_MAX_COMPONENTS = 10  # components of an EM fit, as of the mixtures
_N_FOLDS = 5  # of cross-validation


class GMMOrder(OverSizes):
    """AIC, BIC and cross-validation (CV) choose among EM fits of 1 to 10."""

    name = "gmm-order"
    title = "Choosing the order of a Gaussian mixture"
    source = "004, §3.5.2"
    pictures = (Curves(file="order.png", x="n_points", y="methods.*.mse", log="xy"),)
    classical = "AIC, BIC, CV"

    def dataset(self, n_points: int, seed: int) -> GMMComponents:
        return GMMComponents(n_points=n_points, seed=seed, variant="004")

    def classical_params(self) -> dict[str, Any]:
        return {"n_folds": _N_FOLDS}

    def measure_classical(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Fit EM by scikit-learn, one bag after the other; AIC and BIC share their fits."""
        n_bags = p["n_classical"]
        bags, y = draw_from(self.test_set(p["n_points"]), n_bags)
        fits, seconds = [], []
        with threadpool_limits(1):  # threads only cost time where matrices are this small
            for i in range(n_bags):
                criteria, once = _timed(orders_by_criteria, bags[i], _MAX_COMPONENTS, 0)
                crossed, often = _timed(
                    order_by_cross_validation, bags[i], _MAX_COMPONENTS, _N_FOLDS, 0
                )
                fits.append((criteria["aic"], criteria["bic"], crossed))
                seconds.append((once, once, often))
                progress(i + 1, n_bags)
        orders, medians = np.array(fits, dtype=float).T, np.median(seconds, axis=0).tolist()
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


def _timed(call: Callable[..., Any], *args: object) -> tuple[Any, float]:
    begun = time.perf_counter()
    answer = call(*args)
    return answer, time.perf_counter() - begun
