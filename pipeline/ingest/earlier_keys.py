"""Parameters of an ingest in earlier versions, and their replacements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..core.errors import ParameterError

_CSV = {"delimiter": "delim", "skip_rows": "skip", "columns": "names"}  # and DuckDB's names


def refuse_gone(options: Mapping[str, Any]) -> dict[str, Any]:
    """Drop parameters of earlier versions that had no effect; refuse the other earlier ones.

    Raises
    ------
    ParameterError
        If such a parameter is given. The message names the parameter and its replacement.
    """
    for name, instead in _GONE.items():
        if options.get(name) and (name, options[name]) != ("decimal", "."):
            raise ParameterError(f"{name} is gone; write {instead(options[name])}")
    return {name: value for name, value in options.items() if name not in _GONE}


def _dates(names: Any) -> str:  # noqa: ANN401 - of any older config
    return _coordinates({name: f"epoch(CAST({_sql(name)} AS TIMESTAMP)) / 86400" for name in names})


def _booleans(names: Any) -> str:  # noqa: ANN401
    return _coordinates({name: f"CAST({_sql(name)} AS BOOLEAN)" for name in names})


def _cyclic(periods: Any) -> str:  # noqa: ANN401
    made = {}
    for name, period in periods.items():
        turn = f"({_sql(name)} % {period!r}) / {period!r}"  # rounded as it was
        for wave in ("cos", "sin"):
            made[f"{wave} {name}/{period:g}"] = f"{wave}(2 * pi() * {turn})"
    return _coordinates(made)


def _categories(labels: Any) -> str:  # noqa: ANN401
    made = {}
    for name, kinds in labels.items():
        listed = ", ".join(map(_text, kinds))
        for kind in kinds:
            case = f"CASE WHEN {_sql(name)} IN ({listed}) THEN {_sql(name)} = {_text(kind)} END"
            made[f"{name} = {kind}"] = case
    return _coordinates(made)


def _csv(options: Any) -> str:  # noqa: ANN401
    made = {_CSV.get(name, name): "" if value is None else value for name, value in options.items()}
    return f"read: {made}"


def _coordinates(made: Mapping[str, str]) -> str:
    return f"in coordinates, instead of the column, {made}"


def _sql(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(label: object) -> str:
    return "'" + str(label).replace("'", "''") + "'"


_GONE: dict[str, Callable[[Any], str]] = {
    "dates": _dates,
    "booleans": _booleans,
    "cyclic": _cyclic,
    "categories": _categories,
    "decimal": lambda sign: f"read: {{'decimal_separator': {sign!r}}}",
    "csv": _csv,
}
