"""Every public callable refuses what it cannot use, by name, in one line, at once.

Each parameter of each callable is given values of `junk_for`. The call works, if the parameter's
constraint or annotation leaves the value open, or it ends in an error of ours of at most 1,000
characters, which are not numbers for long. None of numpy's warnings is heard in either case.
"""

from __future__ import annotations

import re
import resource
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from sklearn.exceptions import NotFittedError

from bagbasis import BagbasisError, ClusterError, connect
from bagbasis.core import constraints_of
from bagbasis.core.errors import MAX_CHARACTERS
from bagbasis.core.systems import addresses_needed
from bagbasis.jobs.runs import LAUNCHERS
from tests.contract.examples import EXAMPLES
from tests.contract.public import PUBLIC, parameters_of
from tests.contract.values import WHICH, annotations_of, is_open, junk_for
from tests.contract.world import World

GUARD_SECONDS = 60  # of one call, on however busy a machine; in free ones it is milliseconds
REFUSAL_SECONDS = 5  # that a refusal may compute, however long it waits for a core
GUARD_BYTES = 4 * 2**30  # of memory in addition to what the process has
THREE_BY_POSITION = {
    *(("estimator", "X", "y"), ("model", "X", "y"), ("url", "X", "y"), ("x", "y", "z")),
    *(("store", "embedding", "random_features"), ("model", "store", "url")),
    ("basis", "n_functions", "x"),
}
NUMBERS = re.compile(r"(?:[^A-Za-z]|\b(?:nan|inf|e)\b|(?<=\d)e(?=[+-]?\d)){200}")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return World(tmp_path_factory.mktemp("contract"))


@contextmanager
def guarded() -> Iterator[Callable[[], float]]:
    """Interrupt a call that does not end, and refuse it memory that nobody has.

    Yields a function that says for how many seconds this process has computed since.
    """

    def stop(*_):
        raise TimeoutError("the call does not end")

    before = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as statm:
        pages = int(statm.read().split()[0])
    limit = max(pages * resource.getpagesize() + GUARD_BYTES, addresses_needed())
    handler = signal.signal(signal.SIGALRM, stop)
    resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    signal.alarm(GUARD_SECONDS)
    begun = time.process_time()
    try:
        yield lambda: time.process_time() - begun
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)


def complaint(call, values, name, junk, is_open):
    """What is wrong with how a call takes a value; None if nothing is."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        result = complaint_of_call(call, values, name, junk, is_open)
    of_numpy = [line for line in heard if issubclass(line.category, RuntimeWarning)]
    if result is None and of_numpy:
        return f"numpy warns: {of_numpy[0].message} ({of_numpy[0].filename}:{of_numpy[0].lineno})"
    return result


def complaint_of_call(call, values, name, junk, is_open):
    try:
        with guarded() as seconds:
            call(**{**values, name: junk})
    except (BagbasisError, NotFittedError) as error:
        if seconds() > REFUSAL_SECONDS:
            return f"refused after {seconds():.1f} CPU seconds"
        text = str(error)
        if "\n" in text or not 0 < len(text) <= MAX_CHARACTERS:
            return f"a message of {len(text)} characters in {text.count(chr(10)) + 1} lines"
        if NUMBERS.search(text):
            return f"a message of numbers: {text[:150]}"
        return None
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:150]}"
    return None if is_open else "accepted"


def test_every_public_callable_has_an_example():
    """A new one without an example, and an example of one that is gone, fail here."""
    needed = {name for name, first in PUBLIC.items() if first.needs_example}
    assert needed <= set(EXAMPLES) <= set(PUBLIC)


def test_parameters_beyond_the_first_two_are_keyword_only():
    """Except the three that everybody names; flags are never passed by position."""
    wrong = []
    for name, public in PUBLIC.items():
        if not public.needs_example:
            continue
        positional = [p for p in parameters_of(public.call) if p.kind is p.POSITIONAL_OR_KEYWORD]
        names = tuple(p.name for p in positional)
        if len(names) > 2 and names not in THREE_BY_POSITION:
            wrong.append(f"{name}{names}")
        flags = [p.name for p in positional if isinstance(p.default, bool)]
        wrong += [f"{name}.{flag}" for flag in flags if flag != "deep"]  # of scikit-learn
    assert not wrong


@WHICH
@pytest.mark.parametrize("key", EXAMPLES)
def test_values_that_no_parameter_wants(key, which, world, monkeypatch):
    """Each is refused by name, or works where the annotation leaves it open."""

    def no_cluster(profile):
        raise ClusterError("no cluster is started here")

    monkeypatch.setattr(sys.modules[connect.__module__], "open_local", no_cluster)
    monkeypatch.setitem(LAUNCHERS, "local", lambda *_: {})  # no driver either
    monkeypatch.chdir(world.folder)  # texts are paths, too
    public = PUBLIC[key].call
    call, values = EXAMPLES[key](world)
    if which == "four" and call is not connect:  # once in a run of both
        call(**values)
        call, values = EXAMPLES[key](world)
    wrong = []
    constraints = constraints_of(public)
    for name, annotation in annotations_of(public).items():
        place, constraint = f"{key}.{name}", constraints.get(name)
        if name in ("self", "cls", "params"):
            continue
        for what, junk in junk_for(place, constraint, which).items():
            may_work = is_open(constraint, annotation, junk)
            result = complaint(call, values, name, junk, may_work)
            if may_work:  # the call may have done its work; a refused one has changed nothing
                call, values = EXAMPLES[key](world)
            wrong += [] if result is None else [f"{name}={what}: {result}"]
    assert not wrong, "\n" + "\n".join(wrong)
