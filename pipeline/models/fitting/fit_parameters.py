"""`FitParameters`: the parameters of an estimator as a value, and quantities derived from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ...core import ConstraintTable
from ...core.arrays import Floats, as_array
from ...core.errors import DataError, ParameterError, shown
from ...data.labelled.holdout import Holdout, HoldoutLike
from ...embeddings.base import Embedding
from ...embeddings.random_features.base import RandomFeatures
from ...execution.passes import FEWER_FEATURES, GIB, check_memory
from ..outcomes.base import Outcome
from ..ridge.linear_columns import LINEAR
from ..ridge.penalties import Penalties
from ..ridge.ridge import rows_serve, solve_bytes, targets_bytes
from ..ridge.rows import RidgeRows
from ..ridge.summary import Summary
from .feature_map import FeatureMap
from .fold_errors import choice_bytes

AUTO = "auto"  # the embedding, or the way to choose a penalty, that is chosen from the data
GCV, _FOLDS = "gcv", "folds"  # the ways to choose a penalty that hold no bags out
FOLDED_BAGS = 4096  # four per landmark; with 3,000 bags of unequal noise, GCV's error is 1 % larger
MAX_TARGETS = 2**16  # columns: all genes of a genome; every pass, report and answer has them all
# Landmarks of a fit that is given no random features. Twice as many random frequencies had more
# error on digits, mixtures, filters and groups (`bags experiment embeddings`), and took more time.
MAX_LANDMARKS = 1024
FEWER_TARGETS = "fit some of the columns at a time (target=[...]), with one embedding for all fits"
MAX_ALPHA = 1e100  # squares of penalties, times sums of squares, still fit into a double

PenaltiesLike = Sequence[float] | Floats


@dataclass(frozen=True, eq=False)
class FitParameters:
    """The parameters of an estimator, and the kind of outcome that it learns.

    ``table`` has the constraint of each parameter, as the estimator declares it. All fields
    but the first two are parameters of the constructor, see `DoubleBasisRegressor`. Only a
    classifier has ``class_weight``, and only a `TripleBasisRegressor` has ``response_embedding``.
    """

    learns: type[Outcome]
    table: ConstraintTable
    embedding: Embedding | str | None
    random_features: RandomFeatures | Literal[False] | None
    alpha: str | float | PenaltiesLike
    alphas: PenaltiesLike | None
    validation_fraction: float
    precision: str
    solver: str
    rank: int | None
    uncertainty: bool
    baseline: str | None
    class_weight: str | Mapping[Any, float] | None = None
    response_embedding: Embedding | None = None
    head: str = "ridge"

    @property
    def is_automatic(self) -> bool:
        """Whether the embedding is chosen from the data."""
        return isinstance(self.embedding, str) and self.embedding == AUTO

    @property
    def has_automatic_penalty(self) -> bool:
        """Whether the rule for the penalty depends on the number of bags."""
        return isinstance(self.alpha, str) and self.alpha == AUTO

    def alpha_for(self, n_bags: int) -> str | float | PenaltiesLike:
        """Return the penalty, or the rule that chooses it, for this number of labelled bags.

        With at most 4,096 bags, "auto" is "folds". With ``embedding="auto"``, "gcv" is also
        "folds", as in versions without "auto". With a baseline and for densities, "auto" is "gcv".

        GCV assumes that all bags are equally noisy and equally far from other bags. With few bags
        and many features, the noisiest bags are often the farthest. The penalty is then a
        thousandth of the right one, and squared errors are up to twice as large.
        """
        if not isinstance(self.alpha, str) or self.alpha not in (AUTO, GCV):
            return self.alpha
        folds_serve = self.learns.has_folded_penalties and self.baseline is None
        by_folds = self.is_automatic or (self.alpha == AUTO and folds_serve)
        return _FOLDS if by_folds and n_bags <= FOLDED_BAGS else GCV

    @property
    def is_path(self) -> bool:
        """Whether several penalties can be tried."""
        return isinstance(self.alpha, str) or np.size(self.alpha) > 1

    @property
    def is_judged(self) -> bool:
        """Whether the penalty is chosen by its error on held-out bags."""
        return isinstance(self.alpha, str) and self.alpha in self.learns.judged_penalties

    @property
    def is_folded(self) -> bool:
        """Whether the penalty is chosen by folds for any number of bags."""
        return isinstance(self.alpha, str) and self.alpha == _FOLDS

    @property
    def has_default_grid(self) -> bool:
        """Whether the penalties tried are the default ones, which depend on the number of bags."""
        return isinstance(self.alpha, str) and self.alphas is None

    @property
    def of_sums(self) -> str:
        """First parameter, with its value, that needs sums or rows; "" if no parameter does."""
        if self.baseline is not None:
            return f"baseline={self.baseline!r}"
        return "uncertainty=True" if self.uncertainty else ""

    @property
    def rounding(self) -> float:
        """Fraction of the trace of ZᵀZ below which eigenvalues come from rounding of products."""
        return 1e-7 if self.precision == "float32" else 1e-14

    def keeps_rows(self, n_bags: int, features: FeatureMap) -> bool:
        """Return whether a fit to this number of bags keeps rows instead of sums."""
        return rows_serve(n_bags, features.n_features, self.is_path)

    def penalties(self, train: Summary) -> Penalties:
        """Return the penalties that can be tried for these rows."""
        if self.has_default_grid:
            return Penalties.default(train.weight, self.precision, is_summed(train))
        return Penalties(self.given_penalties())

    def given_penalties(self) -> Floats:
        """Return the penalties given as numbers, shape (n,); else the default grid of one row."""
        values: float | PenaltiesLike
        if isinstance(self.alpha, str):
            if self.alphas is None:
                return Penalties.default(1, "float64", is_summed=False).values
            values = self.alphas
        else:
            values = self.alpha
        try:
            return as_array("alpha", values, np.float64).reshape(-1)
        except DataError:
            raise ParameterError(f"penalties are {shown(values)}; expected numbers ≥ 0") from None

    def check_memory(
        self,
        features: FeatureMap,
        n_rows: int | None = None,
        n_targets: int = 1,
        n_parts: int = 1,
    ) -> None:
        """Raise ParameterError if this process cannot solve for so many features and targets.

        ``n_rows`` is the number of bags whose rows are kept instead of their sums. ``n_parts`` is
        the number of parts of the bags with separate sums or rows.
        """
        d = features.n_features
        by_vectors = self.is_path or self.uncertainty or self.alpha == 0
        needed = solve_bytes(d, by_vectors, n_rows, n_parts)
        if self.of_sums:
            needed += 8 * d * (d if n_rows is None else n_rows)
        of_targets = targets_bytes(d, n_targets, n_parts, n_rows)
        what, advice = f"solving for {d:,} features", FEWER_FEATURES
        if of_targets > needed:
            what, advice = f"{what} and {n_targets:,} target columns", FEWER_TARGETS
        check_memory(what, needed + of_targets, advice)

    def check_targets(self, n_bags: int, n_targets: int) -> None:
        """Raise ParameterError if there are too many target columns, before bags are read.

        The memory is computed for the features that the parameters name. If the data decide their
        number, it is computed for 1 feature.
        """
        features = self.random_features
        d = min(n_bags, MAX_LANDMARKS) if features is None else getattr(features, "n_features", 1)
        n_features = int(d) if isinstance(d, (int, np.integer)) else 1
        n_rows = n_bags if rows_serve(n_bags, n_features, self.is_path) else None
        needed = targets_bytes(n_features, n_targets, 1, n_rows)
        if self.is_automatic:
            needed += choice_bytes(n_bags, n_targets)
        what = f"a fit of {n_targets:,} target columns to {n_bags:,} bags"
        if n_targets > MAX_TARGETS:
            raise ParameterError(
                f"{what} needs at least {needed / GIB:.3g} GiB: {FEWER_TARGETS}, at most "
                f"{MAX_TARGETS:,} in a fit"
            )
        if n_targets > n_features:
            check_memory(what, needed, FEWER_TARGETS)

    def check(self, holdout: HoldoutLike) -> None:
        """Raise ParameterError if no fit accepts a parameter, before any bag is read."""
        for name, constraint in self.table.items():
            constraint.check(name, getattr(self, name))
        if self.alphas is not None and not isinstance(self.alpha, str):
            ways = (AUTO, GCV, _FOLDS, *self.learns.judged_penalties)
            named = " or ".join(f"'{name}'" for name in ways)
            raise ParameterError(f"alphas is the grid of alpha={named}")
        grid = self.given_penalties()
        if not (grid <= MAX_ALPHA).all():
            penalties = self.alpha if self.alphas is None else self.alphas
            most = f"finite numbers ≥ 0, at most {MAX_ALPHA:g}"
            raise ParameterError(f"penalties are {shown(penalties)}; expected {most}")
        if grid.size > 1 and (grid == 0).any():
            raise ParameterError("a grid of alphas has only numbers > 0; alpha=0 alone is OLS")
        if self.baseline is not None:
            self._check_baseline()
        if self.uncertainty and self.head != "ridge":
            raise ParameterError(
                f"uncertainty=True is of a ridge, and head is {self.head!r}: leave one of them "
                "out; predict_interval has intervals for any model of numbers"
            )
        Holdout.of(holdout)

    def _check_baseline(self) -> None:
        if self.is_folded:
            raise ParameterError(
                f"alpha='folds' does not work with a baseline: give alpha={GCV!r} or 'validation'"
            )
        if self.uncertainty:
            raise ParameterError(
                "uncertainty=True does not work with a baseline: leave one of them out; "
                "predict_interval has intervals for any model of numbers"
            )
        if self.baseline == LINEAR and self.random_features is False:
            raise ParameterError(
                "baseline='linear' adds to random features, and random_features is "
                "False: the model is linear without it"
            )


def is_summed(summary: Summary) -> bool:
    """Whether a summary has sums of products, in the working precision, instead of rows."""
    return not isinstance(summary, RidgeRows)
