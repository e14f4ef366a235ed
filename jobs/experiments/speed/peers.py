"""`Peers`: tasks that other packages can do too, timed in turn with ours, and their accuracy.

The tasks are regression from a store, projection coefficients, MMD² of two sets of points, and
distances of bags.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from bagbasis.core.errors import ConfigError

from ...pictures import BLUE, GREY, ORANGE
from ..kit.experiment import Experiment, Measure, Result, Scale, Table
from ..kit.frame import select
from ..kit.notes import remarks
from ..kit.plots import AT_ENDS, BLACK, GREEN, PURPLE, RED, Curve, lines, plain_log
from ..kit.verdicts import listing
from .peers_measures import measure_mmd, measure_projection, measure_transport
from .peers_regression import BASES, ITERATIONS, KERNELS, N_POINTS, measure_regression

EXTRA = {
    "finufft": "finufft",
    "hyppo": "hyppo",
    "POT": "pot",
}  # package by name, of the extra `peers`
MEASURED = ["ours", "peer", "peer / ours", "range"]
FLOAT_BYTES = 8  # of a number in double
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
DISTANCES = "MMD² of two sets of points, and distances of bags in regression"
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
            f"{listing(sorted({n for n, *_ in s.projections}))} points per bag in one to three "
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
        with self.picture("distances.png", DISTANCES, 2, 11.5) as (_, [left, right]):
            _draw_mmd(left, select(results, measure="mmd"))
            _draw_transport(right, transport)

    def _draw_regression(self, found: Sequence[Result]) -> None:
        """Draw how many times as long peers take, and the errors, over N."""
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
        """Draw finufft's time over ours, over functions, a panel per number of dimensions."""
        dims = sorted({r.params["d"] for r in found})
        sizes = sorted({r.params["n_points"] for r in found})
        title = "Projection coefficients of bags of n points: above the line our kernel is quicker"
        with self.picture(
            "projection.png", title, len(dims), 4.2 * len(dims), 4.6, sharey=True
        ) as (_, axes):
            for axis, d in zip(axes, dims, strict=True):
                curves = []
                for r in select(found, d=d):
                    n, color = r.params["n_points"], SIZES[sizes.index(r.params["n_points"])]
                    s, ratio = ([v[key] for v in r.values["sizes"]] for key in ("s", "ratio"))
                    curves.append(Curve(s, ratio, f"n = {n:,}", color))
                axis.axhline(1, color=BLACK, linewidth=1)
                y = "finufft's time / ours, one thread" if d == dims[0] else ""
                lines(axis, curves, "functions s", y, log="xy", legend=AT_ENDS,
                      title=f"d = {d} dimension{'s' * (d > 1)}")  # fmt: skip


def peer_versions() -> dict[str, str]:
    """Return the versions of the packages that only this experiment needs.

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
    """Return the regressions, in the order of their training bags."""
    return sorted(select(results, measure="regression"), key=lambda r: r.params["n_train"])


def cells(values: Mapping[str, Any], unit: float = 1.0) -> list[Any]:
    """Return both times, their ratio and its range; one round has no range."""
    low, high = values["low"], values["high"]
    span = f"{low:.3g} to {high:.3g}" if high > low else "one pair"
    return [values["ours"] * unit, values["peer"] * unit, values["ratio"], span]


def columns(unit: str, quality: str, first: str = "what") -> list[str]:
    """Name a table's columns: what and the peer, the times, and how well both did."""
    ours, peer, *ratio = MEASURED
    return [first, "peer", f"{ours} ({unit})", f"{peer} ({unit})", *ratio,
            f"{quality}, ours", f"{quality}, peer"]  # fmt: skip


def regression_table(found: Sequence[Result]) -> Table:
    """Make the table of whole fits from the store."""
    rows = []
    for r in found:
        p, v = r.params, r.values
        what = f"fit, N = {p['n_train']:,}"
        rows.append([what, p["peer"], *cells(v), v["quality"], v["peer_quality"]])
    single = any("precision" in r.params for r in found)
    slower = [(row[1], f"{row[1]} at {row[0][5:]}") for row in rows if row[4] < 1]
    worse = [f"{row[1]} at {row[0][5:]}" for row in rows if row[6] > HARDLY * row[7]]
    notes = remarks(
        "peers", "regression", D=found[0].params["D"], constant=found[0].values["constant"],
        how="in float32, many bags at once" if single else "bag by bag, in double",
        medians=MEDIANS, iterations=ITERATIONS, slower=listing([where for _, where in slower]),
        falkon=any(peer == "FALKON" for peer, _ in slower), worse=listing(worse),
        others=any(peer != "FALKON" for peer, _ in slower), nothing=not (slower or worse),
        gap_error=max(r.values["gap_error"] for r in found),
    )  # fmt: skip
    return Table("Regression from the same store", columns("s", "test RMSE"), rows, notes)


def _projection_table(found: Sequence[Result]) -> Table:
    """Make the table of coefficients over points per bag, dimensions and functions."""
    rows, where = [], []
    for r in found:
        size = f"n = {r.params['n_points']:,}, d = {r.params['d']}"
        at, largest = quicker_from(r), r.values["sizes"][-1]["s"]
        text = f"none up to {largest:,}" if at is None else f"about {float(f'{at:.2g}'):,.0f}"
        where.append(f"{size}: {text}")
        for v in r.values["sizes"]:
            what, peer = f"{size}, s = {v['s']:,}", f"finufft, {v['setting']}"
            rows.append([what, peer, *cells(v, 1e6), v["quality"], v["peer_quality"]])
    notes = remarks("peers", "projection", medians=MEDIANS, where="; ".join(where))
    return Table("Projection coefficients of a bag", columns("µs", "largest error"), rows, notes)


def quicker_from(result: Result) -> float | None:
    """Return the s from which finufft is quicker, between two sizes; None: at none here."""
    s, ratio = np.array([(v["s"], v["ratio"]) for v in result.values["sizes"]]).T
    if ratio[-1] >= 1:
        return None
    last = int(np.flatnonzero(ratio >= 1)[-1]) if (ratio >= 1).any() else -1
    if last < 0:
        return float(s[0])
    x, y = np.log(s[last : last + 2]), np.log(ratio[last : last + 2])
    return float(np.exp(x[0] - y[0] * (x[1] - x[0]) / (y[1] - y[0])))


def _mmd_table(found: Sequence[Result]) -> Table:
    """Make the table of MMD² of two sets."""
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
    notes = remarks("peers", "mmd", medians=MEDIANS, matrix=matrix, n=n, lost=lost, worse=worse)
    return Table("MMD² of two sets of n points", columns("ms", "relative difference"), rows, notes)


def _transport_table(found: Result) -> Table:
    """Make the table of distances of bags in regression."""
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
    both = [(ours, peer, v) for ours, of in found.values["pairs"].items() for peer, v in of.items()]
    slower = [f"{ours} to {peer}" for ours, peer, v in both if v["ratio"] < 1]
    rmse = {name: m["rmse"] for name, m in methods.items()}
    worse = [f"{ours} to {peer}" for ours, peer, _ in both if rmse[ours] > SURELY * rmse[peer]]
    notes = remarks(
        "peers", "transport", p=p, error=max(m["se"] for m in methods.values()), pairs=pairs,
        constant=found.values["constant"], best=min(rmse, key=rmse.__getitem__),
        slower=listing(slower), worse=listing(worse), nothing=not (slower or worse),
    )  # fmt: skip
    title = f"{p['n_train']:,} training bags of {p['n_points']:,} points"
    return Table(f"Regression on distances of bags, {title}", columns("s", "test RMSE", "ours"),
                 rows, notes)  # fmt: skip


def _draw_mmd(axis: Axes, found: Sequence[Result]) -> None:
    """Draw the time of MMD² over the number of points."""
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
    """Draw error over time of distances of bags."""
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
