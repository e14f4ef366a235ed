"""The conditions that a challenger has to meet before it becomes the champion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...core.errors import ModelError
from ...data.labelled.labelled import LabelledBags
from ...data.labelled.splits import Membership
from ...data.store.store import BagStore
from ...execution.progress import Progress
from ...models.fitted_model import ScoringModel
from ...models.judging import evaluate_together
from ...models.outcomes.densities import DensityOutcome
from .drift_gates import GateResults
from .settings import Retraining

BAGS_PER_READ = 2**18  # bags whose labels are read at a time: some MiB
BASIS_KEY = DensityOutcome.key


@dataclass(frozen=True)
class Judgement:
    """The errors of challenger, champion and simple baselines on the same ``n`` bags.

    ``standard_error`` is that of the challenger's error, where it is known. None stands for no bags
    to judge on, for no champion, or for a baseline that was not fitted.
    """

    n: int
    error: float | None = None
    champion_error: float | None = None
    standard_error: float | None = None
    constant_error: float | None = None
    means_error: float | None = None
    forest_error: float | None = None


def judge(
    challenger: ScoringModel,
    champion: ScoringModel | None,
    rivals: Sequence[ScoringModel],
    bags: LabelledBags,
    progress: Progress | None,
) -> Judgement:
    """Return the errors of challenger, champion and rivals.

    Parameters
    ----------
    challenger, champion : ScoringModel
    rivals : sequence of ScoringModel
        See `baselines.fit_rivals`.
    bags : LabelledBags
        See `newest_held_out`.
    """
    if not bags.n_bags:
        return Judgement(0)
    models = [challenger, *([] if champion is None else [champion]), *rivals]
    ours, *errors = evaluate_together(models, bags, progress)
    before = None if champion is None else errors.pop(0).error
    beside = dict(zip(("means_error", "forest_error"), (e.error for e in errors), strict=False))
    return Judgement(ours.n, ours.error, before, ours.standard_error, ours.constant_error, **beside)


def check_comparable(
    champion: ScoringModel, challenger: ScoringModel, name: str, registry_url: str
) -> None:
    """Raise ModelError if the champion predicts other targets than the challenger."""
    ours, theirs = challenger.outcome, champion.outcome
    alike = {
        "kind": type(theirs) is type(ours),
        "dimension": champion.features.n_dims == challenger.features.n_dims,
        "targets": theirs.names == ours.names,
        "response basis": theirs.describe().get(BASIS_KEY) == ours.describe().get(BASIS_KEY),
    }
    for what, is_same in alike.items():
        if not is_same:
            raise ModelError(
                f"{registry_url}: the champion {name} has another {what} than the model that is "
                "retrained; promote a model of that kind, or give another registry_url"
            )


def find_objections(spec: Retraining, judged: Judgement, drift: GateResults) -> list[str]:
    """Return the reasons why the champion stays; none if the challenger replaces it."""
    objections = []
    if judged.error is None or judged.champion_error is None:
        objections.append("no labelled bag of the window is held out, so nothing judges the models")
    elif not judged.error <= (most := judged.champion_error * (1 + spec.tolerance)):
        objections.append(
            f"its error is {judged.error:.6g}, the champion's {judged.champion_error:.6g}; at most "
            f"{most:.6g} is allowed"
        )
    if spec.drift.action == "refuse":
        objections += drift.alarms()
    return objections


def count_in_store(bags: LabelledBags) -> int:
    """Count the bags of a store that have a label; no points are read."""
    return sum(int(known.sum()) for _, known in _known_labels(bags))


def newest_held_out(bags: LabelledBags, held_out: Membership, n: int) -> LabelledBags:
    """Return the last ``n`` of a store's labelled bags that the split holds out."""
    n_labelled = 0
    for start, known in _known_labels(bags):
        chosen = start + np.flatnonzero(held_out.members(start, start + len(known)) & known)
        n_labelled += len(chosen)
        if n_labelled >= n:
            return replace(bags, start=int(chosen[n_labelled - n]), only=held_out)
    return replace(bags, only=held_out, stop=bags.end if n_labelled else bags.start)


def _known_labels(bags: LabelledBags) -> Iterator[tuple[int, NDArray[np.bool_]]]:
    """Yield blocks of a store's bags, the newest first: the first bag, and which are labelled."""
    assert isinstance(bags.data, BagStore)
    assert bags.labels is not None
    for stop in range(bags.end, bags.start, -BAGS_PER_READ):
        start = max(bags.start, stop - BAGS_PER_READ)
        yield start, bags.labels.known_in(bags.data, start, stop)
