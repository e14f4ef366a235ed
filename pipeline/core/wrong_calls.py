"""Errors of calls with arguments that a function does not take; they suggest the right name."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping, Sequence

from .errors import closest

_EMPTY = inspect.Parameter.empty
_MAX_NAMED = 3  # keywords that a hint suggests
CORES = "; the cores of this machine are used, and those of a cluster after connect()"


def wrong_call(
    name: str,
    signature: inspect.Signature,
    args: Sequence[object],
    kwargs: Mapping[str, object],
) -> TypeError | None:
    """Return the error of a call that does not fit a signature; None if the call fits.

    Neither ``args`` nor ``signature`` includes ``self``.
    """
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        return TypeError(_reason(name, signature, args, kwargs) or f"{name}() got {error}")
    return None


def _reason(
    name: str,
    signature: inspect.Signature,
    args: Sequence[object],
    kwargs: Mapping[str, object],
) -> str | None:
    known = signature.parameters.values()
    kinds = {parameter.kind for parameter in known}
    unknown = [key for key in kwargs if key not in signature.parameters]
    if unknown and inspect.Parameter.VAR_KEYWORD not in kinds:
        hint = _hint(unknown[0], signature.parameters)
        return f"{name}() got an unexpected keyword argument {unknown[0]!r}{hint}"
    by_keyword = [p.name for p in known if p.kind is p.KEYWORD_ONLY]
    by_place = [p.name for p in known if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(args) > len(by_place) and inspect.Parameter.VAR_POSITIONAL not in kinds:
        n, n_given = len(by_place), len(args)
        n_named = max(n_given - n, _MAX_NAMED)  # any of them may be meant
        others = ", ".join(f"{keyword}=" for keyword in by_keyword[:n_named])
        plural = "" if n == 1 else "s"
        taken = f"at most {n} positional argument{plural} ({', '.join(by_place)})"
        if not by_place:
            taken = f"keyword arguments only, such as {others}" if others else "no arguments"
        hint = f"; pass the others by keyword, such as {others}" if by_place and others else ""
        were = "was" if n_given == 1 else "were"
        return f"{name}() takes {taken}, but {n_given} {were} given by position{hint}"
    passed = {*by_place[: len(args)], *kwargs}
    required = [n for n in (*by_place, *by_keyword) if signature.parameters[n].default is _EMPTY]
    missing = [n for n in required if n not in passed]
    return f"{name}() is missing the argument {missing[0]!r}" if missing else None


def _hint(unknown: str, known: Collection[str]) -> str:
    """Return a suggestion for an argument name; many names of scikit-learn differ here."""
    if unknown == "n_jobs":
        return CORES
    if unknown == "random_state" and "seed" in known:
        return " (did you mean 'seed'?)"
    if unknown == "random_state" and "random_features" in known:
        return "; a seed is a parameter of random_features, as in NystroemFeatures(seed=0)"
    return closest(unknown, known)
