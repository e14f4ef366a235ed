"""Reads a YAML file and ``--set key=value`` into a job's validated config."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from bagbasis.core.config_errors import first_error, refuse_credentials
from bagbasis.core.credentials import NO_CREDENTIALS, has_credentials
from bagbasis.core.errors import ConfigError, shown
from bagbasis.core.moved import with_new_names
from bagbasis.core.yaml_text import parse_yaml
from bagbasis.data.storage.files import check_regular, storage_errors

StoreUrl = Annotated[str, Field(examples=["example-output/bags.zarr"], description="the store")]
ModelUrl = Annotated[str, Field(examples=["example-output/model.zarr"], description="the model")]
WeightColumn = Annotated[
    str | None,
    Field(description="column of the store: how much each bag counts; null: all 1"),
]


class Section(BaseModel):
    """A part of a config: unknown keys are refused, and "5" is not accepted as a number.

    A number may stand for a section that has a key ``SHORT``: it is the value of this key. The keys
    ``WITHOUT_SHORT`` are used without it.
    """

    SHORT: ClassVar[str] = ""
    WITHOUT_SHORT: ClassVar[tuple[str, ...]] = ()

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, protected_namespaces=()
    )


class JobConfig(Section):
    """What every job's config is."""

    RENAMED_OF: ClassVar[str] = ""  # where the table of moved names has its former keys

    @property
    def report_path(self) -> str | None:
        """Where the JSON report goes; None: nowhere."""
        return None


class ReportConfig(JobConfig):
    """Config of a job whose JSON report goes where the config says."""

    report: str | None = Field(
        examples=["example-output/report.json"],
        default=None,
        description="where to write the JSON report; null: nowhere",
    )

    @property
    def report_path(self) -> str | None:
        """Where the JSON report goes, as given, or next to the page that is given."""
        if self.report is None or not self.report.endswith(".html"):
            return self.report
        return f"{self.report.removesuffix('.html')}.json"


class DirectoryConfig(JobConfig):
    """Config of a job that fills a directory, with its JSON report in it."""

    out_dir: str = Field(
        examples=["example-output/report"], description="directory for report.json and the pictures"
    )

    @property
    def report_path(self) -> str | None:
        """Where the JSON report goes: into the directory."""
        return os.path.join(self.out_dir, "report.json")


class ClusterConfig(JobConfig):
    """Config of a job that can run on a cluster."""

    cluster: str = Field(
        default="none",
        min_length=1,
        description="none (this process), local, a scheduler's address, or a profile",
    )


PIPES = ("/dev/stdin", "/dev/fd/")  # pipes of a shell, such as <(…), which already have a writer
_MAX_KEY_DOTS = 32  # dots in a key; no config nests so many sections

C = TypeVar("C", bound=JobConfig)


def load_config(
    config_type: type[C],
    path: str | os.PathLike[str] | None = None,
    overrides: Sequence[str] = (),
    arguments: Mapping[str, Any] | None = None,
    job: str = "",
) -> C:
    """Return the config in a YAML file with overrides applied.

    Parameters
    ----------
    config_type : type
        The job's ``Config``.
    path : str or path, optional
        None starts from an empty config.
    overrides : sequence of str
        ``key=value`` with dotted keys; values are YAML.
    arguments : mapping, optional
        Values of top-level keys from other arguments; they win over the file's.
    job : str, optional
        Words by which the job is called; its ``bags config`` is suggested where keys are missing.

    Raises
    ------
    ConfigError
        No such file, no YAML, an unknown key, a wrong value or one with credentials; one line that
        names it.
    """
    values = (read_yaml(path) if path is not None else {}) | dict(arguments or {})
    values = with_new_names(config_type.RENAMED_OF, values)
    changed = set()
    for override in overrides:
        parsed = dict([parse_override(override)])
        [(key, value)] = with_new_names(config_type.RENAMED_OF, parsed).items()
        _put(values, key, value, config_type)
        changed.add(key)
    refuse_credentials(values, "" if path is None else f"{path}: ")
    try:
        return config_type.model_validate(values)
    except ValidationError as error:
        wrong = first_error(_adapter(config_type), error)
        key = wrong.key
        source = "" if path is None else f"{path}: "
        if any(
            f"{key}.".startswith(f"{key_changed}.") or key_changed.startswith(f"{key}.")
            for key_changed in changed
        ):
            source = "--set: "
        hint = _how_to_give(wrong.missing, job) if wrong.missing else ""
        raise ConfigError(f"{source}{wrong.text}{hint}") from None


def _how_to_give(missing: Sequence[str], job: str) -> str:
    """Say how keys that are missing are given."""
    options = " ".join(f"--set {key}=..." for key in missing)
    it = "it" if len(missing) == 1 else "them"
    printed = f"; an example: bags config {job} > {job.replace(' ', '-')}.yaml" if job else ""
    return f"; give {it} in the config file or with {options}{printed}"


@cache
def _adapter(config_type: type[C]) -> TypeAdapter[C]:
    return TypeAdapter(config_type)


def read_yaml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a YAML file that holds a mapping, or nothing."""
    if not os.fspath(path).startswith(PIPES):
        check_regular(Path(path), ConfigError)
    if Path(path).is_dir():  # such as a store or a model
        raise ConfigError(
            f"config {path}: is a folder; expected a YAML file with the job's keys, as bags config "
            "prints one, or give keys with --set KEY=VALUE"
        )
    with storage_errors(f"config {path}", "cannot be read", kind=ConfigError):
        content = Path(path).read_bytes()
    of_data = "a file of data is the value of a key, such as --set points=[FILE.csv] of bags ingest"
    try:
        values = parse_yaml(content, str(path))
    except ConfigError as error:
        if str(path).lower().endswith((".yaml", ".yml", ".json")):
            raise
        raise ConfigError(f"{error}; {of_data}") from error
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise ConfigError(
            f"{path}: expected 'key: value' lines, found {type(values).__name__}; {of_data}"
        )
    return {"null" if key is None else key: value for key, value in values.items()}


def parse_override(override: str) -> tuple[str, Any]:
    """Return the dotted key and the value of ``key=value``."""
    key, equals, text = override.partition("=")
    key = key.strip()
    if has_credentials(override) or has_credentials(text):
        name = f" {key}" if re.fullmatch(r"[\w.-]+", key) else ""
        raise ConfigError(f"--set{name}: the value {NO_CREDENTIALS}")
    try:
        override.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"--set {override!a}: byte {error.start} is not UTF-8; give the text in UTF-8"
        ) from error
    if not equals or not key or not all(key.split(".")) or key.count(".") > _MAX_KEY_DOTS:
        raise ConfigError(
            f"--set {shown(override)}: expected key=value, such as --set model.alpha=gcv"
        )
    value = parse_yaml(text, f"--set {key}: {shown(text)}")
    if isinstance(value, str) and text.strip().partition(" #")[0].rstrip() == value != text.strip():
        raise ConfigError(
            f"--set {shown(override)}: ' #' begins a comment in YAML, so that {key} would be "
            f"{shown(value)}; quote the value: --set \"{key}='{text.strip()}'\""
        )
    return key, value


def _put(values: dict[str, Any], key: str, value: object, kind: type[BaseModel]) -> None:
    names = key.split(".")
    at = values
    for depth, name in enumerate(names[:-1]):
        inner = at.get(name)
        kinds = _sections_at(kind, names[: depth + 1])
        if isinstance(inner, (int, float)) and kinds:  # such as holdout: 0.1
            inner = _in_full(kinds, inner, names[depth + 1])
        if inner is not None and not isinstance(inner, Mapping):
            section = ".".join(names[: depth + 1])
            raise ConfigError(
                f"--set {key}: {section!r} is {shown(inner)} and has no keys; give --set "
                f"{section}=VALUE"
            )
        at[name] = dict(inner or {})
        at = at[name]
    _check_short(at.get(names[-1]), value, key, kind)
    at[names[-1]] = value


def _in_full(kinds: Iterable[type[BaseModel]], value: float, key: str) -> dict[str, float]:
    """Return the keys that a number stands for, next to a key that is given."""
    return {
        kind.SHORT: value
        for kind in kinds
        if issubclass(kind, Section) and kind.SHORT and key not in kind.WITHOUT_SHORT
    }


def _check_short(before: object, value: object, key: str, kind: type[BaseModel]) -> None:
    """Raise ConfigError for a number that would delete other keys of a section."""
    if not isinstance(before, Mapping) or type(value) not in (int, float):
        return
    for section in _sections_at(kind, key.split(".")):
        short = issubclass(section, Section) and section.SHORT
        others = [name for name, old in before.items() if name != short and old is not None]
        if short and others:
            raise ConfigError(
                f"--set {key}: the config has {', '.join(map(repr, others))} in {key!r}, which "
                f"{shown(value)} would delete; give --set {key}.{short}={value}, and null for keys "
                "that are not wanted"
            )


def _sections_at(kind: type[BaseModel], keys: Sequence[str]) -> list[type[BaseModel]]:
    """Return the sections that a dotted key may be, whatever else it may be."""
    kinds = [kind]
    for key in keys:
        fields = [
            section_type.model_fields[key]
            for section_type in kinds
            if key in section_type.model_fields
        ]
        kinds = [section for field in fields for section in _sections_in(field.annotation)]
    return kinds


def _sections_in(annotation: object) -> Iterator[type[BaseModel]]:
    """Yield the sections among what an annotation, such as a union, names."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _sections_in(part)
