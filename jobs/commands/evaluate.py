"""``bags evaluate``: errors of a model on labelled bags, pictures and a report."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from bagbasis.models import evaluate, permutation_importance

from ..cluster import running_on
from ..configs.config import ClusterConfig, DirectoryConfig, ModelUrl, WeightColumn
from ..configs.sections import parameter_of, with_parameters
from ..terminal import Terminal


@with_parameters(
    {
        "subset": parameter_of(
            evaluate,
            "subset",
            "all bags, those that fit kept out, or those it used; null: those kept out of the "
            "store that was fitted, all of another",
        )
    }
)
class Config(ClusterConfig, DirectoryConfig):
    """Keys of ``configs/evaluate.yaml``."""

    if TYPE_CHECKING:
        subset: Literal["all", "holdout", "train"] | None

    data_url: str = Field(
        examples=["example-output/bags.zarr"], description="the store of labelled bags"
    )
    model_url: ModelUrl
    sample_weight: WeightColumn = None
    coordinate_names: list[str] | None = Field(
        default=None,
        description="axis labels of the pictures, with units; null: the store's, or numbers",
    )
    downwards: bool = Field(
        default=False, description="draw the second coordinate downwards, as in images"
    )
    n_pictured: int = Field(default=3, ge=1, le=6, description="bags drawn with their densities")
    importance: bool = Field(
        default=False,
        description="measure how much the score drops where a coordinate's values are exchanged "
        "between bags, of up to 2,000 bags",
    )
    n_smoothed: int = Field(
        default=0, ge=0, description="bags that a kernel smoother predicts too; of densities"
    )


def run(config: Config, console: Terminal) -> dict[str, Any]:
    """Evaluate; writes the pictures, returns the report."""
    from bagbasis import BagStore
    from bagbasis.data.labelled.holdout import Holdout
    from bagbasis.data.labelled.suspected_groups import suspect_groups
    from bagbasis.models.evaluation.baselines import judge_rivals
    from bagbasis.models.evaluation.coverage import judge_intervals
    from bagbasis.models.judging import judge_model
    from bagbasis.models.verdict import targets_in_words, warning_lines

    from ..pictures.errors_page import errors_part, judged_on_fitted
    from ..pictures.importances import importance_part
    from ..pictures.model_part import (
        CHECKS_OF_MODEL,
        header_of,
        interval_tables,
        worries_of_model,
        worries_of_penalty,
    )
    from .evaluation import choose_view
    from .model_place import open_model

    begun = time.perf_counter()
    model = open_model(config.model_url)
    store = BagStore.open(config.data_url)
    view = choose_view(model, store, config.coordinate_names, config.downwards)
    with running_on(config.cluster, store.url), console.progress("evaluate") as progress:
        weight = config.sample_weight
        errors, _ = judge_model(model.model_, store, None, config.subset, weight, progress)
        judged = view.report(errors, config.n_smoothed, progress)
        means, forest = None, None  # on bags that they are fitted to, a forest has nearly no error
        on_fitted = judged_on_fitted(model, store, errors)
        if not on_fitted:
            means, forest = judge_rivals(model, store, errors.subset, progress, weight)
        intervals = judge_intervals(model, store, progress)
        drops = None
        if config.importance:
            drops = permutation_importance(
                model, store, subset=errors.subset, sample_weight=weight, progress=progress
            )
    pictures = view.draw(errors, Path(config.out_dir), config.n_pictured)
    report = {
        "model_url": config.model_url,
        "data_url": store.url,
        "subset": errors.subset,
        "n_bags": errors.n,
        "n_unlabelled": errors.n_unlabelled,
        **judged,
        **({} if drops is None else {"importance": drops.values()}),
        "intervals": intervals,
        "pictures": [str(path) for path in pictures],
        "seconds": time.perf_counter() - begun,
    }
    title = f"Evaluation of {targets_in_words(model.outcome_.scored_names)}"
    part = errors_part(title, model, store, errors, means, forest)
    following = f"bags predict {config.model_url} {store.url} -o predictions.parquet"
    if on_fitted:
        following = f"bags fit {store.url} -o MODEL --set holdout=0.2 leaves bags to judge it on"
    for line in (part.answer, *warning_lines(part.worries), f"Next: {following}"):
        console.line(line)
    view.show(report, errors, console)
    if intervals:
        part = replace(part, tables=[*part.tables, *interval_tables(model, intervals)])
    header = header_of(model, config.model_url, store.url)
    of_model = [*worries_of_penalty(model), *worries_of_model(model)]
    if model.holdout_ and (
        grouped := suspect_groups(store, model.target_names_, Holdout.of(model.holdout_))
    ):
        console.line(grouped)
        of_model.append(f"{grouped}.")
    console.parts.append(
        replace(
            part,
            header=header,
            worries=[*part.worries, *of_model],
            checks=[*part.checks, *CHECKS_OF_MODEL],
            files=[path.name for path in pictures],
            next=following,
        )
    )
    if drops is not None:
        part = importance_part(drops)
        console.parts.append(part)
        for table in part.details:
            console.table(table.title, table.columns, table.rows)
    for path in report["pictures"]:
        console.line(path)
    return report
