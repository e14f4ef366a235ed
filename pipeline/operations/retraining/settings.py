"""Settings of a retraining: data, model, window and gates."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Any

import numpy as np
from sklearn.base import BaseEstimator

from ...core import (
    Fraction,
    Instance,
    Integer,
    OneOf,
    Real,
    TextList,
    TextMapping,
    check_parameters,
    checked,
    documented,
    keep_checked,
)
from ...core.declarations import named_calls
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
from ...models.fitting.checkpoints import CHECKPOINT_SECONDS, CheckpointSeconds

MAX_DAYS = 36_525  # a hundred years; Python's dates end
PERMUTATION = "permutation"
MIN_LEVEL = 6e-6  # of three gates: 10^6 permutations resolve 2e-6


@documented
@named_calls
@dataclass(frozen=True)
class Window:
    """Restrict training to the newest bags, by number or by age in days.

    By default all bags are used.

    The age of a bag is counted from the round that first found the bag. Bags that were found in the
    same round therefore leave a window of days together, and only in a later round.

    Parameters
    ----------
    bags
        Number of newest bags, including unlabelled and held-out bags.
    days
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


@documented
@renamed_fields
@named_calls
@dataclass(frozen=True)
class DriftGate:
    """Settings of the drift tests in `retrain`, which compare new bags with the last window.

    Parameters
    ----------
    level
        Probability of at least one false alarm in a horizon of rounds, over all gates and rounds
        together.
    horizon
        Number of rounds among which the level is divided evenly; the next horizon then begins with
        the whole level again. With 1, each round has the whole level.
    min_effect
        Smallest effect size that counts as drift, because with millions of bags every difference is
        significant. The unit is the squared spread within the sets.
    n_bags
        Number of bags that are sampled from the new bags, and from the last window.
    n_permutations
        Number of permutations of each test; more permutations follow if the p-value could still
        fall below the level.
    action
        Action on drift: only mention it in the report, or also keep the current champion
        ("refuse").
    statistic
        Statistic that compares bags and labels; see `drift_test`. Default: "fuse", but "mmd_u" for
        a sequence of rounds that an earlier version began.
    gate
        Kind of gate; "e_process" uses test martingales that bet on new bags against a kept
        reference, see `martingale_gates`. With "e_process", level is the false-alarm rate over all
        future rounds, and horizon, n_permutations and statistic are not used.

    See Also
    --------
    Retraining : Settings of `retrain`.
    drift_test : Compare two sets of bags.

    Examples
    --------
    >>> from bagbasis.operations import DriftGate
    >>> DriftGate(level=0.01, n_bags=500).action
    'report'
    """

    level: Annotated[float, Fraction] = 0.05
    _: KW_ONLY
    horizon: Annotated[int, Integer(1)] = 365
    min_effect: Annotated[float, Real(ge=0)] = 0.01
    n_bags: Annotated[int, Integer(2)] = 1000
    n_permutations: Permutations = 999
    action: Annotated[str, OneOf("report", "refuse")] = "report"
    statistic: DriftStatistic | None = None
    gate: Annotated[str, OneOf("permutation", "e_process")] = "permutation"

    def __post_init__(self) -> None:
        """Check the parameters."""
        keep_checked(self, "of the drift gates")
        if self.gate == PERMUTATION and self.level / self.horizon < MIN_LEVEL:
            raise ParameterError(
                f"level {self.level:g} shared by a horizon of {self.horizon:,} rounds is below "
                f"{MIN_LEVEL:g}, which permutations cannot tell; take fewer rounds"
            )


@dataclass(frozen=True)
class Spending(Saved):
    """The part of the level that the tests of a horizon have spent.

    The spending is part of the saved state. A round that is repeated after a crash therefore spends
    its level only once.

    Attributes
    ----------
    n_tested : int
        Number of rounds of the horizon with tests.
    alpha_spent : float
        Sum of the levels of these rounds.
    """

    n_tested: int = 0
    alpha_spent: float = 0.0

    def spend(self, gate: DriftGate) -> tuple[float, Spending]:
        """Return the level of all gates of a round, and the spending after the round.

        The rest of the gate's level is divided evenly among the remaining rounds. The levels of the
        rounds therefore add up to at most the gate's level, even if it and the horizon are changed
        between rounds.
        """
        now = Spending() if self.n_tested >= gate.horizon else self
        level = max(0.0, gate.level - now.alpha_spent) / (gate.horizon - now.n_tested)
        return level, Spending(now.n_tested + 1, now.alpha_spent + level)


@documented
@renamed_fields
@named_calls
@dataclass(frozen=True)
class Retraining:
    """Settings of `retrain`: data, model, window, gates and rules of promotion.

    Parameters
    ----------
    data_url
        URL of the store of labelled bags, to which other processes may append.
    registry_url
        URL of the registry of models.
    estimator : estimator
        Unfitted estimator.
    state_url
        Folder for sums and rounds; default the URL of the registry, followed by ``.retrain``.
    target
        Name of the target, or names of several targets; default the only target of the store.
    holdout : float in (0, 1), or mapping
        Fraction of the bags that no model is fitted to, by the same hash as in every fit. Models
        are judged on the newest held-out bags. A mapping {"fraction": 0.1, "groups": column} holds
        out about this fraction as whole groups. The first round chooses the groups; the same hash
        assigns later groups.
    window : Window
        Bags that models are trained on. Default: all bags.
    evaluate_bags
        Largest number of held-out bags on which models are judged, the newest first.
    tolerance
        Largest excess of the new model's error over the champion's error, relative to the
        champion's error, with which the new model is still promoted.
    min_new_bags
        Smallest number of new labelled bags that starts a round; with fewer, a call does nothing.
    drift : DriftGate
        Settings of the drift tests.
    recompute_every
        Number of rounds after which the sums are recomputed from all bags, and compared with the
        running sums.
    checkpoints
        Folder for finished sums, from which the same round resumes; see `Checkpoints`.
    checkpoint_seconds
        Seconds of work on one core between two checkpoints.
    settings : mapping
        Further settings on which the models depend, as JSON types. They must be the same in every
        round, like the estimator, target, holdout and sample_weight.
    sample_weight
        Column of the store with the weight of each bag in the models.

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
    >>> spec = Retraining('bags.zarr', 'models', estimator=estimator, target='y')
    >>> retrain(spec).decision
    'promoted'
    """

    data_url: str
    registry_url: str
    _: KW_ONLY
    estimator: Annotated[DoubleBasis, Instance()]
    state_url: str | None = None
    target: str | TextList | None = None
    holdout: Annotated[float, Fraction] | TextMapping = 0.1
    window: Annotated[Window, Instance()] = Window()
    evaluate_bags: Annotated[int, Integer(1)] = 2000
    tolerance: Annotated[float, Real(ge=0)] = 0.02
    min_new_bags: Annotated[int, Integer(1)] = 1
    drift: Annotated[DriftGate, Instance()] = DriftGate()
    recompute_every: Annotated[int, Integer(1)] = 30
    checkpoints: str | None = None
    checkpoint_seconds: CheckpointSeconds = CHECKPOINT_SECONDS
    settings: TextMapping = field(default_factory=dict)
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
        """Normalized URL of the state folder."""
        return normalize_url(self.state_url or f"{normalize_url(self.registry_url)}.retrain")

    @property
    def all_settings(self) -> dict[str, Any]:
        """Return all settings on which the models depend, as JSON types.

        Raises
        ------
        ParameterError
            If ``settings`` has a value that JSON cannot represent.
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
        """Return the fraction; with groups a text, so that messages show the whole setting."""
        holdout = Holdout.of(self.holdout)
        if holdout.groups is None:
            return holdout.fraction
        return f"{holdout.fraction:g} by groups of {holdout.groups!r}"

    @checked
    def labelled(self, store: Annotated[BagStore, Instance()]) -> LabelledBags:
        """Return the store's bags with the labels of the target.

        Raises
        ------
        DataError
            If the store does not have the target.
        """
        return fit_parameters_of(self.estimator).learns.label(store, None, self.target)


_ONCE = {"embedding": None, "alpha": "gcv"}  # defaults of parameters of the first versions


def _described(value: object) -> Any:  # noqa: ANN401 - types that JSON knows
    """Return a parameter as JSON types; an estimator becomes its name and non-default parameters.

    Default values are left out, so that a sequence continues after a later version has added a
    parameter. If a default has changed, the value at the time of the first version is left out.
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
    return _ONCE[name] if name in _ONCE else _described(parameter.default)
