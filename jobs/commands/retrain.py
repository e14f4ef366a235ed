"""``bags retrain``: one round of a sequence of models that follows a growing store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from bagbasis.core import Real, constraints_of, parameters_of
from bagbasis.core.constraints import members_of
from bagbasis.operations import DriftGate, Retraining, Window

from ..cluster import running_on
from ..configs.config import ClusterConfig, Section, WeightColumn
from ..configs.model_sections import FRACTION, GROUPS, ModelSection
from ..configs.sections import EmbeddingOption, with_parameters
from ..configs.sequence_section import RidgeAlone
from ..configs.types import type_of
from ..terminal import Callback, Terminal

if TYPE_CHECKING:
    from bagbasis import BagStore
    from bagbasis.operations import Round

CHAMPION_KEPT = 3
# parameters that are not plain keys
SECTIONS = ("estimator", "window", "drift", "settings", "holdout")
OF_THE_JOB = ("model", "embedding", "out_dir", "metrics_url", "cluster")
EXIT_CODES = {
    0: "a model was promoted, or there was nothing new",
    1: "an error; the next call continues from finished work",
    2: "a wrong config, or one that was changed since the last round",
    CHAMPION_KEPT: "a new model was made and not promoted: a gate kept the champion, or somebody "
    "changed it meanwhile (the report says kept or overtaken)",
    4: "another retraining with this state is running",
}


@with_parameters(Window)
class WindowSection(Section):
    """The newest bags, of which the models are made; both null: all bags."""


@with_parameters(DriftGate)
class DriftSection(Section):
    """The test of the new bags against the window before."""


_FRACTION = replace(
    FRACTION,
    default=parameters_of(Retraining)["holdout"].default,
    accepts=next(
        member
        for member in members_of(constraints_of(Retraining)["holdout"])
        if isinstance(member, Real)
    ),
)


@with_parameters({"fraction": _FRACTION, "groups": GROUPS})
class GroupedHoldout(Section):
    """Whole groups of bags that enter no model."""

    SHORT: ClassVar[str] = "fraction"


@with_parameters(
    Retraining,
    leave_out=SECTIONS,
    examples={
        "data_url": "example-output/bags.zarr",
        "registry_url": "example-output/registry",
    },
)
class Config(ClusterConfig):
    """Keys of ``configs/retrain.yaml``."""

    RENAMED_OF: ClassVar[str] = "bags retrain"

    if TYPE_CHECKING:
        sample_weight: WeightColumn = None
        registry_url: str
    target: str | list[str] | None

    holdout: type_of(_FRACTION.accepts) | GroupedHoldout = Field(  # type: ignore[valid-type]
        default=_FRACTION.default,
        description="fraction of the bags that no model is fitted to; the newest of them judge "
        "models; or {fraction, groups}",
    )
    out_dir: str = Field(
        examples=["example-output/retrain"],
        description="directory or URL, in which each round makes a folder of reports",
    )
    metrics_url: str | None = Field(
        default=None,
        description="file for Prometheus (node_exporter's textfile collector); null: none",
    )
    window: WindowSection = Field(
        default=WindowSection(), description="which bags models are fitted to"
    )
    drift: DriftSection = Field(default=DriftSection(), description="drift tests of the new bags")
    model: RidgeAlone = Field(default_factory=ModelSection, description="what is fitted")
    embedding: EmbeddingOption = None


def run(config: Config, console: Terminal) -> dict[str, Any]:
    """Do a round; returns its report."""
    from bagbasis.core.errors import ConfigError, ParameterError
    from bagbasis.models.verdict import warning_lines
    from bagbasis.operations import retrain

    from ..files import make_folder_of
    from .retrain_report import (
        NAME,
        answer_of_round,
        next_of,
        round_lines,
        worries_of_round,
        write_metrics,
        write_round,
    )

    @contextmanager
    def computing(store: BagStore) -> Iterator[Callback]:
        with running_on(config.cluster, store.url), console.progress("retrain") as progress:
            try:
                yield progress
            except ParameterError as error:
                raise ConfigError(f"section 'model': {error}") from error

    pages: list[str] = []

    def publish(report: dict[str, Any], rounds: Sequence[Round]) -> None:
        pages.append(f"{write_round(config.out_dir, report, rounds)}/{NAME}.html")
        tell_prometheus(report)

    def tell_prometheus(report: dict[str, Any]) -> None:
        if config.metrics_url is not None:
            write_metrics(config.metrics_url, report, config.registry_url)

    spec = _spec(config)
    # before the round: it would promote a champion before an unwritable folder is noticed
    make_folder_of(f"{config.out_dir}/report")
    if config.metrics_url is not None:
        make_folder_of(config.metrics_url)
    outcome = retrain(spec, publish=publish, computing=computing)
    if outcome.decision == "nothing":
        tell_prometheus(outcome.report)
    for line in round_lines(outcome.report):
        console.line(line)
    if outcome.report.get("error") is not None:
        console.line(answer_of_round(outcome.report))
        for line in warning_lines(worries_of_round(outcome.report)):
            console.line(line)
    if pages:
        console.line(f"Next: {next_of(outcome.report)}")
        console.line(pages[-1])
    return outcome.report


def exit_code(report: dict[str, Any]) -> int:
    """Return the exit code of a call that ended well."""
    return CHAMPION_KEPT if report["decision"] in ("kept", "overtaken") else 0


def _spec(config: Config) -> Retraining:
    config.model.check_target(config.target)
    model = config.model.with_embedding(config.embedding)
    holdout = config.holdout if isinstance(config.holdout, float) else config.holdout.model_dump()
    # the key is left out without weights: sequences begun by older versions do not have it
    weight = {"sample_weight": config.sample_weight} if config.sample_weight else {}
    settings = {
        **config.model_dump(mode="json", include={"target"}),
        "model": model.model_dump(mode="json"),
        "holdout": holdout,
        **weight,
    }
    return Retraining(
        estimator=model.estimator(),
        holdout=holdout,
        window=Window(**config.window.model_dump()),
        drift=DriftGate(**config.drift.model_dump()),
        settings=settings,
        **config.model_dump(exclude={*SECTIONS, *OF_THE_JOB}),
    )
