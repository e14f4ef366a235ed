"""Parameters as data: what each may be, and the checks that are read from it.

The tables of what a config can name (embeddings, random features, estimators, ...) are modules
here, one per room, because a config is checked before numpy is loaded, and every other room loads
it. A class shows its table as ``PARAMETERS``. What no config names has its table in its own module.
This room imports `bagbasis.errors` alone.
"""

from __future__ import annotations

from .checks import Table, check_parameters, checked, decided, keep_checked
from .constraints import (
    Boolean,
    Constraint,
    False_,
    Function,
    Instance,
    Integer,
    Items,
    None_,
    OneOf,
    Open,
    Real,
    Seed,
    Share,
    ShareOrZero,
    Subset,
    Text,
    Url,
)
from .containers import ListOf, MappingOf, Pair, is_iterable

__all__ = [
    "Boolean",
    "Constraint",
    "False_",
    "Function",
    "Instance",
    "Integer",
    "Items",
    "ListOf",
    "MappingOf",
    "None_",
    "OneOf",
    "Open",
    "Pair",
    "Real",
    "Seed",
    "Share",
    "ShareOrZero",
    "Subset",
    "Table",
    "Text",
    "Url",
    "check_parameters",
    "checked",
    "decided",
    "is_iterable",
    "keep_checked",
]
