"""``bags fit``: a Double-Basis or Triple-Basis model, or a network, of the bags in a store."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from bagbasis import DoubleBasisRegressor
from bagbasis.models import Checkpoints

from ..cluster import running_on
from ..configs.config import ReportConfig
from ..configs.model_sections import FittingConfig
from ..configs.sections import EmbeddingOption, parameter_of, with_parameters
from ..configs.sequence_section import FitSection, RidgeSection, SequenceSection
from ..terminal import Terminal

if TYPE_CHECKING:
    from bagbasis import BagStore
    from bagbasis.models.errors import Errors

    from ..pictures.model_part import JobModel
    from ..pictures.parts import Part
    from .model_place import ModelPlace

    _Judged = dict[str, Any] | None

logger = logging.getLogger(__name__)


@with_parameters(
    {
        "interval_folds": parameter_of(
            DoubleBasisRegressor.conformalize,
            "cv",
            "intervals, or sets of classes, from so many folds of the bags that are fitted, as 10; "
            "null: from the bags kept out; not with task: densities",
        ),
        "checkpoint_seconds": parameter_of(
            Checkpoints, "seconds", "seconds of work per core between two checkpoints"
        ),
    }
)
class Config(FittingConfig, ReportConfig):
    """Keys of ``configs/fit.yaml``."""

    RENAMED_OF: ClassVar[str] = "bags fit"

    if TYPE_CHECKING:
        interval_folds: int | None = Field(default=None)
        checkpoint_seconds: float = Field(default=...)

    model: FitSection = Field(default_factory=RidgeSection, description="what is fitted")
    embedding: EmbeddingOption = None
    checkpoints: str | None = Field(
        default=None,
        description="folder for finished sums or a network's state, which the same fit goes on "
        "from; null: none",
    )


def run(config: Config, console: Terminal) -> dict[str, Any]:
    """Fit and save the model; returns the report."""
    from bagbasis import BagStore
    from bagbasis.data.labelled.suspected_groups import suspect_groups
    from bagbasis.models.evaluation.coverage import judge_intervals

    from ..pictures.fit_part import part_of_fit
    from ..pictures.model_part import choice_tables, interval_tables, rivals_of
    from .model_place import ModelPlace

    begun = time.perf_counter()
    _check_keys(config)
    place = ModelPlace("fit", config, console.run)
    # only of a run: in a call by hand the data at the URL may be others by now
    ours = console.run is not None and place.is_ours()
    store = BagStore.open(config.data_url)
    config.model.check_target(config.target)
    with running_on(config.cluster, store.url):
        model = _fit_and_save(config, store, place, ours, console)
        judging = time.perf_counter()
        judged, errors = _judged(model, store, console)
        seconds_judged = time.perf_counter() - judging
        with console.progress("intervals") as progress:
            intervals = judge_intervals(model, store, progress)
    report = {
        "model_url": place.url,
        "data_url": store.url,
        "targets": list(model.target_names_),
        **_described(model),
        **model.report_,
        "seconds_judged": seconds_judged,
        "seconds_in_all": time.perf_counter() - begun,
    }
    of_intervals = interval_tables(model, intervals)
    part = part_of_fit(place.url, model, store.url, store, judged, errors)
    following = f"bags predict {place.url} {store.url} -o predictions.parquet"
    part = replace(part, tables=[*part.tables, *of_intervals], next=following)
    if grouped := suspect_groups(store, model.target_names_, config.kept_out):
        part = replace(part, worries=[*part.worries, f"{grouped}."])
    console.parts.append(part)
    for line in _lines(model, part, has_report=config.report is not None):
        console.line(line)
    if grouped:
        console.line(grouped)
    details = console.details
    details.values("Fitted", {key: value for key, value in report.items() if key != "choice"})
    for table in choice_tables(model):
        details.table(table.title, table.columns, table.rows)
    if judged is not None:
        details.table(f"{judged['measure']}, {judged['n']} bags", ["", "error"], rivals_of(judged))
    for table in of_intervals:
        details.table(table.title, table.columns, table.rows)
    return {**report, "judged": judged, "intervals": intervals}


def _lines(model: JobModel, part: Part, has_report: bool) -> list[str]:
    """Return the result in a few lines: how good, what was chosen, how sure, what to look at."""
    from bagbasis.models.verdict import targets_in_words, warning_lines

    from ..pictures.fit_part import NO_ESTIMATE
    from ..pictures.model_part import chosen_in_words, intervals_in_words

    lines = [
        part.answer or f"Fitted {targets_in_words(model.outcome_.scored_names)}. {NO_ESTIMATE}"
    ]
    lines += [chosen_in_words(model), *intervals_in_words(model)]
    worries = [worry for worry in part.worries if worry != NO_ESTIMATE]
    lines += warning_lines(worries, has_report)
    return [*lines, f"Next: {part.next}"]


def _check_keys(config: Config) -> None:
    """Raise ConfigError for keys that this kind of model does not take."""
    from bagbasis.core.errors import ConfigError

    model = config.model
    if isinstance(model, SequenceSection):
        for key in ("embedding", "sample_weight", "interval_folds"):
            if getattr(config, key) is not None:
                raise ConfigError(f"key {key!r} is not used with model.kind: sequence")
        return
    if config.interval_folds is None:
        return
    if model.task == "densities":
        raise ConfigError("key 'interval_folds' is not used with task: densities")
    if model.head != "ridge":
        raise ConfigError(
            "key 'interval_folds' makes folds of a ridge alone, and model.head is "
            f"{model.head!r}: give holdout instead"
        )


def _described(model: JobModel) -> dict[str, Any]:
    """Return what of the model the report names."""
    from bagbasis.models.base import DoubleBasis

    if isinstance(model, DoubleBasis):
        return {"embedding": model.features_.embedding.describe().text, "alpha": model.alpha_}
    return {"unit": model.unit}


def _fit_and_save(
    config: Config, store: BagStore, place: ModelPlace, ours: bool, console: Terminal
) -> JobModel:
    """Return the model that this run saved before it was killed, or fit and save one."""
    from bagbasis.data.storage.files import discard
    from bagbasis.models.fitting.checkpoints import checkpoints_of

    def saved(make: Callable[[], JobModel]) -> JobModel:
        model = _saved(place.url, store) if ours else None
        if model is None:
            model = make()
            place.save(model)
        return model

    section = config.model
    if isinstance(section, SequenceSection):
        checkpoint = place.checkpoint(config.checkpoints)
        model = saved(lambda: _trained(config, section, store, checkpoint, console))
        if checkpoint is not None:
            discard(checkpoint)
        return model
    with checkpoints_of(config.checkpoints, config.checkpoint_seconds) as checkpoints:
        return saved(lambda: _fitted(config, section, store, checkpoints, console))


def _judged(model: JobModel, store: BagStore, console: Terminal) -> tuple[_Judged, list[Errors]]:
    """Judge the model, which is saved by now; None if it cannot be judged."""
    from bagbasis.core.errors import DataError
    from bagbasis.models.base import DoubleBasis
    from bagbasis.models.evaluation.baselines import judge_held_out, judge_with_errors

    try:
        with console.progress("judge") as progress:
            if isinstance(model, DoubleBasis):
                return judge_with_errors(model, store, progress, forest=True)
            return judge_held_out(model, store, progress)
    except DataError as error:
        logger.warning("the model is not judged: %s", error)
        return None, []


def _saved(url: str, store: BagStore) -> JobModel | None:
    """Load the model that this run saved before it was killed.

    None if there is no complete one, or the store has other bags by now.
    """
    from bagbasis.core.errors import ModelError
    from bagbasis.models.fitted_model import is_of_other_bags

    from .model_place import open_model

    try:
        model = open_model(url)
    except ModelError:
        return None
    return None if is_of_other_bags(model.report_, store) else model


def _trained(
    config: Config,
    section: SequenceSection,
    store: BagStore,
    checkpoint: str | None,
    console: Terminal,
) -> JobModel:
    from bagbasis.core.errors import ConfigError, ParameterError

    model: Any = section.estimator(checkpoint)  # whose targets are one or several
    with console.progress("fit", "steps") as progress:
        try:
            fitted: JobModel = model.fit(
                store, target=config.target, holdout=config.kept_out, progress=progress
            )
        except ParameterError as error:
            raise ConfigError(f"section 'model': {error}") from error
    return fitted


def _fitted(
    config: Config,
    section: RidgeSection,
    store: BagStore,
    checkpoints: Checkpoints | None,
    console: Terminal,
) -> JobModel:
    from bagbasis import TripleBasisRegressor
    from bagbasis.core.errors import ConfigError, ParameterError

    model = section.with_embedding(config.embedding).estimator()
    labels: dict[str, Any] = {} if section.task == "densities" else {"target": config.target}
    with console.progress("fit") as progress:
        try:
            model.fit(
                store,
                sample_weight=config.sample_weight,
                holdout=config.kept_out,
                progress=progress,
                checkpoints=checkpoints,
                **labels,
            )
        except ParameterError as error:
            raise ConfigError(f"section 'model': {error}") from error
    if config.interval_folds is not None and not isinstance(model, TripleBasisRegressor):
        groups = config.kept_out.groups
        with console.progress("folds") as progress:
            try:
                model.conformalize(
                    store, cv=config.interval_folds, groups=groups, progress=progress
                )
            except ParameterError as error:
                raise ConfigError(f"key 'interval_folds': {error}") from error
    return model
