"""`retrain`: one round of a sequence of models that follows a growing store.

A round reads the bags that were committed since the last round and fits a new model. It judges the
new model and the champion on the same held-out bags, and promotes the new model or keeps the
champion. The decision is saved before it is carried out. If the process dies, the next call carries
out the decided round, or begins the round again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Annotated, Any

from ...core import Function, Instance, checked
from ...core.config_errors import differences
from ...core.digits import rounded, with_error
from ...core.errors import BusyError, ConfigError, ParameterError, WriterBusyError, shown
from ...core.moved import GONE
from ...data.bags.html import html_table
from ...data.storage.files import GROUP_FILE
from ...data.storage.lock import writer_lock
from ...data.storage.urls import normalize_url
from ...data.storage.zarr_stores import exists
from ...data.store.store import BagStore
from ...execution.progress import Progress
from ...models.fitting.checkpoints import checkpoints_of
from ..registry.registry import Registry
from .gates import count_in_store
from .round import NewRound
from .settings import Retraining
from .state import Journal, RetrainingState, Round, StateFolder, check_same_store

_NOTHING = "nothing"
# Settings that older sequences did not save, with the values that their models were made with.
NEW_SETTINGS = {
    "model.solver": "auto",
    "model.random_features.structure": "dense",
    "model.random_features.name": "fourier",
    "model.uncertainty": False,
    "model.head": "ridge",
}

Publish = Callable[[dict[str, Any], tuple[Round, ...]], None]
Computing = Callable[[BagStore], AbstractContextManager[Progress | None]]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RoundResult:
    """Result of `retrain`.

    Attributes
    ----------
    decision : {"promoted", "kept", "overtaken", "nothing"}
        Outcome of the round. "overtaken": the new model passed all checks but was not promoted,
        because someone else changed the champion during the round.
    report : dict
        Details of the round. For "nothing" it has the reason. Otherwise it has the contents of
        `Round` as JSON types, and

        - ``reasons``: reasons why the champion stayed; ``champion_before``: its name
        - ``measure``, ``n_judged``: name of the error measure, and number of bags it is measured on
        - ``window``, ``n_left``, ``n_changed``: range of the bags in the sums, number of bags that
          left the sums, and number of bags that were removed or relabelled
        - ``new_sequence``, ``recomputed``: reasons why the features were determined anew, and why
          all bags were counted; None if they were not
        - ``check``, ``corrupt``: comparison of the running sums with recomputed sums, see `Check`
        - ``n_outside_box``: number of points of the new bags outside the box (in a new sequence, of
          all bags)
        - ``alarms``: detected drifts; ``gates``: result of each drift gate; ``drift``: where the
          bags differ, see `drift_test`
        - ``bag_passes``: number of bags that were embedded, by purpose

    See Also
    --------
    retrain : Retrain and promote models.
    Round : History of a past round.

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
    >>> result = retrain(spec)
    >>> result.decision, result.report['number']
    ('promoted', 1)
    """

    decision: str
    report: dict[str, Any]

    def __str__(self) -> str:
        """Return the decision, its reasons, and the errors on which it is based."""
        return "\n".join(f"{name}: {text}" for name, text in self._lines().items())

    def _repr_html_(self) -> str:
        """Show the result as a table in a notebook."""
        return html_table("Round of retraining", self._lines())

    def _lines(self) -> dict[str, str]:
        report = self.report
        if "number" not in report:
            return {"decision": self.decision, "reason": str(report.get("reason", ""))}
        error, before = report.get("error"), report.get("champion_error")
        spread = report.get("standard_error")
        known = [] if error is None else [f"new model {with_error(error, spread)}"]
        known += [] if before is None else [f"champion {rounded(before, spread)}"]
        lines = {
            "round": f"{report['number']:,}",
            "decision": self.decision,
            "because": "; ".join(map(str, report.get("reasons") or [])),
            str(report.get("measure") or "error"): ", ".join(known),
            "judged on": f"{report.get('n_judged') or 0:,} bags",
        }
        return {name: text for name, text in lines.items() if text}


@checked
def retrain(
    spec: Annotated[Retraining, Instance()],
    *,
    publish: Annotated[Publish, Function] | None = None,
    computing: Annotated[Computing, Function] | None = None,
) -> RoundResult:
    """Train and judge a new model if there are enough new bags, and promote it if it is better.

    Parameters
    ----------
    spec : Retraining
        Settings: data, model, window, gates and rules of promotion.
    publish : callable (report, rounds), optional
        Function that writes the report of a round, given all rounds so far. If the process dies in
        it, the next call of `retrain` calls it again.
    computing : callable (store), optional
        Function that returns a context manager around all code that reads bags. The context manager
        may open a cluster, and yields a progress callback or None.

    Raises
    ------
    BusyError
        If another retraining with the same state is running.
    ConfigError
        If the settings differ from the settings of earlier rounds.
    StoreError
        If the store was replaced or has shrunk, or the state is damaged.

    See Also
    --------
    Retraining : Settings of `retrain`.
    RoundResult : Result of `retrain`.
    Registry : Versioned models under one URL.

    Notes
    -----
    Bags that were removed or relabelled since the last round are subtracted from the sums with
    their old labels, and added with their new labels. Such changes start a round even without new
    bags. If a gate keeps the champion, the champion has still learned from the removed bags, until
    a later round replaces it.

    The bags of a round that kept the champion stay in the sums, so that later rounds do not read
    them again. They leave the sums when they leave the window. If the labels of all new bags are
    wrong, the labels of the held-out bags are wrong, too. The errors do not show this.

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
    >>> retrain(spec).decision  # the first model has no rival
    'promoted'
    >>> retrain(spec).decision
    'nothing'
    """
    with _locked(spec) as folder:
        outcome = None
        journal, state = folder.unfinished()
        if journal is not None:
            logger.warning("%s: finishing a round that was cut off", folder.url)
            outcome = _carry_out(spec, folder, journal, publish)
            state = journal.state
        if state is not None:
            _check_settings(spec, state)
        store = BagStore.open(spec.data_url)
        reason = _nothing_to_do(spec, store, state)
        if reason is not None:
            return outcome or RoundResult(_NOTHING, {"decision": _NOTHING, "reason": reason})
        with checkpoints_of(spec.checkpoints, spec.checkpoint_seconds) as checkpoints:
            with _context(computing, store) as progress:
                journal = NewRound(spec, folder, store, state, progress, checkpoints).decide()
            folder.decide(journal)
        return _carry_out(spec, folder, journal, publish)


def _context(
    computing: Computing | None, store: BagStore
) -> AbstractContextManager[Progress | None]:
    context = nullcontext() if computing is None else computing(store)
    if not isinstance(context, AbstractContextManager):
        raise ParameterError(f"computing returns {shown(context)}; expected a context manager")
    return context


def _carry_out(
    spec: Retraining, folder: StateFolder, journal: Journal, publish: Publish | None
) -> RoundResult:
    """Promote, commit, report; every step except the promotion may be repeated."""
    registry = Registry(spec.registry_url)
    changes, name = registry.history(), journal.state.model
    if journal.promote and len(changes) == journal.n_changes:
        registry.promote(name, n_changes=journal.n_changes)
        changes = registry.history()
    if journal.promote and registry.current() != name:
        stays = f"it stays {registry.current()}" if changes else "there is none now"
        what = f"the champion was changed since {name} was to be promoted; {stays}"
        logger.warning("%s: %s", registry.url, what)
        # fewer changes than before: the registry was replaced by an older one
        if [change.name for change in changes[journal.n_changes :][:1]] != [name]:
            journal = journal.overtaken(what)
    folder.commit(journal.state)
    if publish is not None:
        publish(journal.report, journal.state.rounds)
    folder.close(journal.state)
    return RoundResult(journal.report["decision"], journal.report)


def _nothing_to_do(spec: Retraining, store: BagStore, state: RetrainingState | None) -> str | None:
    """Return the reason why there is no round; None if there is one."""
    if state is not None:
        check_same_store(store, state.store, spec.state_folder)
        if len(state.changed(store)):
            return None
    first = 0 if state is None else state.stop
    if store.n_bags == first:
        return f"nothing new: {store.url} has {first:,} bags, as it had in the last round"
    n_labelled = count_in_store(replace(spec.labelled(store), start=first))
    if n_labelled < spec.min_new_bags:
        return (
            f"{n_labelled:,} of {store.n_bags - first:,} new bags have a label, fewer than "
            f"min_new_bags = {spec.min_new_bags:,}; they wait for the next round"
        )
    return None


def _check_settings(spec: Retraining, state: RetrainingState) -> None:
    # older sequences did not save the estimator, and those begun in Python saved no settings
    known = {*spec.settings, *state.settings}
    settings = {key: value for key, value in spec.all_settings.items() if key in known}
    for key, before, now in differences(state.settings, settings):
        if now is None and (gone := GONE["bags retrain"].get(key)):
            if gone.keeps(before):
                continue
            raise ConfigError(
                f"key {key!r}: {gone.instead}; the models of {spec.state_folder} were made with "
                f"{_shown(key, before)}: give another state_url to begin anew"
            )
        if before is None and now == NEW_SETTINGS.get(key):
            continue
        ours, theirs = (_shown(key, value) for value in (now, before))
        raise ConfigError(
            f"key {key!r} is {ours}, the models of {spec.state_folder} were made with {theirs}; "
            "put it back, or give another state_url to begin anew"
        )


def _shown(key: str, value: object) -> str:
    """Return a setting as text; parameters that an estimator's settings lack have their default."""
    return "its default" if value is None and key.startswith("estimator.") else repr(value)


@contextmanager
def _locked(spec: Retraining) -> Iterator[StateFolder]:
    url = spec.state_folder
    if url == normalize_url(spec.registry_url) or exists(f"{url}/{GROUP_FILE}"):
        raise ConfigError(f"key 'state_url': {url} is taken; give a folder of its own")
    try:
        with writer_lock(url, make=True) as hold:
            yield StateFolder(hold)
    except WriterBusyError as error:
        raise BusyError(f"{url}: another retraining is running; nothing was done") from error
