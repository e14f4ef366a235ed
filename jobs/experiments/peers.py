"""`Peers`: pieces of work that other packages do too, timed in turn with ours, and how well.

Measures of points: "regression" from a store, "projection" coefficients, "mmd" of two sets of
points, "transport" distances of bags.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bagbasis.errors import ConfigError
from bagbasis.execution import current_client

from ..terminal import Callback
from .experiment import Experiment, Point, Result, Table
from .peers_mmd import measure_mmd
from .peers_pictures import draw_projection, draw_regression, draw_two_sets
from .peers_projection import measure_projection
from .peers_regression import ITERATIONS, N_POINTS, PEERS, measure_regression
from .peers_report import mmd_table, projection_table, regression_table, transport_table
from .peers_transport import measure_transport


@dataclass(frozen=True)
class Settings:
    """A scale.

    Attributes
    ----------
    n_train : mapping from N to the rounds of its fits
        Of regression.
    largest_kernel : int
        N up to which there is a full kernel matrix.
    n_features, n_test : int
        D (centres, for kernels of centres), and test bags of regression.
    points_of_projection : int
        In all bags of a projection, of which there is one at least.
    projections : mapping from (n, d) to functions a dimension
        Points a bag and dimensions.
    sizes, n_frequencies : tuple of int, int
        Points in each of two sets, and L, of MMD².
    transport : mapping
        ``n_train``, ``n_test``, ``n_points`` and ``D`` of bags with optimal-transport distances.
    n_rounds : int
        Of all but regression; a third of them for transport.
    """

    n_train: Mapping[int, int]
    largest_kernel: int
    n_features: int
    n_test: int
    points_of_projection: int
    projections: Mapping[tuple[int, int], tuple[int, ...]]
    sizes: tuple[int, ...]
    n_frequencies: int
    transport: Mapping[str, int]
    n_rounds: int


SETTINGS = {
    "small": Settings(
        {1000: 1}, 1000, 256, 1000, 8000,
        {(200, 1): (10, 100), (200, 2): (4, 16), (200, 3): (4, 8),
         (20_000, 1): (16, 256), (20_000, 2): (8, 32), (20_000, 3): (4, 8)},
        (150, 400), 512, {"n_train": 40, "n_test": 40, "n_points": 40, "D": 200}, 3,
    ),
    "paper": Settings(
        {10_000: 3, 50_000: 3, 100_000: 2}, 10_000, 2048, 2000, 100_000,
        {(200, 1): (10, 100, 1000), (200, 2): (4, 10, 32, 64), (200, 3): (4, 8, 16),
         (10_000, 1): (10, 100, 1000, 4000), (10_000, 2): (4, 10, 32, 64, 128),
         (10_000, 3): (4, 8, 16, 24),
         (1_000_000, 1): (10, 32, 100, 320, 1000), (1_000_000, 2): (4, 10, 32, 64, 128),
         (1_000_000, 3): (4, 8, 16, 24)},
        (250, 500, 1000, 2000, 4000), 512,
        {"n_train": 300, "n_test": 150, "n_points": 100, "D": 1000}, 5,
    ),
}  # fmt: skip
EXTRA = {"finufft": "finufft", "hyppo": "hyppo", "POT": "pot"}


class Peers(Experiment[Settings]):
    """See the module.

    Raises
    ------
    ConfigError
        A package of the peers is not installed.
    """

    name = "peers"
    title = "Beside other packages that do the same work"
    source = "Not in the papers"
    scales = SETTINGS

    def __init__(self, scale: str, seed: int, out_dir: Path) -> None:
        super().__init__(scale, seed, out_dir)
        self.versions = peer_versions()

    @property
    def size(self) -> str:
        s, t = self.settings, self.settings.transport
        return (
            f"Regression: mixture counting (001, §5.2) with {_list(s.n_train)} bags of {N_POINTS} "
            f"points, D = {s.n_features:,}, {s.n_test:,} test bags. Projection: "
            f"{_list(sorted({n for n, _ in s.projections}))} points a bag in one to three "
            f"dimensions. MMD²: sets of {_list(s.sizes)} points. Optimal transport: "
            f"{t['n_train']:,} training and {t['n_test']:,} test bags of {t['n_points']:,} points. "
            f"With {', '.join(f'{name} {number}' for name, number in self.versions.items())}."
        )

    def points(self) -> list[Point]:
        s = self.settings
        fits = [
            Point(
                f"regression N {n}, {peer}",
                {"measure": "regression", "peer": peer, "n_train": n, "D": s.n_features,
                 "n_test": s.n_test, "n_rounds": n_rounds},
            )
            for n, n_rounds in s.n_train.items()
            for peer in PEERS
            if peer != "KernelRidge" or n <= s.largest_kernel
        ]  # fmt: skip
        projections = [
            self._beside(
                "finufft",
                f"projection n {n}, d {d}",
                {"measure": "projection", "n_points": n, "d": d, "n_per_dim": list(n_per_dim),
                 "n_bags": max(1, s.points_of_projection // n)},
            )
            for (n, d), n_per_dim in s.projections.items()
        ]  # fmt: skip
        two_sets = [
            self._beside(
                "hyppo", f"mmd n {n}", {"measure": "mmd", "n_points": n, "L": s.n_frequencies}
            )
            for n in s.sizes
        ]
        transport = {"measure": "transport", **s.transport, "n_rounds": max(1, s.n_rounds // 3)}
        return [*fits, *projections, *two_sets, self._beside("POT", "transport", transport)]

    def _beside(self, package: str, label: str, params: Mapping[str, Any]) -> Point:
        """A point that another version of the package measures again."""
        kept = {"n_rounds": self.settings.n_rounds, "version": self.versions[package]}
        return Point(label, {**kept, **params})

    def measure(self, point: Point, progress: Callback) -> dict[str, Any]:
        if current_client() is not None:
            raise ConfigError("peers compares single processes: leave out --cluster")
        p = point.params
        if p["measure"] == "regression":
            return measure_regression(p, self.seed, self.out_dir, progress)
        measures = {
            "projection": measure_projection, "mmd": measure_mmd, "transport": measure_transport,
        }  # fmt: skip
        return measures[p["measure"]](p, self.seed, progress)

    def tables(self, results: Sequence[Result]) -> list[Table]:
        return [
            regression_table(results, ITERATIONS),
            projection_table(results),
            mmd_table(results),
            transport_table(results),
        ]

    def draw(self, results: Sequence[Result]) -> list[Path]:
        return [
            draw_regression(self.out_dir / "regression.png", results),
            draw_projection(self.out_dir / "projection.png", results),
            draw_two_sets(self.out_dir / "distances.png", results),
        ]


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


def _list(numbers: Any) -> str:
    *first, last = (f"{n:,}" for n in numbers)
    return f"{', '.join(first)} and {last}" if first else last
