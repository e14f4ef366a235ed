"""``bags tune``: choose embedding, kernel width and penalty, then fit the best."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from bagbasis import tune
from bagbasis.core.errors import ConfigError
from bagbasis.core.yaml_text import yaml_text
from bagbasis.data.storage.files import writing

from ..cluster import running_on
from ..configs.config import DirectoryConfig, Section
from ..configs.model_sections import FittingConfig, ModelSection
from ..configs.search_sections import MULTIPLIERS, RUNGS, SearchSection, embeddings_of, labels_of
from ..configs.sections import (
    build,
    is_automatic,
    parameter_of,
    section_of,
    section_of_features,
    with_parameters,
)
from ..configs.sequence_section import RidgeAlone
from ..terminal import Terminal

if TYPE_CHECKING:
    from bagbasis.models import Score, Search, Tuning

_STATE = "state.json"
_NO_ESTIMATE = "No error estimate: pass holdout= (a fraction of the bags)."
N_SHOWN = 3  # leads in the terminal


@with_parameters(
    {
        "checkpoints": parameter_of(
            tune,
            "checkpoints",
            "folder for scores and coefficients, from which an interrupted tune goes on; null: "
            "scores in OUT_DIR, coefficients next to the store, DATA_URL.cache",
        ),
        "keep_cache": parameter_of(tune, "keep_cache"),
    }
)
class Config(FittingConfig, DirectoryConfig):
    """Keys of ``configs/tune.yaml``."""

    if TYPE_CHECKING:
        checkpoints: str | None
        keep_cache: bool

    RENAMED_OF: ClassVar[str] = "bags tune"

    out_dir: str = Field(
        examples=["example-output/tune"],
        description="directory for report.html, report.json, best.yaml, tune.png and the state "
        "of an interrupted tune",
    )
    model: RidgeAlone = Field(default_factory=ModelSection, description="what is fitted")
    search: SearchSection = Field(default=SearchSection(), description="what is compared")


def run(config: Config, console: Terminal) -> dict[str, Any]:
    """Tune, save the best model, write its config and the picture; returns the report."""
    from bagbasis import BagStore
    from bagbasis.core.errors import ParameterError
    from bagbasis.data.labelled.suspected_groups import suspect_groups
    from bagbasis.data.storage.urls import normalize_url
    from bagbasis.models.tuning.halving import SCORES, tune_in
    from bagbasis.models.verdict import warning_lines

    from ..pictures.tuning import draw_tuning
    from ..pictures.tuning_part import tune_part
    from .model_place import ModelPlace

    begun = time.perf_counter()
    place = ModelPlace("tune", config, console.run)
    config.model.check_target(config.target)
    store = BagStore.open(config.data_url)
    search = search_of(config, store.n_dims)
    out_dir = Path(config.out_dir)
    folder = None if config.checkpoints is None else normalize_url(config.checkpoints)
    with running_on(config.cluster, store.url), console.progress("tune") as progress:
        try:
            result = tune_in(
                folder,
                out_dir / _STATE if folder is None else f"{folder}/{SCORES}",
                config.model.estimator(),
                store,
                None,
                search,
                config.keep_cache,
                progress,
                target=config.target,
                sample_weight=config.sample_weight,
                holdout=config.kept_out,
            )
        except ParameterError as error:
            raise ConfigError(f"sections 'search' and 'model': {error}") from error
    place.save(result.model)
    embeddings = [section_of(embedding) for embedding in result.embeddings]
    names = candidate_names(result, labels_of(embeddings))
    best = write_best(out_dir / "best.yaml", config, result, embeddings)
    picture = draw_tuning(out_dir / "tune.png", result.rungs, result.scores, names, result.winner)
    _show(result, names, console)
    following = f"bags evaluate {place.url} {store.url} -o evaluation"
    part = tune_part(result, names, at_the_edge(result), (place.url, store.url))
    part = replace(part, next=following)
    worries = [worry for worry in part.worries if worry != _NO_ESTIMATE]  # which is printed before
    for line in (*warning_lines(worries), f"Next: {following}"):
        console.line(line)
    if grouped := suspect_groups(store, result.model.target_names_, config.kept_out):
        console.line(grouped)
        part = replace(part, worries=[*part.worries, f"{grouped}."])
    console.parts.append(part)
    for path in (picture, best):
        console.line(str(path))
    return {
        "model_url": place.url,
        "data_url": store.url,
        "targets": list(result.model.target_names_),
        "winner": _describe(result, names, result.winner),
        "alpha": result.model.alpha_,
        "candidates": [_describe(result, names, c) for c in range(len(names))],
        "leads": [{"name": names[lead.candidate], **vars(lead)} for lead in result.leads],
        "judged": result.judged,
        "rungs": rungs_of(result, names),
        "fit": result.model.report_,
        "best_config": str(best),
        "pictures": [str(picture)],
        "seconds": time.perf_counter() - begun,
    }


def search_of(config: Config, n_dims: int) -> Search:
    """Return the search for points of ``n_dims`` coordinates.

    If widths are given, the search does not begin with the choice by folds, which has its own.
    """
    from bagbasis.models import Search

    multipliers = config.search.multipliers(_scale_of(config))
    settings = config.search.model_dump(include=set(RUNGS))
    choices = config.search.embedding
    if choices is None and is_automatic(config.model.embedding):
        choices = "auto"
    if choices == "auto":
        auto = Search.auto(n_dims)
        own_widths = config.search.random_features.scale_multiplier in (None, MULTIPLIERS)
        choose = own_widths and settings["first_bags"] is None
        heads = settings["heads"] or auto.heads
        search = replace(auto, **{**settings, "join": True, "heads": heads, "choose": choose})
    else:
        sections = embeddings_of(choices, config.model.embedding)
        search = Search([build(section) for section in sections], **settings)
    return replace(search, scale_multipliers=multipliers)


def candidate_names(result: Tuning, labels: list[str]) -> list[str]:
    """Name each candidate by embedding and multiplier of σ."""
    multipliers = [c.scale_multiplier for c in result.candidates]
    widths = ["linear" if m is None else f"σ × {m:g}" for m in multipliers]
    return [
        f"{labels[c.embedding]}; {width}"
        for c, width in zip(result.candidates, widths, strict=True)
    ]


def _describe(result: Tuning, names: list[str], c: int) -> dict[str, Any]:
    """Return a candidate and the last rung that it reached."""
    scores = [scores[c] for scores in result.scores if c in scores]
    return {
        "name": names[c],
        "features": result.candidates[c].features.to_dict(),
        "scale_multiplier": result.candidates[c].scale_multiplier,
        "rungs": len(scores),
        "error": scores[-1].error,
        "alpha": scores[-1].alpha,
    }


def rungs_of(result: Tuning, names: list[str]) -> list[dict[str, Any]]:
    """Return the rungs with every path, best candidates first."""
    return [
        {
            "n_bags": rung.n_bags,
            "n_kept": rung.n_kept,
            "candidates": [{"name": names[c], **vars(score)} for c, score in ranked(scores)],
        }
        for rung, scores in zip(result.rungs, result.scores, strict=True)
    ]


def _scale_of(config: Config) -> float | str:
    second = config.model.random_features
    if second is False:
        raise ConfigError("key 'model.random_features': tune compares widths, false has none")
    return "median" if is_automatic(second) else second.scale


def ranked(scores: dict[int, Score]) -> list[tuple[int, Score]]:
    """Return the candidates of a rung with their scores, the best first."""
    return sorted(scores.items(), key=lambda item: (item[1].error, item[0]))


def write_best(path: Path, config: Config, result: Tuning, embeddings: list[Section]) -> Path:
    """Write the winner as a config of ``bags fit``."""
    winner = result.candidates[result.winner]
    model = config.model.model_copy(
        update={
            "embedding": embeddings[winner.embedding],
            "random_features": section_of_features(result.model.random_features),
            "head": getattr(result.model, "head", "ridge"),
        }
    )
    penalty = {}
    if result.model.alpha == "validation":  # also where groups need it, with a baseline
        penalty = {"alpha": "validation", "alphas": result.model.alphas}
    values = {
        "data_url": config.data_url,
        "model_url": config.model_url,
        "target": config.target,
        **config.model_dump(mode="json", include={"holdout", "sample_weight"}),
        "model": {**model.model_dump(), **penalty},
    }
    with writing(path) as temporary:
        text = f"# bags fit {path}\n# The best model that bags tune found.\n{yaml_text(values)}"
        temporary.write_text(text, encoding="utf-8")
    return path


def _show(result: Tuning, names: list[str], console: Terminal) -> None:
    """Print one row per candidate, those that came furthest first, and what the winner beats."""
    from bagbasis.models.verdict import targets_in_words, verdict_of

    from ..pictures.model_part import rivals_of
    from ..pictures.tuning_part import head_of, winner_in_words

    last = {c: (-r, score.error) for r, s in enumerate(result.scores) for c, score in s.items()}
    rows = [
        [
            "winner" if c == result.winner else "",
            names[c],
            *[scores[c].error if c in scores else "" for scores in result.scores],
        ]
        for c in sorted(last, key=lambda c: (last[c], c))
    ]
    columns = ["", "candidate", *[f"{rung.n_bags:,} bags" for rung in result.rungs]]
    if result.judged is None:
        console.line(_NO_ESTIMATE)
    else:
        names_of = targets_in_words(result.model.outcome_.scored_names)
        console.line(verdict_of(names_of, result.judged))
    title = "Squared error over the variance, on bags of the rung that were not fitted"
    console.details.table(title, columns, rows)
    console.line(
        f"{winner_in_words(result, names)}; penalty {result.model.alpha_:.3g}; "
        f"fitted to {result.model.report_['n_bags_fitted']:,} bags"
    )
    head = head_of(result)
    for line in (at_the_edge(result), head and f"Head: {head}", *leads_of(result, names)):
        if line:
            console.line(line)
    if result.judged is not None:
        title = f"{result.judged['measure']}, {result.judged['n']} bags"
        console.details.table(title, ["", "error"], rivals_of(result.judged))


def leads_of(result: Tuning, names: list[str]) -> list[str]:
    """Return by how many standard errors the winner leads the best of other embeddings.

    The nearest are named, the others counted: the report has them all.
    """
    lines = []
    for lead in result.leads[:N_SHOWN]:
        name, errors = names[lead.candidate], f"{abs(lead.gap):.2g}"
        if lead.standard_error:
            errors += f", {abs(lead.gap) / lead.standard_error:.1f} standard errors"
        behind = f"is behind by {errors}"
        lines.append(f"{name} {behind if lead.gap >= 0 else f'leads by {errors}: too few to join'}")
    if others := len(result.leads) - len(lines):
        lines.append(f"{others} more are further behind")
    return lines


def at_the_edge(result: Tuning) -> str | None:
    """Return a warning if the best σ is the smallest or largest one tried; else None."""
    multipliers = {candidate.scale_multiplier for candidate in result.candidates}
    tried = sorted(multiplier for multiplier in multipliers if multiplier is not None)
    best = result.candidates[result.winner].scale_multiplier
    if best is None or len(tried) == 1 or best not in (tried[0], tried[-1]):
        return None
    which, other = ("smallest", "smaller") if best == tried[0] else ("largest", "larger")
    return (
        f"σ × {best:g} is the {which} tried: a {other} one may be better still "
        "(search.random_features.scale_multiplier)"
    )
