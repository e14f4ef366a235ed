"""Errors and warnings of bagbasis. A message names the input and says what to do, in one line."""

from __future__ import annotations

import difflib
import inspect
import math
import re
import traceback
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from reprlib import Repr

from .credentials import without_credentials

MAX_CHARACTERS = 1000  # length of a message: what a terminal, a log and a notebook show at once
_MAX_NUMBERS = 8  # numbers of an array that is shown whole

EXHAUSTED = (
    "this process gets no more memory or threads; raise its limits (ulimit -v, ulimit -u, those of "
    "its job or container), or run less next to it"
)

# all but tabs and line breaks; for terminals U+0080 to U+009F begin sequences, too.
# Marks of direction show a text in another order than it has.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


class _Shown(Repr):
    """A `Repr` that describes arrays of many numbers, which would hide what the message says."""

    def repr1(self, x: object, level: int) -> str:
        shape, dtype = getattr(x, "shape", None), getattr(x, "dtype", None)
        if isinstance(shape, tuple) and dtype is not None and math.prod(shape) > _MAX_NUMBERS:
            return f"<{type(x).__name__} of shape {shape}, {dtype}>"
        return super().repr1(x, level)

    def repr_str(self, x: str, level: int) -> str:
        return super().repr_str(without_credentials(x), level)  # cut first: a half is a secret too

    def repr_instance(self, x: object, level: int) -> str:
        text = without_credentials(repr(x))
        if len(text) <= self.maxother:
            return text
        head = (self.maxother - 3) // 2
        return f"{text[:head]}...{text[-(self.maxother - 3 - head) :]}"


_shown = _Shown()
_shown.maxlevel = 4  # lists in lists
_shown.maxlist = _shown.maxtuple = _shown.maxdict = 20
_shown.maxstring = _shown.maxother = 200


def plural(noun: str, n: int) -> str:
    """Return the noun in singular or plural, for its number."""
    return noun if n == 1 else noun + "s"


def shown(value: object) -> str:
    """Return the ``repr`` of a value for messages, cut if it is long or deep."""
    return without_credentials(_shown.repr(value))


def closest(name: str, names: Collection[str]) -> str:
    """Return " (did you mean 'x'?)", or an empty text if no name is close."""
    folded = {known.casefold(): known for known in reversed([*names])}
    close = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    return f" (did you mean {folded[close[0]]!r}?)" if close else ""


class BagbasisError(Exception):
    """Base class of all errors that bagbasis raises on purpose.

    A long message is cut in the middle: it names the input at the beginning and the advice at the
    end. Messages never show credentials.

    See Also
    --------
    BagbasisWarning : Category of all warnings.
    DataError : Points, targets or ids that cannot be used.
    ParameterError : A parameter outside its range.
    StoreError : A missing or damaged store.

    Examples
    --------
    >>> from bagbasis import BagbasisError, BagStore
    >>> try:
    ...     BagStore.open('missing.zarr')
    ... except BagbasisError as error:
    ...     print(type(error).__name__)
    StoreError
    """

    def __str__(self) -> str:
        """Return the message, at most `MAX_CHARACTERS` long."""
        return one_line(super().__str__())

    def _render_traceback_(self) -> list[str]:
        """Return the traceback as IPython shows it: the caller's lines, without this package's.

        The message explains the error; ``%debug`` still sees all frames.
        """
        calls = []
        for frame, line in traceback.walk_tb(self.__traceback__):
            package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
            if package == __name__.partition(".")[0]:
                break
            if package != "IPython":
                calls.append((frame, line))
        lines = traceback.StackSummary.extract(iter(calls)).format()
        return [
            "Traceback (most recent call last):",
            *"".join(lines).splitlines(),
            *"".join(traceback.format_exception_only(type(self), self)).splitlines(),
        ]


def printable(text: str) -> str:
    """Return a text with control characters and marks of direction escaped.

    Control characters can move a terminal's cursor. Marks of direction can reorder a text.
    """
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def one_line(text: str) -> str:
    """Return a text as one line of at most `MAX_CHARACTERS`, without credentials."""
    line = without_credentials(" ".join(part.strip() for part in text.splitlines()))
    line = printable(line)
    if len(line) <= MAX_CHARACTERS:
        return line
    tail = MAX_CHARACTERS // 3
    return f"{line[: MAX_CHARACTERS - tail - 3]} … {line[-tail:]}"


class DataError(BagbasisError, ValueError):
    """Points, targets or ids that cannot be used. The message names the bag and the row.

    See Also
    --------
    BagError : A single bag that cannot be used.
    StoreError : A missing or damaged store.

    Examples
    --------
    >>> import numpy as np
    >>> from bagbasis import Bags, DataError
    >>> try:
    ...     Bags.from_list([np.array([[0.0, np.nan]])])
    ... except DataError as error:
    ...     print(str(error).split(';')[0])
    bag 0, row 0: coordinate 1 is nan
    """


class BagError(DataError):
    """A bag that cannot be used. The attribute ``bag`` is its position in the input.

    See Also
    --------
    DataError : Points, targets or ids that cannot be used.
    Bags : Bags in memory.

    Examples
    --------
    >>> import numpy as np
    >>> from bagbasis import BagError
    >>> from bagbasis.densities import divergence_matrix
    >>> try:
    ...     divergence_matrix([np.zeros((9, 1)), np.zeros((2, 1))], k=3)
    ... except BagError as error:
    ...     print(error.bag)
    1
    """

    def __init__(self, bag: int, reason: str) -> None:
        super().__init__(bag, reason)
        self.bag = bag
        self.reason = reason

    def __str__(self) -> str:
        return one_line(f"bag {self.bag}: {self.reason}")


class ParameterError(BagbasisError, ValueError):
    """A parameter of an estimator or embedding is outside its range.

    See Also
    --------
    ConfigError : A wrong key or value in a configuration.

    Examples
    --------
    >>> from bagbasis import MomentsEmbedding, ParameterError
    >>> try:
    ...     MomentsEmbedding(covariance=3).fit([[[0.0]], [[1.0]]])
    ... except ParameterError as error:
    ...     print(error)
    covariance is 3; expected True or False
    """


class StoreError(BagbasisError, OSError):
    """A store that is missing, damaged, or cannot be written. The message names the URL and array.

    See Also
    --------
    InterruptedStoreError : A store whose creation was interrupted.
    WriterBusyError : Another process writes to the store.
    BagStore : Bags on disk or in object storage.

    Examples
    --------
    >>> from bagbasis import BagStore, StoreError
    >>> try:
    ...     BagStore.open('missing.zarr')
    ... except StoreError:
    ...     print('no store is there')
    no store is there
    """


class InterruptedStoreError(StoreError):
    """A store whose creation was interrupted. `BagStore.create` can replace it.

    See Also
    --------
    BagStore : Bags on disk or in object storage.
    StoreError : A missing or damaged store.

    Examples
    --------
    >>> from bagbasis import BagStore, InterruptedStoreError
    >>> try:
    ...     store = BagStore.create('bags.zarr', n_dims=2)
    ... except InterruptedStoreError:
    ...     store = BagStore.create('bags.zarr', n_dims=2, overwrite=True)
    """


class WriterBusyError(StoreError):
    """Another writer holds the store.

    See Also
    --------
    BusyError : Another process does the same work.
    BagStore : Bags on disk or in object storage.

    Examples
    --------
    >>> from bagbasis import BagStore, WriterBusyError
    >>> store = BagStore.create('bags.zarr', n_dims=2)
    >>> try:
    ...     store = store.append([[[0.1, 0.2]], [[0.3, 0.4]]])
    ... except WriterBusyError:
    ...     print('another process is appending')
    """


class ModelError(BagbasisError, ValueError):
    """A saved model that cannot be read, or that does not fit the bags it was given.

    See Also
    --------
    load_model : Load a saved model.
    bagbasis.models.save_model : Save a fitted model.

    Examples
    --------
    >>> from bagbasis import ModelError, load_model
    >>> try:
    ...     load_model('model.zarr')
    ... except ModelError:
    ...     print('no model is there')
    no model is there
    """


class ConfigError(BagbasisError, ValueError):
    """A wrong key or value in a job's config. The message names the key.

    See Also
    --------
    ParameterError : A parameter outside its range.

    Examples
    --------
    >>> from bagbasis import ConfigError
    >>> from bagbasis.jobs.configs.config import read_yaml
    >>> try:
    ...     read_yaml('missing.yaml')
    ... except ConfigError:
    ...     print('no config is there')
    no config is there
    """


class ClusterError(BagbasisError, RuntimeError):
    """A cluster that cannot be reached or that lost a computation.

    See Also
    --------
    connect : Run on all cores or on a cluster.
    BagbasisError : Base of all errors.

    Examples
    --------
    >>> from bagbasis import ClusterError
    >>> try:
    ...     raise ClusterError("tcp://127.0.0.1:8786: no scheduler answers")
    ... except ClusterError as error:
    ...     print("start the cluster, then connect again:", error)
    start the cluster, then connect again: tcp://127.0.0.1:8786: no scheduler answers
    """


class BusyError(BagbasisError, RuntimeError):
    """Another process is doing the same work, so nothing was done.

    See Also
    --------
    WriterBusyError : Another process writes to the store.
    ExhaustedError : Memory or threads are exhausted.

    Examples
    --------
    >>> from bagbasis import BusyError
    >>> try:
    ...     raise BusyError('models: another process is retraining')
    ... except BusyError as error:
    ...     print('try again later:', error)
    try again later: models: another process is retraining
    """


class RunError(BagbasisError, RuntimeError):
    """A run that does not exist, failed, or cannot do the requested action.

    See Also
    --------
    bagbasis.operations.retrain : Retrain and promote models.
    BagbasisError : Base of all errors.

    Examples
    --------
    >>> from bagbasis import RunError
    >>> from bagbasis.jobs.runs.run import attach
    >>> try:
    ...     attach('missing', root='.')
    ... except RunError:
    ...     print('no run has this name')
    no run has this name
    """


class ExhaustedError(BagbasisError, MemoryError):
    """Memory or threads of this process are exhausted.

    See Also
    --------
    BusyError : Another process does the same work.
    bagbasis.models.Checkpoints : Resume interrupted fits.

    Examples
    --------
    >>> from bagbasis import ExhaustedError
    >>> try:
    ...     raise ExhaustedError('no threads are left for this process')
    ... except ExhaustedError as error:
    ...     print('close other programs:', error)
    close other programs: no threads are left for this process
    """


def refuse_exhaustion(what: object, error: BaseException) -> None:
    """Raise ExhaustedError if an error means that memory or threads are exhausted.

    Call it first in a broad ``except`` around reading a file, because such an error does not
    concern the file.
    """
    if is_exhaustion(error):
        raise ExhaustedError(f"{what}: {EXHAUSTED} ({error or type(error).__name__})") from error


def is_exhaustion(error: BaseException) -> bool:
    """Whether Python, NumPy or the system had no more memory or threads."""
    is_thread = isinstance(error, RuntimeError) and "start new thread" in str(error)
    return is_thread or (isinstance(error, MemoryError) and not isinstance(error, BagbasisError))


class BagbasisWarning(UserWarning):
    """Category of all warnings of bagbasis, for ``warnings.filterwarnings``.

    See Also
    --------
    BagbasisError : Base of all errors.

    Examples
    --------
    >>> import warnings
    >>> from bagbasis import BagbasisWarning
    >>> warnings.filterwarnings('error', category=BagbasisWarning)
    """


_gathered: ContextVar[dict[object, list[str]] | None] = ContextVar("bagbasis_warned", default=None)


def warn(message: str) -> None:
    """Warn with a `BagbasisWarning`, attributed to the first caller outside this package."""
    gathered = _gathered.get()
    if gathered is None:
        warn_caller(BagbasisWarning(one_line(message)))
        return
    frame = inspect.currentframe()
    kind = None if frame is None or frame.f_back is None else frame.f_back.f_code
    gathered.setdefault(kind, []).append(message)


@contextmanager
def one_warning_each() -> Iterator[None]:
    """Issue one warning of each kind at the end of a block that fits or predicts repeatedly.

    Warnings from the same function are of one kind. In nested blocks, warnings are issued when the
    outermost block ends.
    """
    if _gathered.get() is not None:
        yield
        return
    messages: list[str] = []
    try:
        with gathering_warnings(messages):
            yield
    finally:
        for message in messages:
            warn(message)


@contextmanager
def gathering_warnings(messages: list[str]) -> Iterator[None]:
    """Add the warnings of a block to ``messages`` at its end, one of each kind; issue none."""
    gathered: dict[object, list[str]] = {}
    token = _gathered.set(gathered)
    try:
        yield
    finally:
        _gathered.reset(token)
        for first, *others in gathered.values():
            n = len(others)
            rest = f" (and {n} more such {plural('warning', n)})" if others else ""
            messages.append(f"{first}{rest}")


def warn_caller(warning: Warning) -> None:
    """Issue a warning that is attributed to the first caller outside this package."""
    own, level = (__name__.partition(".")[0], "contextlib"), 1
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in own:
        frame, level = frame.f_back, level + 1
    warnings.warn(warning, stacklevel=level)


def missing_extra(error: ModuleNotFoundError, what: str) -> BagbasisError | None:
    """Return the error that names the extra whose package is missing; None for other modules."""
    from importlib.metadata import PackageNotFoundError, requires  # noqa: PLC0415 - for this alone

    try:
        needed = requires("bagbasis") or ()
    except PackageNotFoundError:  # a source tree on the path, which is not installed
        return None
    module = (error.name or "").partition(".")[0]
    for text in needed:
        package = re.match(r"([\w.-]+).*; extra == [\"'](\w+)[\"']", text)
        if package and package[1].replace("-", "_") == module:
            return _without_extra(package[2], what, DataError)
    return None


@contextmanager
def needing_extra(
    extra: str, what: object, kind: type[BagbasisError] = DataError
) -> Iterator[None]:
    """Re-raise the ImportError of an extra's library as an error that says how to install it."""
    try:
        yield
    except ImportError as error:
        raise _without_extra(extra, what, kind) from error


def _without_extra(extra: str, what: object, kind: type[BagbasisError]) -> BagbasisError:
    return kind(f"{what}: needs pip install 'bagbasis[{extra}]'")
