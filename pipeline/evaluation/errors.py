"""`Errors`: how wrong a model is on some bags; the errors on two sets of bags can be added."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, Integers
from ..bags.splits import hash_index
from ..regression.outcomes import Outcome, Reals
from ..units import in_units, units_of_labels

SAMPLE_SIZE = 50_000  # bags remembered for pictures: more dots hide each other
SAMPLED_TARGETS = 9  # of them; more are never drawn
SAMPLE_SEED = 3  # apart from those of the splits, whose bags are samples of their own

ROUNDING = 1e-14  # a smaller spread of targets, relative to their mean, counts as none

Rows = Floats


def exponents_of(outcome: Outcome, targets: Rows, scores: Rows | None = None) -> Integers:
    """Return the units of encoded labels (n, k): 2^e of numbers, 1 of all else.

    ``scores`` are what is predicted, whose units columns of zeros have.
    """
    if not isinstance(outcome, Reals):
        return np.zeros(targets.shape[1], dtype=np.int64)
    return units_of_labels(targets, targets if scores is None else scores)


@dataclass(frozen=True, eq=False)
class Sample:
    """A uniform random sample of bags, the same however the pass over them was cut.

    Attributes
    ----------
    index : int64, shape (n,)
        Positions of the bags, ascending.
    true, predicted : float64, shape (n, number of targets)
        Of the first nine targets. Of a class its code; the predicted one is followed by the share
        that the model gives it, in [0, 1], and by the Brier score, Σ (share − truth)² over classes.
    """

    index: Integers
    true: Rows
    predicted: Rows

    def __add__(self, other: Self) -> Sample:
        """Return the bags with the smallest random numbers among those of both."""
        index = np.concatenate([self.index, other.index])
        kept = np.argsort(index, kind="stable")
        if len(index) > SAMPLE_SIZE:
            numbers = hash_index(index[kept].astype(np.uint64), SAMPLE_SEED)
            kept = kept[np.sort(np.argpartition(numbers, SAMPLE_SIZE)[:SAMPLE_SIZE])]
        true = np.concatenate([self.true, other.true])
        predicted = np.concatenate([self.predicted, other.predicted])
        return Sample(index[kept], true[kept], predicted[kept])


class Details(Protocol):
    """What is counted for one kind of outcome beside the losses."""

    def __add__(self, other: Self) -> Self:
        """Return the details of both sets of bags."""
        ...

    def values(self, errors: Errors) -> dict[str, dict[str, Any]]:
        """Return what `Errors.values` gives."""
        ...


@dataclass(frozen=True, eq=False)
class Errors:
    """The errors of a model on a set of labelled bags: sums in float64.

    Attributes
    ----------
    outcome : Outcome
    n : int
        Labelled bags.
    n_unlabelled : int
        Bags left out because they have no label.
    exponents : int64, shape (k,)
        Of the units 2^e that the next three are in: 0 of numbers between 2^-64 and 2^64, and of
        all that are no numbers.
    losses : shape (k,), or (1,) of classes
        Sums of `Outcome.losses`.
    mean, scatter : shape (k,)
        Of the encoded labels: their mean, and sum of squares about it.
    details : Details
    sample : Sample
        For pictures.
    subset : {"all", "holdout", "train"}
        What `evaluate` has chosen, or was given.
    weights : float, optional
        Sum of the bags' weights, by which all sums and means are; None: all are 1.
    """

    outcome: Outcome
    n: int
    n_unlabelled: int
    exponents: Integers
    losses: Rows
    mean: Rows
    scatter: Rows
    details: Details
    sample: Sample
    subset: str = "all"
    weights: float | None = None

    @property
    def weight(self) -> float:
        """Of the bags; their number where they have no weights."""
        return self.n if self.weights is None else self.weights

    def __add__(self, other: Self) -> Errors:
        """Return the errors on both sets of bags.

        Means and scatters are merged as Chan, Golub and LeVeque do, which keeps their digits.
        """
        exponents = np.maximum(self.exponents, other.exponents)
        a, b = self.in_units(exponents), other.in_units(exponents)
        n, weight = self.n + other.n, self.weight + other.weight
        shift = b.mean - a.mean
        share = other.weight / weight if weight else 0.0
        return Errors(
            self.outcome,
            n,
            self.n_unlabelled + other.n_unlabelled,
            exponents,
            a.losses + b.losses,
            a.mean + shift * share,
            a.scatter + b.scatter + shift**2 * (self.weight * share),
            self.details + other.details,
            self.sample + other.sample,
            weights=None if self.weights is None else weight,
        )

    def in_units(self, exponents: Integers) -> Errors:
        """Return the same in other units, none of them smaller."""
        shift = exponents - self.exponents
        return replace(
            self,
            exponents=exponents,
            losses=in_units(self.losses, 2 * shift),
            mean=in_units(self.mean, shift),
            scatter=in_units(self.scatter, 2 * shift),
        )

    @property
    def error(self) -> float:
        """The error as one number, see `measure`; lower is better."""
        error = self.outcome.error(self.losses / self.weight, self.scatter / self.weight)
        return self._in_numbers(error)

    @property
    def constant_error(self) -> float:
        """The error of the best constant prediction for these bags."""
        error = self.outcome.constant_error(self.mean, self.scatter / self.weight)
        return self._in_numbers(error)

    def _in_numbers(self, error: float) -> float:
        """Return the error of one target without its unit; one of several has none."""
        return float(np.ldexp(error, self.exponents[0])) if len(self.exponents) == 1 else error

    @property
    def measure(self) -> str:
        """What `error` is, in words."""
        return self.outcome.measure

    def values(self) -> dict[str, dict[str, Any]]:
        """Return all errors by the name of the target, in types that JSON knows.

        - of a number ``n``, ``rmse``, ``mae``, ``bias``, ``r2`` and ``constant_rmse``, the error
          of the best constant for these bags, their mean; ``r2`` is 1 − (rmse / constant_rmse)²,
          None where all targets are equal
        - of classes ``n``, ``accuracy``, ``per_class`` (precision, recall, f1, 0 where undefined,
          and the number of bags) and ``confusion``, a row per true class
        - of densities, under the name ``densities``, ``n``, mean squared L2 distances on the unit
          cube to the responses' series, ``*_mse``, and determinations against the average density:
          ``r2`` of the model, ``input_r2`` of the bag's own density
        """
        return self.details.values(self)


@dataclass(frozen=True, eq=False)
class RealDetails:
    """Sums of |error| and of error, predicted − true, shape (k,)."""

    names: tuple[str, ...]
    absolute: Rows
    signed: Rows

    def __add__(self, other: Self) -> Self:
        """See `Details`."""
        signed = self.signed + other.signed
        return type(self)(self.names, self.absolute + other.absolute, signed)

    def values(self, errors: Errors) -> dict[str, dict[str, Any]]:
        """See `Errors.values`."""
        found = {}
        for j, name in enumerate(self.names):
            squares, scatter = float(errors.losses[j]), float(errors.scatter[j])
            if scatter <= errors.weight * (ROUNDING * errors.mean[j]) ** 2:
                scatter = 0.0
            found[name] = {
                "n": errors.n,
                "rmse": float(np.ldexp((squares / errors.weight) ** 0.5, errors.exponents[j])),
                "mae": float(self.absolute[j]) / errors.weight,
                "bias": float(self.signed[j]) / errors.weight,
                "r2": 1.0 - squares / scatter if scatter > 0 else None,
                "constant_rmse": float(
                    np.ldexp((scatter / errors.weight) ** 0.5, errors.exponents[j])
                ),
            }
        return found


@dataclass(frozen=True, eq=False)
class ClassDetails:
    """A confusion matrix over the model's classes and whatever other labels there are.

    Attributes
    ----------
    name : str
        The target's.
    codes : float64, shape (n_classes,)
        Ascending.
    matrix : int64, or float64 of weighted bags, shape (n_classes, n_classes)
        A row per true class, a column per predicted one.
    labels : tuple of str
        What people call the classes 0, 1, …; others go by their number.
    """

    name: str
    codes: Rows
    matrix: NDArray[Any]
    labels: tuple[str, ...] = ()

    @classmethod
    def count(
        cls,
        name: str,
        labels: tuple[str, ...],
        known: Rows,
        true: Rows,
        predicted: Rows,
        weights: Rows | None = None,
    ) -> ClassDetails:
        """Return the matrix of some bags, over the classes ``known`` and theirs."""
        codes = np.union1d(known, true)
        counts = np.ones(len(true), dtype=np.int64) if weights is None else weights
        matrix = np.zeros((len(codes), len(codes)), dtype=counts.dtype)
        np.add.at(matrix, (np.searchsorted(codes, true), np.searchsorted(codes, predicted)), counts)
        return cls(name, codes, matrix, labels)

    def __add__(self, other: Self) -> Self:
        """See `Details`; a class that only one of them knows has no bags in the other."""
        codes = np.union1d(self.codes, other.codes)
        matrix = np.zeros((len(codes), len(codes)), dtype=self.matrix.dtype)
        for part in (self, other):
            at = np.searchsorted(codes, part.codes)
            matrix[np.ix_(at, at)] += part.matrix
        return type(self)(self.name, codes, matrix, self.labels)

    @property
    def class_names(self) -> list[str]:
        """What people call the classes, in the order of ``codes``."""
        return [self.call(code) for code in self.codes.tolist()]

    def call(self, code: float) -> str:
        """Return what people call a class: its name, or the number."""
        if float(code).is_integer() and 0 <= code < len(self.labels):
            return self.labels[int(code)]
        return f"{code:g}"

    def values(self, errors: Errors) -> dict[str, dict[str, Any]]:
        """See `Errors.values`."""
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
                "accuracy": float(hits.sum() / true.sum()),
                "per_class": per_class,
                "confusion": self.matrix.tolist(),
            }
        }


@dataclass(frozen=True)
class DensityDetails:
    """What needs no model: sums of squared L2 distances on the unit cube to the response's series.

    Attributes
    ----------
    average : float
        Of the average response density of the bags fitted.
    own : float
        Of the bag's own density; NaN where bags and responses do not share a box.
    noise : float
        How far the series of a Poisson sample of as many points lies from that of its density, by
        the variance of the functions over the points: a floor of the error only where a
        response's points are drawn independently of the bag's.
    """

    average: float
    own: float
    noise: float

    def __add__(self, other: Self) -> Self:
        """See `Details`."""
        return type(self)(
            self.average + other.average, self.own + other.own, self.noise + other.noise
        )

    def values(self, errors: Errors) -> dict[str, dict[str, Any]]:
        """See `Errors.values`."""
        n, model = errors.weight, float(errors.losses.sum())
        comparable = bool(np.isfinite(self.own))
        return {
            "densities": {
                "n": errors.n,
                "mse": model / n,
                "average_mse": self.average / n,
                "input_mse": self.own / n if comparable else None,
                "noise_mse": self.noise / n,
                "r2": 1 - model / self.average,
                "input_r2": 1 - self.own / self.average if comparable else None,
            }
        }


def _divide(numerator: NDArray[Any], denominator: NDArray[Any]) -> NDArray[Any]:
    """Divide; 0 where the denominator is 0."""
    return np.divide(numerator, denominator, out=np.zeros(len(numerator)), where=denominator > 0)
