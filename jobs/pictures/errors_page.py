"""The part of a page on a model's errors: beside those to be beaten, and bag by bag."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from bagbasis import BagStore
from bagbasis.models.errors import Errors
from bagbasis.models.outcomes.details import ClassDetails, DensityDetails

from .bag_dots import N_WORST, Dots
from .charts import Chart, Series
from .model_part import answer_of, card_of, compare
from .parts import Part, Table, facts

if TYPE_CHECKING:
    from .model_part import FittedModel

MOST_CLASSES = 30  # of a confusion matrix that is shown whole
MOST_GROUPS, LEAST_GROUP = 10, 10  # of calibration, and bags in each
FEW_POINTS = 5  # of a bag: its density is hardly known
FOREST = "random forest on moments and extremes"
FEW_JUDGED = 50  # bags: the errors of fewer say little
INDEPENDENT = "± one standard error, as if bags were independent."
SUBSETS = {"all": "all bags", "holdout": "the bags held out", "train": "the bags fitted"}


def errors_part(
    title: str,
    model: FittedModel,
    store: BagStore,
    errors: Errors,
    means: Errors | None,
    forest: Errors | None = None,
) -> Part:
    """Return the errors beside the baselines, and the charts of the bags that were judged.

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
    named = (("ridge on the bags' means", means), (FOREST, forest))
    rivals = {name: one for name, one in named if one is not None}
    details, worries, charts = errors.details, [], []
    if errors.n < FEW_JUDGED:
        worries.append(f"Few bags: the errors are those of {errors.n:,}.")
    fitted_to = store.url == model.report_.get("data_url")
    if errors.subset == "train" or (errors.subset == "all" and fitted_to):
        worries.append("The model was fitted to bags that it is judged on: errors are too small.")
    worries += worries_of_sizes(store)
    if isinstance(details, ClassDetails):
        tables, spread = _class_tables(errors, details, rivals)
        charts, later = [reliability(errors)], [_confusion(details)]
    elif isinstance(details, DensityDetails):
        tables, spread, charts, later = [_density_table(errors, rivals)], 0.0, [], []
    else:
        tables, spread = _number_tables(errors, rivals), 0.0
        if errors.outcome.n_targets == 1:
            spread = 2 * _rmse_error(errors, 0)
        dots = Dots(store, model, errors)
        charts, later = dots.charts() + dots.worst_bags(), dots.worst()
    of_means, of_forest = (one.error if one else None for one in (means, forest))
    beaten_by = compare(errors.error, errors.constant_error, of_means, spread, of_forest)
    worries = beaten_by + worries
    where = f"{errors.n:,} bags: {SUBSETS[errors.subset]}"
    if errors.n_unlabelled:
        where += f"; {errors.n_unlabelled:,} without a label left out"
    judged = (
        f"{where}; {errors.measure} {errors.error:.4g}, best constant {errors.constant_error:.4g}"
    )
    rivals_found = [("the best constant", errors.constant_error)]
    rivals_found += [(name, one.error) for name, one in rivals.items()]
    what = f"{', '.join(errors.values()) or 'densities'}, {errors.n:,} bags"
    return Part(
        title,
        answer=answer_of(what, errors.measure, [("the model", errors.error), *rivals_found]),
        worries=worries,
        tables=[facts({"judged on": where}), *tables],
        charts=charts,
        details=later,
        card=card_of(model, judged),
    )


def worries_of_sizes(store: BagStore) -> list[str]:
    """Warn if many bags have so few points that their densities are hardly known."""
    sizes = np.diff(store.offsets())[store.present()]
    n_small = int((sizes < FEW_POINTS).sum())
    if not n_small:
        return []
    return [
        f"{n_small:,} of {len(sizes):,} bags have fewer than {FEW_POINTS} points, and count as "
        "much as the others: weigh them (sample_weight)."
    ]


def _number_tables(errors: Errors, rivals: Mapping[str, Errors]) -> list[Table]:
    beside = {name: one.values() for name, one in rivals.items()}
    columns, tables = ["", "RMSE", "R²", "MAE", "mean error"], []
    for j, (name, found) in enumerate(errors.values().items()):
        spread: dict[str, float] = {}
        if j < errors.sample.true.shape[1]:
            gaps = errors.sample.predicted[:, j] - errors.sample.true[:, j]
            root = errors.n**0.5
            spread = {"mae": np.abs(gaps).std() / root, "bias": gaps.std() / root}
            spread["rmse"] = _rmse_error(errors, j)
        rmse, mae, bias = (_with(found[key], spread.get(key)) for key in ("rmse", "mae", "bias"))
        rows = [
            ["the model", rmse, found["r2"], mae, bias],
            ["the best constant", found["constant_rmse"], 0.0, None, 0.0],
        ]
        keys = ("rmse", "r2", "mae", "bias")
        rows[1:1] = [
            [text, *(of_targets[name][key] for key in keys)]
            for text, of_targets in beside.items()
            if name in of_targets
        ]
        tables.append(Table(f"Errors: {name}", columns, rows, INDEPENDENT))
    return tables


def _rmse_error(errors: Errors, j: int) -> float:
    """Return the standard error of target j's RMSE, from the sample of bags."""
    squares = (errors.sample.predicted[:, j] - errors.sample.true[:, j]) ** 2
    root = float(squares.mean()) ** 0.5
    return float(squares.std()) / errors.n**0.5 / (2 * root) if root else 0.0


def _with(value: float, spread: float | None) -> str:
    return f"{value:.4g}" if spread is None else f"{value:.4g} ± {spread:.2g}"


def _class_tables(
    errors: Errors, details: ClassDetails, rivals: Mapping[str, Errors]
) -> tuple[list[Table], float]:
    found = next(iter(errors.values().values()))
    spread = (errors.error * (1 - errors.error) / errors.n) ** 0.5
    rows = [
        ["the model", errors.n, _with(found["accuracy"], spread)],
        ["the most frequent class", errors.n, f"{1 - errors.constant_error:.4g}"],
    ]
    rows += [[text, one.n, f"{1 - one.error:.4g}"] for text, one in rivals.items()]
    of_classes = [[name, *values.values()] for name, values in found["per_class"].items()]
    columns = ["class", "precision", "recall", "F1", "bags"]
    tables = [
        Table(f"Accuracy: {details.name}", ["", "bags", "accuracy"], rows, INDEPENDENT),
        probability_table(errors, rivals),
        Table("Each class", columns, of_classes),
    ]
    return tables, 2 * spread


def probability_table(errors: Errors, rivals: Mapping[str, Errors]) -> Table:
    """Return the Brier score of the model and of the baselines; each bag counts once."""
    brier = errors.sample.predicted[:, 2]
    rows = [
        ["the model", _with(float(brier.mean()), float(brier.std()) / len(brier) ** 0.5)],
        ["the frequencies of the classes", f"{1 - float((errors.mean**2).sum()):.4g}"],
    ]
    rows += [[text, f"{one.sample.predicted[:, 2].mean():.4g}"] for text, one in rivals.items()]
    note = f"Brier score: squared distance from the truth, 0 is best and 2 worst. {INDEPENDENT}"
    return Table("Probabilities", ["", "Brier score"], rows, note)


def reliability(errors: Errors) -> Chart:
    """Return how often the predicted class is right, for groups of its probability."""
    sample = errors.sample
    right = sample.predicted[:, 0] == sample.true[:, 0]
    order = np.argsort(sample.predicted[:, 1], kind="stable")
    n_groups = max(1, min(MOST_GROUPS, len(order) // LEAST_GROUP))
    said, found, bars, titles = [], [], [], []
    for rows in np.array_split(order, n_groups):
        n, share = len(rows), float(right[rows].mean())
        said.append(float(sample.predicted[rows, 1].mean()))
        found.append(share)
        near = (n * share + 1) / (n + 2)  # a group without an error has an error bar too
        bars.append((near * (1 - near) / n) ** 0.5)
        titles.append(f"group of {n:,} bags: said {said[-1]:.3g}, right {share:.3g}")
    return Chart(
        "Calibration",
        "probability of the predicted class",
        "share that is right",
        [Series("", said, found, titles, bars, joined=True)],
        f"Dashed: as often right as said. Groups of equally many bags, {INDEPENDENT}",
        guide="diagonal",
    )


def _confusion(details: ClassDetails) -> Table:
    names, matrix = details.class_names, details.matrix
    if len(names) <= MOST_CLASSES:
        rows = [[name, *row] for name, row in zip(names, matrix.tolist(), strict=True)]
        note = "A row per true class, a column per predicted one."
        return Table("Confusion", ["true \\ predicted", *names], rows, note, shaded=True)
    wrong = matrix - np.diag(np.diag(matrix))
    most = np.argsort(-wrong, axis=None, kind="stable")[:N_WORST]
    pairs = [np.unravel_index(at, wrong.shape) for at in most]
    rows = [[names[i], names[j], int(wrong[i, j])] for i, j in pairs]
    return Table("Most frequent confusions", ["true", "predicted", "bags"], rows)


def _density_table(errors: Errors, rivals: Mapping[str, Errors]) -> Table:
    found = errors.values()["densities"]
    rows = [
        ["the model", found["mse"], found["r2"]],
        ["the bag's own density", found["input_mse"], found["input_r2"]],
        *([text, one.error, None] for text, one in rivals.items()),
        ["the average density", found["average_mse"], 0.0],
        ["noise of the responses", found["noise_mse"], None],
    ]
    columns = ["", "mean squared L2 distance", "R²"]
    return Table("Errors", columns, [row for row in rows if row[1] is not None])
