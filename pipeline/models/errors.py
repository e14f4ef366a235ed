"""`Errors`: the errors of a model on some bags; errors on two sets of bags can be added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..core import documented
from ..core.arrays import Floats, Integers
from ..core.digits import rounded, with_error
from ..core.units import in_units
from ..data.bags.html import html_table
from ..data.labelled.splits import hash_index
from .outcomes.base import Outcome
from .outcomes.details import DensityDetails, Details, RealDetails
from .predictions.outside import Outside
from .verdict import ERROR_RATE, RIVALS, bags_in_words, share_error, targets_in_words, verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SAMPLE_SIZE = 50_000  # bags remembered for figures: more dots hide each other
_SAMPLE_SEED = 3  # differs from those of the splits, whose bags are samples of their own


@dataclass(frozen=True, eq=False)
class ErrorSample:
    """A uniform random sample of bags, which does not depend on how the pass was divided.

    Attributes
    ----------
    index : int64, shape (n,)
        Positions of the bags, ascending.
    true, predicted : float64, shape (n, number of targets)
        True and predicted values of the first nine targets. A class is given by its code. The
        predicted class is followed by its probability, by the Brier score Σ (probability − truth)²
        over classes, by the weight of the bag, and, with at most 50 classes, by the probability of
        each class. For densities, ``predicted`` is the squared L2 distance from the predicted
        density to the density of the response, and ``true`` the distance from the average density.
    """

    index: Integers
    true: Floats
    predicted: Floats

    def __add__(self, other: Self) -> ErrorSample:
        """Return the bags with the smallest random numbers among those of both."""
        index = np.concatenate([self.index, other.index])
        chosen = np.argsort(index, kind="stable")
        if len(index) > SAMPLE_SIZE:
            numbers = hash_index(index[chosen].astype(np.uint64), _SAMPLE_SEED)
            chosen = chosen[np.sort(np.argpartition(numbers, SAMPLE_SIZE)[:SAMPLE_SIZE])]
        true = np.concatenate([self.true, other.true])
        predicted = np.concatenate([self.predicted, other.predicted])
        return ErrorSample(index[chosen], true[chosen], predicted[chosen])


def standard_error_of(key: str, spreads: Mapping[str, float]) -> float | None:
    """Return the standard error that sets the digits of a measure.

    The error of a constant has the digits of the error of the model.
    """
    return spreads.get(key.removeprefix("constant_"))


def measures_in_words(values: Mapping[str, Any], spreads: Mapping[str, float]) -> str:
    """Return measures as text by their keys, rounded as their standard errors allow.

    The first measure has its standard error next to it.
    """
    texts: list[str] = []
    for key, value in values.items():
        if key == "n" or not isinstance(value, (int, float)):
            continue
        spread = standard_error_of(key, spreads)
        texts.append(f"{key} {rounded(value, spread) if texts else with_error(value, spread)}")
    return ", ".join(texts)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Errors:
    """Result of `evaluate`: the errors of a model on labelled bags.

    Attributes
    ----------
    outcome : Outcome
        Kind of labels that the model predicts.
    n : int
        Number of labelled bags.
    n_unlabelled : int
        Number of bags left out because they have no label.
    exponents : int64, shape (k,)
        Exponents e of the units 2^e of the next three arrays: 0 for targets between 2^-64 and 2^64,
        for classes and for densities.
    losses : shape (k,), or (1,) for classes
        Sums of `Outcome.losses` over the bags.
    mean, scatter : shape (k,)
        Mean of the encoded labels, and their sum of squares about the mean.
    details : Details
        Sums for the errors of this kind of labels, such as the confusion matrix of classes.
    sample : ErrorSample
        Labels and predictions of a sample of bags, for pictures.
    subset : {"all", "holdout", "train"}
        Subset of the bags that was evaluated.
    weights : float, optional
        Sum of the weights of the bags. All sums and means are weighted. None: all weights are 1.
    outside : Outside
        Bags with many points outside the box.

    See Also
    --------
    bagbasis.evaluate : Errors on labelled bags.
    judge_fit : Compare a fit with simple baselines.
    bagbasis.plotting.plot_predictions : Plot predicted against true values.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import DoubleBasisRegressor, evaluate
    >>> model = DoubleBasisRegressor('moments').fit(X[:60], y[:60])
    >>> errors = evaluate(model, X[60:], y[60:])
    >>> errors.n, bool(errors.error < errors.constant_error)
    (20, True)
    """

    outcome: Outcome
    n: int
    n_unlabelled: int
    exponents: Integers
    losses: Floats
    mean: Floats
    scatter: Floats
    details: Details
    sample: ErrorSample
    subset: str = "all"
    weights: float | None = None
    outside: Outside = field(default=Outside())

    @property
    def weight(self) -> float:
        """Total weight of the bags; their number where they have no weights."""
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
            outcome=self.outcome,
            n=n,
            n_unlabelled=self.n_unlabelled + other.n_unlabelled,
            exponents=exponents,
            losses=a.losses + b.losses,
            mean=a.mean + shift * share,
            scatter=a.scatter + b.scatter + shift**2 * (self.weight * share),
            details=self.details + other.details,
            sample=self.sample + other.sample,
            weights=None if self.weights is None else weight,
            outside=self.outside + other.outside,
        )

    def in_units(self, exponents: Integers) -> Errors:
        """Return the errors in other units, none of which is smaller than before."""
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
    def standard_error(self) -> float | None:
        """The standard error of `error` for independent bags, or None if it is not known.

        The standard error is known for bags without weights: for up to nine targets, for the error
        rate of classes, and for densities.
        """
        if self.weights is not None or not self.n:
            return None
        if self.measure == ERROR_RATE:
            return share_error(self.error, self.n)
        if isinstance(self.details, DensityDetails):
            return self.spreads["densities"]["mse"]
        true, predicted = self.sample.true, self.sample.predicted
        n_targets = self.outcome.n_targets
        if not isinstance(self.details, RealDetails) or true.shape[1] != n_targets:
            return None
        if n_targets == 1:
            return float(self.rmse_errors[0])
        variances = np.ldexp(self.scatter / self.weight, 2 * self.exponents)
        losses = (predicted - true) ** 2 / np.where(variances > 0, variances, 1.0)
        means, root = losses.mean(axis=1), float(np.sqrt(losses.mean()))
        return float(means.std()) / (2 * root * self.n**0.5) if root else 0.0

    @property
    def rmse_errors(self) -> Floats:
        """Standard errors of the RMSE of the first nine targets, from the sample of bags."""
        squares = (self.sample.predicted - self.sample.true) ** 2
        roots = np.sqrt(squares.mean(axis=0))
        spread = squares.std(axis=0) / self.n**0.5
        errors: Floats = np.divide(spread, 2 * roots, out=np.zeros(len(roots)), where=roots > 0)
        return errors

    @property
    def spreads(self) -> dict[str, dict[str, float]]:
        """Standard errors of some of `values` by target, for independent bags.

        The mapping is empty for weighted bags.
        """
        return {} if self.weights is not None or not self.n else self.details.spreads(self)

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
        """Name of the measure that `error` gives."""
        return self.outcome.measure

    def verdict(self) -> str:
        """Return a sentence on the error, next to that of the best constant."""
        names = targets_in_words(list(self.values()))
        where = bags_in_words(self.n, self.subset == "holdout")
        errors = [("the model", self.error), (RIVALS["constant_error"], self.constant_error)]
        return verdict(names, self.measure, where, errors, self.standard_error)

    def __repr__(self) -> str:
        """Return the errors of each target as text, without the sample and the sums."""
        lines = "; ".join(f"{name}: {text}" for name, text in self._lines().items())
        return f"Errors({self.n:,} bags, subset={self.subset!r}; {lines})"

    def _repr_html_(self) -> str:
        """Show the same as a table in a notebook."""
        rows = {"bags": self.n, "without a label": self.n_unlabelled, "subset": self.subset}
        return html_table("Errors", {**rows, **self._lines()})

    def _lines(self) -> dict[str, str]:
        """Return the errors of each target as lines of text."""
        spreads = self.spreads
        return {
            name: measures_in_words(numbers, spreads.get(name, {}))
            for name, numbers in self.values().items()
        }

    @documented
    def plot(self, target: int = 0, *, ax: Axes | None = None) -> Axes:
        """Draw predictions against true values, calibration of classes, or errors of densities.

        For densities, each dot is a bag: the squared L2 distance to its response of the predicted
        density, against that of the average density.

        Parameters
        ----------
        target
            Position of the target, for a regressor.
        ax : matplotlib Axes
            Axes to draw into; default those of a new figure.

        Raises
        ------
        DataError
            If matplotlib is not installed (``pip install 'bagbasis[plots]'``).
        ParameterError
            If there is no such target.
        """
        from ..plotting.predictions import plot_errors  # noqa: PLC0415 - an extra

        return plot_errors(self, target, ax=ax)

    @property
    def references(self) -> Floats:
        """Sums of the reference losses in `scores`; see `Outcome.references`."""
        return self.outcome.sum_references(self)

    @property
    def scores(self) -> Floats:
        """R² of each target or of the densities, or the accuracy; shape (number scored,).

        If all labels are equal, the score is 1 for exact predictions, else 0.
        """
        return self.outcome.score(self)

    @property
    def score(self) -> float:
        """The mean of `scores`, which the ``score`` methods of the estimators return."""
        return float(np.mean(self.scores))

    def values(self) -> dict[str, dict[str, Any]]:
        """Return all errors by the name of the target, in types that JSON knows.

        For a numeric target:

        - ``n``, ``rmse``, ``mae``, ``bias``
        - ``constant_rmse``: the error of the best constant for these bags, the mean of their labels
        - ``r2``: 1 − (rmse / constant_rmse)²; if all labels are equal, 1 for exact predictions,
          else 0

        For classes:

        - ``n``, ``accuracy``
        - ``balanced_accuracy``: the mean recall of the classes that have bags
        - ``log_loss``: None if bags have a class that the model does not know
        - ``auc``: the area under the ROC curve, from the `sample` of at most 50,000 bags; with more
          than two classes, the mean of each class against the rest; None if it is not defined, or
          with more than 50 classes
        - ``per_class``: precision, recall and f1, which are 0 where undefined, and the number of
          bags
        - ``confusion``: a row per true class

        For densities, under the name ``densities``:

        - ``n``
        - ``*_mse``: mean squared L2 distances on the unit cube to the series of the responses
        - ``r2``: R² of the model against the average density
        - ``input_r2``: R² of the bag's own density against the average density
        """
        return self.details.values(self)
