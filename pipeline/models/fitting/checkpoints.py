"""Checkpoints of a fit: partial sums in files, from which an interrupted fit continues.

There is one folder per fit, named by a hash of everything that the sums depend on: the store and
its committed counts, both bases, the encoding, the splits, the plan and the code. Sums of another
fit are therefore never used. The folder has one file per finished group of tasks.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

from numpy.typing import NDArray

from ...core import Instance, Real, Url, checked
from ...core.errors import ParameterError, StoreError
from ...core.saved import Format, newer_error
from ...core.versions import NUMERICAL, versions_of
from ...data.storage.files import discard, discard_empty, names_in, reading, writing
from ...data.storage.urls import filesystem, normalize_url
from ...data.store.plan import Range
from ...execution.costs import current_limits
from ..outcomes.kinds import identify_outcome
from .accumulate import FitStatistics
from .partials import read_arrays, read_partial, write_arrays, write_partial
from .plan import FitPlan

_T = TypeVar("_T")

_FORMAT = Format("checkpoint", key="format")
CHECKPOINT_SECONDS = 300.0  # work on one core between two checkpoints of a worker
CheckpointSeconds = Annotated[float, Real(gt=0)]
ABANDONED_AFTER = timedelta(days=1)  # time since the last write: these checkpoints are deleted
DESCRIPTION = "fit.json"
_FOLDER = re.compile(r"fit-[0-9a-f]{32}")
_PARTIAL = re.compile(r"group-(\d+)\.npz")

logger = logging.getLogger(__name__)


class Checkpoints:
    """Place and frequency of the checkpoints of a fit, from which an interrupted fit continues.

    A fit that is started again computes only the missing sums. Its model has the same bits as that
    of an uninterrupted fit. As a context manager, the object removes its checkpoints if the block
    ends without an error. Checkpoints of other fits at this URL that are a day old are removed,
    too.

    Parameters
    ----------
    url : str or path
        Folder on a filesystem that all workers can access. It is created if it does not exist.
    seconds : float > 0
        Largest number of seconds of work on one core, by the cost model, between two checkpoints of
        a worker. This is the work that a worker can lose. A checkpoint covers at least one task,
        about a minute. Fits with few tasks store every task, so that all workers have work.

    See Also
    --------
    bagbasis.DoubleBasisRegressor : Predict numbers from bags.
    bagbasis.BagStore : Bags on disk or in object storage.

    Notes
    -----
    A checkpoint has D (D + 1) / 2 + k D float64 numbers, twice as many with alpha="validation".
    Until the fit ends, there is one checkpoint for each group of tasks. Writing a checkpoint needs
    no further D × D array.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import BagStore, DoubleBasisRegressor
    >>> from bagbasis.models import Checkpoints
    >>> store = BagStore.create('bags.zarr', n_dims=2, target_names=['y']).append(X, y)
    >>> checkpoints = Checkpoints('sums', seconds=60)
    >>> model = DoubleBasisRegressor('moments').fit(store, checkpoints=checkpoints)
    >>> checkpoints.discard()  # the model is fitted, so they are not needed
    """

    @checked
    def __init__(
        self,
        url: Annotated[str | os.PathLike[str], Url],
        *,
        seconds: CheckpointSeconds = CHECKPOINT_SECONDS,
    ) -> None:
        self.url = normalize_url(url)
        self.seconds = seconds
        self._used: set[str] = set()

    def store_of(self, plan: FitPlan) -> FitCheckpointStore:
        """Return the checkpoints of one pass.

        Raises
        ------
        ParameterError
            If the bags are in memory, because they are lost with the process.
        StoreError
            If the folder cannot be written.
        """
        every = self._tasks(plan)
        return FitCheckpointStore(self._folder(plan, tasks_a_group=every), every)

    def steps(self, plan: FitPlan, **settings: object) -> StepKeeper:
        """Return the checkpoints of a fit by conjugate gradients, and its settings.

        Raises
        ------
        ParameterError, StoreError
            In the same cases as `store_of`.
        """
        return StepKeeper(self._folder(plan, **settings), self.seconds)

    def _folder(self, plan: FitPlan, **settings: object) -> str:
        """Create the folder of one fit, with a description of the values that it depends on."""
        if plan.bags.in_memory:
            raise ParameterError("checkpoints are for bags in a BagStore, not for bags in memory")
        description = {**describe_fit(plan), **settings}
        text = json.dumps(description, sort_keys=True)
        url = f"{self.url}/fit-{hashlib.sha256(text.encode()).hexdigest()[:32]}"
        with writing(f"{url}/{DESCRIPTION}") as path:
            path.write_text(json.dumps(description, indent=1, sort_keys=True) + "\n", "utf-8")
        self._used.add(url)
        return url

    def discard(self) -> None:
        """Remove the checkpoints of the fits that used this object, and abandoned ones."""
        for url in self._used:
            discard(url)
        self._used.clear()
        for url in _abandoned(self.url):
            logger.info("%s: removed, abandoned checkpoints", url)
            discard(url)
        discard_empty(self.url)  # others' checkpoints may be in it

    def __enter__(self) -> Checkpoints:
        """Begin a block that removes the checkpoints if it ends without an error."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *more: object) -> None:
        """Remove the checkpoints, unless the block ends with an error."""
        if kind is None:
            self.discard()

    def _tasks(self, plan: FitPlan) -> int:
        """Return the tasks per group, by the cost model alone: the same in every run."""
        n_tasks = len(plan.ranges)
        by_seconds = self.seconds * n_tasks / plan.seconds
        return max(1, int(min(by_seconds, n_tasks // current_limits().groups)))


CheckpointsLike = (
    Annotated[Checkpoints | str | os.PathLike[str], Instance("Checkpoints") | Url] | None
)


def checkpoints_of(
    checkpoints: CheckpointsLike, seconds: float = CHECKPOINT_SECONDS
) -> AbstractContextManager[Checkpoints | None]:
    """Yield the checkpoints of an argument ``checkpoints``.

    If the argument is a URL, the checkpoints are removed when the block succeeds, and ``seconds``
    is that of `Checkpoints`.
    """
    if checkpoints is None or isinstance(checkpoints, Checkpoints):
        return nullcontext(checkpoints)
    return Checkpoints(checkpoints, seconds=seconds)


@dataclass(frozen=True)
class FitCheckpointStore:
    """A `CheckpointStore` of the statistics of one pass.

    Parameters
    ----------
    url : str
        Folder of this pass alone.
    every : int
        Number of tasks in a group.
    """

    url: str
    every: int

    def load(self, group: int) -> FitStatistics | None:
        """Read the statistics of a group; None if they are missing or damaged."""
        return _loaded(self._url(group), read_partial)

    def save(self, group: int, value: FitStatistics) -> None:
        """Write the statistics of a group, atomically."""
        with writing(self._url(group)) as path:
            write_partial(path, value)

    def n_bags_kept(self, ranges: Sequence[Range]) -> int:
        """Return the number of bags of the pass that need not be read again."""
        groups = [_PARTIAL.fullmatch(name) for name in names_in(self.url)]
        starts = [int(match[1]) * self.every for match in groups if match]
        return sum(b - a for start in starts for a, b in ranges[start : start + self.every])

    def _url(self, group: int) -> str:
        return f"{self.url}/group-{group:04d}.npz"


@dataclass(frozen=True)
class StepKeeper:
    """Checkpoints of a fit by iteration: arrays by name, whose passes are steps.

    Parameters
    ----------
    url : str
        Folder of this fit alone.
    seconds : float
        Seconds between two checkpoints.
    """

    url: str
    seconds: float

    def load(self, name: str) -> dict[str, NDArray[Any]] | None:
        """Read the arrays of a name; None if they are missing or damaged."""
        return _loaded(f"{self.url}/{name}.npz", read_arrays)

    def save(self, name: str, arrays: dict[str, NDArray[Any]]) -> None:
        """Write arrays, atomically."""
        with writing(f"{self.url}/{name}.npz") as path:
            write_arrays(path, arrays, {})


def _loaded(url: str, read: Callable[[Path], _T]) -> _T | None:
    """Read a checkpoint; None if it is missing, or damaged and therefore removed.

    Raises
    ------
    StoreError
        If a newer version of bagbasis wrote the checkpoint.
    """
    try:
        with reading(url) as path:
            return read(path)
    except FileNotFoundError:
        return None
    except ValueError as error:
        newer = newer_error(error, {})
        if newer is not None:  # it is whole, and a fit of that version goes on from it
            raise StoreError(f"{url}: {newer}, or give checkpoints of this version") from newer
        logger.warning("%s: damaged checkpoint (%s); its tasks are done again", url, error)
        discard(url)
        return None


def _abandoned(url: str) -> Iterator[str]:
    """Return the folders of other fits that have not been written to for a day."""
    fs, _ = filesystem(url)
    for name in names_in(url):
        if not _FOLDER.fullmatch(name):
            continue
        _, path = filesystem(f"{url}/{name}")
        with suppress(OSError, NotImplementedError):  # a fit that ends, or times nobody knows
            times = [fs.modified(f"{path}/{file}") for file in names_in(f"{url}/{name}")]
            if times and datetime.now(UTC) - max(map(_aware, times)) > ABANDONED_AFTER:
                yield f"{url}/{name}"


def _aware(time: datetime) -> datetime:
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def describe_fit(plan: FitPlan) -> dict[str, Any]:
    """Return all values on which the sums of a pass depend, in types that JSON knows."""
    source = plan.bags
    store: Any = source.data
    values = {
        "packages": versions_of(NUMERICAL),
        "sources": digest_of_sources(),
        "store": store.url,
        "store_written": store.written,
        "n_bags": store.n_bags,
        "n_points": store.n_points,
        "n_response_points": store.n_response_points,
        "n_changes": store.meta.n_changes,
        "bags": [source.start, source.end],
        "only": source.only.to_dict() if source.only else None,
        "target_names": list(source.target_names),
        "features": plan.features.to_dict(),
        "outcome": identify_outcome(plan.outcome),
        "holdout": source.left_out.to_dict() if source.left_out else None,
        "validation": plan.validation.to_dict() if plan.validation else None,
        "folds": plan.folds.to_dict() if plan.folds else None,
        "weights": plan.weights.to_dict() if plan.weights else None,
        "precision": plan.precision,
        "keeps_rows": plan.keeps_rows,
        "plan": [current_limits().split_every, len(plan.ranges)],
    }
    if source.coordinates is not None:
        values["coordinates"] = list(source.coordinates)
    return _FORMAT.stamp(values)


@lru_cache(maxsize=1)
def digest_of_sources() -> str:
    """Return a hash of this package's modules: any changed line makes another version."""
    root = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
