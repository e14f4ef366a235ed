"""Common parts of ``bags test two-sample|independence|fit``: keys, table, report and picture."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from bagbasis.core import parameters_of
from bagbasis.core.errors import ConfigError, ParameterError

from ...configs.config import DirectoryConfig, StoreUrl
from ...configs.sections import check_keys
from ...terminal import Terminal

if TYPE_CHECKING:
    from bagbasis.hypotheses import HypothesisResult
    from bagbasis.hypotheses.registry import Statistic

BagRange = Annotated[
    list[int] | None,
    Field(min_length=2, max_length=2, description="[first, last + 1] of the bags; null: all"),
]


class TestConfig(DirectoryConfig):
    """Keys that every test has."""

    parameters: dict[str, Any] = Field(
        default={}, description="parameters of the statistic, such as {n_frequencies: 1024}"
    )
    groups: str | None = Field(
        default=None, description="a target whose value says which bags are one unit"
    )
    RENAMED_OF: ClassVar[str] = "bags test"


class StoreTestConfig(TestConfig):
    """Keys of a test of the bags of one store."""

    data_url: StoreUrl
    bags: BagRange = None


def statistic_of(test: Callable[..., Any], table: Iterable[str], null: str = "") -> Any:  # noqa: ANN401 - a key
    """Return the field of the key ``statistic``: the test's default, and all names of the table.

    ``null`` says in words which statistic null stands for.
    """
    default = parameters_of(test)["statistic"].default
    names = sorted(table, key=lambda name: name != default)  # the default first
    return Field(default, description=f"{', '.join(names)}{null and f'; null: {null}'}")


def named_statistic(
    table: Mapping[str, type[Statistic]], name: str | None, parameters: Mapping[str, Any]
) -> Any:  # noqa: ANN401 - a statistic of the table, or a name that the test refuses
    """Return the statistic with these parameters.

    Raises
    ------
    ConfigError
        If parameters are given without a name, or the statistic does not accept them.
    """
    if name is None and parameters:
        raise ConfigError("parameters are those of a statistic: name it, as statistic: fuse")
    if name is None or name not in table or not parameters:
        return name
    kind = table[name]
    check_keys("parameters", parameters, name, kind)
    try:
        return kind(**parameters)
    except ParameterError as error:
        raise ConfigError(f"key 'parameters': {error}") from error


def conclude(result: HypothesisResult, config: TestConfig, console: Terminal) -> dict[str, Any]:
    """Show the result, draw its pictures, and return the report."""
    from ...conclusions import lines_of_test
    from ...pictures.hypothesis_part import hypothesis_part
    from ...pictures.locations import draw_locations
    from ...pictures.nulls import draw_null
    from ...pictures.scales import draw_coordinates, draw_scales

    for line in lines_of_test(result):
        console.line(line)
    columns = ["statistic", "value", "standard error", "p-value", "effect", "null", "seconds"]
    row = [
        result.name.partition("(")[0],
        result.statistic,
        result.standard_error,
        result.p_value,
        result.effect,
        result.null,
        result.seconds,
    ]
    console.details.table(result.question.capitalize(), columns, [row])
    console.details.values("What was tested", _tested(result))
    out_dir = Path(config.out_dir)
    pictures = [draw_null(out_dir / "null.png", result)]
    if result.sampled_rows:
        pictures.append(draw_locations(out_dir / "locations.png", result))
    if "scales" in result.details:
        pictures.append(draw_scales(out_dir / "scales.png", result))
    if "coordinates" in result.details:
        pictures.append(draw_coordinates(out_dir / "coordinates.png", result))
    console.parts.append(replace(hypothesis_part(result), files=[path.name for path in pictures]))
    for path in pictures:
        console.line(str(path))
    return {**result.to_dict(), "pictures": [str(path) for path in pictures]}


def _tested(result: HypothesisResult) -> dict[str, Any]:
    rows = {f"rows of {name}": n for name, n in result.n.items() if result.unit == "group"}
    units = {f"{result.unit}s of {name}": n for name, n in result.n_units.items()}
    kernel = {"kernel": result.kernel} if result.kernel else {}
    more = {
        name.replace("_", " "): value
        for name, value in result.details.items()
        if isinstance(value, (int, float, str))
    }
    return {"statistic": result.name, **kernel, **rows, **units, **more}
