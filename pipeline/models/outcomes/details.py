"""Sums for reports of errors, in addition to the losses: one class for each kind of outcome."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.metrics import roc_auc_score

from ...core.arrays import Floats
from ...core.errors import shown, warn
from ...core.sums import Sums
from ...data.bags.bags import Bags
from ...data.bags.box import Box
from ...data.labelled.labelled import Batch
from ...embeddings.bases.coefficients import project
from ...embeddings.projection import ProjectionSpec
from ..verdict import r2_error, share_error

if TYPE_CHECKING:
    from ..errors import Errors, ErrorSample

Rows = Floats

SAMPLED_TARGETS = 9  # remembered for figures; more are never drawn
SAMPLED_CLASSES = 50  # whose probabilities are remembered for the AUC: 20 MB for 50,000 bags
_SHARE, BRIER, WEIGHT, FIRST_CLASS = 1, 2, 3, 4  # columns of what is remembered of a class
MIN_PROBABILITY = np.finfo(np.float64).eps  # in log losses, as in scikit-learn


def weighted_sum(rows: Rows, weights: Rows | None) -> Rows:
    """Σ w r over the rows (n, k), in double."""
    if weights is None:
        return np.asarray(rows.sum(axis=0, dtype=np.float64))
    return np.asarray(weights @ rows)


@dataclass(frozen=True)
class Judged:
    """A batch of bags that a model has predicted.

    Attributes
    ----------
    batch : Batch
        Batch with at least one label.
    scores, targets : float64, shape (n, k)
        Raw rows of the model, and encoded labels.
    weights : float64, shape (n,), or None
        Weights of the bags.
    names : tuple of str
        Names of the targets.
    class_names : tuple of str
        Names of the classes 0, 1, …
    box : Box
        Box of the bags.
    mean_targets : float64, shape (k,), or None
        `ScoringModel.mean_targets`.
    """

    batch: Batch
    scores: Rows
    targets: Rows
    weights: Rows | None
    names: tuple[str, ...]
    class_names: tuple[str, ...]
    box: Box
    mean_targets: Rows | None


@dataclass(frozen=True)
class Found:
    """Result of `Outcome.details`: details, and values of each bag for pictures, shape (n, ≤ 9)."""

    details: Details
    true: Rows
    predicted: Rows


class Details(Protocol):
    """Sums for one kind of outcome, in addition to the losses."""

    def __add__(self, other: Self) -> Self:
        """Return the details of both sets of bags."""
        ...

    def values(self, errors: Errors) -> dict[str, dict[str, Any]]:
        """Return the result of `Errors.values`."""
        ...

    def spreads(self, errors: Errors) -> dict[str, dict[str, float]]:
        """Return the result of `Errors.spreads`."""
        ...


@dataclass(frozen=True, eq=False)
class RealDetails(Sums):
    """Sums of |error| and of error, predicted − true, shape (k,)."""

    KEPT: ClassVar[tuple[str, ...]] = ("names",)
    names: tuple[str, ...]
    absolute: Rows
    signed: Rows

    def values(self, errors: Errors) -> dict[str, dict[str, Any]]:
        """Return all errors by the name of the target, in types that JSON knows."""
        errors_by_target, scores, references = {}, errors.scores, errors.references
        for j, name in enumerate(self.names):
            squares, scatter = float(errors.losses[j]), float(references[j])
            errors_by_target[name] = {
                "n": errors.n,
                "rmse": float(np.ldexp((squares / errors.weight) ** 0.5, errors.exponents[j])),
                "mae": float(self.absolute[j]) / errors.weight,
                "bias": float(self.signed[j]) / errors.weight,
                "r2": float(scores[j]),
                "constant_rmse": float(
                    np.ldexp((scatter / errors.weight) ** 0.5, errors.exponents[j])
                ),
            }
        return errors_by_target

    def spreads(self, errors: Errors) -> dict[str, dict[str, float]]:
        """Return standard errors of `values` by the name of the target, from the sample of bags."""
        gaps, root = errors.sample.predicted - errors.sample.true, errors.n**0.5
        values, spreads = self.values(errors), {}
        for name, rmse_error, gap in zip(self.names, errors.rmse_errors, gaps.T, strict=False):
            spreads[name] = {
                "rmse": float(rmse_error),
                "mae": float(np.abs(gap).std()) / root,
                "bias": float(gap.std()) / root,
                "r2": r2_error(values[name], rmse_error),
            }
        return spreads


@dataclass(frozen=True, eq=False)
class ClassDetails:
    """A confusion matrix over the classes of the model and other classes among the labels.

    Attributes
    ----------
    name : str
        Name of the target.
    codes : float64, shape (n_classes,)
        Codes of the classes, ascending.
    matrix : int64, or float64 for weighted bags, shape (n_classes, n_classes)
        Number or weight of bags, with a row per true class and a column per predicted class.
    labels : tuple of str
        Names of the classes 0, 1, …; classes without a name go by their number.
    known : float64, shape (number of classes of the model,)
        Codes of the classes of the model, in the order of its probabilities.
    log_loss : float
        Sum of −log of the probability of the true class; infinite with a class that the model does
        not know.
    """

    name: str
    codes: Rows
    matrix: NDArray[Any]
    labels: tuple[str, ...] = ()
    known: Rows = field(default_factory=lambda: np.empty(0))
    log_loss: float = 0.0

    @classmethod
    def count(
        cls,
        name: str,
        labels: tuple[str, ...],
        known: Rows,
        true: Rows,
        predicted: Rows,
        weights: Rows | None = None,
        log_loss: float = 0.0,
    ) -> ClassDetails:
        """Return the matrix of some bags, over the classes ``known`` and those of the bags."""
        codes = np.union1d(known, true)
        counts = np.ones(len(true), dtype=np.int64) if weights is None else weights
        matrix = np.zeros((len(codes), len(codes)), dtype=counts.dtype)
        np.add.at(matrix, (np.searchsorted(codes, true), np.searchsorted(codes, predicted)), counts)
        return cls(name, codes, matrix, labels, known, log_loss)

    def __add__(self, other: Self) -> Self:
        """Return the details of both sets of bags.

        A class that is in only one of the matrices has no bags in the other.
        """
        codes = np.union1d(self.codes, other.codes)
        matrix = np.zeros((len(codes), len(codes)), dtype=self.matrix.dtype)
        for part in (self, other):
            at = np.searchsorted(codes, part.codes)
            matrix[np.ix_(at, at)] += part.matrix
        log_loss = self.log_loss + other.log_loss
        return type(self)(self.name, codes, matrix, self.labels, self.known, log_loss)

    @property
    def class_names(self) -> list[str]:
        """Names of the classes, in the order of ``codes``."""
        return [self.call(code) for code in self.codes.tolist()]

    def call(self, code: float) -> str:
        """Return the name of a class, or its number."""
        if float(code).is_integer() and 0 <= code < len(self.labels):
            return self.labels[int(code)]
        return f"{code:g}"

    def warn_of_new(self) -> None:
        """Warn of bags whose class the model was not fitted to."""
        of_class = dict(zip(self.codes.tolist(), self.matrix.sum(axis=1).tolist(), strict=True))
        new = [code for code in np.setdiff1d(self.codes, self.known).tolist() if of_class[code]]
        if not len(self.known) or not new:
            return
        is_counted = self.matrix.dtype.kind == "i"  # not weighed
        n = (
            f"{sum(of_class[code] for code in new)} of {self.matrix.sum()}"
            if is_counted
            else "some"
        )
        such = [f", such as {self.call(code)!r}" for code in new if code >= 0]  # texts have no code
        warn(
            f"{self.name}: {n} bags have a class that the model was not fitted to"
            f"{such[0] if such else ''}, and count as wrong: write classes as the model's, "
            f"{shown([self.call(code) for code in self.known.tolist()])}, or leave these bags out"
        )

    def values(self, errors: Errors) -> dict[str, dict[str, Any]]:
        """Return all errors by the name of the target, in types that JSON knows."""
        hits = np.diag(self.matrix).astype(np.float64)
        true, predicted = self.matrix.sum(axis=1), self.matrix.sum(axis=0)
        precision = _divide(hits, predicted)
        recall = _divide(hits, true)
        f1 = _divide(2 * hits, true + predicted)
        per_class = {
            name: {
                "precision": float(precision[i]),
                "recall": float(recall[i]),
                "f1": float(f1[i]),
                "n": true[i].item(),
            }
            for i, name in enumerate(self.class_names)
        }
        return {
            self.name: {
                "n": errors.n,
                "accuracy": float(errors.scores[0]),
                "balanced_accuracy": float(recall.sum() / max(1, np.count_nonzero(true))),
                "log_loss": self.log_loss / errors.weight if np.isfinite(self.log_loss) else None,
                "auc": self.auc(errors.sample),
                "per_class": per_class,
                "confusion": self.matrix.tolist(),
            }
        }

    def auc(self, sample: ErrorSample) -> float | None:
        """Return the area under the ROC curve, from the sample of bags.

        With more than two classes, it is the mean over classes of the area of one class against the
        rest. None if it is not defined (bags of one class only), or with more than
        `SAMPLED_CLASSES` classes.
        """
        probabilities = sample.predicted[:, FIRST_CLASS:]
        if not probabilities.shape[1]:
            return None
        true = sample.true[:, 0]
        is_known = np.isin(true, self.known)
        true, probabilities = true[is_known], probabilities[is_known]
        weights = sample.predicted[is_known, WEIGHT]
        judged = range(1, 2) if len(self.known) == 2 else range(len(self.known))
        areas = [
            float(roc_auc_score(is_class, probabilities[:, j], sample_weight=weights))
            for j in judged
            for is_class in [true == self.known[j]]
            if weights[is_class].any() and weights[~is_class].any()
        ]
        return float(np.mean(areas)) if areas else None

    @staticmethod
    def brier(sample: ErrorSample) -> float:
        """Return the mean of Σ (probability − truth)² over classes, from the sample of bags."""
        columns = sample.predicted
        return float(np.average(columns[:, BRIER], weights=columns[:, WEIGHT]))

    def spreads(self, errors: Errors) -> dict[str, dict[str, float]]:
        """Return standard errors of some of `values`, and of the Brier score, by the target's name.

        They come from the sample of bags; the mapping is empty for weighted bags. The standard
        error of the AUC is DeLong's.
        """
        return {self.name: self._spreads(errors)}

    def _spreads(self, errors: Errors) -> dict[str, float]:
        sample, n = errors.sample, errors.n
        weights = sample.predicted[:, WEIGHT]
        if not n or (weights != 1).any():
            return {}
        right = sample.true[:, 0] == sample.predicted[:, 0]
        true = self.matrix.sum(axis=1)
        recall, seen = _divide(np.diag(self.matrix).astype(np.float64), true), true > 0
        spreads = {
            "accuracy": share_error(float(right.mean()), n),
            "brier": float(sample.predicted[:, BRIER].std()) / len(weights) ** 0.5,
        }
        of_recall = (recall * (1 - recall))[seen] / true[seen]
        spreads["balanced_accuracy"] = float(of_recall.sum() ** 0.5 / np.count_nonzero(seen))
        probabilities, places = sample.predicted[:, FIRST_CLASS:], _places(sample.true, self.known)
        if not probabilities.shape[1] or (places < 0).any():
            return spreads
        of_true = probabilities[np.arange(len(places)), places].clip(MIN_PROBABILITY)
        spreads["log_loss"] = float(np.log(of_true).std()) / n**0.5
        judged = range(1, 2) if len(self.known) == 2 else range(len(self.known))
        moved = [_placements(probabilities[:, j], places == j) for j in judged]
        known = [change for change in moved if change is not None]
        if known:
            spreads["auc"] = float((np.mean(known, axis=0) ** 2).sum() ** 0.5)
        return spreads


def _places(true: Rows, known: Rows) -> NDArray[np.int64]:
    """Return the places of classes among those of the model; -1 for others."""
    at = np.searchsorted(known, true[:, 0]).clip(0, len(known) - 1)
    return np.where(known[at] == true[:, 0], at, -1)


def _placements(scores: Rows, is_class: NDArray[np.bool_]) -> Rows | None:
    """Return the contribution of each bag to the area of a class; None without both classes."""
    n, m = np.count_nonzero(is_class), np.count_nonzero(~is_class)
    if not n or not m:
        return None
    below = rankdata(scores)
    share = np.empty(len(scores))
    share[is_class] = (below[is_class] - rankdata(scores[is_class])) / m
    share[~is_class] = 1 - (below[~is_class] - rankdata(scores[~is_class])) / n
    placements: Rows = (share - share[is_class].mean()) / np.where(is_class, n, m)
    return placements


def determination(
    losses: Rows | float, references: Rows | float, rounding: Rows | float = 0.0
) -> Rows:
    """Return 1 − loss / reference; if the reference is 0, 1 without loss and 0 with a loss.

    scikit-learn's R² also scores equal labels like this. Values up to ``rounding`` count as 0.
    """
    losses, references = np.asarray(losses, float), np.asarray(references, float)
    is_equal = references <= rounding
    shares = losses / np.where(is_equal, 1.0, references)
    return np.asarray(1.0 - np.where(is_equal, losses > rounding, shares))


@dataclass(frozen=True)
class DensityDetails(Sums):
    """Sums of squared L2 distances on the unit cube to the series of the responses.

    Attributes
    ----------
    average : float
        Error of the average response density of the bags fitted.
    own : float
        Error of the bag's own density; NaN where bags and responses do not share a box.
    noise : float
        Distance from the series of a Poisson sample, of as many points, to the series of its
        density, from the variance of the basis functions over the points. It is a lower bound of
        the error only if the points of a response are drawn independently of those of the bag.
    """

    average: float
    own: float
    noise: float

    def values(self, errors: Errors) -> dict[str, dict[str, Any]]:
        """Return all errors by the name of the target, in types that JSON knows."""
        n, model = errors.weight, float(errors.losses.sum())
        comparable = bool(np.isfinite(self.own))
        return {
            "densities": {
                "n": errors.n,
                "mse": model / n,
                "average_mse": self.average / n,
                "input_mse": self.own / n if comparable else None,
                "noise_mse": self.noise / n,
                "r2": float(errors.scores[0]),
                "input_r2": float(determination(self.own, self.average)) if comparable else None,
            }
        }

    def spreads(self, errors: Errors) -> dict[str, dict[str, float]]:
        """Return standard errors of the mean squared distances, from the sample of bags."""
        sample, root = errors.sample, errors.n**0.5
        named = {"mse": sample.predicted, "average_mse": sample.true}
        return {"densities": {key: float(column.std()) / root for key, column in named.items()}}


def _divide(numerator: NDArray[Any], denominator: NDArray[Any]) -> NDArray[Any]:
    """Divide; 0 where the denominator is 0."""
    ratios = np.zeros(len(numerator))
    np.divide(numerator, denominator, out=ratios, where=denominator > 0)
    return ratios


def sampling_noise(
    spec: ProjectionSpec, responses: Bags, coefficients: Rows, weights: Rows | None = None
) -> float:
    """Sum w Σ_α Var(φ_α) / m over the responses that have m ≥ 2 points, estimated from these."""
    squares = np.empty_like(coefficients)
    project_bags(spec, responses, squares, drop=spec.out_of_box == "drop", squared=True)
    several = responses.sizes > 1
    variance = (squares - coefficients**2)[several].sum(axis=1)
    noise = variance / (responses.sizes[several] - 1)
    return float(weighted_sum(noise, None if weights is None else weights[several]))


def project_bags(spec: ProjectionSpec, bags: Bags, out: Rows, **options: bool) -> None:
    """Write the projections of bags on the basis of a spec into ``out``."""
    project(bags, spec.indices, spec.groups, spec.basis, spec.box, out, **options)
