"""One round of retraining: new sums, a new model, and the decision to promote it.

Nothing is promoted here.
"""

from __future__ import annotations

import logging
import time
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import ModelError
from ...core.versions import version
from ...data.labelled.holdout import Holdout
from ...data.labelled.labelled import LabelledBags, take_range
from ...data.labelled.splits import Membership
from ...data.labelled.weights import Weights
from ...data.store.changes import ListedBags
from ...data.store.plan import Range
from ...data.store.store import BagStore
from ...execution.progress import Progress
from ...models.evaluation.baselines import fit_rivals
from ...models.fitted_model import ScoringModel
from ...models.fitting.accumulate import FitStatistics
from ...models.fitting.checkpoints import Checkpoints
from ...models.loading import is_network, load_model
from ...models.ridge_model import RidgeModel
from ..registry.registry import Registry
from .drift_gates import GateResults, measure_drift
from .gates import (
    Judgement,
    check_comparable,
    count_in_store,
    find_objections,
    judge,
    newest_held_out,
)
from .martingale_gates import MartingaleGates, span_of
from .settings import PERMUTATION, DriftGate, Retraining, Spending
from .state import (
    KEPT,
    PROMOTED,
    Journal,
    RetrainingState,
    Round,
    StateFolder,
    fingerprint,
    window_start,
)
from .sums import (
    ROUNDING_BOUNDS,
    CountSums,
    ModelSequence,
    WindowSums,
    recount_and_compare,
    slide_window,
    sum_window,
)

PACKAGE = "bagbasis"  # package whose version is saved with the sums: features may change with it
_FIRST = "first round"  # reason for a new sequence if none exists
NEW_STATISTIC = "fuse"  # statistic of the gates of new sequences
COORDINATES_IN_REPORT = 5  # coordinates with the largest drift

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class NewRound:
    """A round that is being decided.

    Attributes
    ----------
    spec : Retraining
        Settings of the retraining.
    folder : StateFolder
        Folder of the state.
    store : BagStore
        Store at its committed length when the round began. Bags that are appended meanwhile belong
        to the next round.
    state : RetrainingState or None
        Result of the previous round.
    progress, checkpoints
        Progress callback and checkpoints of every pass.
    at : datetime
        Time at which the round began.
    """

    spec: Retraining
    folder: StateFolder
    store: BagStore
    state: RetrainingState | None
    progress: Progress | None
    checkpoints: Checkpoints | None
    at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def decide(self) -> Journal:
        """Run the round up to the decision, and register the challenger."""
        begun = time.perf_counter()
        registry = Registry(self.spec.registry_url)
        n_changes, champion = len(registry.history()), registry.current()
        sequence, new_sequence = self._choose_sequence(registry)
        sums = self._sum(sequence, new_sequence)
        challenger = sequence.model(sums.statistics, self.store, self.window)
        model = challenger.model_
        before = self._champion(model, registry, champion)
        held_out = self._held_out(model, self.window, self.spec.evaluate_bags)
        judged = judge(model, before, self._rivals(model, sums, held_out), held_out, self.progress)
        drift = self._measure_drift([model] if before is None else [model, before])
        against = [] if champion is None else find_objections(self.spec, judged, drift)
        name = registry.register(challenger, report=self._described(model, judged))
        round_ = Round(
            number=1 + len(self._rounds),
            at=self.at.isoformat(timespec="milliseconds"),
            stop=self.store.n_bags,
            model=name,
            decision=KEPT if against else PROMOTED,
            n_new=self.new[1] - self.new[0],
            n_new_labelled=count_in_store(self._labelled(self.new)),
            error=judged.error,
            champion_error=judged.champion_error,
            p_value=drift.p_values.get("inputs"),
            p_values=drift.p_values,
            level=drift.level if drift.gates else None,
            wealth=dict(drift.wealth),
        )
        report = {
            **round_.to_dict(),
            **_report_sums(sums, new_sequence),
            "champion_before": champion,
            "reasons": against,
            "measure": model.outcome.measure,
            "targets": list(model.outcome.names),
            "n_judged": judged.n,
            "standard_error": judged.standard_error,
            "constant_error": judged.constant_error,
            "means_error": judged.means_error,
            "forest_error": judged.forest_error,
            "data_url": self.store.url,
            "registry_url": registry.url,
            "window": list(self.window),
            "n_changed": len(self.changed),
            "n_left": max(0, self.window[0] - self.before[0]),
            "n_bags_fitted": model.report["n_bags_fitted"],
            "alpha": model.solution.alpha,
            "drift": _report_drift(drift, self.spec.drift),
            "alarms": drift.alarms(),
            "gates": drift.to_dict(self._gate) if drift.gates else None,
            "bag_passes": {
                **sums.passes,
                "evaluation": judged.n * (1 if champion is None else 2),
                "drift": drift.n_passed,
            },
            "seconds": time.perf_counter() - begun,
        }
        committed = self._state_after(round_, sums, drift)
        return Journal(committed, not against, n_changes, report)

    def _described(self, model: RidgeModel, judged: Judgement) -> dict[str, Any]:
        """Return the registry's report on a challenger: its bags, and its error if known."""
        report: dict[str, Any] = {"bags": list(self.window)}
        if judged.error is not None:
            report |= {"measure": model.outcome.measure, "error": judged.error}
        if judged.standard_error is not None:
            report["standard_error"] = judged.standard_error
        return report

    def _state_after(self, round_: Round, sums: WindowSums, drift: GateResults) -> RetrainingState:
        """Write the sums, and return the state from which the next round continues."""
        n_summed = 0 if sums.why or self.state is None else self.state.n_summed + 1
        return RetrainingState(
            settings=self.spec.all_settings,
            model=round_.model,
            sums=self.folder.write_sums(round_.number, sums.statistics),
            start=self.window[0],
            stop=self.window[1],
            n_summed=n_summed,
            version=version(PACKAGE),
            store=fingerprint(self.store, self.window[1]),
            rounds=(*self._rounds, round_),
            spending=drift.spending,
            gate_statistic=self._gate.statistic or NEW_STATISTIC,
            bets=dict(drift.bets),
        )

    # ------------------------------------------------------------------ which bags

    @property
    def before(self) -> Range:
        """Window of the previous round."""
        return (0, 0) if self.state is None else (self.state.start, self.state.stop)

    @property
    def new(self) -> Range:
        """Bags that no earlier round has seen."""
        return self.before[1], self.store.n_bags

    @cached_property
    def window(self) -> Range:
        """Bags of the challenger's window, including held-out and unlabelled bags.

        In a round without new bags, which runs because bags changed, no bag leaves the window.
        """
        stop = self.store.n_bags
        if stop == self.before[1]:
            return self.before
        return window_start(self.spec.window, self._rounds, self.before[0], stop, self.at), stop

    @cached_property
    def changed(self) -> NDArray[np.int64]:
        """Bags of the previous window that were removed or relabelled since."""
        none = np.empty(0, dtype=np.int64)
        return none if self.state is None else self.state.changed(self.store)

    @property
    def _rounds(self) -> tuple[Round, ...]:
        return () if self.state is None else self.state.rounds

    def _labelled(self, bags: Range) -> LabelledBags:
        return take_range(self.spec.labelled(self.store), bags)

    # ------------------------------------------------------------------ the challenger

    def _choose_sequence(self, registry: Registry) -> tuple[ModelSequence, str | None]:
        """Return the sequence of models, and the reason if the sequence is new, else None."""
        spec, why = self.spec, _FIRST
        if self.state is not None:
            sequence = ModelSequence.of(load_model(registry.model_url(self.state.model)))
            parts = [self._labelled(self.new)]
            if len(self.changed):
                labelled = self._labelled(span_of(self.changed))
                parts.append(replace(labelled, only=ListedBags(self.changed)))
            blocks = chain.from_iterable(bags.label_blocks() for bags in parts)
            new_labels = sequence.outcome.find_new(labels for _, _, labels in blocks)
            if not len(new_labels):
                return sequence, None
            why = f"new classes: {', '.join(f'{x:g}' for x in new_labels)}"
        # held-out groups stay held out, because the champion has not seen them
        holdout = spec.holdout if self.state is None else sequence.holdout
        arguments = (spec.target, holdout, spec.sample_weight)
        sequence = ModelSequence.begin(spec.estimator, self.store, self.window, *arguments)
        return sequence, why

    def _sum(self, sequence: ModelSequence, new_sequence: str | None) -> WindowSums:
        """Return the sums of the window, from stored sums if these are usable and correct."""

        def count(bags: Range) -> FitStatistics:
            return sequence.statistics(self.store, bags, self.progress, self.checkpoints)

        state, window = self.state, self.window
        if state is None or new_sequence is not None:
            purpose = "new" if state is None else "recomputation"
            return sum_window(window, count, purpose, str(new_sequence))
        if state.version != version(PACKAGE):
            why = f"the sums were those of {PACKAGE} {state.version}"
            return sum_window(window, count, "recomputation", why)
        try:
            previous = self.folder.read_sums(state)
        except ValueError as error:
            why = f"the sums {state.sums} were damaged ({error})"
            logger.warning("%s: %s; all bags are counted again", self.folder.url, why)
            return sum_window(window, count, "recomputation", why)
        if state.misses(self.store):
            why = "the points of removed bags are deleted, so that they cannot be subtracted"
            return sum_window(window, count, "recomputation", why)
        if 2 * len(self.changed) > self.before[1] - self.before[0]:
            return sum_window(window, count, "recomputation", "most bags were changed")
        if len(self.changed):
            previous = self._follow_changes(sequence, previous, state)
        sums = self._slide(sequence, previous, count)
        passes = {**sums.passes, "changed": 2 * len(self.changed)}
        return replace(sums, passes=passes) if len(self.changed) else sums

    def _follow_changes(
        self, sequence: ModelSequence, sums: FitStatistics, state: RetrainingState
    ) -> FitStatistics:
        """Subtract changed bags with their old labels, and add them with the new ones."""
        store, arguments = self.store, (span_of(self.changed), self.progress, self.checkpoints)
        then = BagStore(
            store.url, meta=replace(store.meta, n_changes=state.n_changes), snapshot=store.snapshot
        )
        only = ListedBags(self.changed)
        before, now = (sequence.statistics(data, *arguments, only) for data in (then, store))
        return sums - before + now

    def _slide(
        self, sequence: ModelSequence, previous: FitStatistics, count: CountSums
    ) -> WindowSums:
        """Return the sums of the window from those of the window before."""
        assert self.state is not None
        window = self.window
        if self.state.n_summed + 1 < self.spec.recompute_every:
            return slide_window(self.before, previous, window, count)
        bound = ROUNDING_BOUNDS[sequence.estimator.precision]
        sums = recount_and_compare(self.before, previous, window, count, bound)
        if sums.check is not None and not sums.check.passed:
            logger.error(
                "%s: CORRUPT SUMS: they differ from the same sums of the bags counted again by up "
                "to %.3g (rounding stays below %.0e); those counted again are used from here on",
                self.folder.url,
                max(sums.check.differences.values()),
                bound,
            )
        return sums

    # ------------------------------------------------------------------ the gates

    def _champion(
        self, model: RidgeModel, registry: Registry, name: str | None
    ) -> RidgeModel | None:
        """Return the champion, if there is one."""
        if name is None:
            return None
        if is_network(registry.model_url(name)):
            raise ModelError(
                f"{registry.url}: the champion {name} is a network, and rounds compare ridge "
                "models alone; promote a ridge model, or give this sequence a registry of its own"
            )
        champion = load_model(registry.model_url(name)).model_
        check_comparable(champion, model, name, registry.url)
        return champion

    def _rivals(
        self, model: RidgeModel, sums: WindowSums, held_out: LabelledBags
    ) -> list[ScoringModel]:
        """Return the simple baselines that every model has to beat.

        Baselines need all bags of the window. They are None in rounds that read only new bags, and
        if no bag is held out to judge them.
        """
        if not (sums.why and held_out.n_bags):
            return []
        bags = replace(self._labelled(self.window), left_out=self._split(model))
        weights = Weights.of_bags(self.store, self.spec.sample_weight)
        rivals = fit_rivals(bags, model.outcome, weights) or ()
        return [rival for rival in rivals if rival is not None]

    def _split(self, model: RidgeModel) -> Membership:
        """Return which bags of the store are held out of all models of the sequence."""
        split = Holdout.of(model.holdout).split(self.spec.labelled(self.store))
        assert split is not None  # the fraction is above 0
        return split

    def _held_out(self, model: RidgeModel, bags: Range, n: int) -> LabelledBags:
        """Return the newest bags of a range that no model was fitted to."""
        return newest_held_out(self._labelled(bags), self._split(model), n)

    @property
    def _gate(self) -> DriftGate:
        """Drift gate; if it names no statistic, with the statistic that the sequence began with."""
        begun = NEW_STATISTIC if self.state is None else self.state.gate_statistic
        return replace(self.spec.drift, statistic=self.spec.drift.statistic or begun)

    def _measure_drift(self, models: list[RidgeModel]) -> GateResults:
        """Test the new bags; the champion's errors are left out if its holdout was different."""
        gate, state = self._gate, self.state
        bags = self.spec.labelled(self.store)
        tested = [model for model in models if model.holdout == models[0].holdout]
        spending = Spending() if state is None else state.spending
        bets = {} if state is None else state.bets
        if gate.gate == PERMUTATION:
            held_out = self._held_out(models[0], self.before, gate.n_bags)
            seed, ranges = len(self._rounds), (self.before, self.new)
            result = measure_drift(gate, bags, ranges, tested, held_out, spending, seed)
            return replace(result, bets=bets)
        if state is None:
            return GateResults(spending)
        split = self._split(models[0])
        gates = MartingaleGates(gate, bags, self.new, self.before[0], tested, split)
        return gates.bet(bets, spending)


def _report_sums(sums: WindowSums, new_sequence: str | None) -> dict[str, Any]:
    check = sums.check
    return {
        "new_sequence": new_sequence,
        "recomputed": sums.why,
        "check": None if check is None else asdict(check),
        "corrupt": check is not None and not check.passed,
        "n_outside_box": sums.n_outside,
    }


def _report_drift(drift: GateResults, gate: DriftGate) -> dict[str, Any] | None:
    """Return where the bags differ; None if the bags were not compared."""
    if drift.inputs is None:
        return None
    values = drift.inputs.to_dict()
    values["coordinates"].sort(
        key=lambda coordinate: min(coordinate["mean_p_value"], coordinate["spread_p_value"])
    )
    return {
        **values,
        "coordinates": values["coordinates"][:COORDINATES_IN_REPORT],
        "level": drift.level,
        "drifted": drift.gates["inputs"].drifted,
        "action": gate.action,
    }
