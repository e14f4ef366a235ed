"""A round: new sums, a new model, and whether it becomes the champion. Nothing is promoted here."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from typing import Any

from ..bags import BagStore
from ..bags.plan import Range
from ..bags.splits import holdout_split
from ..evaluation import evaluate_together
from ..execution import Progress
from ..monitoring import DriftResult
from ..registry import Registry
from ..regression import Checkpoints, load_model
from ..regression.line import ModelLine
from .fingerprint import fingerprint
from .gates import check_comparable, objections
from .labels import label_blocks, n_labelled, newest_held_out
from .report import round_report
from .spec import Retraining
from .state import KEPT, PROMOTED, Journal, Round, State, StateFolder
from .sums import BOUNDS, WindowSums, all_of, checked, moved

PACKAGE = "bagbasis"
FIRST = "first round"

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Judgement:
    """Errors on the same ``n`` bags; None where there are none, or no champion."""

    n: int
    error: float | None
    champion_error: float | None


class NewRound:
    """The parts of a round, each made when it is needed first.

    Parameters
    ----------
    spec : Retraining
    folder : StateFolder
    store : BagStore
        At its committed length when the round began: what is appended meanwhile waits.
    state : State or None
        Of the round before.
    progress, checkpoints
        Of every pass.
    """

    def __init__(
        self,
        spec: Retraining,
        folder: StateFolder,
        store: BagStore,
        state: State | None,
        progress: Progress | None,
        checkpoints: Checkpoints | None,
    ) -> None:
        self.spec = spec
        self.store = store
        self.state = state
        self.registry = Registry(spec.registry_url)
        self.n_changes = len(self.registry.history())
        self.champion = self.registry.current()
        self.names = spec.target_names(store)
        self._folder = folder
        self._progress = progress
        self._checkpoints = checkpoints
        self._now = datetime.now(UTC)
        self._begun = time.perf_counter()

    def decide(self) -> Journal:
        """Do everything of the round up to the decision; the challenger is registered then."""
        against = self.objections
        round_ = Round(
            number=1 + len(self._rounds),
            at=self._now.isoformat(timespec="milliseconds"),
            stop=self.store.n_bags,
            model=self.name,
            decision=KEPT if against else PROMOTED,
            n_new=self.new[1] - self.new[0],
            n_new_labelled=n_labelled(self.store, self.names, self.new),
            error=self.judgement.error,
            champion_error=self.judgement.champion_error,
            p_value=self.drift.p_value if self.drift else None,
        )
        state = State(
            settings=dict(self.spec.settings),
            model=self.name,
            sums=self._folder.write_sums(round_.number, self.sums.statistics),
            start=self.window[0],
            stop=self.window[1],
            n_summed=0 if self.sums.why or self.state is None else self.state.n_summed + 1,
            version=version(PACKAGE),
            store=fingerprint(self.store, self.window[1]),
            rounds=(*self._rounds, round_),
        )
        report = round_report(self, round_, time.perf_counter() - self._begun)
        return Journal(state, not against, self.n_changes, report)

    # ------------------------------------------------------------------ which bags

    @property
    def before(self) -> Range:
        """The window of the round before."""
        return (0, 0) if self.state is None else (self.state.start, self.state.stop)

    @property
    def new(self) -> Range:
        """The bags that no round has seen."""
        return self.before[1], self.store.n_bags

    @cached_property
    def window(self) -> Range:
        """The bags that the challenger is made of, held-out and unlabelled ones among them."""
        stop = self.store.n_bags
        return self.spec.window.start(self._rounds, self.before[0], stop, self._now), stop

    @property
    def _rounds(self) -> tuple[Round, ...]:
        return () if self.state is None else self.state.rounds

    # ------------------------------------------------------------------ the challenger

    @cached_property
    def _line_and_why(self) -> tuple[ModelLine, str | None]:
        """The line, and why it is a new one; None: it is the one of the round before."""
        if self.state is None:
            return self._begun_line(), FIRST
        line = ModelLine.of(load_model(self.registry.model_url(self.state.model)))
        found = line.outcome.find_new(label_blocks(self.store, self.names, self.new))
        if len(found):
            return self._begun_line(), f"new classes: {', '.join(f'{x:g}' for x in found)}"
        return line, None

    def _begun_line(self) -> ModelLine:
        spec = self.spec
        return ModelLine.begin(spec.estimator, self.store, self.window, spec.target, spec.holdout)

    @property
    def line(self) -> ModelLine:
        return self._line_and_why[0]

    @property
    def new_line(self) -> str | None:
        """Why all features were decided anew; None: they are those of the round before."""
        return self._line_and_why[1]

    @cached_property
    def sums(self) -> WindowSums:
        if self.state is None or self.new_line:
            purpose = "new" if self.state is None else "recomputation"
            return all_of(self.window, self._count, purpose, str(self.new_line))
        if self.state.version != version(PACKAGE):
            why = f"the sums were those of {PACKAGE} {self.state.version}"
            return all_of(self.window, self._count, "recomputation", why)
        try:
            kept = self._folder.read_sums(self.state)
        except ValueError as error:
            why = f"the sums {self.state.sums} were damaged ({error})"
            logger.warning("%s: %s; all bags are counted again", self._folder.url, why)
            return all_of(self.window, self._count, "recomputation", why)
        if self.state.n_summed + 1 < self.spec.recompute_every:
            return moved(self.before, kept, self.window, self._count)
        bound = BOUNDS[self.line.estimator.precision]
        sums = checked(self.before, kept, self.window, self._count, bound)
        if sums.check is not None and not sums.check.passed:
            logger.error(
                "%s: CORRUPT SUMS: they differ from the same sums of the bags counted again by up "
                "to %.3g (rounding stays below %.0e); those counted again are used from here on",
                self._folder.url,
                max(sums.check.differences.values()),
                bound,
            )
        return sums

    def _count(self, bags: Range) -> Any:
        return self.line.statistics(self.store, bags, self._progress, self._checkpoints)

    @cached_property
    def model(self) -> Any:
        return self.line.model(self.sums.statistics, self.store, self.window)

    @cached_property
    def name(self) -> str:
        """The challenger's in the registry."""
        return self.registry.register(self.model, report={"bags": list(self.window)})

    # ------------------------------------------------------------------ the gates

    @cached_property
    def judgement(self) -> Judgement:
        models = [self.model]
        if self.champion is not None:
            models.append(load_model(self.registry.model_url(self.champion)))
            check_comparable(models[1], self.model, self.champion, self.registry.url)
        split = holdout_split(self.spec.holdout)
        assert split is not None
        labelled = replace(
            self.model.outcome_.take_labels(self.store), start=self.window[0], stop=self.window[1]
        )
        newest = newest_held_out(labelled, split, self.spec.evaluate_bags)
        if newest is None:
            return Judgement(0, None, None)
        found = evaluate_together(models, newest, self._progress)
        return Judgement(found[0].n, found[0].error, found[1].error if len(found) > 1 else None)

    @cached_property
    def drift(self) -> DriftResult | None:
        """Of the new bags against the window before; None without one."""
        embedding = self.line.features.embedding
        return self.spec.drift.test(self.store, self.before, self.new, embedding)

    @property
    def objections(self) -> list[str]:
        """Why the champion stays; none against the first one."""
        if self.champion is None:
            return []
        judged = self.judgement
        return objections(
            judged.error, judged.champion_error, self.spec.tolerance, self.drift, self.spec.drift
        )
