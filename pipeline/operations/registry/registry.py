"""A registry of immutable models that are named by their content; one model is the champion.

::

    <url>/champion.json        the current champion and every change of it, replaced as a whole
    <url>/models/<name>.zarr   a saved model; its attributes also say when it was registered

Models are only added. The champion is changed by replacing one object. A process that dies at any
point therefore leaves the old champion in place, and readers need no lock.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from ...core import Instance, Integer, TextMapping, Url, UrlOrPath, checked, documented
from ...core.digits import with_error
from ...core.errors import ModelError, ParameterError, WriterBusyError
from ...core.saved import NewerError
from ...data.bags.html import html_rows, html_table
from ...data.storage.files import GROUP_FILE, names_in, read_bytes, storage_errors
from ...data.storage.folders import publish, staging
from ...data.storage.lock import writer_lock
from ...data.storage.urls import normalize_url
from ...data.storage.zarr_reading import open_group
from ...data.storage.zarr_stores import zarr_store
from ...data.store.checksums import checksum_of_values
from ...models.base import DoubleBasis
from ...models.fit_summary import BY_FOLDS, error_in_words
from ...models.loading import load_model, saved_state
from ...models.saving import (
    MODEL_KEY,
    Saveable,
    attributes_with,
    check_state,
    state_of,
    write_state,
)
from .content import content_name, is_content
from .pointer import CHECKSUM, Pointer, Promotion, now

POINTER = "champion.json"
_MODELS = "models"
REGISTRATION = "bagbasis_registration"
_NAME = re.compile(r"[0-9a-f]{16}")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ModelRecord:
    """A registered model: its name, URL, dates and report.

    Attributes
    ----------
    name : str
        First 16 hexadecimal digits of a SHA-256 hash of the model's content.
    url : str
        URL of the saved model, for `load_model`.
    created : str
        Time of the first registration, ISO 8601 in UTC; empty for a damaged model.
    current : bool
        Whether the model is the champion.
    promoted : str or None
        Time of the last promotion to champion; None if the model was never promoted.
    estimator : str
        Class name of the estimator.
    fit : dict
        Report of the fit (``report_`` of the estimator).
    report : dict
        Report that was given to `Registry.register`.
    measure, error : str or None
        Name of the error measure, and the error with its standard error; None if the error is not
        known.
    damage : str or None
        Reason why the model's description cannot be read; None if it can be read. The arrays are
        not checked.

    See Also
    --------
    Registry : Versioned models under one URL.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import DoubleBasisRegressor
    >>> from bagbasis.operations import Registry
    >>> model = DoubleBasisRegressor('moments').fit(X, y)
    >>> registry = Registry('models')
    >>> name = registry.register(model)
    >>> record = registry.list()[0]
    >>> record.estimator, record.current
    ('DoubleBasisRegressor', False)
    """

    name: str
    url: str
    current: bool
    promoted: str | None
    created: str = ""
    estimator: str = ""
    fit: dict[str, Any] = field(default_factory=dict)
    report: dict[str, Any] = field(default_factory=dict)
    damage: str | None = None

    def _repr_html_(self) -> str:
        """Show the model as a table in a notebook."""
        return html_table(
            f"Model {self.name}", dict(zip(_TABLE_COLUMNS[1:], self.cells[1:], strict=True))
        )

    @property
    def measure(self) -> str | None:
        """Name of the measure of `error`; None if no error is known."""
        if "error" in self.report and "measure" in self.report:  # from a round of `retrain`
            return str(self.report["measure"])
        return BY_FOLDS if error_in_words(self.fit) else None

    @property
    def error(self) -> str | None:
        """Error of the model with its measure and standard error; None if it is not known.

        This is the error on the bags on which a round of `retrain` judged the model. For other
        models it is the error by which ``embedding="auto"`` chose, relative to the error of a
        constant.
        """
        if self.measure in (None, BY_FOLDS):
            return error_in_words(self.fit)
        spread = self.report.get("standard_error")
        return f"{self.measure} {with_error(self.report['error'], spread)}"

    @property
    def cells(self) -> tuple[str, ...]:
        """Cells of the model's row in a table of models."""
        error = self.error or "not known"
        return (
            self.name,
            "champion" if self.current else "",
            self.created[:16].replace("T", " "),
            self.estimator,
            f"{self.fit.get('n_bags_fitted', 0):,}",
            error if self.damage is None else f"damaged: {self.damage}",
        )


_TABLE_COLUMNS = ("model", "", "registered", "estimator", "bags fitted", "error")


class Registry:
    """Registry of model versions under one URL, on any storage that fsspec supports.

    Registered models are immutable and named by their content. One model is the champion: `promote`
    replaces it, `rollback` restores the previous one, and `load_current` loads it.

    Parameters
    ----------
    url : str or path
        URL of the registry. The first `register` creates it. Creating the object reads and writes
        nothing.

    See Also
    --------
    ModelRecord : A registered model.
    log_model : Log a model to MLflow.
    retrain : Retrain and promote models.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import DoubleBasisRegressor
    >>> from bagbasis.operations import Registry
    >>> model = DoubleBasisRegressor('moments').fit(X, y)
    >>> registry = Registry('models')
    >>> name = registry.register(model)
    >>> registry.promote(name)
    >>> registry.load_current().predict(X[:2]).shape
    (2,)
    >>> [promotion.name == name for promotion in registry.history()]
    [True]
    >>> registry.model_url(name) == registry.list()[0].url
    True

    After another model was promoted, ``registry.rollback()`` makes this one the champion again.
    """

    @checked
    def __init__(self, url: UrlOrPath) -> None:
        self.url = normalize_url(url)

    def __repr__(self) -> str:
        """Show the URL."""
        return f"Registry({self.url!r})"

    def _repr_html_(self) -> str:
        """Show the models, the oldest first, as a table in a notebook."""
        try:
            cells = [record.cells for record in self.list()]
        except ModelError as error:
            return html_table(repr(self), {"models": str(error)})
        return html_rows(repr(self), _TABLE_COLUMNS, cells)

    @checked
    def model_url(self, name: str) -> str:
        """Return the URL of the model with the given name; the model need not exist."""
        return f"{self.url}/{_MODELS}/{name}.zarr"

    # ------------------------------------------------------------------ adding

    @checked
    def register(
        self,
        model: Annotated[
            Saveable | str | os.PathLike[str],
            Instance("DoubleBasis") | Instance("LabelledNetwork", "SequenceRegressor") | Url,
        ],
        *,
        report: TextMapping | None = None,
    ) -> str:
        """Add a model and return its name; the champion does not change.

        The name is a hash of the arrays, parameters, bases and fit report. Running times,
        checkpoints and package versions do not enter the hash, so the same model always gets the
        same name. Registering a model that is already registered does nothing, and its first report
        stays. If the registered copy is damaged, it is repaired.

        Parameters
        ----------
        model : fitted estimator, or URL of a saved one
            Fitted estimator, or a fitted network that predicts numbers or classes, such as
            `bagbasis.neural.SequenceRegressor`.
        report : mapping, optional
            Information that is kept with the model, as JSON types.

        Raises
        ------
        ModelError
            If the model is not fitted, the URL has no saved model, or the registry cannot be
            written.
        ParameterError
            If the report cannot be written as JSON.
        """
        values = _json_report(report)
        versions = None
        if isinstance(model, (str, os.PathLike)):
            state, versions = saved_state(model)
        else:
            state = state_of(model)
        with self._errors("the model was not registered"):
            if read_bytes(f"{self.url}/{GROUP_FILE}") is not None:
                raise ModelError(
                    f"{self.url}: a store or a model, not a registry; choose another place"
                )
            with staging(f"{self.url}/{_MODELS}") as staged:
                write_state(state, str(staged))
                return self._add(staged, values, versions)

    def _add(self, staged: Path, report: dict[str, Any], versions: dict[str, str] | None) -> str:
        group = open_group(staged, "r+")
        name = content_name(group)
        there = name in self._names()
        if there and self._damage(name) is None:
            logger.info("%s: model %s is registered already", self.url, name)
            return name
        state: Any = group.attrs[MODEL_KEY]
        state = state if versions is None else {**state, "versions": versions}
        registration: dict[str, Any] = {"created": now(), "report": report}
        registration[CHECKSUM] = checksum_of_values(registration)
        group.update_attributes({**attributes_with(state), REGISTRATION: registration})
        with suppress(FileExistsError):  # another process has just registered the same model
            publish(staged, self.model_url(name), last=GROUP_FILE, overwrite=there)
        damage = self._damage(name)
        if damage is not None:
            raise ModelError(
                f"{damage}, after it was written; delete that folder and register the model again"
            ) from damage
        logger.info("%s: registered model %s", self.url, name)
        return name

    # ------------------------------------------------------------------ the champion

    @documented
    @checked
    def promote(self, name: str, *, n_changes: Annotated[int, Integer(0)] | None = None) -> None:
        """Make a registered model the champion, after reading and checking the model.

        Promoting the current champion does nothing.

        Parameters
        ----------
        name
            Name of the model, as returned by `register`.
        n_changes
            Number of promotions and rollbacks in `history` at the time of the decision. If the
            history has grown since, nothing is done.

        Raises
        ------
        ModelError
            If the model does not exist or is damaged, or another promotion is under way. The
            champion does not change.
        ParameterError
            If ``n_changes`` is not an integer ≥ 0.
        """
        self._check(name)

        def on(pointer: Pointer) -> Pointer:
            overtaken = n_changes is not None and len(pointer.history) != n_changes
            return pointer if overtaken or pointer.current == name else pointer.promoted(name)

        self._change(on)

    def rollback(self) -> str:
        """Make the previous champion the champion again, and return its name.

        Further rollbacks lead to earlier champions. A model that was rolled back can be promoted
        again.

        Raises
        ------
        ModelError
            If there is no previous champion, the previous champion is damaged, or another promotion
            is under way or has come first. The champion does not change.
        """
        before = self._pointer()
        if len(before.champions) < 2:
            raise ModelError(
                f"{self.url}: no champion before {before.current or 'any'}; promote a model"
            )
        name = before.champions[-2]
        self._check(name)

        def back(pointer: Pointer) -> Pointer:
            if pointer != before:
                raise ModelError(
                    f"{self.url}: meanwhile another promotion or rollback made {pointer.current} "
                    "the champion; it stays; roll back again if that is still what you want"
                )
            return pointer.rolled_back()

        self._change(back)
        return name

    def current(self) -> str | None:
        """Return the champion's name; None before the first promotion.

        Raises
        ------
        ModelError
            If the record of champions is damaged or cannot be read.
        """
        return self._pointer().current

    def load_current(self) -> DoubleBasis:
        """Load the champion; for a network use `bagbasis.neural.load_network` instead.

        Raises
        ------
        ModelError
            If no model was promoted, the champion cannot be read, or the champion is a network.
        """
        name = self.current()
        if name is None:
            raise ModelError(f"{self.url}: no model was promoted; register and promote one")
        return load_model(self.model_url(name))

    def history(self) -> tuple[Promotion, ...]:
        """Return every change of the champion, oldest first."""
        return self._pointer().history

    # ------------------------------------------------------------------ what there is

    def list(self) -> tuple[ModelRecord, ...]:
        """Return every registered model, oldest first; arrays are not read.

        Raises
        ------
        ModelError
            If the record of champions or the folder of models cannot be read.
        """
        pointer = self._pointer()
        with self._errors("the models cannot be listed"):
            records = [self._record(name, pointer) for name in self._names()]
        whole = [record for record in records if record is not None]
        return tuple(sorted(whole, key=lambda record: (record.created, record.name)))

    def _names(self) -> tuple[str, ...]:
        stems = (name.removesuffix(".zarr") for name in names_in(f"{self.url}/{_MODELS}"))
        return tuple(sorted(stem for stem in stems if _NAME.fullmatch(stem)))

    def _record(self, name: str, pointer: Pointer) -> ModelRecord | None:
        """Return the record of a model; None if it does not exist or is still being written."""
        url = self.model_url(name)
        content = read_bytes(f"{url}/{GROUP_FILE}")
        if content is None:
            return None
        times = [change.at for change in pointer.history if change.name == name]
        record = ModelRecord(
            name=name,
            url=url,
            current=pointer.current == name,
            promoted=times[-1] if times else None,
        )
        try:
            attributes = json.loads(content)["attributes"]
            check_state(attributes)
            state, registration = attributes[MODEL_KEY], dict(attributes[REGISTRATION])
            expected = registration.pop(CHECKSUM, None)  # earlier versions wrote none
            if expected not in (None, checksum_of_values(registration)):
                raise ValueError(f"its registration does not match its checksum, {expected}")
            return replace(
                record,
                created=str(registration["created"]),
                estimator=str(state["estimator"]),
                fit=dict(state["report"]),
                report=dict(registration["report"]),
            )
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            return replace(record, damage=f"{type(error).__name__}: {error}")

    # ------------------------------------------------------------------ checks

    def _check(self, name: str) -> None:
        with self._errors("the champion stays"):
            if not _NAME.fullmatch(name) or self._record(name, Pointer()) is None:
                there = ", ".join(self._names()) or "none"
                raise ModelError(f"{self.url}: no model {name!r}; registered are: {there}")
            damage = self._damage(name)
        if damage is not None:
            is_newer = isinstance(damage.__cause__, NewerError)  # intact, so nothing to repair
            remedy = "" if is_newer else "; register the model again"
            raise ModelError(f"{damage}; the champion stays{remedy}") from damage

    def _damage(self, name: str) -> ModelError | None:
        """Return the error of reading a model whose folder exists; None if it can be read."""
        url = self.model_url(name)
        try:
            record = self._record(name, Pointer())
            if record is not None and record.damage is not None:
                return ModelError(f"{url}: damaged model ({record.damage})")
            saved_state(url)
            group = open_group(zarr_store(url, read_only=True))
            if not is_content(group, name):
                return ModelError(f"{url}: damaged model (its content is not what its name says)")
        except ModelError as error:
            return error
        return None

    # ------------------------------------------------------------------ the pointer

    def _pointer(self) -> Pointer:
        url = f"{self.url}/{POINTER}"
        with self._errors("the champion cannot be read"):
            return Pointer.read(url, read_bytes)

    def _change(self, change: Callable[[Pointer], Pointer]) -> None:
        """Replace the pointer by a changed one; raise if another process replaced it meanwhile."""
        with self._errors("the champion stays"), writer_lock(self.url) as hold:
            before = Pointer.read(f"{self.url}/{POINTER}", lambda url: hold.read(POINTER))
            after = change(before)
            if after != before:
                hold.write(POINTER, after.to_bytes())
                logger.info("%s: the champion is %s", self.url, after.current)

    @contextmanager
    def _errors(self, consequence: str) -> Iterator[None]:
        try:
            with storage_errors(
                self.url,
                "cannot be read or written",
                consequence,
                ModelError,
                passing=WriterBusyError,
            ):
                yield
        except WriterBusyError as error:
            raise ModelError(
                f"{self.url}: another promotion or rollback is under way; {consequence}; try again"
            ) from error


def _json_report(report: Mapping[str, Any] | None) -> dict[str, Any]:
    try:
        values = json.loads(json.dumps(dict(report or {}), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"report cannot be stored as JSON ({error}); give plain numbers, strings, lists and "
            "dicts, and None instead of NaN"
        ) from error
    return dict(values)
