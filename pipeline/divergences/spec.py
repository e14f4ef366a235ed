"""Names and parameters of the divergences, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from ..errors import ParameterError

DIRECTED = ("kl", "renyi")
BY_NEIGHBOURS = ("kl", "symmetric_kl", "renyi", "hellinger", "l2", "js")
BY_KERNEL = ("mmd", "mmd_unbiased")


@dataclass(frozen=True)
class DivergenceSpec:
    """One divergence with its parameters decided; those it does not have stay at the defaults."""

    name: str
    k: int = 3
    alpha: float = 0.8
    bandwidth: float | str = "median"

    @property
    def is_directed(self) -> bool:
        return self.name in DIRECTED


def resolve(divergence: Any, k: Any, alpha: Any, bandwidth: Any) -> DivergenceSpec:
    """The spec of a divergence; None is the default.

    Raises
    ------
    ParameterError
        An unknown name, a parameter out of range, or one that this divergence does not have.
    """
    if divergence not in BY_NEIGHBOURS + BY_KERNEL:
        names = ", ".join(repr(name) for name in BY_NEIGHBOURS + BY_KERNEL)
        raise ParameterError(f"divergence is {divergence!r}; expected one of {names}")
    given = {"k": k, "alpha": alpha, "bandwidth": bandwidth}
    given = {name: value for name, value in given.items() if value is not None}
    for name in given.keys() - _parameters(divergence):
        raise ParameterError(f"{name} is {given[name]!r}, which {divergence!r} does not have")
    spec = DivergenceSpec(divergence, **given)
    if divergence in BY_KERNEL:
        _check_bandwidth(spec.bandwidth)
        return spec
    _check_neighbour(spec.k, 2 if divergence == "l2" else 1, divergence)
    if divergence == "renyi":
        _check_alpha(spec.alpha, spec.k)
    return spec


def _parameters(divergence: str) -> set[str]:
    if divergence in BY_KERNEL:
        return {"bandwidth"}
    return {"k", "alpha"} if divergence == "renyi" else {"k"}


def _check_neighbour(k: Any, least: int, divergence: str) -> None:
    if not isinstance(k, Integral) or k < least:
        raise ParameterError(f"k is {k!r}; expected an integer ≥ {least} for {divergence!r}")


def _check_alpha(alpha: Any, k: int) -> None:
    if not isinstance(alpha, Real) or not 0 < float(alpha) < k + 1 or alpha == 1:
        raise ParameterError(
            f"alpha is {alpha!r}; expected a number above 0 and below k + 1 = {k + 1}, not 1"
        )


def _check_bandwidth(bandwidth: Any) -> None:
    if isinstance(bandwidth, str) and bandwidth == "median":
        return
    if not isinstance(bandwidth, Real) or not 0 < float(bandwidth) < float("inf"):
        raise ParameterError(f"bandwidth is {bandwidth!r}; expected a number > 0 or 'median'")
