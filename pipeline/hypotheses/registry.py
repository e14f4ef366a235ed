"""Registries of test statistics by name, and the look-up of a statistic with null and kernel.

A statistic is a frozen dataclass whose fields are its parameters. Each kind of test has one
registry, such as `TWO_SAMPLE`, and a statistic registers itself by ``@TWO_SAMPLE.register``. Users
pass the name of a statistic, or an instance with other parameters than the defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar

import numpy as np

from ..core import frozen_component, keep_checked
from ..core.arrays import Floats
from ..core.errors import DataError, ParameterError, closest, shown
from .nulls.distributions import Null
from .result import HypothesisResult


@frozen_component
class Statistic:
    """Base of all test statistics; a subclass per kind of test defines how they are computed.

    Attributes
    ----------
    name : str
        Name of the statistic in its registry.
    nulls : tuple of str
        Null distributions that the statistic admits, the default first.
    kernels : tuple of str
        Kernels that the statistic admits, the default first; empty for a statistic without a
        kernel.
    group_nulls : tuple of str
        Null distributions that do not assume the rows of a group to be independent.
    """

    name: ClassVar[str]
    nulls: ClassVar[tuple[str, ...]]
    kernels: ClassVar[tuple[str, ...]] = ("gaussian", "laplacian", "matern")
    group_nulls: ClassVar[tuple[str, ...]] = ("permutation",)

    def __post_init__(self) -> None:
        """Validate the fields and call `check`."""
        keep_checked(self)
        self.check()

    def check(self) -> None:
        """Raise ParameterError if the values of two fields are incompatible."""

    @property
    def described(self) -> str:
        """Return the name with the parameters, such as "fourier(n_frequencies=256)"."""
        fields = ", ".join(f"{name}={value}" for name, value in vars(self).items())
        return f"{self.name}({fields})" if fields else self.name


def check_groups(statistic: Statistic, null: str, rows: str) -> None:
    """Raise ParameterError if the null assumes the ``rows`` of a group to be independent."""
    if null not in statistic.group_nulls:
        nulls = list(statistic.group_nulls)
        admitted = f"admits {nulls}" if nulls else "has none"
        raise ParameterError(
            f"null is {null!r}, which takes {rows} for independent; with groups the statistic "
            f"{statistic.name!r} {admitted}"
        )


@dataclass(frozen=True, eq=False)
class Measured:
    """A statistic's value, null distribution and details; the fields are as `HypothesisResult`."""

    statistic: float
    null: Null
    standard_error: float = float("nan")
    effect: float = float("nan")
    details: Mapping[str, Any] | None = None
    sampled_rows: Mapping[str, Floats] = field(default_factory=dict)
    kernel: str = ""

    def times_power(self, exponent: int, name: str) -> Measured:
        """Return the measurements of ``name`` with statistic, error and null times 2^``exponent``.

        Raises
        ------
        DataError
            If the product overflows.
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
        """Return the result of a test; ``tested`` holds the fields about the data and the test."""
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


_S = TypeVar("_S", bound=Statistic)


def find_statistic(
    table: Mapping[str, type[_S]], statistic: object, null: object, kernel: object
) -> tuple[_S, str, str]:
    """Return the statistic, null and kernel for the values that a user passed.

    Parameters
    ----------
    table : mapping of str to class
        Registry of the statistics.
    statistic : str, or an instance of a class of the table
        Name of the statistic, or the statistic itself.
    null, kernel : str or None
        Names of the null and of the kernel. None: the first that the statistic admits. The kernel
        of a statistic without one is "".

    Raises
    ------
    ParameterError
        If there is no such statistic, or the statistic does not admit the null or the kernel. The
        message lists the admitted names.
    """
    is_name = isinstance(statistic, str) and statistic in table
    if not (is_name or isinstance(statistic, tuple(table.values()))):
        hint = closest(statistic, table) if isinstance(statistic, str) else ""
        example = next(iter(table.values())).__name__
        raise ParameterError(
            f"statistic is {shown(statistic)}{hint}; expected one of {list(table)}, or an instance "
            f"of a statistic such as {example}()"
        )
    chosen: _S = table[statistic]() if is_name else statistic  # type: ignore[index, assignment]
    null = _admitted("null", null, chosen.name, chosen.nulls)
    return chosen, null, _admitted("kernel", kernel, chosen.name, chosen.kernels)


def _admitted(what: str, value: object, statistic: str, admitted: tuple[str, ...]) -> str:
    if value is None:
        return admitted[0] if admitted else ""
    if isinstance(value, str) and value in admitted:
        return value
    known = f"admits {list(admitted)}" if admitted else f"has no {what}"
    raise ParameterError(f"{what} is {shown(value)}; the statistic {statistic!r} {known}")
