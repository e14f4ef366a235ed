"""The YAML that ``bags config JOB`` prints: the defaults of a job's keys, each explained.

It is made of the job's ``Config``. A key without a default has an example. ``python -m
bagbasis.jobs.configs.printed FOLDER`` writes the file of every job, and the keys of all jobs, which
shells complete, into `KEYS_FILE`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import wrap
from typing import Any, get_args

import yaml
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.fields import FieldInfo

from bagbasis.core.config_errors import accepted_by, key_sections

from ..completions import KEYS_FILE
from ..job import JOBS, called
from ..shell import import_job
from .config import Section
from .sections import KEYS_WITHIN

_LAST = ("report", "cluster")  # keys of every job
COMMENT_COLUMN = 28  # column in which the comment of a key begins
_WIDTH = 100
# Characters of the accepted values that stand next to a key; longer ones are left out.
MAX_ACCEPTED = 80


def config_text(job: str) -> str:
    """Return the YAML of a job: every key with its default, and what it is."""
    module = import_job(job)
    head = [f"# bags {called(job)} {job}.yaml", f"# {JOBS[job].help}"]
    codes: Mapping[int, str] = getattr(module, "EXIT_CODES", {})
    if codes:
        exit_codes = "; ".join(f"{code} {text}" for code, text in codes.items())
        head += [f"# {line}" for line in wrap(f"Exit codes: {exit_codes}.", _WIDTH - 2)]
    return "\n".join([*head, "", *_lines_of(module.Config, {}, "")]) + "\n"


def keys_text() -> str:
    """Return a line for each dotted key of each job: the job and the key."""
    lines = []
    for job in JOBS:
        config = import_job(job).Config
        rows = [row for rows in key_sections(config).values() for row in rows]
        keys = [key for key, _ in rows]
        for key, field in config.model_fields.items():
            within = (field.json_schema_extra or {}).get(KEYS_WITHIN, [])
            keys += [f"{key}.{name}" for name in within]
        lines += [f"{job} {key}" for key in dict.fromkeys(keys)]
    return "\n".join(lines) + "\n"


def _lines_of(kind: type[Section], values: Mapping[str, Any], indent: str) -> Iterator[str]:
    for key, field in sorted(kind.model_fields.items(), key=_place):
        value = values[key] if key in values else _value_of(field)
        yield from _key(key, field, value, indent)


def _place(item: tuple[str, FieldInfo]) -> int:
    """Order keys: those without a default first, those of every job last."""
    key, field = item
    return _LAST.index(key) + 2 if key in _LAST else int(not field.is_required())


def _key(key: str, field: FieldInfo, value: object, indent: str) -> Iterator[str]:
    if not isinstance(value, Section):
        yield from _beside(f"{indent}{_scalar(key)}: {_scalar(value)}", _explained(field))
        return
    yield from _beside(f"{indent}{key}:", field.description or "")
    yield from _lines_of(type(value), dict(value), f"{indent}  ")
    for other in _others(field, type(value)):
        made = {
            name: item.get_default(call_default_factory=True)
            for name, item in other.model_fields.items()
        }
        text = ", ".join(f"{name}: {_scalar(_plain(value))}" for name, value in made.items())
        yield from (
            f"{indent}  # {'or' if i == 0 else '  '} {line}"
            for i, line in enumerate(wrap(text, _WIDTH - len(indent) - 8))
        )


def _others(field: FieldInfo, kind: type[Section]) -> Iterator[type[Section]]:
    """Yield the other sections that a field may hold."""
    for member in get_args(field.annotation):
        section = get_args(member)[0] if get_args(member) else member
        if isinstance(section, type) and issubclass(section, Section) and section is not kind:
            yield section


def _value_of(field: FieldInfo) -> object:
    if not field.is_required():
        return field.get_default(call_default_factory=True)
    return field.examples[0] if field.examples else None


def _explained(field: FieldInfo) -> str:
    words = (field.description or "").replace("``", "")  # marks of code in docstrings
    if field.is_required():
        return f"required: {words}"
    try:
        accepted = accepted_by(field.rebuild_annotation())
    except (PydanticInvalidForJsonSchema, KeyError):  # a type without words
        accepted = ""
    if (
        accepted
        and len(accepted) <= MAX_ACCEPTED
        and accepted not in ("any value", "a string or null")
    ):
        words = f"{words} ({accepted})" if words else accepted
    if field.examples:
        words += f"; such as {_scalar(field.examples[0])}"
    return words


def _beside(line: str, words: str) -> Iterator[str]:
    """Yield a line with its comment, and the lines that the comment goes on in."""
    if not words:
        yield line
        return
    n_columns = _WIDTH - COMMENT_COLUMN - 2
    first, *more = wrap(
        words, max(24, min(n_columns, _WIDTH - len(line) - 3)), break_on_hyphens=False
    )
    rest = wrap(" ".join(more), n_columns, break_on_hyphens=False)
    yield f"{line:<{COMMENT_COLUMN - 1}} # {first}"
    yield from (f"{'':<{COMMENT_COLUMN - 1}} # {continued}" for continued in rest)


def _plain(value: object) -> object:
    return value.model_dump(mode="json") if isinstance(value, Section) else value


def _scalar(value: object) -> str:
    """Return a value as YAML in one line."""
    text = yaml.safe_dump(
        _plain(value), default_flow_style=True, width=10**6, allow_unicode=True, sort_keys=False
    )
    return text.removesuffix("\n").removesuffix("\n...")


def main(folder: str) -> None:
    """Write the file of every job, and of all keys, into a folder."""
    for job in JOBS:
        (Path(folder) / f"{job}.yaml").write_text(config_text(job), encoding="utf-8")
    (Path(folder) / KEYS_FILE).write_text(keys_text(), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
