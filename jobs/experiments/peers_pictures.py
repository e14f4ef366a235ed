"""The pictures of `peers`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from ..pictures.evaluation import BLUE, GREY, ORANGE, new_figure, save_figure
from .experiment import Result, measured
from .peers_report import crossing

GREEN, PURPLE, BLACK = "#5a9e6f", "#8064a2", "black"
STYLES = {
    "RBFSampler + Ridge": (ORANGE, "s"), "Nystroem + Ridge": (GREEN, "^"),
    "dask.array": (PURPLE, "D"), "KernelRidge": (GREY, "X"), "FALKON": ("#c0392b", "v"),
    "sliced Wasserstein": (ORANGE, "s"), "Wasserstein (emd2)": ("#c0392b", "v"),
    "JS embedding": (BLUE, "o"), "projection": ("#6fa8dc", "P"), "KL matrix": (GREY, "X"),
}  # fmt: skip
SIZES = (BLUE, GREEN, ORANGE)  # of bags


def draw_regression(path: Path, results: Sequence[Result]) -> Path:
    """How many times as long peers take, and the errors, over N."""
    found = measured(results, "regression")
    figure = new_figure(11.5, 4.8)
    left, right = figure.subplots(1, 2)
    for i, peer in enumerate(dict.fromkeys(r.point.params["peer"] for r in found)):
        own = [r for r in found if r.point.params["peer"] == peer]
        n = [r.point.params["n_train"] for r in own]
        color, marker = STYLES[peer]
        ratio, low, high = ([r.values[key] for r in own] for key in ("ratio", "low", "high"))
        below = [a - b for a, b in zip(ratio, low, strict=True)]
        above = [b - a for a, b in zip(ratio, high, strict=True)]
        aside = [size * 1.04 ** (i - 2) for size in n]  # so that bars do not hide each other
        left.errorbar(aside, ratio, [below, above], color=color, marker=marker, capsize=3,
                      label=peer)  # fmt: skip
        right.plot(n, [r.values["peer_quality"] for r in own], marker=marker, color=color,
                   label=peer)  # fmt: skip
    ours = {r.point.params["n_train"]: r.values["quality"] for r in found}
    right.plot(list(ours), list(ours.values()), "o-", color=BLUE, linewidth=2,
               label="Double-Basis (ours)")  # fmt: skip
    left.axhline(1, color=BLACK, linewidth=1, linestyle="--", label="as long as ours")
    left.set_yscale("log")
    left.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    left.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    left.yaxis.set_minor_formatter(NullFormatter())
    for axis in (left, right):
        axis.set_xscale("log")
        axis.set_xticks(list(ours), labels=[f"{n:,}" for n in ours])
        axis.set_xticks([], minor=True)
    _label(left, "training bags N", "time of the peer's fit / time of ours\n(bars: range of pairs)")
    _label(right, "training bags N", "RMSE of test bags (components)")
    D = found[0].point.params["D"]
    figure.suptitle(f"Counting mixture components: whole fits from one store, D = {D:,}")
    return save_figure(figure, path)


def draw_projection(path: Path, results: Sequence[Result]) -> Path:
    """Time a bag over the number of functions, a panel a number of points a bag and dimensions."""
    found = measured(results, "projection")
    dims = sorted({r.point.params["d"] for r in found})
    sizes = sorted({r.point.params["n_points"] for r in found})
    figure = new_figure(4.2 * len(dims), 4.6)
    axes = figure.subplots(1, len(dims), squeeze=False, sharey=True)[0]
    for axis, d in zip(axes, dims, strict=True):
        for r in (r for r in found if r.point.params["d"] == d):
            n, color = r.point.params["n_points"], SIZES[sizes.index(r.point.params["n_points"])]
            s, ours, peer = ([v[key] for v in r.values["sizes"]] for key in ("s", "ours", "peer"))
            axis.plot(s, ours, "o-", color=color, label=f"n = {n:,}: ours")
            axis.plot(s, peer, "s--", color=color, label=f"n = {n:,}: finufft")
            at = crossing(r)
            if at is not None:
                equal = f"n = {n:,}: equal at s ≈ {float(f'{at:.2g}'):,.0f}"
                axis.axvline(at, color=color, linestyle=":", linewidth=1.2,
                             label=equal)  # fmt: skip
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axis.set_title(f"d = {d} dimension{'s' * (d > 1)}", fontsize=10)
        _label(axis, "functions s", "seconds a bag, one thread" if d == dims[0] else "")
        axis.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
    figure.suptitle("Projection coefficients of bags of n points: our kernel and finufft")
    return save_figure(figure, path)


def draw_two_sets(path: Path, results: Sequence[Result]) -> Path:
    """Time of MMD² over the number of points, and error over time of distances of bags."""
    figure = new_figure(11.5, 4.8)
    left, right = figure.subplots(1, 2)
    _mmd(left, measured(results, "mmd"))
    _transport(right, measured(results, "transport")[0])
    return save_figure(figure, path)


def _mmd(axis: Axes, found: Sequence[Result]) -> None:
    n = [r.point.params["n_points"] for r in found]
    L = found[0].point.params["L"]
    axis.plot(n, [r.values["all pairs"]["peer"] for r in found], "s-", color=ORANGE, label="hyppo")
    curves = (("all pairs", "all pairs (ours)", BLUE), ("random features",
              f"random features, L = {L:,} (ours)", GREEN))  # fmt: skip
    for name, label, color in curves:
        axis.plot(n, [r.values[name]["ours"] for r in found], "o-", color=color, label=label)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks(n, labels=[f"{size:,}" for size in n])
    axis.set_xticks([], minor=True)
    axis.set_title("MMD² of two sets of n points in the plane", fontsize=10)
    _label(axis, "points in each set n", "seconds a statistic, one thread")


def _transport(axis: Axes, found: Result) -> None:
    methods, pairs, p = found.values["methods"], found.values["pairs"], found.point.params
    seconds = {ours: next(iter(v.values()))["ours"] for ours, v in pairs.items()}
    seconds |= {peer: v["peer"] for peer, v in next(iter(pairs.values())).items()}
    for name, m in methods.items():
        color, marker = STYLES[name]
        label = f"{name} ({'ours' if name in pairs else 'POT'})"
        axis.errorbar(seconds[name], m["rmse"], m["se"], color=color, marker=marker, markersize=8,
                      capsize=3, linestyle="", label=label)  # fmt: skip
    axis.axhline(found.values["constant"], color=BLACK, linewidth=1, label="the best constant")
    axis.set_xscale("log")
    axis.set_title(
        f"Counting mixture components, {p['n_train']:,} training bags of {p['n_points']:,} points",
        fontsize=10,
    )
    _label(axis, "seconds for choice, fit and predictions, one thread",
           "RMSE of test bags (bars: ± standard error)")  # fmt: skip


def _label(axis: Axes, x: str, y: str) -> None:
    axis.set_xlabel(x)
    axis.set_ylabel(y)
    axis.grid(alpha=0.25, which="both")
    axis.legend(fontsize=8)
