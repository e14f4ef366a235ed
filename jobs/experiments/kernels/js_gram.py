"""`JSGram`: how well the embeddings approximate the kernel exp(−d² / 2σ²) of the true densities.

001, §5.1, Appendix A, Figure 6 and Table 2 have the Jensen-Shannon divergence; here the other
distances are added. 2σ² is twice the median of the true d².
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.spatial.distance import pdist
from scipy.special import rel_entr

from bagbasis import Bags, HDDEmbedding, RandomFourierFeatures
from bagbasis.data.storage.files import writing
from bagbasis.densities import estimate_densities

from ....core.arrays import Floats
from ...pictures import BLUE, GREY, ORANGE
from ...terminal import Callback
from ..data.samples import truncated_mixtures
from ..kit.experiment import Experiment, Measure, Params, Result, Scale, Table, digest
from ..kit.frame import column, frame, table
from ..kit.notes import remarks
from ..kit.plots import GREEN, Curve, bars, lines

NAMES = {"js": "JS", "hellinger": "Hellinger", "tv": "TV", "chi2": "χ²"}
PAPER = {"entropies": 0.9812, "coefficients": 0.9735, "random features": 0.9662}  # 001, Table 2
FLOOR = 1e-3  # of densities whose logarithm is taken; the uniform density is 1


class Sizes(Scale):
    """See ``configs/experiments/js-gram.yaml``."""

    n_seeds: int
    n_mixtures: int
    n_points: int
    n_features: int
    orthogonal: list[str]


class JSGram(Experiment[Sizes]):
    """See the module; each data set has its own seed."""

    name = "js-gram"
    title = "Kernel matrices of densities"
    source = "001, §5.1 and Appendix A"
    kind = Sizes

    @property
    def size(self) -> str:
        s = self.settings
        return (
            f"{s.n_seeds} data sets of {s.n_mixtures} mixtures, {s.n_points:,} points each, "
            f"D = {s.n_features:,}: the paper's size, which has one data set."
        )

    def measures(self) -> list[Measure]:
        first = self.settings.n_seeds * self.seed
        seeds = range(first, first + self.settings.n_seeds)
        over = {"data_seed": seeds}
        return [Measure("", self._agreements, "data set {data_seed}", over, dict(self.settings))]

    def _agreements(self, p: Params, progress: Callback) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for done, distance in enumerate(NAMES):
            kernels = self._js_kernels if distance == "js" else partial(self.kernels, distance)
            true, estimates = kernels(p["data_seed"])
            values[distance] = {
                name: agreement(true, estimate) for name, estimate in estimates.items()
            }
            progress(done + 1, len(NAMES))
        return values

    def tables(self, results: Sequence[Result]) -> list[Table]:
        """Make 001, Table 2, with the distances that are not in it."""
        rows, found = kernel_rows(results), frame(results)
        behind = [
            name
            for name, printed in PAPER.items()
            if column(found, f"js.{name}.r2").min() < printed
        ]
        verdict = (
            "R² of JS is above the paper's on every data set, in all three of its rows."
            if not behind
            else f"R² of JS is below the paper's on some data set: {', '.join(behind)}."
        )
        columns = {"distance": "distance", "kernel from": "estimate"}
        columns |= {"R²": "r2", "R², least": "r2 least", "1 − SSE/SST": "determination"}
        columns |= {"1 − SSE/SST, least": "determination least", "R², paper": "paper"}
        title = f"Agreement with the kernel of the true densities, {len(results)} data sets"
        return [table(title, rows, columns, remarks("js-gram", "agreement", verdict=verdict))]

    def draw(self, results: Sequence[Result]) -> None:
        last = results[-1]
        self._draw_scatter(last, *self._js_kernels(last.params["data_seed"]))
        self._draw_agreement(results)

    def _draw_scatter(self, result: Result, true: Floats, estimates: Mapping[str, Floats]) -> None:
        """Draw 001, Figure 6: estimated against true values of the JS kernel."""
        p, n = result.params, len(estimates)
        title = f"exp(−JS / 2σ²) of {p['n_mixtures']} mixtures, from {p['n_points']:,} points each"
        with self.picture("scatter.png", title, n, 4.1 * n, 4.5, sharex=True, sharey=True) as (
            _,
            axes,
        ):
            least = 0.95 * true.min()
            same = Curve([least, 1], [least, 1], "estimate = truth", ORANGE, "--")
            for axis, (name, estimate) in zip(axes, estimates.items(), strict=True):
                dots = {"markersize": 2, "alpha": 0.5}
                pairs = Curve(true, estimate, "pair of mixtures", BLUE, ".", more=dots)
                paper = f"001: {PAPER[name]:.4f}" if name in PAPER else "not in 001"
                text = f"{name}\nR² {result.values['js'][name]['r2']:.4f} ({paper})"
                y = "estimated kernel" if axis is axes[0] else ""
                lines(axis, [pairs, same], "kernel of the true densities", y, title=text)

    def _draw_agreement(self, results: Sequence[Result]) -> None:
        """Draw 1 − R² of each distance and estimate, the paper's beside it."""
        rows = kernel_rows(results)
        heights: dict[str, list[float | None]] = {}
        spread: dict[str, Any] = {}
        for name, group in rows.groupby("estimate", sort=False):
            at = group.set_index("distance").reindex(list(NAMES.values()))
            middle, low, high = (1 - column(at, key) for key in ("r2", "r2 most", "r2 least"))
            heights[str(name)] = [None if np.isnan(value) else value for value in middle]
            spread[str(name)] = np.nan_to_num([middle - low, high - middle])
        title = f"Median and range over {len(results)} data sets"
        with self.picture("agreement.png", title, 1, 9.0, 4.6) as (_, [axis]):
            bars(axis, list(NAMES.values()), heights, "1 − R² of the kernel (less is better)",
                 colors=(GREY, BLUE, ORANGE, GREEN), spread=spread)  # fmt: skip
            drawn = [
                Curve([-0.45, 0.45], [1 - value] * 2, f"001, Table 2: {name}", color, "--")
                for (name, value), color in zip(PAPER.items(), (GREY, BLUE, ORANGE), strict=True)
            ]
            lines(axis, drawn, "distance of densities", "")

    def _js_kernels(self, data_seed: int) -> tuple[Floats, dict[str, Floats]]:
        """Return `kernels` of JS, kept in ``out_dir``: they are measured, and drawn later."""
        kept = self.out_dir / f"kernels-{digest({'seed': data_seed, **dict(self.settings)})}.npz"
        if not kept.exists():
            true, estimates = self.kernels("js", data_seed)
            named: dict[str, Any] = {"true": true, **estimates}
            with writing(kept) as temporary, temporary.open("wb") as file:
                np.savez(file, **named)
        with np.load(kept) as found:
            arrays = {name: found[name] for name in found.files}
        return arrays.pop("true"), arrays

    def kernels(self, distance: str, data_seed: int) -> tuple[Floats, dict[str, Floats]]:
        """Return the true kernel of all pairs of different mixtures, and estimates of it by name.

        All of shape (N (N − 1) / 2,). The estimate from entropies is that of JS alone.
        """
        s = self.settings
        bags, densities = truncated_mixtures(data_seed, s.n_mixtures, s.n_points)
        pairs = np.triu_indices(s.n_mixtures, 1)
        true = true_distances(distance, densities)[pairs]
        variance = float(np.median(true))
        embeddings = HDDEmbedding(distance, dtype="float64").fit_transform(bags)
        squares = {"coefficients": pdist(embeddings, "sqeuclidean")}
        if distance == "js":
            squares = {"entropies": entropy_divergences(bags)[pairs], **squares}
        kernels = {name: np.exp(-square / (2 * variance)) for name, square in squares.items()}
        ways = {"random features": False}
        if distance in s.orthogonal:
            ways["orthogonal features"] = True
        for name, orthogonal in ways.items():
            features = RandomFourierFeatures(
                n_features=s.n_features, scale=variance**0.5, orthogonal=orthogonal, seed=data_seed
            )
            z = features.fit_transform(embeddings)
            kernels[name] = (z @ z.T)[pairs]
        return np.exp(-true / (2 * variance)), kernels


def kernel_rows(results: Sequence[Result]) -> pd.DataFrame:
    """Return a row per distance and estimate: medians and extremes over data sets, the paper's."""
    rows = []
    for distance, estimates in results[0].values.items():
        for estimate in estimates:
            row: dict[str, Any] = {"distance": NAMES[distance], "estimate": estimate}
            for key in ("r2", "determination"):
                found = np.array([r.values[distance][estimate][key] for r in results])
                row |= {key: np.median(found), f"{key} least": found.min()}
                row[f"{key} most"] = found.max()
            row["paper"] = PAPER.get(estimate) if distance == "js" else None
            rows.append(row)
    return pd.DataFrame(rows)


def true_distances(distance: str, densities: Floats) -> Floats:
    """d²(p, q) = ∫ κ(p, q) of all pairs, in nats, shape (N, N); κ as in `hdd_measures`.

    Parameters
    ----------
    distance : {"js", "hellinger", "tv", "chi2"}
    densities : shape (N, m)
        Above 0, on midpoints of the unit square.
    """
    squares = np.empty((len(densities),) * 2)
    for i, p in enumerate(densities):
        if distance == "js":
            middle = 0.5 * (p + densities)
            values = 0.5 * (rel_entr(p, middle) + rel_entr(densities, middle))
        elif distance == "hellinger":
            values = 0.5 * (np.sqrt(p) - np.sqrt(densities)) ** 2
        elif distance == "tv":
            values = np.abs(p - densities)
        else:
            values = (p - densities) ** 2 / (p + densities)
        squares[i] = values.mean(axis=1)
    return squares


def entropy_divergences(bags: Bags) -> Floats:
    """Estimate JS of all pairs from means of log p̂ (001, Appendix A), shape (N, N).

    p̂ is the kernel estimate from a bag's second half, with the bandwidth of the leave-one-out
    score; the means are over first halves. (The sums that are printed lack 1 / n.)
    """
    halves = [np.array_split(np.asarray(bag), 2) for bag in bags]
    estimates = estimate_densities([half for _, half in halves], "kde", box=[(0, 1)] * 2)
    directed = np.empty((len(bags),) * 2)
    for i, (points, _) in enumerate(halves):
        values = np.maximum(estimates.at(points), FLOOR)
        directed[i] = np.log(2 * values[i] / (values[i] + values)).mean(axis=1)
    return 0.5 * (directed + directed.T)


def agreement(true: Floats, estimate: Floats) -> dict[str, float]:
    """Return R², the squared correlation, and 1 − SSE/SST.

    The paper has only the first; a wrong scale lowers the second too.
    """
    residual = ((true - estimate) ** 2).sum() / ((true - true.mean()) ** 2).sum()
    return {
        "r2": float(np.corrcoef(true, estimate)[0, 1] ** 2),
        "determination": float(1 - residual),
    }
