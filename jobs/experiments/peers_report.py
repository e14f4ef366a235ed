"""The tables of `peers`: what, peer, seconds of both, their ratio, and how well both did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .experiment import Result, Table, measured

MEASURED = ["ours", "peer", "peer / ours", "range"]
FLOAT_BYTES = 8
HARDLY, SURELY = 1.005, 1.05  # ratio of errors from which one is called worse
MEDIANS = (
    "Times are medians over rounds, and peer / ours is the median of the rounds' own ratios: not "
    "quite the quotient of the two."
)


def cells(values: Mapping[str, Any], unit: float = 1.0) -> list[Any]:
    """Both times, their ratio and its range; one round has no range."""
    low, high = values["low"], values["high"]
    span = f"{low:.3g} to {high:.3g}" if high > low else "one pair"
    return [values["ours"] * unit, values["peer"] * unit, values["ratio"], span]


def columns(what: Sequence[str], unit: str, quality: str) -> list[str]:
    """Of a table: ``what`` names the cells before the times."""
    ours, peer, *ratio = MEASURED
    return [*what, f"{ours} ({unit})", f"{peer} ({unit})", *ratio,
            f"{quality}, ours", f"{quality}, peer"]  # fmt: skip


def regression_table(results: Sequence[Result], n_iterations: int) -> Table:
    """Whole fits from the store."""
    rows = []
    for r in measured(results, "regression"):
        p, v = r.point.params, r.values
        what = f"fit, N = {p['n_train']:,}"
        rows.append([what, p["peer"], *cells(v), v["quality"], v["peer_quality"]])
    p, v = (getattr(measured(results, "regression")[0], name) for name in ("point", "values"))
    D = p.params["D"]
    return Table(
        "Regression from the same store",
        columns(["what", "peer"], "s", "test RMSE"),
        rows,
        [
            "The same projection (10² functions), σ and penalty a bag, chosen for ours at N = "
            f"10,000, all with an intercept; D = {D:,} random features or centres; a constant has "
            f"RMSE {v['constant']:.3f}. Every fit begins at the store; scikit-learn and dask.array "
            "read and project with numpy, bag by bag, in double.",
            MEDIANS,
            "KernelRidge and the FALKON-style solver (Nyström centres, its preconditioner, "
            f"{n_iterations} conjugate gradients in float32 on all cores, kernel values kept in "
            f"memory) begin with our projection, which favours them: a peer of its own would add "
            "the numpy projection's time. FALKON itself is not on PyPI.",
            "dask.array and ours ran on the same two workers of one core; all else in one process "
            "on all cores.",
            *_regression_losses(
                rows, max(r.values["gap_error"] for r in measured(results, "regression"))
            ),
        ],
    )


def _regression_losses(rows: Sequence[Sequence[Any]], gap_error: float) -> list[str]:
    slower = [(row[1], f"{row[1]} at {row[0][5:]}") for row in rows if row[4] < 1]
    worse = [f"{row[1]} at {row[0][5:]}" for row in rows if row[6] > HARDLY * row[7]]
    text = []
    if slower:
        text.append(f"We lose in time to {_list([where for _, where in slower])}.")
    if any(peer == "FALKON" for peer, _ in slower):
        text.append(
            "FALKON makes a row of N M kernel values once and passes over them twice an iteration; "
            "ours has one product of N D² steps, which is more where D is large. The "
            "preconditioner is a fixed cost, so it wins with many bags; memory grows with them "
            "unless each iteration makes the values anew, and it solves for one penalty and "
            "one target."
        )
    if any(peer != "FALKON" for peer, _ in slower):
        text.append("With few bags our fixed costs weigh: planning, and what runs in threads.")
    if worse:
        text.append(
            f"We have the larger error (by .5 % and more) beside {_list(worse)}; the standard "
            f"error of a difference is up to {gap_error:.4f}, for all have the same test bags. "
            "Kernels of "
            "centres or of all bags follow the data, random frequencies do not: they need a larger "
            "D for the same kernel. RBFSampler's and dask.array's are other draws of random "
            "frequencies."
        )
    return text or ["We lose to none of them here, in time or error."]


def projection_table(results: Sequence[Result]) -> Table:
    """Coefficients, over points a bag, dimensions and functions."""
    rows = []
    for r in measured(results, "projection"):
        p = r.point.params
        for v in r.values["sizes"]:
            what = f"n = {p['n_points']:,}, d = {p['d']}, s = {v['s']:,}"
            errors = [v["quality"], v["peer_quality"]]
            rows.append([what, f"finufft, {v['setting']}", *cells(v, 1e6), *errors])
    where = "; ".join(
        f"n = {r.point.params['n_points']:,}, d = {r.point.params['d']}: {crossing_text(r)}"
        for r in measured(results, "projection")
    )
    return Table(
        "Projection coefficients of a bag",
        columns(["what", "peer"], "µs", "largest error"),
        rows,
        [
            "One thread, float32; errors are those of coefficients, against sums of numpy's "
            "cosines in double. finufft: one type-1 transform a bag, planned once a call (in its "
            "time; a call has all bags, of a million points one), the quicker of upsampfac 2 "
            "(tolerance 10⁻⁶) and 1.25 (10⁻⁴, about the least it has without a warning in "
            "float32), then the sums over signs that make cosines of exponentials.",
            MEDIANS,
            f"finufft is quicker from this number of functions on: {where}.",
            "We lose with one huge bag and many functions: our kernel takes n s steps, the "
            "transform n wᵈ (w: the points of the grid that a point is spread to, here 7 or 8) and "
            "an FFT of the grid. With bags of some hundred points and a hundred functions there "
            "is nothing to win: a transform has the grid's FFT and the call to pay for each bag. "
            "Where a million points fall on the few cells of a small grid, its float32 sums lose "
            "digits; ours add blocks of points in double.",
        ],
    )


def crossing(result: Result) -> float | None:
    """s from which finufft is quicker, between two sizes in logarithms; None: at none here."""
    s, ratio = np.array([(v["s"], v["ratio"]) for v in result.values["sizes"]]).T
    if ratio[-1] >= 1:
        return None
    last = int(np.flatnonzero(ratio >= 1)[-1]) if (ratio >= 1).any() else -1
    if last < 0:
        return float(s[0])
    x, y = np.log(s[last : last + 2]), np.log(ratio[last : last + 2])
    return float(np.exp(x[0] - y[0] * (x[1] - x[0]) / (y[1] - y[0])))


def crossing_text(result: Result) -> str:
    """In words."""
    at = crossing(result)
    largest = result.values["sizes"][-1]["s"]
    return f"none up to {largest:,}" if at is None else f"about {float(f'{at:.2g}'):,.0f}"


def mmd_table(results: Sequence[Result]) -> Table:
    """MMD² of two sets."""
    found = measured(results, "mmd")
    names = {"all pairs": "all pairs, float32",
             "random features": f"random features, L = {found[0].point.params['L']:,}"}  # fmt: skip
    rows = []
    for r in found:
        for name, text in names.items():
            v = r.values[name]
            what = f"{text}, n = {r.point.params['n_points']:,}"
            rows.append([what, "hyppo", *cells(v, 1e3), v["quality"], v["peer_quality"]])
    n = found[-1].point.params["n_points"]
    matrix = FLOAT_BYTES * (2 * n) ** 2 / 2**30
    return Table(
        "MMD² of two sets of n points",
        columns(["what", "peer"], "ms", "relative difference"),
        rows,
        [
            "One thread; all are the biased statistic with the kernel exp(−‖x − y‖² / 2σ²), σ = 1 "
            "(γ = ½ is given to hyppo), of 5 × 5 blobs in the plane; no permutations. Differences "
            "are from MMD² of all pairs in double.",
            "`hyppo.ksample.MMD` does not return MMD²: its statistic is the correlation of the "
            "kernel and the labels, times the factor that turns a covariance into MMD². Its "
            "difference is that of the MMD² computed back from it (outside the timer).",
            MEDIANS,
            f"hyppo holds several matrices of all 2n points in double, {matrix:.2g} GiB each at "
            f"n = {n:,}; ours go by tiles, or by points alone.",
            _mmd_losses(rows),
        ],
    )


def _mmd_losses(rows: Sequence[Sequence[Any]]) -> str:
    slower = [row[0] for row in rows if row[4] < 1]
    worse = max(row[6] for row in rows)
    text = f"We lose in time with {_list(slower)}. " if slower else "We lose in time at no size. "
    return text + (
        f"In accuracy we lose: random features are off by up to {worse:.2g} with L frequencies "
        "(∝ L^(−½)), and all pairs by what float32 rounds."
    )


def transport_table(results: Sequence[Result]) -> Table:
    """Distances of bags in regression."""
    [found] = measured(results, "transport")
    p, methods = found.point.params, found.values["methods"]
    rows = [
        [ours, f"POT, {peer}", *cells(v), methods[ours]["rmse"], methods[peer]["rmse"]]
        for ours, pairs in found.values["pairs"].items()
        for peer, v in pairs.items()
    ]
    pairs = ", ".join(
        f"{name} {m['seconds_a_pair'] * 1e6:,.0f} µs"
        for name, m in methods.items()
        if m["seconds_a_pair"] is not None
    )
    error = max(m["se"] for m in methods.values())
    return Table(
        f"Regression on distances of bags, {p['n_train']:,} training bags of {p['n_points']:,} "
        "points",
        columns(["ours", "peer"], "s", "test RMSE"),
        rows,
        [
            f"One thread; choosing σ and λ, fit and predictions of {p['n_test']:,} test bags "
            f"(standard error of an RMSE: {error:.2f}; they share the bags; a constant has "
            f"{found.values['constant']:.3f}). Embeddings: Double-Basis regression, D = "
            f"{p['D']:,}. Wasserstein distances, squared, and our k-NN KL go through the same "
            "kernel ridge regression, exp(−D / 2σ²), indefinite matrices repaired.",
            f"A pair: {pairs}. A distance is paid for every pair, an embedding for every bag: with "
            "ten times the bags the peers take a hundred times as long.",
            "Sliced distances of bags of one size are Euclidean distances of sorted projections, "
            "so they could be an embedding as well; POT computes them pair by pair.",
            f"The least error has {min(methods, key=lambda name: methods[name]['rmse'])}.",
            *_transport_losses(methods, found.values["pairs"]),
        ],
    )


def _transport_losses(methods: Mapping[str, Any], pairs: Mapping[str, Any]) -> list[str]:
    slower = [f"{ours} to {peer}" for ours, v in pairs.items() for peer in v
              if v[peer]["ratio"] < 1]  # fmt: skip
    worse = [f"{ours} to {peer}" for ours, v in pairs.items() for peer in v
             if methods[ours]["rmse"] > SURELY * methods[peer]["rmse"]]  # fmt: skip
    text = []
    if slower:
        text.append(
            f"We lose in time: {_list(slower)}: choosing among embeddings and widths has a price "
            "that few bags do not pay back, and k-NN distances search trees for each pair."
        )
    if worse:
        text.append(
            f"We lose in error (more than 5 %): {_list(worse)}. Transport compares where the mass "
            "is, without smoothing; k-NN divergences of few points are noisy, and few bags are "
            "not what random features are for."
        )
    return text or ["We lose to none of them here, in time or (by more than 5 %) in error."]


def _list(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
