"""``bags retrain``: one round of a line of models that follows a growing store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from .cluster import running_on
from .config import ClusterConfig, Section
from .model_config import ModelSection
from .terminal import Callback, Terminal

CHAMPION_KEPT = 3
EXIT_CODES = {
    0: "a model was promoted, or there was nothing new",
    1: "something went wrong; the next call goes on from what was done",
    2: "a wrong config, or one that was changed since the last round",
    CHAMPION_KEPT: "a new model was made, and a gate kept the champion",
    4: "another retraining with this state is running",
}


class WindowSection(Section):
    """The newest bags, of which the models are made; both null: all bags."""

    bags: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="so many bags; null: not by their number"
    )
    days: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="bags that a round of so many days found; null: not by their age"
    )

    @model_validator(mode="after")
    def _one_of_them(self) -> WindowSection:
        if self.bags is not None and self.days is not None:
            raise ValueError("give bags or days, not both")
        return self


class DriftSection(Section):
    """The test of the new bags against the window before."""

    alpha: float = Field(default=0.01, gt=0, lt=1, description="p-values up to it are a drift")
    n_bags: int = Field(default=1000, ge=2, description="sampled of the new bags and of the others")
    n_permutations: int = Field(default=999, ge=1, description="of the test")
    action: Literal["report", "refuse"] = Field(
        default="report", description="what a drift does: stand in the report, or keep the champion"
    )


class Config(ClusterConfig):
    """See ``configs/retrain.yaml``."""

    data_url: str = Field(description="the store of labelled bags, which others append to")
    registry_url: str = Field(description="the registry of models")
    state_url: str | None = Field(
        default=None,
        description="folder of sums and rounds; null: beside the registry, REGISTRY_URL.retrain",
    )
    out_dir: str = Field(description="directory, or URL, that gets a folder of reports a round")
    target: str | list[str] | None = Field(
        default=None, description="target, or list of them; null: the only one"
    )
    holdout: float = Field(
        default=0.1, gt=0, lt=1, description="fraction of the bags kept out; the newest judge"
    )
    window: WindowSection = Field(default=WindowSection(), description="bags of the models")
    evaluate_bags: int = Field(default=2000, ge=1, description="newest held-out bags that judge")
    tolerance: float = Field(
        default=0.02, ge=0, description="error allowed over the champion's, relative to it"
    )
    min_new_bags: int = Field(
        default=1, ge=1, description="with fewer new labelled bags nothing is done"
    )
    drift: DriftSection = Field(default=DriftSection(), description="test of the new bags")
    recompute_every: int = Field(
        default=30, ge=1, description="rounds after which all bags are counted again, as a check"
    )
    model: ModelSection = Field(default=ModelSection(), description="what is fitted")
    checkpoint_url: str | None = Field(
        default=None,
        description="folder for finished sums, which the same round goes on from; null: none",
    )
    checkpoint_seconds: float = Field(
        default=300.0, gt=0, description="of work on a core between two checkpoints"
    )


def run(config: Config, console: Terminal) -> dict[str, Any]:
    """Do a round; returns its report."""
    from bagbasis.errors import ConfigError, ParameterError
    from bagbasis.retraining import retrain

    from .retrain_report import lines_of, write_round

    @contextmanager
    def computing(store: Any) -> Iterator[Callback]:
        with running_on(config.cluster, store.url), console.progress("retrain") as progress:
            yield progress

    def publish(report: dict[str, Any], rounds: Any) -> None:
        write_round(config.out_dir, report, rounds)

    try:
        outcome = retrain(_spec(config), publish, computing)
    except ParameterError as error:
        raise ConfigError(f"section 'model': {error}") from error
    for line in lines_of(outcome.report):
        console.line(line)
    return outcome.report


def exit_code(report: dict[str, Any]) -> int:
    """Of a call that ended well."""
    return CHAMPION_KEPT if report["decision"] == "kept" else 0


def _spec(config: Config) -> Any:
    from bagbasis.retraining import DriftGate, Retraining, Window

    config.model.check_target(config.target)
    kept = ("state_url", "target", "holdout", "evaluate_bags", "tolerance", "min_new_bags")
    more = ("recompute_every", "checkpoint_url", "checkpoint_seconds")
    return Retraining(
        data_url=config.data_url,
        registry_url=config.registry_url,
        estimator=config.model.estimator(),
        window=Window(config.window.bags, config.window.days),
        drift=DriftGate(**config.drift.model_dump()),
        settings=config.model_dump(mode="json", include={"model", "target", "holdout"}),
        **{name: getattr(config, name) for name in (*kept, *more)},
    )
