"""Drift gates by test martingales: false-alarm probability at most the level over all rounds.

Each gate of `drift_gates` (inputs, labels, concept) bets on new bags against bags of a reference,
see `Betting`. Its capital begins at 1, and it alarms if the capital reaches the number of gates
divided by the level. Bets are fair only on bags that no bet has used before. The bags of the
reference are therefore used only once, the oldest first. The reference has the bags before the
first bet, and a quarter of the new bags of each later round, which is not bet on. For "concept" it
has the bags that are held out of every model. After an alarm a gate begins anew, and the bags since
the alarm are its reference.

The state of each gate is part of the saved state of the rounds, so that a round that is repeated
after a crash bets only once.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Floats, Integers
from ...core.saved import read_saved
from ...data.labelled.labelled import LabelledBags, take_range
from ...data.labelled.splits import Membership, Split
from ...data.store.changes import ListedBags
from ...data.store.plan import Range
from ...data.store.sampling import CHOICE_SAMPLE, RunSample
from ...execution.worker_threads import kernel_threads
from ...hypotheses.samples.row_sources import EmbedBags
from ...hypotheses.samples.samples import thinned_size
from ...models.ridge_model import RidgeModel
from .drift_gates import ALARMS, MIN_ROWS, GateResult, GateResults, residual_products
from .gate_bets import GateBets, RowsMade
from .settings import DriftGate, Spending

KEPT_SPLIT = Split(0.25, 0x5EED_BE75)  # new bags that are kept for the reference
REFERENCE_PER_NEW = 2  # largest number of bags of the reference per new bag: half of the noise
BAGS_PER_LOOK = 2**14  # bags whose labels are read at a time
MAX_LOG10 = 300.0  # largest log10 of the capital that reports write as a number
CONCEPT = "concept"

Made = tuple[GateBets, RowsMade, Floats, Floats]
"""A gate after its bags were chosen, and rows of new bags and of the reference."""


@dataclass(frozen=True, eq=False)
class MartingaleGates:
    """The gates of a round.

    Attributes
    ----------
    gate : DriftGate
    bags : LabelledBags
        The whole store.
    new : Range
    start : int
        The first bag of the reference of gates that begin.
    models : (challenger,), or (challenger, champion)
    held_out : Membership
        Membership of the bags that the models were not fitted to.
    """

    gate: DriftGate
    bags: LabelledBags
    new: Range
    start: int
    models: Sequence[RidgeModel]
    held_out: Membership

    def bet(self, before: Mapping[str, Any], spending: Spending) -> GateResults:
        """Bet on the new bags.

        Parameters
        ----------
        before : mapping of str to dict
            State from which the gates continue.
        spending : Spending
            Spending of the permutation tests, which stays as it is.
        """
        results: dict[str, GateResult] = {}
        after, wealth, n_passed = dict(before), {}, 0
        with kernel_threads():
            for name, make in self._makers.items():
                saved = before.get(name)
                begun = GateBets(self.new[0], self.start)
                bets, made, new, reference = make(
                    begun if saved is None else read_saved(GateBets, saved)
                )
                sizes = len(new), len(reference)
                if min(sizes) >= MIN_ROWS:
                    bets = bets.play(new, reference, made)
                    n_passed += (name != "labels") * sum(sizes)
                    if bets.betting is not None:
                        results[name] = self._judge(bets, *sizes)
                        wealth[name] = bets.betting.log_wealth.item() / math.log(10)
                        if results[name].drifted:
                            bets = GateBets(self.new[0], self.new[0])
                after[name] = bets.to_dict()
        gates = {name: results[name] for name in ALARMS if name in results}
        level = self._level
        return GateResults(spending, level, gates, n_passed=n_passed, wealth=wealth, bets=after)

    @property
    def _level(self) -> float:
        return self.gate.level / len(ALARMS)

    @property
    def _makers(self) -> Mapping[str, Callable[[GateBets], Made]]:
        makers = {"inputs": self._inputs, "labels": self._labels}
        return makers if len(self.models) == 1 else {**makers, CONCEPT: self._concept}

    def _judge(self, bets: GateBets, n_new: int, n_reference: int) -> GateResult:
        assert bets.betting is not None
        gap, within = bets.effect
        effect = gap / within if within > 0 else 0.0
        p = min(1.0, math.exp(-bets.highest))
        capital = 10 ** min(MAX_LOG10, bets.betting.log_wealth.item() / math.log(10))
        drifted = p <= self._level and effect >= self.gate.min_effect
        return GateResult(capital, p, effect, n_reference, n_new, bool(drifted))

    # ------------------------------------------------------------------ rows of each gate

    def _inputs(self, bets: GateBets) -> Made:
        spec = self.models[0].features.embedding
        bags = replace(self.bags, labels=None)
        if bets.size is None and bets.used < self.new[0]:
            sizes = bags.sizes(CHOICE_SAMPLE.ranges(bets.used, self.new[0]))
            if sizes.any():
                bets = replace(bets, size=thinned_size([sizes[sizes > 0]], True))
        bets, *chosen = self._choose(bets, bags, KEPT_SPLIT, REFERENCE_PER_NEW)
        embed = EmbedBags(spec, bets.size, 0)
        new, reference = (
            _stack(
                [embed(batch.bags) for batch in bag_set.batches() if len(batch)], spec.n_features
            )
            for bag_set in chosen
        )
        return bets, RowsMade(name_basis(self.models[0])), new, reference

    def _labels(self, bets: GateBets) -> Made:
        outcome = self.models[0].outcome
        bets, *chosen = self._choose(bets, self.bags, KEPT_SPLIT, REFERENCE_PER_NEW)
        new, reference = (
            _stack([outcome.encode(labels)[0] for _, at, labels in bags.label_blocks() if len(at)],
                   outcome.n_targets)
            for bags in chosen
        )  # fmt: skip
        made = RowsMade(name_basis(self.models[0]), units_differ=outcome.units() is None)
        return bets, made, new, reference

    def _concept(self, bets: GateBets) -> Made:
        bets, new, reference = self._choose(bets, self.bags, self.held_out, 1)
        made = RowsMade(name_basis(self.models[1]), are_features=True)
        if not (new.n_bags and reference.n_bags):
            return bets, made, np.empty((0, 1)), np.empty((0, 1))
        ranges = [(new.start, new.end)]
        before, now = residual_products(self.models[1], (reference, new), ranges, 0)
        return bets, made, now, before

    def _choose(
        self, bets: GateBets, bags: LabelledBags, membership: Membership, per_new: int
    ) -> tuple[GateBets, LabelledBags, LabelledBags]:
        """Return new bags and bags of the reference, and the gate after they are used.

        Parameters
        ----------
        membership : Membership
            Membership of the bags since ``bets.first`` that are never bet on.
        per_new : int
            Largest number of bags of the reference per new bag.
        """

        def is_kept(start: int, stop: int) -> NDArray[np.bool_]:
            members = membership.members(start, stop)
            if membership is KEPT_SPLIT:
                members |= np.arange(start, stop) < bets.first
            return members

        runs = RunSample.of_about(self.gate.n_bags).ranges(*self.new)
        new = _find(bags, runs, lambda a, b: ~membership.members(a, b), self.gate.n_bags)
        rest = [(bets.used, self.new[0])] if len(new) >= MIN_ROWS else []
        reference = _find(bags, rest, is_kept, per_new * len(new))
        if len(reference):
            bets = replace(bets, used=int(reference[-1]) + 1)
        return bets, _listed(bags, new), _listed(bags, reference)


def name_basis(model: RidgeModel) -> str:
    """Return a short name of the features and the encoding of labels, which a sequence shares."""
    described = [model.features.to_dict(), model.outcome.describe()]
    digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode())
    for name, values in sorted(model.features.arrays().items()):
        digest.update(name.encode() + np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()[:16]


def _find(
    bags: LabelledBags,
    ranges: Sequence[Range],
    is_wanted: Callable[[int, int], NDArray[np.bool_]],
    most: int,
) -> Integers:
    """Return the first ``most`` positions in ``ranges`` of bags that are known and wanted."""
    positions, n = [np.empty(0, np.int64)], 0
    for start, stop in ranges:
        for a in range(start, stop, BAGS_PER_LOOK):
            b = min(stop, a + BAGS_PER_LOOK)
            if n < most:
                positions.append(a + np.flatnonzero(bags.known(a, b) & is_wanted(a, b)))
                n += len(positions[-1])
    return np.concatenate(positions)[:most]


def _stack(parts: Sequence[Floats], n_columns: int) -> Floats:
    return np.concatenate([np.empty((0, n_columns)), *parts]).astype(np.float64)


def _listed(bags: LabelledBags, positions: Integers) -> LabelledBags:
    if not len(positions):
        return replace(bags, stop=bags.start)
    return replace(take_range(bags, span_of(positions)), only=ListedBags(positions))


def span_of(positions: Integers) -> Range:
    """Return the range from the first to the last of some positions in ascending order."""
    return int(positions[0]), int(positions[-1]) + 1
