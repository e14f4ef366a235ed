"""`Peers`: tasks that other packages can do too, timed in turn with ours, and their accuracy."""

from __future__ import annotations

from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bagbasis.core.errors import ConfigError

from ..kit import Curves, Experiment, GroupedBars, Measure
from .peers_measures import measure_mmd, measure_projection, measure_transport
from .peers_regression import BASIS_PEERS, KERNELS, measure_regression

EXTRA = {"finufft": "finufft", "hyppo": "hyppo", "POT": "pot"}  # packages of the extra `peers`


class Peers(Experiment):
    name = "peers"
    title = "Compared with other packages that do the same work"
    pictures = (
        GroupedBars(
            "regression.png", "ratio", measure="regression", x="peer", by="n_train", log="y"
        ),
        GroupedBars("projection.png", "sizes.ratio", measure="projection", x="n_points", log="y"),
        Curves("distances.png", "*.ratio", measure="mmd", x="n_points", log="xy"),
    )
    alone = True

    def __init__(self, scale: str, seed: int, out_dir: Path) -> None:
        super().__init__(scale, seed, out_dir)
        self.versions = peer_versions()

    def measures(self) -> list[Measure]:
        s, seed = self.settings, self.seed
        fits = {"D": s.n_features, "n_test": s.n_test}
        label = "regression N {n_train}, {peer}"
        kernels = [(n, rounds, peer) for n, rounds in s.n_train.items() for peer in KERNELS
                   if peer != "KernelRidge" or n <= s.largest_kernel]  # fmt: skip
        projections = [(*sizes, max(1, s.points_of_projection // sizes[0]))
                       for sizes in s.projections]  # fmt: skip
        regression = partial(measure_regression, seed=seed, out_dir=self.out_dir)
        return [
            Measure("regression", regression, label,
                    {"n_train n_rounds": list(s.n_train.items()), "peer": list(BASIS_PEERS)},
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


def peer_versions() -> dict[str, str]:
    """Return the versions of the packages that only this experiment needs; ConfigError without."""
    try:
        return {name: version(package) for name, package in EXTRA.items()}
    except PackageNotFoundError as error:
        how = f"peers needs pip install 'bagbasis[peers]' (there is no {error.name})"
        raise ConfigError(how) from error
