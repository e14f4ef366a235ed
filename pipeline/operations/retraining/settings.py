"""What users set: the window, the gates, and all else that a retraining depends on."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Any, Protocol

import numpy as np
from sklearn.base import BaseEstimator

from ...core import (
    Fraction,
    Instance,
    Integer,
    ListOf,
    MappingOf,
    OneOf,
    Open,
    Real,
    Text,
    check_parameters,
    checked,
    keep_checked,
)
from ...core.errors import ParameterError, shown
from ...core.moved import renamed_fields
from ...core.saved import Saved
from ...data.bags.box import Box
from ...data.labelled.holdout import Holdout
from ...data.labelled.labelled import LabelledBags
from ...data.storage.urls import normalize_url
from ...data.store.store import BagStore
from ...hypotheses.declared import DriftStatistic, Permutations
from ...models.base import DoubleBasis, fit_parameters_of

MAX_DAYS = 36_525  # a hundred years; Python's dates end
PERMUTATION = "permutation"
MIN_LEVEL = 6e-6  # of three gates: 10^6 permutations resolve 2e-6


class Seen(Protocol):
    """A round that began at the time ``at``, ISO 8601, and found ``stop`` bags in the store."""

    @property
    def stop(self) -> int:
        """The number of bags that there were."""
        ...

    @property
    def at(self) -> str:
        """When it began."""
        ...


@dataclass(frozen=True)
class Window:
    """Restrict training to the newest bags, by number or by age in days.

    By default all bags are used.

    The day of a bag is that of the round that first found it. So the bags of a round leave a window
    of days together, and only when there is a new round.

    Parameters
    ----------
    bags : int ≥ 1, optional
        Number of newest bags, labelled or not, held out or not.
    days : float in (0, 36525], optional
        Largest age in days, counted from the round that first found the bag.

    See Also
    --------
    Retraining : Settings of `retrain`.

    Examples
    --------
    >>> from bagbasis.operations import Window
    >>> Window(days=90.0).days  # train on the bags of the last 90 days
    90.0
    """

    bags: Annotated[int, Integer(1)] | None = None
    _: KW_ONLY
    days: Annotated[float, Real(gt=0, le=MAX_DAYS)] | None = None

    def __post_init__(self) -> None:
        """Check the parameters."""
        if self.bags is not None and self.days is not None:
            raise ParameterError("a window has so many bags or so many days, not both")
        keep_checked(self, "of the window")


def window_start(
    window: Window, rounds: Sequence[Seen], first: int, stop: int, now: datetime
) -> int:
    """Return the first bag of a window that ends at ``stop``.

    ``rounds`` are those before, oldest first. Bags that have left the window do not come back:
    ``first`` is the first bag of the window before.
    """
    if window.bags is not None:
        return max(first, stop - window.bags)
    if window.days is None:
        return first
    oldest = now - timedelta(days=window.days)
    gone = [seen.stop for seen in rounds if datetime.fromisoformat(seen.at) < oldest]
    return max(first, *gone) if gone else first


@dataclass(frozen=True)
class DriftGate:
    """Settings of the drift tests in `retrain`: new bags against the last window.

    Parameters
    ----------
    alpha : float in (0, 1), default 0.05
        Probability of a false alarm in a horizon of rounds, over all gates and rounds together.
    horizon : int ≥ 1, default 365
        Number of rounds among which alpha is divided evenly; then the next horizon begins. 1: each
        round has all of it.
    least_effect : float ≥ 0, default 0.01
        Drifts below this effect size are ignored, because with millions of bags every difference is
        significant. In units of the spread within the sets, squared.
    n_bags : int ≥ 2, default 1000
        Number of bags that are sampled on each side.
    n_permutations : int from 1 to 1,000,000, default 999
        Number of permutations of each test; more follow where the p-value could become small
        enough.
    action : {"report", "refuse"}, default "report"
        Whether a drift is only mentioned in the report, or also keeps the current champion
        ("refuse").
    statistic : {"fuse", "mmd_u"}, optional
        Statistic that compares bags and labels; see `drift_test`. Default "fuse"; in a sequence of
        rounds that an earlier version began, "mmd_u", as then.
    gate : {"permutation", "e_process"}, default "permutation"
        Kind of gate; "e_process" bets on new bags against bags that are kept as a reference, see
        `martingale_gates`. With it alpha is the false-alarm rate over all future rounds, and
        horizon, n_permutations and statistic are not used.

    See Also
    --------
    Retraining : Settings of `retrain`.
    drift_test : Compare two sets of bags.

    Examples
    --------
    >>> from bagbasis.operations import DriftGate
    >>> DriftGate(alpha=0.01, n_bags=500).action
    'report'
    """

    alpha: Annotated[float, Fraction] = 0.05
    _: KW_ONLY
    horizon: Annotated[int, Integer(1)] = 365
    least_effect: Annotated[float, Real(ge=0)] = 0.01
    n_bags: Annotated[int, Integer(2)] = 1000
    n_permutations: Permutations = 999
    action: Annotated[str, OneOf("report", "refuse")] = "report"
    statistic: DriftStatistic | None = None
    gate: Annotated[str, OneOf("permutation", "e_process")] = "permutation"

    def __post_init__(self) -> None:
        """Check the parameters."""
        keep_checked(self, "of the drift gates")
        if self.gate == PERMUTATION and self.alpha / self.horizon < MIN_LEVEL:
            raise ParameterError(
                f"alpha {self.alpha:g} shared by a horizon of {self.horizon:,} rounds is below "
                f"{MIN_LEVEL:g}, which permutations cannot tell; take fewer rounds"
            )


@dataclass(frozen=True)
class Spending(Saved):
    """How much of alpha the tests of a horizon have used up.

    It is part of the state, so a round that is repeated after a kill uses it up once.

    Attributes
    ----------
    n_tested : int
        Rounds of the horizon that tested.
    alpha_spent : float
        Their levels, summed.
    """

    n_tested: int = 0
    alpha_spent: float = 0.0

    def spend(self, gate: DriftGate) -> tuple[float, Spending]:
        """Return the level of all gates of a round, and the level that remains for later rounds.

        What is left is shared evenly by the remaining rounds. So the levels add up to at most
        alpha, even if alpha and horizon were changed between rounds.
        """
        now = Spending() if self.n_tested >= gate.horizon else self
        level = max(0.0, gate.alpha - now.alpha_spent) / (gate.horizon - now.n_tested)
        return level, Spending(now.n_tested + 1, now.alpha_spent + level)


@renamed_fields
@dataclass(frozen=True)
class Retraining:
    """Settings of `retrain`: data, model, window, gates and rules of promotion.

    Parameters
    ----------
    data_url : str
        The store of labelled bags, which others append to.
    registry_url : str
        The registry of the models.
    estimator : estimator
        Estimator that is not fitted.
    state_url : str, optional
        Folder of sums and rounds; default the URL of the registry, followed by ``.retrain``.
    target : str or list of str, optional
        The target, or a list of them; default the only one.
    holdout : float in (0, 1), or mapping, default 0.1
        Fraction of the bags that no model is fitted to, by the same hash as in every fit. Models
        are judged on the newest of them. {"fraction": 0.1, "groups": column}: about this fraction
        as whole groups, which the first round chooses; the same hash assigns later groups.
    window : Window
    evaluate_bags : int ≥ 1, default 2000
        Largest number of held-out bags on which models are judged, the newest first.
    tolerance : float ≥ 0, default 0.02
        Error allowed over the champion's, relative to it; see `objections`.
    min_new_bags : int ≥ 1, default 1
        Number of new labelled bags below which a call does nothing.
    drift : DriftGate
    recompute_every : int ≥ 1, default 30
        Rounds after which the sums are computed from all bags again, and compared.
    checkpoints : str, optional
        Folder for finished sums, from which the same round continues; see `Checkpoints`.
    checkpoint_seconds : float > 0, default 300.0
        Seconds of work on one core between two checkpoints.
    settings : mapping
        Further settings on which the models depend, in types of JSON. They must be the same in
        every round, like the estimator, target, holdout and sample_weight.
    sample_weight : str, optional
        Column of the store: how much each bag counts in the models.

    See Also
    --------
    retrain : Retrain and promote models.
    Window : Restrict training to recent bags.
    DriftGate : Drift checks before a model is promoted.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import BagStore, DoubleBasisRegressor
    >>> from bagbasis.operations import Retraining, retrain
    >>> store = BagStore.create('bags.zarr', n_dims=2, target_names=['y']).append(X, y)
    >>> estimator = DoubleBasisRegressor('moments', alpha=1e-3)
    >>> spec = Retraining('bags.zarr', 'models', estimator, target='y')
    >>> retrain(spec).decision
    'promoted'
    """

    data_url: str
    registry_url: str
    estimator: Annotated[DoubleBasis, Instance("DoubleBasis")]
    _: KW_ONLY
    state_url: str | None = None
    target: str | Annotated[Sequence[str], ListOf(Text)] | None = None
    holdout: Annotated[float, Fraction] | Annotated[Mapping[str, Any], MappingOf(Text, Open())] = (
        0.1
    )
    window: Annotated[Window, Instance("Window")] = Window()
    evaluate_bags: Annotated[int, Integer(1)] = 2000
    tolerance: Annotated[float, Real(ge=0)] = 0.02
    min_new_bags: Annotated[int, Integer(1)] = 1
    drift: Annotated[DriftGate, Instance("DriftGate")] = DriftGate()
    recompute_every: Annotated[int, Integer(1)] = 30
    checkpoints: str | None = None
    checkpoint_seconds: Annotated[float, Real(gt=0)] = 300.0
    settings: Annotated[Mapping[str, Any], MappingOf(Text, Open())] = field(default_factory=dict)
    sample_weight: str | None = None

    def __post_init__(self) -> None:
        """Check the parameters."""
        check_parameters(self)
        head = fit_parameters_of(self.estimator).head
        if head != "ridge":
            raise ParameterError(
                f"the estimator's head is {head!r}: rounds go on from sums, which trees have not; "
                "take head='ridge'"
            )
        holdout = Holdout.of(self.holdout)
        if not holdout.fraction:
            raise ParameterError(
                f"holdout is {shown(self.holdout)}; expected a number > 0 and < 1, or "
                "{'fraction': 0.1, 'groups': column}: without held-out bags nothing judges a model"
            )

    @property
    def state_folder(self) -> str:
        """The normalized URL of the state."""
        return normalize_url(self.state_url or f"{normalize_url(self.registry_url)}.retrain")

    @property
    def all_settings(self) -> dict[str, Any]:
        """Everything that the models depend on, in types that JSON knows.

        Raises
        ------
        ParameterError
            ``settings`` holds something else.
        """
        own = {
            "target": self.target,
            "holdout": self._described_holdout,
            "sample_weight": self.sample_weight,
            "estimator": _described(self.estimator),
        }
        try:
            settings: dict[str, Any] = json.loads(json.dumps({**self.settings, **own}))
        except (TypeError, ValueError) as error:
            raise ParameterError(f"settings cannot be written as JSON: {error}") from error
        return settings

    @property
    def _described_holdout(self) -> float | str:
        """The fraction; with groups in words, so that a change is shown as one of the whole."""
        holdout = Holdout.of(self.holdout)
        if holdout.groups is None:
            return holdout.fraction
        return f"{holdout.fraction:g} by groups of {holdout.groups!r}"

    @checked(store=Instance("BagStore"))
    def labelled(self, store: BagStore) -> LabelledBags:
        """Return the store's bags with the labels that are learnt.

        Raises
        ------
        DataError
            The store has none of them.
        """
        return fit_parameters_of(self.estimator).learns.label(store, None, self.target)


ONCE = {"embedding": None, "alpha": "gcv"}  # defaults of parameters of the first versions


def _described(value: object) -> Any:  # noqa: ANN401 - types that JSON knows
    """Return a parameter as JSON holds it; of an estimator the name, and what is not its default.

    Defaults are left out, so that a sequence goes on after a later version has added a parameter.
    Those that have changed since sequences were first written are what they were.
    """
    if isinstance(value, BaseEstimator):
        defaults = inspect.signature(type(value)).parameters
        values = {key: _described(item) for key, item in value.get_params(deep=False).items()}
        changed = {
            key: item for key, item in values.items() if item != _default(key, defaults[key])
        }
        return {"name": type(value).__name__, **changed}
    if isinstance(value, Mapping):
        return {str(key): _described(item) for key, item in value.items()}
    if isinstance(value, Box):
        return value.bounds
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [_described(item) for item in value]
    return value if isinstance(value, (str, int, float, type(None))) else str(value)


def _default(name: str, parameter: inspect.Parameter) -> object:
    return ONCE[name] if name in ONCE else _described(parameter.default)
