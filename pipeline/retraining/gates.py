"""What a challenger has to pass before it becomes the champion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..bags import Bags, BagStore
from ..bags.bags import concatenate
from ..bags.plan import Range, sample_ranges
from ..errors import ModelError, ParameterError
from ..monitoring import DriftResult, drift_test
from ..regression.double_basis import FittedModel
from ..regression.outcomes import Densities

ACTIONS = ("report", "refuse")
RUNS, RUN_LENGTH = 32, 8  # of a sample: at most so many, at least so long; few chunks are touched


@dataclass(frozen=True)
class DriftGate:
    """The test of the new bags against those of the window before.

    Parameters
    ----------
    alpha : float in (0, 1)
        A p-value at or below it is a drift.
    n_bags : int ≥ 2
        Sampled of each side.
    n_permutations : int ≥ 1
        Of the test.
    action : {"report", "refuse"}
        What a drift does: stand in the report, or keep the champion.
    """

    alpha: float = 0.01
    n_bags: int = 1000
    n_permutations: int = 999
    action: str = "report"

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise ParameterError(f"alpha of the drift test: {self.alpha!r}; expected 0 < … < 1")
        if self.n_bags < 2:
            raise ParameterError(f"bags of the drift test: {self.n_bags!r}; expected at least 2")
        if self.action not in ACTIONS:
            raise ParameterError(f"action is {self.action!r}; expected one of {list(ACTIONS)}")

    def test(
        self, store: BagStore, reference: Range, new: Range, embedding: Any
    ) -> DriftResult | None:
        """Compare samples of two ranges of a store's bags; None where one has fewer than two.

        Parameters
        ----------
        embedding : EmbeddingSpec
            The model's.
        """
        if min(reference[1] - reference[0], new[1] - new[0]) < 2:
            return None
        samples = [_sample(store, bags, self.n_bags) for bags in (reference, new)]
        return drift_test(*samples, embedding=embedding, n_permutations=self.n_permutations)


def objections(
    error: float | None,
    champion_error: float | None,
    tolerance: float,
    drift: DriftResult | None,
    gate: DriftGate,
) -> list[str]:
    """Why the champion stays; empty: the challenger takes its place.

    Parameters
    ----------
    error, champion_error : float or None
        On the same bags; None where there was nothing to judge on.
    tolerance : float ≥ 0
        How much larger than the champion's the error may be, relative to it.
    """
    found = []
    if error is None or champion_error is None:
        found.append("no labelled bag of the window is held out, so nothing judges the models")
    elif not error <= champion_error * (1 + tolerance):
        found.append(
            f"its error is {error:.6g}, the champion's {champion_error:.6g}; at most "
            f"{champion_error * (1 + tolerance):.6g} is allowed"
        )
    if gate.action == "refuse" and drift is not None and drift.p_value <= gate.alpha:
        found.append(f"the new bags drifted (p = {drift.p_value:.3g}, alpha = {gate.alpha:g})")
    return found


def _sample(store: BagStore, bags: Range, n: int) -> Bags:
    """About n of the bags, in evenly spread runs."""
    start, stop = bags
    n_runs = min(RUNS, max(1, n // RUN_LENGTH))
    runs = sample_ranges(stop - start, n_runs, n // n_runs)
    return concatenate([store.read(start + a, start + b) for a, b in runs])


def check_comparable(
    champion: FittedModel, challenger: FittedModel, name: str, registry_url: str
) -> None:
    """Raise ModelError for a champion that predicts something else than the challenger."""
    ours, theirs = challenger.outcome_, champion.outcome_
    same = {
        "kind": type(champion) is type(challenger),
        "dimension": champion.features_.n_dims == challenger.features_.n_dims,
        "targets": theirs.names == ours.names,
        "response basis": theirs.describe() == ours.describe() or theirs.key != Densities.key,
    }
    for what, alike in same.items():
        if not alike:
            raise ModelError(
                f"{registry_url}: the champion {name} has another {what} than the model that is "
                "retrained; promote a model of that kind, or give another registry_url"
            )
