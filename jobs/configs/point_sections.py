"""Sections of scikit-learn's transformers of points, which `bagbasis.PointTransformer` takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError

from .config import Section

Share = Annotated[float, Field(gt=0, lt=1)]


class StandardScalerSection(Section):
    """Each coordinate less its mean, over its deviation."""

    name: Literal["StandardScaler"]
    with_mean: bool = Field(default=True, description="subtract means")
    with_std: bool = Field(default=True, description="divide by deviations")


class PCASection(Section):
    """Coordinates along the principal axes of all points."""

    name: Literal["PCA"]
    n_components: Annotated[int, Field(ge=1)] | Share | None = Field(
        default=None, description="axes, or their share of the variance; null: all"
    )
    whiten: bool = Field(default=False, description="divide by the deviations along them")


class FunctionTransformerSection(Section):
    """A function of each coordinate by itself."""

    name: Literal["FunctionTransformer"]
    func: Literal["log", "log1p", "log10", "sqrt", "cbrt", "arcsinh"] | None = Field(
        default=None, description="numpy's function of this name; null: none"
    )


_KINDS: dict[str, type[Section]] = {
    "StandardScaler": StandardScalerSection,
    "PCA": PCASection,
    "FunctionTransformer": FunctionTransformerSection,
}


def _as_list(value: object) -> object:
    """Return a list of checked steps; a name or a section stands for one."""
    if value is None:
        return None
    return [_checked(one) for one in (value if isinstance(value, list) else [value])]


def _checked(value: object) -> dict[str, Any]:
    given = dict(value) if isinstance(value, Mapping) else {"name": value}
    name = given.get("name")
    if not isinstance(name, str) or name not in _KINDS:
        raise ValueError(f"transformer {name!r} is none of {', '.join(_KINDS)}")
    try:
        return _KINDS[name](**given).model_dump()
    except ValidationError as error:
        first = error.errors()[0]
        keys = ".".join(str(key) for key in first["loc"][:1])
        raise ValueError(f"transformer {name}, key {keys!r}: {first['msg']}") from None


Transformers: Any = Annotated[list[dict[str, Any]], Field(min_length=1), BeforeValidator(_as_list)]
"""Steps, one after the other."""
