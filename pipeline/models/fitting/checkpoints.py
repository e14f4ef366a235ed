"""Partial sums of a fit, stored in files from which a fit that is started again goes on.

There is one folder per fit, named by a hash of everything its sums depend on: the store and its
committed counts, both bases, the encoding, the splits, the plan, and the code. So sums of another
fit are never used. The folder has one file per finished group of tasks.
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
from typing import Any, TypeVar

from numpy.typing import NDArray

from ...core import Real, Url, checked
from ...core.errors import ParameterError, StoreError
from ...core.saved import Format, newer_error
from ...core.versions import version
from ...data.storage.files import discard, discard_empty, names_in, reading, writing
from ...data.storage.urls import filesystem, normalize_url
from ...data.store.plan import Range
from ...execution.costs import current_limits
from ..outcomes.kinds import identify_outcome
from .accumulate import FitStatistics
from .partials import read_arrays, read_partial, write_arrays, write_partial
from .plan import FitPlan

T = TypeVar("T")

FORMAT = Format("checkpoint", key="format")
CHECKPOINT_SECONDS = 300.0  # work on one core between two checkpoints of a worker
ABANDONED_AFTER = timedelta(days=1)  # time since the last write: these checkpoints are deleted
PACKAGES = ("bagbasis", "numpy", "scipy", "numba")
DESCRIPTION = "fit.json"
FOLDER = re.compile(r"fit-[0-9a-f]{32}")
PARTIAL = re.compile(r"group-(\d+)\.npz")

logger = logging.getLogger(__name__)


class Checkpoints:
    """Where, and how often, a fit stores what it has computed.

    If a fit is cut off for any reason and started again, it does only what is missing, and its
    model has the same bits as without the break. When used as a context manager, the checkpoints
    are removed if the block ends without an error, and so are other fits' checkpoints at this URL
    that are a day old.

    Parameters
    ----------
    url : str or path
        A folder, on any filesystem that all workers see; made when it is not there.
    seconds : float > 0
        Largest number of seconds of work on one core, by the cost model, between two checkpoints of
        a worker: what a worker can lose. At least one task, about a minute. Fits of few tasks keep
        every one, so that there are groups of them for all workers.

    See Also
    --------
    bagbasis.DoubleBasisRegressor : Predict numbers from bags.
    bagbasis.BagStore : Bags on disk or in object storage.

    Notes
    -----
    A checkpoint holds D (D + 1) / 2 + k D float64 numbers, twice that with alpha="validation";
    there is one for each group of tasks until the fit ends. Writing one takes no further D × D
    array.

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

    @checked(url=Url, seconds=Real())
    def __init__(self, url: str | os.PathLike[str], seconds: float = CHECKPOINT_SECONDS) -> None:
        self.url = normalize_url(url)
        self.seconds = Real(gt=0).check("seconds", seconds)
        self._used: set[str] = set()

    def store_of(self, plan: FitPlan) -> FitCheckpointStore:
        """Return the checkpoints of one pass.

        Raises
        ------
        ParameterError
            Bags in memory, which are gone with the process.
        StoreError
            The folder cannot be written.
        """
        every = self._tasks(plan)
        return FitCheckpointStore(self._folder(plan, tasks_a_group=every), every)

    def steps(self, plan: FitPlan, **settings: object) -> StepKeeper:
        """Return the checkpoints of a fit by conjugate gradients, and its settings.

        Raises
        ------
        ParameterError, StoreError
            As `checkpoint_store`.
        """
        return StepKeeper(self._folder(plan, **settings), self.seconds)

    def _folder(self, plan: FitPlan, **settings: object) -> str:
        """Make the folder of one fit, with what it depends on."""
        if plan.bags.in_memory:
            raise ParameterError("checkpoints are for bags in a BagStore, not for bags in memory")
        description = {**describe_fit(plan), **settings}
        text = json.dumps(description, sort_keys=True)
        url = f"{self.url}/fit-{hashlib.sha256(text.encode()).hexdigest()[:32]}"
        with writing(f"{url}/{DESCRIPTION}") as path:
            path.write_text(json.dumps(description, indent=1, sort_keys=True) + "\n")
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
        """Begin a block whose good end removes them."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *more: object) -> None:
        """Remove them, unless the block ends with an error."""
        if kind is None:
            self.discard()

    def _tasks(self, plan: FitPlan) -> int:
        """Return the tasks per group, by the cost model alone: the same in every run."""
        n_tasks = len(plan.ranges)
        by_seconds = self.seconds * n_tasks / plan.seconds
        return max(1, int(min(by_seconds, n_tasks // current_limits().groups)))


CheckpointsLike = Checkpoints | str | os.PathLike[str] | None


def checkpoints_of(
    checkpoints: CheckpointsLike, seconds: float = CHECKPOINT_SECONDS
) -> AbstractContextManager[Checkpoints | None]:
    """Yield the checkpoints of ``checkpoints=``; a URL's are removed when the block succeeds.

    ``seconds`` is for those of a URL, as in `Checkpoints`.
    """
    if checkpoints is None or isinstance(checkpoints, Checkpoints):
        return nullcontext(checkpoints)
    return Checkpoints(checkpoints, seconds)


@dataclass(frozen=True)
class FitCheckpointStore:
    """A `CheckpointStore` of the statistics of one pass.

    Parameters
    ----------
    url : str
        Its own folder.
    every : int
        Tasks in a group.
    """

    url: str
    every: int

    def load(self, group: int) -> FitStatistics | None:
        """Read the statistics of a group; None where there are none, or damaged ones."""
        return _loaded(self._url(group), read_partial)

    def save(self, group: int, value: FitStatistics) -> None:
        """Write the statistics of a group, atomically."""
        with writing(self._url(group)) as path:
            write_partial(path, value)

    def n_bags_kept(self, ranges: Sequence[Range]) -> int:
        """Bags of the pass's ranges that need not be read again."""
        groups = [PARTIAL.fullmatch(name) for name in names_in(self.url)]
        starts = [int(match[1]) * self.every for match in groups if match]
        return sum(b - a for start in starts for a, b in ranges[start : start + self.every])

    def _url(self, group: int) -> str:
        return f"{self.url}/group-{group:04d}.npz"


@dataclass(frozen=True)
class StepKeeper:
    """Arrays by name, of a fit whose passes are steps.

    Parameters
    ----------
    url : str
        Its own folder.
    seconds : float
        Between two checkpoints.
    """

    url: str
    seconds: float

    def load(self, name: str) -> dict[str, NDArray[Any]] | None:
        """Read what was kept under a name; None where there is nothing, or damaged."""
        return _loaded(f"{self.url}/{name}.npz", read_arrays)

    def save(self, name: str, arrays: dict[str, NDArray[Any]]) -> None:
        """Write arrays, atomically."""
        with writing(f"{self.url}/{name}.npz") as path:
            write_arrays(path, arrays, {})


def _loaded(url: str, read: Callable[[Path], T]) -> T | None:
    """Read a checkpoint; None where there is none, and a damaged one is removed.

    Raises
    ------
    StoreError
        A newer version of bagbasis wrote it.
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
    """Return folders of other fits' checkpoints that nobody has written to for a day."""
    fs, _ = filesystem(url)
    for name in names_in(url):
        if not FOLDER.fullmatch(name):
            continue
        _, path = filesystem(f"{url}/{name}")
        with suppress(OSError, NotImplementedError):  # a fit that ends, or times nobody knows
            times = [fs.modified(f"{path}/{file}") for file in names_in(f"{url}/{name}")]
            if times and datetime.now(UTC) - max(map(_aware, times)) > ABANDONED_AFTER:
                yield f"{url}/{name}"


def _aware(time: datetime) -> datetime:
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def describe_fit(plan: FitPlan) -> dict[str, Any]:
    """Return everything that the sums of a pass depend on, in types JSON knows."""
    source = plan.bags
    store: Any = source.data
    values = {
        "packages": {name: version(name) for name in PACKAGES},
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
    return FORMAT.stamp(values)


@lru_cache(maxsize=1)
def digest_of_sources() -> str:
    """Return a hash of this package's modules: any changed line makes another version."""
    root = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
