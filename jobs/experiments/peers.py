"""`Peers`: pieces of work that other packages do too, timed in turn with ours, and how well.

Regression from a store, projection coefficients, MMD² of two sets of points, and distances of
bags.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from bagbasis.errors import ConfigError

from .kit.experiment import Experiment, Measure, Result, Scale, Table
from .kit.frame import select
from .kit.plots import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, Curve, lines, plain_log
from .kit.verdicts import listing
from .peers_measures import measure_mmd, measure_projection, measure_transport
from .peers_regression import BASES, ITERATIONS, KERNELS, N_POINTS, measure_regression

EXTRA = {"finufft": "finufft", "hyppo": "hyppo", "POT": "pot"}
MEASURED = ["ours", "peer", "peer / ours", "range"]
FLOAT_BYTES = 8
HARDLY, SURELY = 1.005, 1.05  # ratio of errors from which one is called worse
MEDIANS = (
    "Times are medians over rounds, and peer / ours is the median of the rounds' own ratios: not "
    "quite the quotient of the two."
)
STYLES = {
    "RBFSampler + Ridge": (ORANGE, "s"),
    "Nystroem + Ridge": (GREEN, "^"),
    "dask.array": (PURPLE, "D"),
    "KernelRidge": (GREY, "X"),
    "FALKON": (RED, "v"),
    "sliced Wasserstein": (ORANGE, "s"),
    "Wasserstein (emd2)": (RED, "v"),
    "JS embedding": (BLUE, "o"),
    "projection": ("#6fa8dc", "P"),
    "KL matrix": (GREY, "X"),
}
SIZES = (BLUE, GREEN, ORANGE)  # of bags


class Sizes(Scale):
    """See ``configs/experiments/peers.yaml``."""

    n_train: dict[int, int]
    largest_kernel: int
    n_features: int
    n_test: int
    points_of_projection: int
    projections: list[list[Any]]
    sizes: list[int]
    n_frequencies: int
    transport: dict[str, int]
    n_rounds: int


class Peers(Experiment[Sizes]):
    """See the module.

    Raises
    ------
    ConfigError
        A package of the peers is not installed.
    """

    name = "peers"
    title = "Beside other packages that do the same work"
    source = "Not in the papers"
    kind = Sizes
    alone = True

    def __init__(self, scale: str, seed: int, out_dir: Path) -> None:
        super().__init__(scale, seed, out_dir)
        self.versions = peer_versions()

    @property
    def size(self) -> str:
        s, t = self.settings, self.settings.transport
        return (
            f"Regression: mixture counting (001, §5.2) with {listing(list(s.n_train))} bags of "
            f"{N_POINTS} points, D = {s.n_features:,}, {s.n_test:,} test bags. Projection: "
            f"{listing(sorted({n for n, *_ in s.projections}))} points a bag in one to three "
            f"dimensions. MMD²: sets of {listing(s.sizes)} points. Optimal transport: "
            f"{t['n_train']:,} training and {t['n_test']:,} test bags of {t['n_points']:,} points. "
            f"With {', '.join(f'{name} {number}' for name, number in self.versions.items())}."
        )

    def measures(self) -> list[Measure]:
        s, seed = self.settings, self.seed
        fits = {"D": s.n_features, "n_test": s.n_test}
        label = "regression N {n_train}, {peer}"
        kernels = [
            (n, rounds, peer)
            for n, rounds in s.n_train.items()
            for peer in KERNELS
            if peer != "KernelRidge" or n <= s.largest_kernel
        ]
        projections = [
            (n, d, n_per_dim, max(1, s.points_of_projection // n))
            for n, d, n_per_dim in s.projections
        ]
        regression = partial(measure_regression, seed=seed, out_dir=self.out_dir)
        return [
            Measure("regression", regression, label,
                    {"n_train n_rounds": list(s.n_train.items()), "peer": list(BASES)},
                    {**fits, "precision": "float32"}),
            Measure("regression", regression, label, {"n_train n_rounds peer": kernels}, fits),
            Measure("projection", partial(measure_projection, seed=seed),
                    "projection n {n_points}, d {d}",
                    {"n_points d n_per_dim n_bags": projections}, self._beside("finufft")),
            Measure("mmd", partial(measure_mmd, seed=seed), "mmd n {n_points}",
                    {"n_points": s.sizes}, {**self._beside("hyppo"), "L": s.n_frequencies}),
            Measure("transport", partial(measure_transport, seed=seed), "transport", {},
                    {**self._beside("POT"), **s.transport, "n_rounds": max(1, s.n_rounds // 3)}),
        ]  # fmt: skip

    def _beside(self, package: str) -> dict[str, Any]:
        """Parameters of points that another version of the package measures again."""
        return {"n_rounds": self.settings.n_rounds, "version": self.versions[package]}

    # ------------------------------------------------------------------ tables

    def tables(self, results: Sequence[Result]) -> list[Table]:
        [transport] = select(results, measure="transport")
        return [
            regression_table(by_size(results)),
            _projection_table(select(results, measure="projection")),
            _mmd_table(select(results, measure="mmd")),
            _transport_table(transport),
        ]

    # ------------------------------------------------------------------ pictures

    def draw(self, results: Sequence[Result]) -> None:
        self._draw_regression(by_size(results))
        self._draw_projection(select(results, measure="projection"))
        [transport] = select(results, measure="transport")
        with self.picture("distances.png", "Distances", 2, 11.5) as (_, [left, right]):
            _draw_mmd(left, select(results, measure="mmd"))
            _draw_transport(right, transport)

    def _draw_regression(self, found: Sequence[Result]) -> None:
        """How many times as long peers take, and the errors, over N."""
        times, errors = [], []
        for i, peer in enumerate(dict.fromkeys(r.params["peer"] for r in found)):
            own = [r for r in found if r.params["peer"] == peer]
            n = np.array([r.params["n_train"] for r in own])
            color, marker = STYLES[peer]
            keys = ("ratio", "low", "high", "peer_quality")
            ratio, low, high, error = np.array([[r.values[key] for key in keys] for r in own]).T
            aside = n * 1.04 ** (i - 2)  # so that bars do not hide each other
            bars = [ratio - low, high - ratio]
            times.append(Curve(aside, ratio, peer, color, f"{marker}-", bars))
            errors.append(Curve(n, error, peer, color, f"{marker}-"))
        ours = {r.params["n_train"]: r.values["quality"] for r in found}
        errors.append(Curve(list(ours), list(ours.values()), "Double-Basis (ours)"))
        title = (
            f"Counting mixture components: whole fits from one store, D = {found[0].params['D']:,}"
        )
        with self.picture("regression.png", title, 2, 11.5) as (_, [left, right]):
            lines(left, times, "training bags N",
                  "time of the peer's fit / time of ours\n(bars: range of pairs)", log="xy",
                  ticks=list(ours), levels={"as long as ours": 1})  # fmt: skip
            plain_log(left.yaxis)
            lines(right, errors, "training bags N", "RMSE of test bags (components)", log="x",
                  ticks=list(ours))  # fmt: skip

    def _draw_projection(self, found: Sequence[Result]) -> None:
        """Time a bag over the number of functions, a panel a number of dimensions."""
        dims = sorted({r.params["d"] for r in found})
        sizes = sorted({r.params["n_points"] for r in found})
        title = "Projection coefficients of bags of n points: our kernel and finufft"
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.16), "ncols": 2, "fontsize": 7}
        with self.picture(
            "projection.png", title, len(dims), 4.2 * len(dims), 4.6, sharey=True
        ) as (_, axes):
            for axis, d in zip(axes, dims, strict=True):
                curves = []
                for r in select(found, d=d):
                    n, color = r.params["n_points"], SIZES[sizes.index(r.params["n_points"])]
                    s, ours, peer = (
                        [v[key] for v in r.values["sizes"]] for key in ("s", "ours", "peer")
                    )
                    curves.append(Curve(s, ours, f"n = {n:,}: ours", color))
                    curves.append(Curve(s, peer, f"n = {n:,}: finufft", color, "s--"))
                    at = quicker_from(r)
                    if at is not None:
                        label = f"n = {n:,}: equal at s ≈ {float(f'{at:.2g}'):,.0f}"
                        axis.axvline(at, color=color, linestyle=":", label=label)
                y = "seconds a bag, one thread" if d == dims[0] else ""
                lines(axis, curves, "functions s", y, log="xy", legend=below,
                      title=f"d = {d} dimension{'s' * (d > 1)}")  # fmt: skip


def peer_versions() -> dict[str, str]:
    """Of the packages that only this experiment needs.

    Raises
    ------
    ConfigError
        One is not installed.
    """
    try:
        return {name: version(package) for name, package in EXTRA.items()}
    except PackageNotFoundError as error:
        raise ConfigError(
            f"peers needs pip install 'bagbasis[peers]' (there is no {error.name})"
        ) from error


def by_size(results: Sequence[Result]) -> list[Result]:
    """The regressions, in the order of their training bags."""
    return sorted(select(results, measure="regression"), key=lambda r: r.params["n_train"])


def cells(values: Mapping[str, Any], unit: float = 1.0) -> list[Any]:
    """Both times, their ratio and its range; one round has no range."""
    low, high = values["low"], values["high"]
    span = f"{low:.3g} to {high:.3g}" if high > low else "one pair"
    return [values["ours"] * unit, values["peer"] * unit, values["ratio"], span]


def columns(unit: str, quality: str, first: str = "what") -> list[str]:
    """Of a table: what and the peer, the times, and how well both did."""
    ours, peer, *ratio = MEASURED
    return [first, "peer", f"{ours} ({unit})", f"{peer} ({unit})", *ratio,
            f"{quality}, ours", f"{quality}, peer"]  # fmt: skip


def regression_table(found: Sequence[Result]) -> Table:
    """Whole fits from the store."""
    rows = []
    for r in found:
        p, v = r.params, r.values
        what = f"fit, N = {p['n_train']:,}"
        rows.append([what, p["peer"], *cells(v), v["quality"], v["peer_quality"]])
    single = any("precision" in r.params for r in found)
    how = "in float32, many bags at once" if single else "bag by bag, in double"
    return Table(
        "Regression from the same store",
        columns("s", "test RMSE"),
        rows,
        [
            "The same projection (10² functions), σ and penalty a bag, chosen for ours at N = "
            f"10,000, all with an intercept; D = {found[0].params['D']:,} random features or "
            f"centres; a constant has RMSE {found[0].values['constant']:.3f}. Every fit begins at "
            f"the store; scikit-learn and dask.array read and project with numpy, {how}.",
            MEDIANS,
            "KernelRidge and the FALKON-style solver (Nyström centres, its preconditioner, "
            f"{ITERATIONS} conjugate gradients in float32 on all cores, kernel values kept in "
            f"memory) begin with our projection, which favours them: a peer of its own would add "
            "the numpy projection's time. FALKON itself is not on PyPI.",
            "dask.array and ours ran on the same two workers of one core; all else in one process "
            "on all cores.",
            *_regression_losses(rows, max(r.values["gap_error"] for r in found)),
        ],
    )


def _regression_losses(rows: Sequence[Sequence[Any]], gap_error: float) -> list[str]:
    slower = [(row[1], f"{row[1]} at {row[0][5:]}") for row in rows if row[4] < 1]
    worse = [f"{row[1]} at {row[0][5:]}" for row in rows if row[6] > HARDLY * row[7]]
    text = []
    if slower:
        text.append(f"We lose in time to {listing([where for _, where in slower])}.")
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
            f"We have the larger error (by .5 % and more) beside {listing(worse)}; the standard "
            f"error of a difference is up to {gap_error:.4f}, for all have the same test bags. "
            "Kernels of "
            "centres or of all bags follow the data, random frequencies do not: they need a larger "
            "D for the same kernel. RBFSampler's and dask.array's are other draws of random "
            "frequencies."
        )
    return text or ["We lose to none of them here, in time or error."]


def _projection_table(found: Sequence[Result]) -> Table:
    """Coefficients, over points a bag, dimensions and functions."""
    rows, where = [], []
    for r in found:
        size = f"n = {r.params['n_points']:,}, d = {r.params['d']}"
        at, largest = quicker_from(r), r.values["sizes"][-1]["s"]
        text = f"none up to {largest:,}" if at is None else f"about {float(f'{at:.2g}'):,.0f}"
        where.append(f"{size}: {text}")
        for v in r.values["sizes"]:
            what, peer = f"{size}, s = {v['s']:,}", f"finufft, {v['setting']}"
            rows.append([what, peer, *cells(v, 1e6), v["quality"], v["peer_quality"]])
    return Table(
        "Projection coefficients of a bag",
        columns("µs", "largest error"),
        rows,
        [
            "One thread, float32; errors are those of coefficients, against sums of numpy's "
            "cosines in double. finufft: one type-1 transform a bag, planned once a call (in its "
            "time; a call has all bags, of a million points one), the quicker of upsampfac 2 "
            "(tolerance 10⁻⁶) and 1.25 (10⁻⁴, about the least it has without a warning in "
            "float32), then the sums over signs that make cosines of exponentials.",
            MEDIANS,
            f"finufft is quicker from this number of functions on: {'; '.join(where)}.",
            "We lose with one huge bag and many functions: our kernel takes n s steps, the "
            "transform n wᵈ (w: the points of the grid that a point is spread to, here 7 or 8) and "
            "an FFT of the grid. With bags of some hundred points and a hundred functions there "
            "is nothing to win: a transform has the grid's FFT and the call to pay for each bag. "
            "Where a million points fall on the few cells of a small grid, its float32 sums lose "
            "digits; ours add blocks of points in double.",
        ],
    )


def quicker_from(result: Result) -> float | None:
    """s from which finufft is quicker, between two sizes in logarithms; None: at none here."""
    s, ratio = np.array([(v["s"], v["ratio"]) for v in result.values["sizes"]]).T
    if ratio[-1] >= 1:
        return None
    last = int(np.flatnonzero(ratio >= 1)[-1]) if (ratio >= 1).any() else -1
    if last < 0:
        return float(s[0])
    x, y = np.log(s[last : last + 2]), np.log(ratio[last : last + 2])
    return float(np.exp(x[0] - y[0] * (x[1] - x[0]) / (y[1] - y[0])))


def _mmd_table(found: Sequence[Result]) -> Table:
    """MMD² of two sets."""
    names = {"all pairs": "all pairs, float32",
             "random features": f"random features, L = {found[0].params['L']:,}"}  # fmt: skip
    rows: list[list[Any]] = []
    for r in found:
        for name, text in names.items():
            v, what = r.values[name], f"{text}, n = {r.params['n_points']:,}"
            rows.append([what, "hyppo", *cells(v, 1e3), v["quality"], v["peer_quality"]])
    n = found[-1].params["n_points"]
    matrix = FLOAT_BYTES * (2 * n) ** 2 / 2**30
    slower, worse = [row[0] for row in rows if row[4] < 1], max(row[6] for row in rows)
    lost = f"We lose in time with {listing(slower)}." if slower else "We lose in time at no size."
    return Table(
        "MMD² of two sets of n points",
        columns("ms", "relative difference"),
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
            f"{lost} In accuracy we lose: random features are off by up to {worse:.2g} with L "
            "frequencies (∝ L^(−½)), and all pairs by what float32 rounds.",
        ],
    )


def _transport_table(found: Result) -> Table:
    """Distances of bags in regression."""
    p, methods = found.params, found.values["methods"]
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
        columns("s", "test RMSE", "ours"),
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
    both = [(ours, peer) for ours, v in pairs.items() for peer in v]
    slower = [f"{ours} to {peer}" for ours, peer in both if pairs[ours][peer]["ratio"] < 1]
    worse = [f"{ours} to {peer}" for ours, peer in both
             if methods[ours]["rmse"] > SURELY * methods[peer]["rmse"]]  # fmt: skip
    text = []
    if slower:
        text.append(
            f"We lose in time: {listing(slower)}: choosing among embeddings and widths has a price "
            "that few bags do not pay back, and k-NN distances search trees for each pair."
        )
    if worse:
        text.append(
            f"We lose in error (more than 5 %): {listing(worse)}. Transport compares where the "
            "mass is, without smoothing; k-NN divergences of few points are noisy, and few bags "
            "are not what random features are for."
        )
    return text or ["We lose to none of them here, in time or (by more than 5 %) in error."]


def _draw_mmd(axis: Axes, found: Sequence[Result]) -> None:
    """Time of MMD² over the number of points."""
    n, L = [r.params["n_points"] for r in found], found[0].params["L"]

    def seconds(name: str, whose: str) -> list[float]:
        return [r.values[name][whose] for r in found]

    features = f"random features, L = {L:,} (ours)"
    curves = [
        Curve(n, seconds("all pairs", "peer"), "hyppo", ORANGE, "s-"),
        Curve(n, seconds("all pairs", "ours"), "all pairs (ours)"),
        Curve(n, seconds("random features", "ours"), features, GREEN),
    ]
    lines(axis, curves, "points in each set n", "seconds a statistic, one thread", log="xy",
          ticks=n, title="MMD² of two sets of n points in the plane")  # fmt: skip


def _draw_transport(axis: Axes, found: Result) -> None:
    """Error over time of distances of bags."""
    methods, pairs, p = found.values["methods"], found.values["pairs"], found.params
    seconds = {ours: next(iter(v.values()))["ours"] for ours, v in pairs.items()}
    seconds |= {peer: v["peer"] for peer, v in next(iter(pairs.values())).items()}
    curves = []
    for name, m in methods.items():
        color, marker = STYLES[name]
        label = f"{name} ({'ours' if name in pairs else 'POT'})"
        curves.append(Curve([seconds[name]], [m["rmse"]], label, color, marker, [m["se"]]))
    title = (
        f"Counting mixture components, {p['n_train']:,} training bags of {p['n_points']:,} points"
    )
    lines(axis, curves, "seconds for choice, fit and predictions, one thread",
          "RMSE of test bags (bars: ± standard error)", log="x", title=title,
          levels={"the best constant": found.values["constant"]})  # fmt: skip
