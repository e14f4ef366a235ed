"""The tables and the picture of `gmm-components`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from ..pictures.evaluation import new_figure, save_figure
from .experiment import Result, Table

PAPER = {  # 001, Figure 3: RMSE with 200 and with 800 points a bag
    "AIC": {200: 2.7, 800: 2.3},
    "BIC": {200: 3.8, 800: 2.7},
    "constant": {200: 2.8, 800: 2.8},
}
ROUNDING = 0.05  # of these
HDD, OTHERS = ("JS", "Hellinger", "TV"), ("L2", "MMD", "Hist JS")
STYLES = {
    "JS": ("#3b6fb6", "o"), "Hellinger": ("#6fa8dc", "s"), "TV": ("#1b3a66", "^"),
    "L2": ("#e07b39", "v"), "MMD": ("#c0392b", "D"), "Hist JS": ("#5a9e6f", "P"),
    "KL": ("#7a7a7a", "X"),
}  # fmt: skip
LINES = {"AIC": ("#8e6bbf", "-."), "BIC": ("#b0892f", ":"), "constant": ("black", "-")}


def sizes_by_method(results: Sequence[Result], n_points: int) -> dict[str, list[dict[str, Any]]]:
    """Of each regression: RMSE, its standard error and seconds over training bags."""
    return {
        result.point.params.get("method", "KL"): result.values["sizes"]
        for result in results
        if "sizes" in result.values and result.point.params["n_points"] == n_points
    }


def without_training(results: Sequence[Result], n_points: int) -> dict[str, Mapping[str, Any]]:
    """RMSE and its standard error of AIC, BIC and the constant."""
    found: dict[str, Mapping[str, Any]] = {}
    for result in results:
        if result.point.params["n_points"] != n_points:
            continue
        if result.point.params["measure"] == "em":
            for name in ("aic", "bic"):
                seconds = {"seconds": result.values["seconds_a_bag"], "n": result.values["n"]}
                found[name.upper()] = {**result.values[name], **seconds}
        elif result.point.params["measure"] == "constant":
            found["constant"] = result.values
    return found


def _beside_kl(results: Sequence[Result], n_points: int) -> dict[str, Any]:
    """JS, fitted to as many bags as KL."""
    [found] = [
        result.values["js"]
        for result in results
        if "js" in result.values and result.point.params["n_points"] == n_points
    ]
    return dict(found)


def component_tables(results: Sequence[Result]) -> list[Table]:
    """One a number of points."""
    sizes = list(dict.fromkeys(result.point.params["n_points"] for result in results))
    return [_table(results, n) for n in sizes]


def _table(results: Sequence[Result], n_points: int) -> Table:
    regressions = sizes_by_method(results, n_points)
    n_train = [size["n_train"] for size in next(iter(regressions.values()))]
    rows: list[list[Any]] = []
    blank: list[Any] = [None] * (len(n_train) - 1)
    for method, found in regressions.items():
        if method == "KL":
            for name, size in (("KL", found[0]), ("JS", _beside_kl(results, n_points))):
                which = f"{name}, {size['n_train']:,} training and {size['n_test']:,} test bags"
                cells = [*blank, size["rmse"], size["se"], *blank, size["seconds"], None]
                rows.append([which, *cells])
            continue
        errors, seconds = ([size[key] for size in found] for key in ("rmse", "seconds"))
        rows.append([method, *errors, found[-1]["se"], *seconds, None])
    for method, values in without_training(results, n_points).items():
        label = str(method)
        total: float | None = None
        if "n" in values:
            label = f"{method}, {values['n']} test bags"
            total = values["seconds"] * results[0].point.params["n_test"]
        paper = PAPER[method].get(n_points)
        rows.append([label, *blank, values["rmse"], values["se"], *blank, total, paper])
    columns = ["", *(f"RMSE, {n:,}" for n in n_train), "± at the last", *(
        f"s, {n:,}" for n in n_train), "RMSE, paper"]  # fmt: skip
    title = f"{n_points} points a bag: error and time over the number of training bags"
    return Table(title, columns, rows, _remarks(results, n_points, regressions))


def _remarks(
    results: Sequence[Result], n_points: int, regressions: dict[str, list[dict[str, Any]]]
) -> list[str]:
    last = {method: found[-1] for method, found in regressions.items() if method != "KL"}
    best = min(HDD, key=lambda method: last[method]["rmse"])
    ahead = [m for m in OTHERS if last[m]["rmse"] > max(last[h]["rmse"] for h in HDD)]
    behind = [m for m in OTHERS if m not in ahead]
    chosen = {
        result.point.params["method"]: result.values["choice"]
        for result in results
        if result.point.params["measure"] == "2be" and result.point.params["n_points"] == n_points
    }
    verdict = f"All of JS, Hellinger and TV are better than {_list(ahead)}. " if ahead else ""
    if behind:
        verdict += (
            f"{_list(behind)} beat one of them at least: "
            + ", ".join(f"{m} {last[m]['rmse']:.3f}" for m in behind)
            + ", against "
            + _list([f"{h} {last[h]['rmse']:.3f}" for h in HDD])
            + ". "
        )
    return [
        f"± is a standard error over test bags; methods share these, so that differences are surer "
        f"than it says. Best: {best}. {verdict}".strip(),
        _beside_em(results, n_points, best, last[best]),
        _beside_paper(results, n_points),
        "Seconds: one fit, λ chosen by a held-out tenth, and predictions of all test bags. For AIC "
        "and BIC: both together, ten EM fits a bag, scaled to all test bags.",
        "Chosen by the held-out tenth of the first training bags (σ over the median distance; "
        "seconds for all candidates): "
        + "; ".join(f"{method} {_choice(choice)}" for method, choice in chosen.items())
        + ".",
        "KL is the symmetrised k-NN estimate in a full kernel matrix, of few bags for it costs a "
        "fixed time a pair: its error is to be compared with JS's at as many bags, below it. "
        "The paper prints numbers of AIC, BIC and the constant; the others' are in a figure.",
    ]


def _beside_em(results: Sequence[Result], n_points: int, best: str, ours: Mapping[str, Any]) -> str:
    """Whether AIC and BIC are surely behind the best regression, and why they have few bags."""
    em, n_test = without_training(results, n_points), results[0].point.params["n_test"]
    parts = []
    for name in ("AIC", "BIC"):
        gap = em[name]["rmse"] - ours["rmse"]
        error = (em[name]["se"] ** 2 + ours["se"] ** 2) ** 0.5
        sure = "" if abs(gap) > 2 * error else f": level, by {abs(gap) / error:.1f} standard errors"
        parts.append(f"{name} {gap:+.2f} ± {error:.2f}{sure}")
    n, seconds = em["AIC"]["n"], em["AIC"]["seconds"]
    return (
        f"Beside {best} with all training bags: {'; '.join(parts)}. EM has {n} of the "
        f"{n_test:,} test bags for its time, {seconds:.2f} s a bag; predictions of single bags "
        f"are not kept, so that {best}'s error on these {n} is not known."
    )


def _beside_paper(results: Sequence[Result], n_points: int) -> str:
    """Errors that the paper prints, ours beside them, and what is known of why they differ."""
    found = without_training(results, n_points)
    parts = []
    for name, values in found.items():
        if n_points in PAPER[name]:
            gap = values["rmse"] - PAPER[name][n_points]
            within = "within error" if abs(gap) <= 2 * values["se"] + ROUNDING else "surely"
            parts.append(
                f"{name} {values['rmse']:.2f} ± {values['se']:.2f} ({PAPER[name][n_points]}; here "
                f"{'worse' if gap > 0 else 'better'}, {within})"
            )
    return (
        f"Here and (as the paper prints): {', '.join(parts)}. The error is two standard errors and "
        "half of the last printed digit. A constant 5.5 has 2.87 in expectation, for k is uniform "
        "on 1 … 10. EM is scikit-learn's, of one start by k-means, and the paper does not name its "
        "own: where AIC and BIC differ by more than the error, that may be why."
    )


def _choice(choice: Mapping[str, Any]) -> str:
    params = {k: v for k, v in choice["embedding"].items()
              if k in ("bandwidth", "n_per_dim", "n_bins")}  # fmt: skip
    shown = ", ".join(f"{key}={value}" for key, value in params.items()) or "defaults"
    return f"{shown}, σ {choice['multiplier']:g} ({choice['seconds']:.0f} s)"


def _list(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def draw_components(path: Path, results: Sequence[Result]) -> Path:
    """001, Figure 3: error over time, a line a method through its numbers of training bags."""
    sizes = list(dict.fromkeys(result.point.params["n_points"] for result in results))
    figure = new_figure(6.6 * len(sizes), 6.2)
    axes = figure.subplots(1, len(sizes), squeeze=False)[0]
    for axis, n_points in zip(axes, sizes, strict=True):
        _panel(axis, results, n_points)
    figure.suptitle("Counting mixture components: each line goes through growing training sets")
    return save_figure(figure, path)


def _panel(axis: Axes, results: Sequence[Result], n_points: int) -> None:
    for method, found in sizes_by_method(results, n_points).items():
        color, marker = STYLES[method]
        seconds, errors = ([size[key] for size in found] for key in ("seconds", "rmse"))
        n_train = ", ".join(f"{size['n_train']:,}" for size in found)
        axis.plot(seconds, errors, "-", color=color, marker=marker,
                  label=f"{method} ({n_train} bags)" if method == "KL" else method)  # fmt: skip
    for method, values in without_training(results, n_points).items():
        color, style = LINES[method]
        axis.axhline(values["rmse"], color=color, linestyle=style, linewidth=1.2,
                     label=f"{method}: {values['rmse']:.2f} here")  # fmt: skip
        printed = PAPER[method].get(n_points)
        if printed is not None:
            axis.plot(1.0, printed, "<", color=color, transform=axis.get_yaxis_transform(),
                      clip_on=False, markersize=9, label=f"{method}: {printed} in 001")  # fmt: skip
    log_seconds(axis)
    axis.set_yscale("log")
    ticks = [1.4, 1.5, 1.6, 1.8, 2.0, 2.5, 3.0, 4.0]
    axis.set_yticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    axis.set_yticks([], minor=True)
    axis.set_ylabel("RMSE of the number of components")
    axis.set_title(f"{n_points} points a bag", fontsize=10)
    axis.grid(alpha=0.25)
    axis.legend(fontsize=8, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.12))


def log_seconds(axis: Axes) -> None:
    """A logarithmic axis of times, with plain numbers."""
    axis.set_xscale("log")
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.set_xlabel("seconds for fit and all predictions")
