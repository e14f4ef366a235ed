"""`OverSizes`: learns a parameter of a distribution from a sample, for several sample sizes.

It is the common part of 004, §3.5.2 and §3.5.3: the 2BE and the Kernel-Kernel estimator learn from
labelled bags what a classical estimator computes from one bag alone.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bagbasis.datasets.base import RandomDataset

from ...pictures import BLUE, GREY, ORANGE
from ...terminal import Callback
from .experiment import Experiment, Measure, Params, Result, Scale, Table
from .kernel_kernel import (
    N_ROUNDS,
    Candidates,
    fit_double_basis,
    fit_kernel_kernel,
    measure_times,
    smooth,
)
from .learning import draw_bags, mean_squares
from .notes import remarks
from .plots import AT_ENDS, GREEN, Curve, lines
from .timing import DISTURBED
from .verdicts import listing

PAPER_TRAIN, PAPER_TEST = 28_000, 2_000
WAYS = {"batch": "batches", "single": "one bag per call"}
LEARNED, CONSTANT = ("2BE", "KK"), "constant"
OTHERS = ((GREEN, "^"), ("#8e6bbf", "v"), ("#b0892f", "D"))  # classical methods in pictures


class Sizes(Scale):
    """A scale of such an experiment.

    Attributes
    ----------
    n_points : list of int
        n, points per bag.
    n_train, n_test : int
        Bags.
    n_classical : int
        Number of test bags, from the first, that the classical estimator is given.
    candidates : Candidates
    n_queries : int
        Bags predicted at once where batches are timed.
    """

    n_points: list[int]
    n_train: int
    n_test: int
    n_classical: int
    candidates: Candidates
    n_queries: int = 256


@dataclass(frozen=True)
class AtSize:
    """What was measured at one number of points.

    Attributes
    ----------
    n_points : int
    methods : mapping
        mse and se of each method, and seconds per query of the classical ones.
    first : mapping
        mse and se of the 2BE on the bags that the classical ones got.
    choices : mapping
        What the 2BE and KK chose.
    seconds : mapping
        Seconds of the 2BE and KK, see `kernel_kernel.measure_times`.
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
        """The methods whose time was measured; the others take hardly longer than one of these."""
        return [*LEARNED, *(name for name, v in self.methods.items() if "seconds" in v)]

    def mse(self, method: str) -> float:
        return float(self.methods[method]["mse"])

    def time(self, method: str, way: str) -> float:
        """Return seconds per query of a way to predict."""
        if method in LEARNED:
            return float(self.seconds[f"{method.lower()}_{way}"])
        return float(self.methods[method]["seconds"][way])


def at_sizes(results: Sequence[Result]) -> list[AtSize]:
    """Join the two results of each number of points, in ascending order."""
    found: dict[int, dict[str, Any]] = {}
    for r in results:
        found.setdefault(r.params["n_points"], {})[r.params["measure"]] = r.values
    return [
        AtSize(
            n,
            {**both["learned"]["methods"], **both["classical"]["methods"]},
            both["learned"]["2be_first"],
            both["learned"]["choices"],
            both["learned"]["seconds"],
        )
        for n, both in sorted(found.items())
    ]


class OverSizes(Experiment[Sizes]):
    """Two points per n: what learns, and the classical estimators.

    Attributes
    ----------
    target, unit : str
        What is predicted, in words, and the unit of its squared error.
    classical : str
        The classical estimators in the labels of points.
    picture_name, subject : str
        The file of the picture, and what is predicted in its title.
    """

    kind = Sizes
    target: ClassVar[str]
    unit: ClassVar[str]
    classical: ClassVar[str]
    picture_name: ClassVar[str]
    subject: ClassVar[str]

    @property
    def size(self) -> str:
        s = self.settings
        few = f", of which the classical estimators get {s.n_classical:,}"
        return (
            f"{s.n_train:,} training bags and {s.n_test:,} test bags"
            f"{few if s.n_classical < s.n_test else ''}, {listing(s.n_points)} points per bag; the "
            f"paper has {PAPER_TRAIN:,}, {PAPER_TEST:,}, and 10 to 1,000 points."
        )

    @abstractmethod
    def dataset(self, n_points: int, seed: int) -> RandomDataset:
        """Return the dataset of bags of so many points."""

    @abstractmethod
    def classical_params(self) -> dict[str, Any]:
        """Return what decides the result of the classical estimators, beside the data."""

    @abstractmethod
    def measure_classical(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return ``methods``: mse and se of each on the first test bags.

        Those that are timed have ``seconds`` per query, "batch" and "single".
        """

    @abstractmethod
    def remarks(self, sizes: Sequence[AtSize]) -> list[str]:
        """Return what stands below the table of errors."""

    def test_set(self, n_points: int) -> RandomDataset:
        """The dataset of test bags."""
        return self.dataset(n_points, 2 * self.seed + 1)

    def measures(self) -> list[Measure]:
        s, over = self.settings, {"n_points": self.settings.n_points}
        data = {"n_test": s.n_test, "n_classical": s.n_classical}
        learned = {
            "n_train": s.n_train,
            "candidates": s.candidates.model_dump(),
            "n_queries": s.n_queries,
            "n_rounds": N_ROUNDS,
        }
        classical, label = self.classical_params(), f"{self.classical}, n {{n_points}}"
        return [
            Measure("learned", self._learned, "2BE and KK, n {n_points}", over,
                    {**data, **learned}),
            Measure("classical", self.measure_classical, label, over, {**data, **classical}),
        ]  # fmt: skip

    def _learned(self, p: Params, progress: Callback) -> dict[str, Any]:
        s, n_few = self.settings, self.settings.candidates.n_choose
        train = draw_bags(self.dataset(p["n_points"], 2 * self.seed), s.n_train)
        bags, y = draw_bags(self.test_set(p["n_points"]), s.n_test)
        few = train[0][:n_few], train[1][:n_few]
        double = fit_double_basis(train, few, s.candidates, self.seed)
        kernel = fit_kernel_kernel(train, few, s.candidates)
        predicted, first = double.model.predict(bags), slice(None, s.n_classical)
        constant = np.broadcast_to(train[1].mean(axis=0), y.shape)
        return {
            "methods": {
                "2BE": mean_squares(predicted, y),
                "KK": mean_squares(smooth(kernel.model, bags), y),
                "constant": mean_squares(constant, y),
            },
            "2be_first": mean_squares(predicted[first], y[first]),
            "choices": {"2BE": double.choice, "KK": kernel.choice},
            "seconds": measure_times(double.model, kernel.model, train, bags, s.n_queries),
        }

    def tables(self, results: Sequence[Result]) -> list[Table]:
        sizes = at_sizes(results)
        n_queries = next(r.params["n_queries"] for r in results if "n_queries" in r.params)
        notes = [*self.remarks(sizes), *_remarks(sizes)]
        fewer = self.settings.n_classical < self.settings.n_test
        return [
            _error_table(sizes, self.target, fewer, notes),
            *(_time_table(sizes, way, n_queries) for way in WAYS),
        ]

    def draw(self, results: Sequence[Result]) -> None:
        """Draw errors and the time of a bag's prediction over the number of points."""
        sizes = at_sizes(results)
        n = [size.n_points for size in sizes]
        styles = {"2BE": (BLUE, "o"), "KK": (ORANGE, "s")}
        styles |= dict(zip(sizes[0].classical, OTHERS, strict=False))
        errors, seconds = [], []
        for method, (color, marker) in styles.items():
            mse = [size.mse(method) for size in sizes]
            errors.append(Curve(n, mse, method, color, f"{marker}-"))
            if method in sizes[0].timed:
                each = [size.time(method, "single") for size in sizes]
                seconds.append(Curve(n, each, method, color, f"{marker}-"))
        constant = [size.mse(CONSTANT) for size in sizes]
        errors.append(Curve(n, constant, "best constant", GREY, ":"))
        title = f"Predicting {self.subject} from a bag of points"
        with self.picture(self.picture_name, title, 2, 13.5) as (_, [left, right]):
            look: dict[str, Any] = {"log": "xy", "ticks": n, "legend": AT_ENDS}
            lines(left, errors, "points in a bag, n", f"mean squared error ({self.unit})", **look)
            y = f"seconds per query, {WAYS['single']}"
            lines(right, seconds, "points in a bag, n", y, **look)


def _error_table(sizes: Sequence[AtSize], target: str, fewer: bool, notes: Sequence[str]) -> Table:
    """Make the table of mean squared errors over n."""
    classical = sizes[0].classical
    same = ["2BE, same bags"] if fewer and classical else []
    columns = ["points per bag", "2BE", "±", "KK", *same, *classical, "constant", "lowest"]
    rows: list[list[Any]] = []
    for size in sizes:
        compared = [size.first["mse"]] if same else []
        best = min((m for m in size.methods if m != CONSTANT), key=size.mse)
        rows.append([
            size.n_points, size.mse("2BE"), size.methods["2BE"]["se"], size.mse("KK"), *compared,
            *map(size.mse, classical), size.mse(CONSTANT), best,
        ])  # fmt: skip
    return Table(f"Mean squared error of {target}", columns, rows, notes)


def _remarks(sizes: Sequence[AtSize]) -> list[str]:
    chosen = "; ".join(
        f"n = {s.n_points:,}: {s.choices['2BE']['n_per_dim']} functions per dimension, σ "
        f"{s.choices['2BE']['multiplier']:g} medians, λ/N {s.choices['2BE']['alpha_a_bag']:.0e}, "
        f"KDE bandwidth {s.choices['KK']['density_bandwidth']:g} of the box "
        f"({s.choices['KK']['n_coefficients']} coefficients)"
        for s in sizes
    )
    return remarks("over_sizes", "errors", chosen=chosen)


def _time_table(sizes: Sequence[AtSize], way: str, n_queries: int) -> Table:
    """Make the table of milliseconds per query over n, of a way to predict."""
    methods = sizes[0].timed
    rows: list[list[Any]] = []
    for size in sizes:
        seconds = {method: size.time(method, way) for method in methods}
        fastest = min(seconds, key=seconds.__getitem__)
        rows.append([size.n_points, *(1e3 * each for each in seconds.values()), fastest])
    title, columns = f"Milliseconds per query, {WAYS[way]}", ["points per bag", *methods, "fastest"]
    spans = {"of_2be": _span(sizes, "2BE"), "of_kk": _span(sizes, "KK")}
    notes = remarks("over_sizes", way, n_queries=n_queries, **spans)
    return Table(title, columns, rows, [*notes, DISTURBED])


def _span(sizes: Sequence[AtSize], method: str) -> str:
    seconds = [size.choices[method]["seconds"] for size in sizes]
    return f"{min(seconds):.0f} to {max(seconds):.0f} s"
