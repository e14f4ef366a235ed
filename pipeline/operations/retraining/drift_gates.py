"""The drift gates: tests for drift of the bags, of their labels, and of the relation of the two.

Three tests by permutation, with the bag as the unit, of the new bags against the window before.

- ``inputs``: the bags' embeddings, at many widths (`drift_test`).
- ``labels``: the labels, in the same way.
- ``concept``: what a champion's residual r owes to the bag, E[r z(A)], has changed. z are its
  features, so that this is HSIC by random features with a linear kernel of the residual; it is
  about 0 while the champion is right, whatever bags come and however noisy labels are. The
  residuals are out of sample: before, of bags held out; now, of bags that came after the champion.
  A test of the new bags alone would find every champion that is a little wrong, on every day.

A gate alarms where p is at most the round's level *and* the effect is large enough. The levels of
a horizon of rounds add up to the level of `DriftGate` (`Spending`): so the chance of one false
alarm or more in all its rounds and gates is at most that level, however rounds and gates depend on
each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ...core.arrays import Floats
from ...data.bags.bags import concatenate
from ...data.labelled.labelled import LabelledBags, take_range
from ...data.store.plan import Range
from ...data.store.sampling import RunSample, spread_rows
from ...execution.worker_threads import kernel_threads
from ...hypotheses.kernels.features import FourierFeatures
from ...hypotheses.kernels.kernels import resolve_kernel
from ...hypotheses.nulls.mean_difference import MeanDifference, compare_means
from ...hypotheses.two_samples.fused import FusedDifference, fuse_rows
from ...models.outcomes.base import Outcome
from ...models.ridge_model import RidgeModel
from ..monitoring.drift import DriftResult, drift_test
from .settings import DriftGate, Spending

ALARMS = {
    "inputs": "the new bags drifted",
    "concept": "what the champion's errors owe to the bags drifted",
    "labels": "the new labels drifted",
}
_N_FEATURES = 256  # of embeddings, of labels, and of the products of features and residuals
MIN_ROWS = 2  # rows of a set


@dataclass(frozen=True)
class GateResult:
    """Result of one drift gate.

    Attributes
    ----------
    statistic : float
        The squared distance of the two sets' mean features, or of "fuse" their soft maximum.
    p_value : float
    effect : float
        The statistic in units of the spread within the sets, see `MeanDifference`.
    n_reference, n_new : int
        Bags compared.
    drifted : bool
    """

    statistic: float
    p_value: float
    effect: float
    n_reference: int
    n_new: int
    drifted: bool

    @classmethod
    def of(
        cls,
        difference: MeanDifference | FusedDifference | DriftResult,
        n_reference: int,
        n_new: int,
        level: float,
        gate: DriftGate,
    ) -> GateResult:
        """Judge the result of a test."""
        drifted = difference.p_value <= level and difference.effect >= gate.min_effect
        values = difference.statistic, difference.p_value, difference.effect
        return cls(*values, n_reference, n_new, bool(drifted))


@dataclass(frozen=True)
class GateResults:
    """Results of the drift gates of a round.

    Attributes
    ----------
    spending : Spending
        After this round.
    level : float
        Level of each gate.
    gates : mapping of str to GateResult
    inputs : DriftResult or None
        Result of the gate "inputs": where the bags differ.
    n_passed : int
        Bags that went through the bases.
    wealth : mapping of str to float
        For gates that bet, the logarithm to base 10 of their capital.
    bets : mapping of str to dict
        State from which the gates continue in the next round.
    """

    spending: Spending
    level: float = 0.0
    gates: Mapping[str, GateResult] = field(default_factory=dict)
    inputs: DriftResult | None = None
    n_passed: int = 0
    wealth: Mapping[str, float] = field(default_factory=dict)
    bets: Mapping[str, Any] = field(default_factory=dict)

    @property
    def p_values(self) -> dict[str, float]:
        """P-value of each gate."""
        return {name: result.p_value for name, result in self.gates.items()}

    def alarms(self) -> list[str]:
        """Return which gates detected a drift."""
        return [
            f"{ALARMS[name]} (p = {gate.p_value:.3g}, level {self.level:.3g}, effect "
            f"{gate.effect:.3g})"
            for name, gate in self.gates.items()
            if gate.drifted
        ]

    def to_dict(self, gate: DriftGate) -> dict[str, Any]:
        """Return the results as JSON types, for a report."""
        return {
            "level": self.level,
            "level_of_horizon": gate.level,
            "horizon": gate.horizon,
            "min_effect": gate.min_effect,
            "action": gate.action,
            "statistic": gate.statistic,
            "gate": gate.gate,
            "wealth": dict(self.wealth),
            **self.spending.to_dict(),
            "gates": {name: asdict(result) for name, result in self.gates.items()},
        }


def measure_drift(
    gate: DriftGate,
    bags: LabelledBags,
    ranges: tuple[Range, Range],
    models: Sequence[RidgeModel],
    reference: LabelledBags,
    spending: Spending,
    seed: int,
) -> GateResults:
    """Run the drift tests for which there are enough bags.

    Parameters
    ----------
    bags : LabelledBags
        The whole store.
    ranges : (before, new)
    models : (challenger,), or (challenger, champion)
        Features and outcome of the challenger; residuals of the champion.
    reference : LabelledBags
        Bags before that the champion was not fitted to.
    spending : Spending
        Spending of the rounds before.
    """
    both = take_range(bags, ranges[0]), take_range(bags, ranges[1])
    if min(bags.n_bags for bags in both) < MIN_ROWS:
        return GateResults(spending)
    runs = RunSample.of_about(gate.n_bags)
    rows = _rows_to_compare(both, models, reference, runs, seed, gate.statistic)
    samples = [list(bags.sample(runs)) for bags in both]
    has_inputs = min(sum(map(len, parts)) for parts in samples) >= MIN_ROWS
    if not rows and not has_inputs:
        return GateResults(spending)
    level, spending = spending.spend(gate)
    level /= len(rows) + has_inputs
    results: dict[str, GateResult] = {}
    how = gate.n_permutations, seed, level or None
    is_fused = gate.statistic != "mmd_u"
    with kernel_threads():
        for name, sets in rows.items():
            is_first = np.repeat([True, False], [len(rows) for rows in sets])
            # what errors owe to bags is a mean: another noise of them is not a drift of it
            compare = fuse_rows if is_fused and name == "labels" else compare_means
            difference = compare(np.concatenate(sets), is_first, *how)
            results[name] = GateResult.of(difference, len(sets[0]), len(sets[1]), level, gate)
    inputs = None
    if has_inputs:
        inputs = drift_test(
            *map(concatenate, samples),
            embedding=models[0].features.embedding,
            n_features=_N_FEATURES,
            n_permutations=gate.n_permutations,
            level=level or None,
            seed=seed,
            statistic="fuse" if is_fused else "mmd_u",
        )
        sizes = inputs.n_reference, inputs.n_new
        results["inputs"] = GateResult.of(inputs, *sizes, level, gate)
    passed = [results[name] for name in ("inputs", "concept") if name in results]
    n_passed = sum(gate_result.n_reference + gate_result.n_new for gate_result in passed)
    gates = {name: results[name] for name in ALARMS if name in results}
    return GateResults(spending, level, gates, inputs, n_passed)


def _rows_to_compare(
    both: tuple[LabelledBags, LabelledBags],
    models: Sequence[RidgeModel],
    reference: LabelledBags,
    runs: RunSample,
    seed: int,
    statistic: str | None,
) -> dict[str, tuple[Floats, Floats]]:
    """Return the rows of both sets, of those gates whose mean features are compared."""
    rows = {"labels": _label_features(models[0].outcome, both, runs, seed, statistic)}
    if len(models) > 1:
        new_ranges = runs.ranges(both[1].start, both[1].end)
        products = residual_products(models[1], (reference, both[1]), new_ranges, seed)
        # as many of each: else a change of the noise alone would pass for one of the mean
        n = min(map(len, products))
        rows["concept"] = spread_rows(products[0], n), spread_rows(products[1], n)
    return {name: sets for name, sets in rows.items() if min(map(len, sets)) >= MIN_ROWS}


def _label_features(
    outcome: Outcome,
    sets: tuple[LabelledBags, ...],
    runs: RunSample,
    seed: int,
    statistic: str | None,
) -> tuple[Floats, Floats]:
    """Return the labels of some bags of both sets, or of "mmd_u" random features of them."""
    parts = [
        [
            outcome.encode(labels)[0]
            for _, rows, labels in bag_set.label_blocks(runs.ranges(bag_set.start, bag_set.end))
            if len(rows)
        ]
        for bag_set in sets
    ]
    n_first = sum(map(len, parts[0]))
    blocks = parts[0] + parts[1]
    if not blocks:
        return np.empty((0, 1)), np.empty((0, 1))
    labels = _scaled(np.concatenate(blocks).astype(np.float64), outcome, centre=True)
    if statistic != "mmd_u":
        features = labels
    elif (labels == labels[0]).all():
        features = np.zeros((len(labels), 1))
    else:
        kernel = resolve_kernel("gaussian", None, labels)
        waves = FourierFeatures(kernel, labels.shape[1], _N_FEATURES // 2, seed)
        features = waves(labels).astype(np.float64)
    return features[:n_first], features[n_first:]


def residual_products(
    champion: RidgeModel,
    sets: tuple[LabelledBags, LabelledBags],
    new_ranges: Sequence[Range],
    seed: int,
) -> tuple[Floats, Floats]:
    """Return rows whose products are, on average, products of features times products of residuals.

    z ⊗ r would be as wide as D times the number of targets; so each is multiplied by columns of
    random signs, and then the two with each other.
    """
    (reference, new), solution = sets, champion.solution
    k, n_features = champion.outcome.n_targets, champion.features.n_features
    generator = np.random.default_rng(seed)
    signs = [generator.choice([-1.0, 1.0], (n, _N_FEATURES)) for n in (n_features, k)]
    features, residuals, sizes = [np.empty((0, _N_FEATURES))], [np.empty((0, k))], []
    for batches in (reference.batches(), new.batches_of(new_ranges)):
        before = sum(map(len, residuals))
        for batch in batches:
            if len(batch):
                targets = champion.outcome.encode(batch.labels)[0]
                for start, z, _ in champion.features.blocks(batch.bags, champion.precision):
                    z = z.astype(np.float64)
                    predicted = z @ solution.coef.T + solution.intercept
                    residuals.append(targets[start : start + len(z)] - predicted)
                    features.append(z @ signs[0])
        sizes.append(sum(map(len, residuals)) - before)
    z = np.concatenate(features)
    z -= z.mean(axis=0)
    # the bias of all bags counts as much as what it owes to them, however wide the kernel is
    z = np.hstack([z / _root_mean(z.ravel()), np.ones_like(z)])
    scaled = _scaled(np.concatenate(residuals), champion.outcome, centre=False) @ signs[1]
    rows = z * np.hstack([scaled, scaled])
    rows /= _root_mean(rows.ravel()) * rows.shape[1] ** 0.5
    return rows[: sizes[0]], rows[sizes[0] :]


def _scaled(values: Floats, outcome: Outcome, centre: bool) -> Floats:
    """Divide targets of different units by their root mean square, others by that of all."""
    if centre:
        values = values - values.mean(axis=0)
    if outcome.units() is not None:
        return values / _root_mean(values.ravel())
    return values / np.array([_root_mean(column) for column in values.T], np.float64)


def _root_mean(values: Floats) -> float:
    """Return the root of the mean square; 1 of no values, and of zeros."""
    largest = float(np.abs(values).max(initial=0.0)) or 1.0
    root = float(np.sqrt(np.square(values / largest).mean())) if values.size else 0.0
    return root * largest or 1.0
