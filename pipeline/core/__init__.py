"""Declared parameters, their constraints and their checks, and the registries of components."""

from __future__ import annotations

from .annotations import KernelName, Precision, RandomSeed
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
from .declarations import (
    REQUIRED,
    Parameter,
    component,
    constraint_of,
    constraints_of,
    parameters_of,
    plain_signature,
)
from .registries import ComponentRegistry, NameIn

__all__ = [
    "REQUIRED",
    "Boolean",
    "ComponentRegistry",
    "Constraint",
    "False_",
    "Function",
    "Instance",
    "Integer",
    "Items",
    "KernelName",
    "ListOf",
    "MappingOf",
    "NameIn",
    "None_",
    "OneOf",
    "Open",
    "Pair",
    "Parameter",
    "Precision",
    "RandomSeed",
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
    "component",
    "constraint_of",
    "constraints_of",
    "decided",
    "is_iterable",
    "keep_checked",
    "parameters_of",
    "plain_signature",
]
