"""The parts of a page on any fitted model: its origin, and what to worry about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from bagbasis.core.arrays import Floats
from bagbasis.core.digits import rounded, with_error
from bagbasis.models.base import DoubleBasis
from bagbasis.models.fit_summary import embedding_in_words
from bagbasis.models.fitting.feature_map import MAX_OUTSIDE
from bagbasis.models.verdict import ERROR_RATE, RIVALS, no_better, percent, whole_percent

from .charts import Chart, Series
from .parts import Table, facts

if TYPE_CHECKING:
    from bagbasis.neural import SequenceClassifier, SequenceRegressor

    JobModel: TypeAlias = "DoubleBasis | SequenceRegressor | SequenceClassifier"

FEW_JUDGED = 50  # bags: the errors of fewer say little
FEW_FITTED = 200  # number of bags: with fewer, another sample may give another model
_SHOWN_DIMS = 5  # coordinates of a box
SHOWN_COVERAGES = (0.5, 0.8, 0.9, 0.95)
CHECKS_OF_MODEL = (
    f"at least {FEW_FITTED} bags fitted",
    "points outside the box",
    "bags without a label",
    "the penalty within the grid",
)
SHOWN_CHOICES = 8  # embeddings that were tried, each with its best width


def header_of(model: JobModel, url: str, data_url: str) -> dict[str, Any]:
    """Say which model and which data a page is about."""
    known = {"model": url, "data": data_url, "data snapshot": model.report_.get("data_snapshot")}
    saved = getattr(model, "versions_", None)  # of a loaded model
    known["saved by"] = ", ".join(f"{k} {v}" for k, v in saved.items()) if saved else None
    return {key: value for key, value in known.items() if value is not None}


def worries_of_model(model: JobModel) -> list[str]:
    """Return warnings that follow from the numbers of a fit."""
    report, worries = model.report_, []
    if report["n_bags_fitted"] < FEW_FITTED:
        worries.append(
            f"Few bags: the model was fitted to {report['n_bags_fitted']:,}. Another sample of "
            "bags may give another model."
        )
    seen, outside = report["n_points_seen"], report["n_points_outside_box"]
    if isinstance(model, DoubleBasis) and seen and outside > MAX_OUTSIDE * seen:
        treated = {"clip": "moved to its edge", "drop": "left out"}
        how = treated.get(model.features_.embedding.out_of_box, "refused")
        worries.append(
            f"{100 * outside / seen:.2g} % of the points that were fitted lie outside the box and "
            f"were {how}."
        )
    if report["n_bags_unlabelled"] > report["n_bags_fitted"]:
        worries.append(
            f"Most bags, {report['n_bags_unlabelled']:,}, have no label: the model knows only "
            "those that have one."
        )
    return worries


def worries_of_penalty(model: JobModel) -> list[str]:
    """Return the warning of a saved model's fit: its penalty is at the edge of those tried."""
    if not isinstance(model, DoubleBasis):
        return []
    least, largest = model.alphas_.min(), model.alphas_.max()
    if least == largest or least < model.alpha_ < largest:
        return []
    which = "least" if model.alpha_ == least else "largest"
    return [f"The best penalty, {model.alpha_:.3g}, is the {which} that was tried."]


def card_of(model: JobModel, judged: str) -> Table:
    """Return a table of what a user of the model has to know."""
    report = model.report_
    if isinstance(model, DoubleBasis):
        estimator, made_for = _ridge_of(model)
    else:
        estimator = (
            f"{type(model).__name__}: unit {model.unit!r} with {model.n_units:,} outputs, "
            f"{model.n_steps_:,} minibatches of {model.batch_size:,} bags, loss "
            f"{model.loss_:.4g} on the bags that judge it in training"
        )
        made_for = "points whose order carries information"
    names = ", ".join(model.target_names_) or "what the labels of the bags are"
    sizes = report["n_points_seen"] / max(1, report["n_bags_fitted"])
    values = {
        "predicts": names,
        "from": f"bags of points with {model.n_features_in_} coordinates",
        "estimator": estimator,
        "learnt from": f"{report['n_bags_fitted']:,} bags of {report['data_url'] or 'memory'}, "
        f"about {sizes:,.0f} points per bag; {report['n_bags_held_out']:,} held out, "
        f"{report['n_bags_unlabelled']:,} without a label",
        "made for": f"{made_for}; bags drawn as those that it learnt from",
        "judged on": judged,
        "not known": "errors on bags of another origin; whether bags depend on each other (then "
        "the standard errors are too small); which coordinates cause the label",
    }
    return facts(values)


def _ridge_of(model: DoubleBasis) -> tuple[str, str]:
    """Return what the estimator is, and which points it is made for."""
    features = model.features_
    second, described = features.second, features.embedding.describe()
    made_of = "no" if second is None else f"{features.n_penalized:,}"
    beside = "" if model.baseline is None else f" and the baseline {model.baseline!r}"
    box = "; ".join(
        f"{lo:.4g} to {hi:.4g}" for lo, hi in features.embedding.box.bounds[:_SHOWN_DIMS]
    )
    more = ", …" if features.n_dims > _SHOWN_DIMS else ""
    estimator = (
        f"{type(model).__name__}: {described.text}; {made_of} random features{beside}; ridge "
        f"penalty {model.alpha_:.3g}"
    )
    return estimator, f"{described.points} in the box {box}{more}"


def path_of(model: JobModel) -> list[Chart]:
    """Return the scores of the penalties that were tried, or a network's loss over its steps."""
    if not isinstance(model, DoubleBasis):
        steps, losses = zip(*model.history_, strict=True)
        curve = Series("", list(steps), list(losses), joined=True)
        return [Chart("Training", "minibatches", "loss on the bags that judge it", [curve])]
    scores = model.alpha_scores_
    if np.isfinite(scores).sum() < 2:
        return []
    chosen = Series("chosen", [model.alpha_], [float(scores.min())], color="orange", radius=6)
    path = Series("tried", model.alphas_.tolist(), scores.tolist(), joined=True)
    return [
        Chart(
            "The penalty",
            "penalty λ",
            score_in_words(model),
            [path, chosen],
            "Lower is better: the penalty with the lowest score was chosen.",
            log_x=True,
        )
    ]


def score_in_words(model: DoubleBasis) -> str:
    """Return what the scores of the penalties are."""
    names = {
        "gcv": "generalised cross-validation",
        "folds": "squared error over folds",
        "validation": "squared error on validation bags",
    }
    return names.get(str(model.alpha), "squared error by cross-validation")


def choice_tables(model: JobModel) -> list[Table]:
    """Return the best of what ``embedding="auto"`` tried, if that was asked for."""
    choice = model.report_.get("choice")
    if not choice or not choice["tried"]:
        return []
    best: dict[str, dict[str, Any]] = {}
    for candidate in choice["tried"]:  # the best first: of each embedding its best width
        best.setdefault(candidate["name"], candidate)
    shown = [*best.values()][:SHOWN_CHOICES]
    errors = _in_digits_of_the_largest(
        [(candidate["error"], candidate["standard_error"]) for candidate in shown]
    )
    behind = _in_digits_of_the_largest(
        [
            (candidate["behind"], candidate["standard_error_behind"])
            for candidate in shown
            if candidate["behind"]
        ]
    )
    rows = [
        [
            candidate["name"],
            "given" if candidate["width"] is None else f"{candidate['width']:.2f}",
            next(errors),
            next(behind) if candidate["behind"] else "",
        ]
        for candidate in shown
    ]
    title = (
        f"The embedding was chosen from {len(choice['tried'])} candidates: errors of "
        f"{choice['n_bags']:,} bags over {choice['n_folds']} folds of {choice['by']}"
    )
    note = (
        "Mean squared error over the variance of the labels, ± its standard error. Width: the "
        "scale_multiplier of the random features, by which the median distance is multiplied. "
        "Behind the chosen: difference from the chosen candidate's error on the same bags."
    )
    if any(candidate["behind"] < 0 for candidate in shown):
        note += (
            " A candidate with the number of points is chosen only if its lead is larger than the "
            "standard error of the lead."
        )
    return [Table(title, ["embedding", "width", "error", "behind the chosen"], rows, note)]


def _in_digits_of_the_largest(pairs: Sequence[tuple[float, float]]) -> Iterator[str]:
    """Return values with their standard errors, all with the decimals that the largest allows."""
    largest = max((spread for _, spread in pairs), default=0.0)
    return (f"{rounded(value, largest)} ± {rounded(spread, largest)}" for value, spread in pairs)


def interval_tables(model: JobModel, judged: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Return what intervals the model gives, and how many labels they were found to hold.

    ``judged`` is what `judge_intervals` returns.
    """
    calibration = model.calibration_ if isinstance(model, DoubleBasis) else None
    if calibration is None:
        return []
    has_sets = model.outcome_.has_sets
    kind = "sets" if has_sets else "intervals"
    title = f"Prediction {kind}, calibrated with {calibration.description}"
    width, shown_width = ("mean_size", "mean number of classes")
    if not has_sets:
        width, shown_width = ("mean_width", "mean width")
    if judged:
        rows = [
            [
                measured["target"],
                whole_percent(measured["coverage"]),
                percent(measured["covered"], measured["standard_error"]),
                rounded(measured[width]),
            ]
            for measured in judged
        ]
        note = f"Labels of {judged[0]['n']:,} bags that the model has not seen, ± a standard error."
        return [
            Table(
                title, ["target", "nominal coverage", "measured coverage", shown_width], rows, note
            )
        ]
    note = "The coverage was not measured: every labelled bag was used for fitting or calibration."
    if has_sets:
        least = [
            [whole_percent(share), f"{max(0.0, 1 - np.quantile(calibration.errors, share)):.3f}"]
            for share in SHOWN_COVERAGES
        ]
        note = f"Classes whose probability is at least this are in the set. {note}"
        return [Table(title, ["nominal coverage", "least probability"], least, note)]
    names = model.outcome_.target_labels
    rows = [
        [name, whole_percent(share), _half_width(calibration.errors[:, j], share)]
        for j, name in enumerate(names)
        for share in SHOWN_COVERAGES
    ]
    if calibration.scale is not None:
        note += " Half-widths are those of a bag with average errors."
    return [Table(title, ["target", "nominal coverage", "half-width"], rows, note)]


def chosen_in_words(model: JobModel) -> str:
    """Return a line on what was fitted: what was chosen, its penalty and its bags."""
    n = f"fitted to {model.report_['n_bags_fitted']:,} bags"
    if not isinstance(model, DoubleBasis):
        return f"Model: {type(model).__name__}, unit {model.unit!r}, {n}"
    what = embedding_in_words(model.features_, model.report_)
    return f"Model: {what}; penalty {model.alpha_:.3g}; {n}"


def _half_width(errors: Floats, coverage: float) -> str:
    """Return a quantile of absolute errors, in the digits of its standard error.

    That is half the distance of the quantiles a binomial standard error below and above.
    """
    spread = (coverage * (1 - coverage) / len(errors)) ** 0.5
    low, width, high = np.quantile(
        errors, [max(0.0, coverage - spread), coverage, min(1.0, coverage + spread)]
    )
    return rounded(float(width), float(high - low) / 2)


def intervals_in_words(model: JobModel, coverage: float = 0.9) -> list[str]:
    """Return a line on the half-width of intervals of each target; nothing where there are none."""
    calibration = model.calibration_ if isinstance(model, DoubleBasis) else None
    if calibration is None or model.outcome_.has_sets:
        return []
    names = model.outcome_.target_labels
    texts = [f"± {_half_width(errors, coverage)}" for errors in calibration.errors.T]
    shown = (
        ", ".join(f"{n} {t}" for n, t in zip(names, texts, strict=True))
        if len(names) > 1
        else texts[0]
    )
    of_which = "" if calibration.scale is None else " for a bag with average errors"
    return [f"{whole_percent(coverage)} prediction interval: {shown}{of_which}"]


def compare(
    error: float,
    constant: float | None,
    means: float | None,
    spread: float = 0.0,
    forest: float | None = None,
    measure: str = "",
) -> list[str]:
    """Return a warning if a model is no better than what it has to beat.

    ``spread`` is two standard errors of its error, or 0. An error rate is told as an accuracy.
    """
    rivals = {"forest_error": forest, "means_error": means, "constant_error": constant}
    known = {key: value for key, value in rivals.items() if value is not None}
    if not known:
        return []
    best = min(known, key=lambda key: known[key])
    if measure.startswith(ERROR_RATE):
        ours, theirs = (percent(1 - value) for value in (error, known[best]))
    else:
        ours, theirs = (
            rounded(value, spread / 2) if spread else f"{value:.4g}"
            for value in (error, known[best])
        )
    worry = no_better(error, known[best], spread, f"{RIVALS[best]} ({ours} against {theirs})")
    return [] if worry is None else [f"{worry}."]


def few_judged(n: int) -> list[str]:
    """Return a warning if a model was judged on few bags."""
    return [f"Few bags: the errors are those of {n:,}."] if n < FEW_JUDGED else []


def rivals_of(judged: Mapping[str, Any]) -> list[list[Any]]:
    """Return rows of a name and an error: the model and what it has to beat, as far as known."""
    spread = judged.get("standard_error")
    ours = [["the model", with_error(judged["error"], spread)]]
    theirs = [[text, rounded(judged[key], spread)] for key, text in RIVALS.items() if key in judged]
    return [*ours, *theirs]


def compare_judged(judged: Mapping[str, Any]) -> list[str]:
    """Return warnings if a rival that `judge_fit` has found is better, or the bags are few."""
    errors = judged["error"], judged.get("constant_error"), judged.get("means_error")
    spread = 2 * (judged.get("standard_error") or 0.0)
    forest, measure = judged.get("forest_error"), judged["measure"]
    beaten_by = compare(*errors, spread=spread, forest=forest, measure=measure)
    return [*beaten_by, *few_judged(judged["n"])]


def score_tables(judged: Mapping[str, Any]) -> list[Table]:
    """Return the table of what ``judge_fit`` has found."""
    title = f"Errors, {judged['n']:,} bags"
    return [Table(title, ["", "error"], rivals_of(judged), judged["measure"])]
