"""The part of a page on a model's errors: next to those to be beaten, and bag by bag."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import linregress

from bagbasis import BagStore
from bagbasis.core.digits import rounded, with_error
from bagbasis.models.errors import Errors
from bagbasis.models.fitted_model import JUDGED_ON_FITTED, is_fitted_to
from bagbasis.models.outcomes.details import ClassDetails, DensityDetails
from bagbasis.models.verdict import (
    MOST_FREQUENT,
    RIVALS,
    bags_in_words,
    percent,
    targets_in_words,
    verdict,
)
from bagbasis.plotting.calibration import MIN_GROUP
from bagbasis.plotting.predictions import calibration_groups

from .bag_dots import N_WORST, Dots
from .charts import Chart, Series
from .model_part import FEW_JUDGED, card_of, compare, few_judged
from .parts import Part, Table, facts

if TYPE_CHECKING:
    from .bags_in_view import BagsInView
    from .model_part import JobModel

_MAX_CLASSES = 30  # classes of a confusion matrix that is shown whole
FEW_POINTS = 5  # in a bag: its density is hardly known
INDEPENDENT = "± one standard error, as if bags were independent."
MEASURES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "log_loss": "log loss",
    "auc": "AUC",
    "brier": "Brier score",
}
CLASS_MEASURES = ("precision", "recall", "f1")
SUBSETS = {"all": "all bags", "holdout": "the bags held out", "train": "the bags fitted"}
_CHECKS = (
    "better than the baselines by two standard errors",
    f"at least {FEW_JUDGED} bags judged",
    "none of them fitted",
    f"bags of at least {FEW_POINTS} points",
)
_PROBABILITIES, _SLOPE = (
    "probabilities are right as often as they say",
    "predictions are not shrunk",
)
SUM_TOLERANCE = 1e-9  # how far the sum of a model's class frequencies may differ from 1
_SURE_ERRORS = 3.0  # standard errors: one group in ten hardly shows such a gap by chance
MIN_GAP = 0.1  # between probabilities, or between slopes: smaller gaps are tolerable


def errors_part(
    title: str,
    model: JobModel,
    store: BagStore | BagsInView,
    errors: Errors,
    means: Errors | None,
    forest: Errors | None = None,
) -> Part:
    """Return the errors next to the baselines, and the charts of the bags that were judged.

    Parameters
    ----------
    title : str
    model : fitted estimator
    store : BagStore
    errors : Errors
        Errors of the model.
    means : Errors or None
        Errors of ridge regression on the means of the same bags.
    forest : Errors, optional
        Errors of a random forest on moments and extremes of the same bags.
    """
    named = ((RIVALS["means_error"], means), (RIVALS["forest_error"], forest))
    rivals = {name: rival for name, rival in named if rival is not None}
    details, worries, charts = errors.details, [], []
    checks: tuple[str, ...] = _CHECKS
    worries += few_judged(errors.n)
    worries += worries_of_sizes(store)
    if isinstance(details, ClassDetails):
        tables = _class_tables(errors, details, rivals)
        charts, later = [reliability(errors)], [_confusion(details)]
        worries += worries_of_probabilities(errors)
        checks = (*_CHECKS, _PROBABILITIES)
    elif isinstance(details, DensityDetails):
        tables, charts, later = [_density_table(errors, rivals)], [], []
    else:
        tables = _number_tables(errors, rivals)
        worries += worries_of_slope(errors)
        checks = (*_CHECKS, _SLOPE)
        dots = Dots(store, model, errors)
        charts, later = dots.charts() + dots.worst_bags(), [*dots.worst(), *dots.explained()]
    spread = 2 * (errors.standard_error or 0.0)
    of_means, of_forest = (rival.error if rival else None for rival in (means, forest))
    beaten_by = compare(
        errors.error, errors.constant_error, of_means, spread, of_forest, errors.measure
    )
    on_fitted = [JUDGED_ON_FITTED] if judged_on_fitted(model, store, errors) else []
    worries = on_fitted + beaten_by + worries
    where = f"{errors.n:,} bags: {SUBSETS[errors.subset]}"
    if errors.n_unlabelled:
        where += f"; {errors.n_unlabelled:,} without a label left out"
    error = with_error(errors.error, errors.standard_error)
    constant = rounded(errors.constant_error, errors.standard_error)
    judged = f"{where}; {errors.measure} {error}, best constant {constant}"
    others = [(RIVALS["constant_error"], errors.constant_error)]
    others += [(name, rival.error) for name, rival in rivals.items()]
    what = targets_in_words(list(errors.values()))
    bags = bags_in_words(errors.n, errors.subset == "holdout")
    if on_fitted:
        are_all_fitted = errors.subset == "train" or not model.holdout_
        bags += " that it was fitted to" if are_all_fitted else ", those fitted among them"
    return Part(
        title,
        answer=verdict(
            what,
            errors.measure,
            bags,
            [("the model", errors.error), *others],
            errors.standard_error,
        ),
        checks=checks,
        worries=worries,
        tables=[facts({"judged on": where}), *tables],
        charts=charts,
        details=later,
        card=card_of(model, judged),
    )


def judged_on_fitted(model: JobModel, store: BagStore | BagsInView, errors: Errors) -> bool:
    """Return whether the model was fitted to bags that it is judged on."""
    if errors.subset == "all":  # a view of bags in memory says "train" if they are those
        return isinstance(store, BagStore) and is_fitted_to(model.model_, store)
    return errors.subset == "train"


def worries_of_sizes(store: BagStore | BagsInView) -> list[str]:
    """Warn if many bags have so few points that their densities are hardly known."""
    sizes = np.diff(store.offsets())[store.present()]
    n_small = int((sizes < FEW_POINTS).sum())
    if not n_small:
        return []
    return [
        f"{n_small:,} of {len(sizes):,} bags have fewer than {FEW_POINTS} points, and count as "
        "much as the others: give bags weights (sample_weight)."
    ]


def _number_tables(errors: Errors, rivals: Mapping[str, Errors]) -> list[Table]:
    beside = {name: rival.values() for name, rival in rivals.items()}
    columns, tables, spreads = ["", "RMSE", "R²", "MAE", "mean error"], [], errors.spreads
    for name, values in errors.values().items():
        spread = spreads.get(name, {})
        judged = {"the model": values, **{text: rival.get(name) for text, rival in beside.items()}}
        rows = [
            [text, *_number_cells(measured, spread, with_spread=text == "the model")]
            for text, measured in judged.items()
            if measured is not None
        ]
        constant = {"rmse": values["constant_rmse"], "r2": 0.0, "bias": 0.0}
        rows.append(["the best constant", *_number_cells(constant, spread)])
        tables.append(Table(f"Errors: {name}", columns, rows, INDEPENDENT))
    return tables


def _number_cells(
    values: Mapping[str, Any], spread: Mapping[str, float], with_spread: bool = False
) -> list[str | None]:
    """Return RMSE, R², MAE and mean error, in the digits that their standard errors allow."""
    shown = with_error if with_spread else rounded
    cells = {
        key: shown(values[key], spread.get(key)) for key in ("rmse", "mae", "bias") if key in values
    }
    r2 = rounded(values["r2"], spread.get("r2"))
    return [cells.get("rmse"), r2, cells.get("mae"), cells.get("bias")]


def class_rows(errors: Errors) -> list[list[Any]]:
    """Return name, precision, recall, F1 and bags of each class, in digits that bags allow."""
    of_classes = _of_class(errors)["per_class"]
    fewest = min((scores["n"] for scores in of_classes.values() if scores["n"]), default=1)
    spread = 0.5 / max(1.0, fewest) ** 0.5
    return [
        [name, *(rounded(scores[key], spread) for key in CLASS_MEASURES), scores["n"]]
        for name, scores in of_classes.items()
    ]


def _class_tables(
    errors: Errors, details: ClassDetails, rivals: Mapping[str, Errors]
) -> list[Table]:
    return [
        class_table(details.name, errors, rivals),
        probability_table(errors, rivals),
        Table("Each class", ["class", "precision", "recall", "F1", "bags"], class_rows(errors)),
    ]


def class_table(name: str, errors: Errors, rivals: Mapping[str, Errors]) -> Table:
    """Return the accuracy and the balanced accuracy of the model and of the baselines."""
    n_classes = sum(scores["n"] > 0 for scores in _of_class(errors)["per_class"].values())
    rows: list[list[Any]] = [
        ["the model", *measures(errors, "accuracy", "balanced_accuracy")],
        [MOST_FREQUENT, rounded(1 - errors.constant_error), rounded(1 / max(1, n_classes))],
        *(
            [text, *measures(rival, "accuracy", "balanced_accuracy")]
            for text, rival in rivals.items()
        ),
    ]
    note = f"Balanced accuracy: mean over classes of the fraction that is right. {INDEPENDENT}"
    return Table(f"Accuracy: {name}", ["", "accuracy", "balanced accuracy"], rows, note)


def probability_table(errors: Errors, rivals: Mapping[str, Errors]) -> Table:
    """Return what measures probabilities of the model and of the baselines."""
    frequencies = errors.mean[errors.mean > 0]
    is_known = abs(float(frequencies.sum()) - 1) < SUM_TOLERANCE
    spread = errors.spreads.get(next(iter(errors.values())), {})
    entropy = -float((frequencies * np.log(frequencies)).sum())
    constant = rounded(entropy, spread.get("log_loss")) if is_known else None
    keys = ("log_loss", "auc", "brier")
    rows = [
        ["the model", *measures(errors, *keys)],
        [
            "the frequencies of the classes",
            constant,
            rounded(0.5, spread.get("auc")),
            rounded(1 - float((errors.mean**2).sum()), spread.get("brier")),
        ],
        *([text, *measures(rival, *keys)] for text, rival in rivals.items()),
    ]
    n_sampled = len(errors.sample.index)
    sampled = "" if n_sampled == errors.n else f" AUC and Brier score of {n_sampled:,} bags."
    note = (
        "Log loss: mean of -log of the probability of the true class, 0 is best. AUC: area under "
        "the ROC curve, of more than two classes the mean of each against the others; 1 is best, "
        ".5 is chance. Brier score: squared distance from the truth, 0 is best and 2 worst."
        f"{sampled} {INDEPENDENT}"
    )
    return Table("Probabilities", ["", *(MEASURES[key] for key in keys)], rows, note)


def measures(errors: Errors, *keys: str) -> list[str | None]:
    """Return measures of classes with their standard errors; None where one is not defined."""
    details = errors.details
    assert isinstance(details, ClassDetails)
    spreads = errors.spreads.get(details.name, {})
    values = {**_of_class(errors), "brier": details.brier(errors.sample)}
    return [
        None if values[key] is None else with_error(values[key], spreads.get(key)) for key in keys
    ]


def _of_class(errors: Errors) -> dict[str, Any]:
    return next(iter(errors.values().values()))


def reliability(errors: Errors) -> Chart:
    """Return how often the predicted class is right, for groups of its probability."""
    groups = calibration_groups(errors)
    titles = [
        f"group of {group.n:,} bags: predicted {group.predicted:.3g}, right {group.right:.3g}"
        for group in groups
    ]
    return Chart(
        "Calibration of probabilities",
        "mean predicted probability of the predicted class",
        "fraction that is right",
        [
            Series(
                "",
                [group.predicted for group in groups],
                [group.right for group in groups],
                titles,
                [group.interval for group in groups],
                joined=True,
            )
        ],
        "Dashed: right as often as predicted. Groups of equally many bags, Wilson intervals of "
        "one standard error, as if bags were independent.",
        guide="diagonal",
    )


def worries_of_probabilities(errors: Errors) -> list[str]:
    """Warn of the group of bags whose probabilities are furthest from how often they are right."""
    groups = [group for group in calibration_groups(errors) if group.n >= MIN_GROUP]
    off = [
        group
        for group in groups
        if abs(group.gap) > MIN_GAP and abs(group.gap) > _SURE_ERRORS * group.error
    ]
    if not off:
        return []
    worst = max(off, key=lambda group: abs(group.gap))
    side = "low" if worst.gap > 0 else "high"
    return [
        f"Probabilities are too {side}: of {worst.n:,} bags predicted with a probability of "
        f"{percent(worst.predicted)}, {percent(worst.right)} are right."
    ]


def worries_of_slope(errors: Errors) -> list[str]:
    """Warn of targets whose predictions are too close to, or too far from, their mean."""
    sample, worries = errors.sample, []
    for j, name in enumerate(list(errors.values())[: sample.true.shape[1]]):
        true, predicted = sample.true[:, j], sample.predicted[:, j]
        if len(true) < 3 * MIN_GROUP or not np.ptp(predicted) > 0:
            continue
        line = linregress(predicted, true)
        slope, error = float(line.slope), float(line.stderr)
        if abs(slope - 1) > max(MIN_GAP, _SURE_ERRORS * error):
            which = "close to" if slope > 1 else "far from"
            worries.append(
                f"Predictions of {name} are too {which} their mean: where two predictions differ "
                f"by 1, the labels differ by {with_error(slope, error)}."
            )
    return worries


def _confusion(details: ClassDetails) -> Table:
    names, matrix = details.class_names, details.matrix
    if len(names) <= _MAX_CLASSES:
        rows = [[name, *row] for name, row in zip(names, matrix.tolist(), strict=True)]
        note = "A row per true class, a column per predicted one."
        return Table("Confusion", ["true \\ predicted", *names], rows, note, shaded=True)
    wrong = matrix - np.diag(np.diag(matrix))
    most = np.argsort(-wrong, axis=None, kind="stable")[:N_WORST]
    pairs = [np.unravel_index(at, wrong.shape) for at in most]
    rows = [[names[i], names[j], int(wrong[i, j])] for i, j in pairs]
    return Table("Most frequent confusions", ["true", "predicted", "bags"], rows)


def _density_table(errors: Errors, rivals: Mapping[str, Errors]) -> Table:
    values = errors.values()["densities"]
    spread = errors.standard_error
    of_r2 = spread and spread / (values["average_mse"] or 1.0)
    distances = {
        "the bag's own density": (values["input_mse"], values["input_r2"]),
        **{text: (rival.error, None) for text, rival in rivals.items()},
        "the average density of the bags fitted": (values["average_mse"], 0.0),
        RIVALS["constant_error"]: (errors.constant_error, None),
        "noise of the responses": (values["noise_mse"], None),
    }
    of_model = with_error(values["mse"], spread), rounded(values["r2"], of_r2)
    rows: list[list[str | None]] = [["the model", *of_model]]
    rows += [
        [text, rounded(error, spread), None if r2 is None else rounded(r2, of_r2)]
        for text, (error, r2) in distances.items()
        if error is not None
    ]
    return Table("Errors", ["", "mean squared L2 distance", "R²"], rows, INDEPENDENT)
