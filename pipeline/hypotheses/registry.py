"""Statistics by name: what each of them declares, and how a test finds the one it was asked for.

A statistic is a frozen dataclass whose fields are its parameters, in the module of its family. A
question has one registry of them, as `TWO_SAMPLE`, in which a statistic registers itself by
``@TWO_SAMPLE.register``. People give its name, or an instance with other parameters than the
defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar

import numpy as np

from ..core import keep_checked
from ..core.arrays import Floats
from ..core.errors import DataError, ParameterError, closest, shown
from .nulls.distributions import Null
from .result import HypothesisResult


@dataclass(frozen=True)
class Statistic:
    """Base of all statistics: of each question a subclass says how one is computed.

    Attributes
    ----------
    name : str
    nulls : tuple of str
        Those it admits, the default first.
    kernels : tuple of str
        Those it admits; empty for a statistic without a kernel.
    group_nulls : tuple of str
        The nulls that do not take the rows of a group for independent.
    """

    name: ClassVar[str]
    nulls: ClassVar[tuple[str, ...]]
    kernels: ClassVar[tuple[str, ...]] = ("gaussian", "laplacian", "matern")
    group_nulls: ClassVar[tuple[str, ...]] = ("permutation",)

    def __post_init__(self) -> None:
        """Refuse fields that are not accepted, and what `check` refuses."""
        keep_checked(self)
        self.check()

    def check(self) -> None:
        """Raise ParameterError for fields that do not fit each other."""

    @property
    def described(self) -> str:
        """The name with the parameters: "fourier(n_frequencies=256)"."""
        fields = ", ".join(f"{name}={value}" for name, value in vars(self).items())
        return f"{self.name}({fields})" if fields else self.name


def check_groups(statistic: Statistic, null: str, rows: str) -> None:
    """Raise ParameterError for a null that takes the ``rows`` of a group for independent."""
    if null not in statistic.group_nulls:
        nulls = list(statistic.group_nulls)
        admitted = f"admits {nulls}" if nulls else "has none"
        raise ParameterError(
            f"null is {null!r}, which takes {rows} for independent; with groups the statistic "
            f"{statistic.name!r} {admitted}"
        )


@dataclass(frozen=True, eq=False)
class Measured:
    """What a statistic found; see `HypothesisResult` for the fields."""

    statistic: float
    null: Null
    standard_error: float = float("nan")
    effect: float = float("nan")
    details: Mapping[str, Any] | None = None
    sampled_rows: Mapping[str, Floats] = field(default_factory=dict)
    kernel: str = ""

    def times_power(self, exponent: int, name: str) -> Measured:
        """Return the statistic ``name``, its error and its null times 2^``exponent``.

        Raises
        ------
        DataError
            Numbers do not hold it.
        """
        with np.errstate(over="ignore"):  # refused
            value, error = np.ldexp([self.statistic, self.standard_error], exponent).tolist()
            values = np.ldexp(self.null.values, exponent)
        if not np.isfinite([value, *values]).all() or (value == 0) != (self.statistic == 0):
            raise DataError(
                f"{name} is too large or too small for numbers: take larger or smaller units"
            )
        null = replace(self.null, values=values)
        return replace(self, statistic=value, null=null, standard_error=error)

    def result(self, **tested: Any) -> HypothesisResult:  # noqa: ANN401 - fields of other types
        """Return the result of a test; ``tested`` are the fields that say what was tested."""
        details = {**tested.pop("details", {}), **(self.details or {})}
        tested["kernel"] = self.kernel or tested["kernel"]
        return HypothesisResult(
            statistic=self.statistic,
            p_value=self.null.p_value,
            standard_error=self.standard_error,
            effect=self.effect,
            null_distribution=self.null.values,
            details=details,
            sampled_rows=self.sampled_rows,
            **tested,
        )


S = TypeVar("S", bound=Statistic)


def find_statistic(
    table: Mapping[str, type[S]], statistic: object, null: object, kernel: object
) -> tuple[S, str, str]:
    """Return the statistic of a table, its null and its kernel, by what people gave.

    Parameters
    ----------
    table : mapping of str to class
    statistic : str, or an instance of a class of the table
    null, kernel : str or None
        None: the first that the statistic admits; no kernel is "".

    Raises
    ------
    ParameterError
        No such statistic, or a null or a kernel that it does not admit; lists what there is.
    """
    is_name = isinstance(statistic, str) and statistic in table
    if not (is_name or isinstance(statistic, tuple(table.values()))):
        hint = closest(statistic, table) if isinstance(statistic, str) else ""
        example = next(iter(table.values())).__name__
        raise ParameterError(
            f"statistic is {shown(statistic)}{hint}; expected one of {list(table)}, or an instance "
            f"of a statistic such as {example}()"
        )
    chosen: S = table[statistic]() if is_name else statistic  # type: ignore[index, assignment]
    null = _admitted("null", null, chosen.name, chosen.nulls)
    return chosen, null, _admitted("kernel", kernel, chosen.name, chosen.kernels)


def _admitted(what: str, value: object, statistic: str, admitted: tuple[str, ...]) -> str:
    if value is None:
        return admitted[0] if admitted else ""
    if isinstance(value, str) and value in admitted:
        return value
    known = f"admits {list(admitted)}" if admitted else f"has no {what}"
    raise ParameterError(f"{what} is {shown(value)}; the statistic {statistic!r} {known}")
