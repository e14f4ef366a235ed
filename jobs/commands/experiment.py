"""``bags experiment``: one of the papers' experiments again, with its table and its pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from ..cluster import running_on
from ..configs.config import ClusterConfig
from ..terminal import Terminal

try:
    from ..experiments.registered import EXPERIMENTS, experiment_type
except ModuleNotFoundError:  # an installed wheel
    EXPERIMENTS = {}

OUT_DIR = "experiment-output"
NO_CHECKOUT = (
    "the experiments are in the repository, not in the installed package: clone it, run "
    "'make venv' there, and then '.venv/bin/bags experiment'"
)


class Config(ClusterConfig):
    """Keys of ``configs/experiment.yaml``."""

    name: str = Field(
        examples=["rectify-2lpt"],
        description=f"which: {', '.join(EXPERIMENTS) or NO_CHECKOUT}",
    )
    scale: Literal["small", "paper"] = Field(
        default="small",
        description="small: about a minute; paper: the published size, or the largest that fits "
        "in 24 GiB and about two hours on two cores",
    )
    seed: int = Field(default=0, ge=0, lt=2**16, description="random seed")
    out_dir: str | None = Field(
        default=None,
        description="directory for table, pictures, result.json, and what an interrupted run goes "
        f"on from; null: {OUT_DIR}/NAME-SCALE",
    )


def run(config: Config, console: Terminal) -> dict[str, Any]:
    """Measure what is not measured yet; returns the report."""
    from bagbasis.core.errors import ConfigError, closest

    if not EXPERIMENTS:
        raise ConfigError(NO_CHECKOUT)
    from ..experiments.kit.runner import run_experiment

    if config.name not in EXPERIMENTS:
        raise ConfigError(
            f"key 'name' is {config.name!r}; expected one of "
            f"{', '.join(EXPERIMENTS)}{closest(config.name, EXPERIMENTS)}"
        )
    out_dir = Path(config.out_dir or f"{OUT_DIR}/{config.name}-{config.scale}")
    experiment = experiment_type(config.name)(config.scale, config.seed, out_dir)
    with running_on(config.cluster):
        return run_experiment(experiment, console)
