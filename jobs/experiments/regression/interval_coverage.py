"""`IntervalCoverage`: how often labels lie in intervals, by the size and by the noise of bags.

It is not in the papers. Coverage is counted in fifths of new bags. A bag does not tell its own
noise for certain, so intervals between the quantiles of a label's distribution, given the points,
are counted, too: among the noisiest bags they hold fewer labels than .9.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr

from bagbasis import DoubleBasisRegressor
from bagbasis.core.arrays import Bools, Floats, Integers

from ..kit import Callback, Curves, Experiment, Measure, Params, Result, ResultTable
from ..kit.frame import as_table, frame

_COVERAGE = 0.9
INTERVAL_FOLDS = 10
_N_PARTS = 5
SIZES_OF = (3, 300)  # of bags whose sizes differ
_QUIET, LOUD, EDGE = 0.05, 1.0, 0.3  # deviations of labels, and what is added beyond a mean
_SPREAD = 0.5  # of the points of a bag whose mean tells its label
_MEANS = np.linspace(-1, 1, 401)  # over which posteriors are summed

_Drawn = tuple[list[Floats], Floats, Floats]  # bags, labels, and deviations of their noise


def _equal(rng: np.random.Generator, n: int) -> _Drawn:
    """Draw spreads, known but for the 50 points of each bag."""
    spreads = rng.uniform(0.5, 2, n)
    return [rng.normal(0, s, (50, 2)) for s in spreads], spreads, np.zeros(n)


def _unequal_sizes(rng: np.random.Generator, n: int) -> _Drawn:
    """Draw logarithms of spreads, of few points or of many."""
    logs, sizes = rng.uniform(-1, 1, n), _log_uniform(rng, n)
    bags = [rng.normal(0, np.exp(s), (k, 2)) for s, k in zip(logs, sizes, strict=True)]
    return bags, logs, np.zeros(n)


def _waves(rng: np.random.Generator, sizes: Integers) -> _Drawn:
    """Draw a wave of means, with much noise where the means are large."""
    means = rng.uniform(-1, 1, len(sizes))
    noise = _noise_of(means)
    bags = [rng.normal(m, _SPREAD, (k, 1)) for m, k in zip(means, sizes, strict=True)]
    return bags, np.sin(3 * means) + noise * rng.normal(size=len(means)), noise


def _noise_of(means: Floats) -> Floats:
    return np.where(means > EDGE, _QUIET + LOUD, _QUIET)


def _inside_quantiles(bags: Sequence[Floats], labels: Floats) -> Bools:
    """Return which labels of waves are between the quantiles of their distribution given a bag."""
    sizes = np.array([len(bag) for bag in bags])
    gaps = (np.array([bag.mean() for bag in bags])[:, None] - _MEANS) / _SPREAD
    logs = -0.5 * sizes[:, None] * gaps**2
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    below = ndtr((labels[:, None] - np.sin(3 * _MEANS)) / _noise_of(_MEANS))
    ranks = (weights * below).sum(axis=1) / weights.sum(axis=1)
    return np.abs(ranks - 0.5) <= _COVERAGE / 2


def _log_uniform(rng: np.random.Generator, n: int) -> Integers:
    low, high = np.log(SIZES_OF)
    return np.exp(rng.uniform(low, high, n)).astype(np.int64)


_SETS: Mapping[str, Callable[[np.random.Generator, int], _Drawn]] = {
    "equal": _equal,
    "unequal noise": lambda rng, n: _waves(rng, np.full(n, 50)),
    "unequal sizes": _unequal_sizes,
    "both": lambda rng, n: _waves(rng, _log_uniform(rng, n)),
}
KNOWN = "unequal noise", "both"  # sets whose distribution of labels, given a bag, is known


class IntervalCoverage(Experiment):
    name = "interval-coverage"
    title = "Coverage of prediction intervals by size and noise"
    pictures = (
        Curves("coverage.png", ("by size", "by noise"), panels="data", by="n_train",
               label="coverage of a fifth"),
    )  # fmt: skip

    def measures(self) -> list[Measure]:
        s = self.settings
        draws = [(int(n), i) for n, n_draws in s.n_draws.items() for i in range(n_draws)]
        over: dict[str, Sequence[Any]] = {"n_train repeat": draws, "data": [*_SETS]}
        fixed = {"seed": self.seed, "n_test": s.n_test}
        return [Measure("", self._coverage, "{data} {n_train} {repeat}", over, fixed)]

    def _coverage(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return shares of new labels within intervals of .9; bags alike are in random fifths."""
        rng = self.rng(p["repeat"], p["n_train"], [*_SETS].index(p["data"]))
        bags, labels, _ = _SETS[p["data"]](rng, p["n_train"])
        new, truth, noise = _SETS[p["data"]](rng, p["n_test"])
        model = DoubleBasisRegressor().fit(bags, labels)
        model = model.conformalize(bags, labels, cv=INTERVAL_FOLDS)
        low, high = model.predict_interval(new, coverage=_COVERAGE)
        inside = (low <= truth) & (truth <= high)
        sizes = np.array([len(bag) for bag in new])
        best = _inside_quantiles(new, truth) if p["data"] in KNOWN else None
        return {
            "covered": inside.mean(),
            "by size": _of_parts(inside, sizes),
            "by noise": _of_parts(inside, noise),
            "best by noise": None if best is None else _of_parts(best, noise),
            "mean width": np.mean(high - low),
            "chosen": model.report_["choice"]["chosen"],
        }

    def tables(self, results: Sequence[Result]) -> list[ResultTable]:
        """Return means over the draws, with standard errors of all bags and of the last fifth."""
        rows = []
        for (n, data), part in frame(results).groupby(["n_train", "data"], sort=False):
            covered = part["covered"]
            row = {"bags": n, "set": data, "draws": len(part), "covered": covered.mean()}
            row["s.e."] = covered.sem()
            for which in ("size", "noise"):
                shares = np.array([*part[f"by {which}"]])
                row |= {f"{which} {i}": mean for i, mean in enumerate(shares.mean(axis=0), 1)}
                row[f"s.e. of {which} {_N_PARTS}"] = shares[:, -1].std(ddof=1) / len(shares) ** 0.5
            best = [shares[-1] for shares in part["best by noise"] if shares is not None]
            row[f"noise {_N_PARTS}, known distribution"] = np.mean(best) if best else None
            row["mean width"] = part["mean width"].mean()
            rows.append(row)
        title = "Coverage of intervals of .9, of all new bags and of fifths of them"
        return [as_table(title, pd.DataFrame(rows))]


def _of_parts(inside: Bools, values: Floats | Integers) -> list[float]:
    """Return the shares in fifths of the bags by ascending values."""
    order = np.argsort(values, kind="stable")
    return [float(part.mean()) for part in np.array_split(inside[order], _N_PARTS)]
