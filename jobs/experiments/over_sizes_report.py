"""Tables and the picture of experiments over the number of points in a bag."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from ..pictures.evaluation import BLUE, GREY, ORANGE, new_figure, save_figure
from .experiment import Result, Table
from .timing import DISTURBED

WAYS = {"batch": "batches", "single": "one bag a call"}
LEARNED, CONSTANT = ("2BE", "KK"), "constant"


@dataclass(frozen=True)
class AtSize:
    """What was measured at one number of points.

    Attributes
    ----------
    n_points : int
    methods : mapping
        mse and se of each method, and seconds a query of the classical ones.
    first : mapping
        mse and se of the 2BE on the bags that the classical ones got.
    choices : mapping
        What the 2BE and KK chose.
    seconds : mapping
        Of the 2BE and KK, see `learners.times`.
    """

    n_points: int
    methods: Mapping[str, Mapping[str, Any]]
    first: Mapping[str, float]
    choices: Mapping[str, Mapping[str, Any]]
    seconds: Mapping[str, float]

    @property
    def classical(self) -> list[str]:
        """Methods that do not learn from labelled bags."""
        return [name for name in self.methods if name not in (*LEARNED, CONSTANT)]

    @property
    def timed(self) -> list[str]:
        """Methods whose time was measured; those without differ from one by next to nothing."""
        return [*LEARNED, *(name for name, v in self.methods.items() if "seconds" in v)]

    def mse(self, method: str) -> float:
        return float(self.methods[method]["mse"])

    def time(self, method: str, way: str) -> float:
        """Seconds a query of a way to predict; a classical method has one for both or for each."""
        if method in LEARNED:
            return float(self.seconds[f"{method.lower()}_{way}"])
        return float(self.methods[method]["seconds"][way])


def at_sizes(results: Sequence[Result]) -> list[AtSize]:
    """In the order of the number of points."""
    found: dict[int, dict[str, Result]] = {}
    for result in results:
        params = result.point.params
        found.setdefault(params["n_points"], {})[params["measure"]] = result
    sizes = []
    for n, pair in sorted(found.items()):
        learned, classical = pair["learned"].values, pair["classical"].values
        methods = {**learned["methods"], **classical["methods"]}
        first, choices = learned["2be_first"], learned["choices"]
        sizes.append(AtSize(n, methods, first, choices, learned["seconds"]))
    return sizes


def error_table(results: Sequence[Result], target: str, remarks: Sequence[str]) -> Table:
    """Mean squared errors over n."""
    sizes = at_sizes(results)
    classical = sizes[0].classical
    params = results[0].point.params
    fewer = params["n_classical"] < params["n_test"]
    same = ["2BE, same bags"] if fewer and classical else []
    columns = ["points a bag", "2BE", "±", "KK", *same, *classical, "constant", "lowest"]
    rows: list[list[Any]] = []
    for size in sizes:
        compared = [size.first["mse"]] if same else []
        best = min((m for m in size.methods if m != CONSTANT), key=size.mse)
        rows.append([
            f"{size.n_points:,}", size.mse("2BE"), size.methods["2BE"]["se"], size.mse("KK"),
            *compared, *map(size.mse, classical), size.mse(CONSTANT), best,
        ])  # fmt: skip
    return Table(f"Mean squared error of {target}", columns, rows, [*remarks, *_remarks(sizes)])


def _remarks(sizes: Sequence[AtSize]) -> list[str]:
    chosen = "; ".join(
        f"n = {s.n_points:,}: {s.choices['2BE']['n_per_dim']} functions a dimension, σ "
        f"{s.choices['2BE']['multiplier']:g} medians, λ/N {s.choices['2BE']['alpha_a_bag']:.0e}, "
        f"KDE bandwidth {s.choices['KK']['density_bandwidth']:g} of the box "
        f"({s.choices['KK']['n_coefficients']} coefficients)"
        for s in sizes
    )
    return [
        "± is the standard error over test bags of the 2BE's error. The paper gives its errors in "
        "a figure and prints none of them; its claim is the order.",
        f"Chosen by training bags alone: {chosen}.",
    ]


def time_tables(results: Sequence[Result]) -> list[Table]:
    """Milliseconds a query over n, a table a way to predict."""
    sizes = at_sizes(results)
    methods, n_queries = sizes[0].timed, results[0].point.params["n_queries"]
    remarks = {
        "batch": [
            "From points in memory to the prediction, without training, the least of calls in "
            f"turn; a batch has {n_queries} bags and goes through BLAS.",
            f"Choosing and fitting took the 2BE {_span(sizes, '2BE')} and KK {_span(sizes, 'KK')}.",
            DISTURBED,
        ],
        "single": [
            "KK is one product of all training rows with the query, one exponential of all and one "
            "sum, as lean as numpy has it. Of the 2BE's time most is the call and not the numbers.",
            DISTURBED,
        ],
    }
    return [
        Table(
            f"Milliseconds a query, {text}",
            ["points a bag", *methods, "fastest"],
            [
                [f"{size.n_points:,}", *(1e3 * size.time(method, way) for method in methods),
                 min(methods, key=lambda method: size.time(method, way))]
                for size in sizes
            ],
            remarks[way],
        )
        for way, text in WAYS.items()
    ]  # fmt: skip


def _span(sizes: Sequence[AtSize], method: str) -> str:
    seconds = [size.choices[method]["seconds"] for size in sizes]
    return f"{min(seconds):.0f} to {max(seconds):.0f} s"


COLORS = {"2BE": BLUE, "KK": ORANGE}
OTHERS = (("#5a9e6f", "^"), ("#8e6bbf", "v"), ("#b0892f", "D"))


def draw_over_sizes(path: Path, results: Sequence[Result], target: str, unit: str) -> Path:
    """Errors and times over n, a line a method.

    Parameters
    ----------
    target : str
        What is predicted, for the title.
    unit : str
        Of the squared error, for the axis.
    """
    sizes = at_sizes(results)
    figure = new_figure(12.5, 4.6)
    left, right = figure.subplots(1, 2)
    styles = _styles(sizes)
    n_points = [size.n_points for size in sizes]
    for method, (color, marker) in styles.items():
        errors = [size.mse(method) for size in sizes]
        spread = [size.methods[method]["se"] for size in sizes]
        left.errorbar(n_points, errors, yerr=spread, color=color, marker=marker, label=method)
        for way, text in WAYS.items() if method in sizes[0].timed else ():
            line = {"batch": "--", "single": "-"}[way]
            seconds = [size.time(method, way) for size in sizes]
            if method in LEARNED or way == "single" or _differs(sizes, method):
                right.plot(n_points, seconds, line, color=color, marker=marker,
                           label=f"{method}, {text}")  # fmt: skip
    left.plot(n_points, [size.mse(CONSTANT) for size in sizes], ":", color=GREY,
              label="best constant")  # fmt: skip
    _finish(left, f"mean squared error ({unit})", n_points)
    _finish(right, "seconds a query", n_points)
    right.legend(loc="upper left", bbox_to_anchor=(1.01, 1), fontsize=8, handlelength=3.5)
    figure.suptitle(f"Predicting {target} from a bag of points")
    return save_figure(figure, path)


def _styles(sizes: Sequence[AtSize]) -> dict[str, tuple[str, str]]:
    styles = {"2BE": (BLUE, "o"), "KK": (ORANGE, "s")}
    return styles | dict(zip(sizes[0].classical, OTHERS, strict=False))


def _differs(sizes: Sequence[AtSize], method: str) -> bool:
    """Whether batches of a classical method take other times than single bags."""
    return any(size.time(method, "batch") != size.time(method, "single") for size in sizes)


def _finish(axis: Axes, label: str, n_points: Sequence[int]) -> None:
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks(list(n_points), labels=[f"{n:,}" for n in n_points])
    axis.set_xticks([], minor=True)
    axis.set_xlabel("points in a bag, n")
    axis.set_ylabel(label)
    axis.grid(alpha=0.25)
    axis.legend(loc="best", fontsize=8, handlelength=3.5)
