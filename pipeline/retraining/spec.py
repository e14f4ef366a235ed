"""Everything a retraining depends on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..bags import BagStore
from ..bags.labelled import with_targets
from ..errors import ParameterError
from ..regression import TripleBasisRegressor
from ..storage.urls import normalize_url
from .gates import DriftGate
from .labels import Names
from .window import Window


@dataclass(frozen=True)
class Retraining:
    """A line of models that follows a growing store, round by round; see `retrain`.

    Parameters
    ----------
    data_url : str
        The store of labelled bags, which others append to.
    registry_url : str
        The registry of the models.
    estimator : estimator
        Not fitted.
    state_url : str, optional
        Folder of sums and rounds; default beside the registry, its URL with ``.retrain`` behind it.
    target : str or list of str, optional
        The target, or a list of them; default the only one.
    holdout : float in (0, 1)
        Share of the bags that enter no model, by the same hash as in every fit; the newest of
        them judge.
    window : Window
    evaluate_bags : int ≥ 1
        At most so many held-out bags, the newest, judge.
    tolerance : float ≥ 0
        Error allowed over the champion's, relative to it; see `objections`.
    min_new_bags : int ≥ 1
        With fewer new labelled bags nothing is done.
    drift : DriftGate
    recompute_every : int ≥ 1
        Rounds after which the sums are computed from all bags again, and compared.
    checkpoint_url : str, optional
        Folder for finished sums, which the same round goes on from; see `Checkpoints`.
    checkpoint_seconds : float > 0
        Work on a core between two checkpoints.
    settings : mapping
        What the models depend on, in types that JSON knows: the same in every round.
    """

    data_url: str
    registry_url: str
    estimator: Any
    state_url: str | None = None
    target: str | Sequence[str] | None = None
    holdout: float = 0.1
    window: Window = Window()  # noqa: RUF009 - immutable
    evaluate_bags: int = 2000
    tolerance: float = 0.02
    min_new_bags: int = 1
    drift: DriftGate = DriftGate()  # noqa: RUF009 - immutable
    recompute_every: int = 30
    checkpoint_url: str | None = None
    checkpoint_seconds: float = 300.0
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 < self.holdout < 1:
            raise ParameterError(f"holdout is {self.holdout!r}; expected a share, 0 < … < 1")
        if not self.tolerance >= 0:
            raise ParameterError(f"tolerance is {self.tolerance!r}; expected a number ≥ 0")
        for name in ("evaluate_bags", "min_new_bags", "recompute_every"):
            if getattr(self, name) < 1:
                raise ParameterError(f"{name} is {getattr(self, name)!r}; expected an integer ≥ 1")

    @property
    def state_folder(self) -> str:
        """The normalized URL of the state."""
        return normalize_url(self.state_url or f"{normalize_url(self.registry_url)}.retrain")

    def target_names(self, store: BagStore) -> Names:
        """The targets in the store; None where the labels are responses."""
        if isinstance(self.estimator, TripleBasisRegressor):
            return None
        return with_targets(store, None, self.target)[0].target_names
