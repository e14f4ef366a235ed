"""Reads a YAML file and ``--set key=value`` into a job's validated config."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from bagbasis.core.config_errors import first_error, refuse_credentials
from bagbasis.core.credentials import NO_CREDENTIALS, has_credentials
from bagbasis.core.errors import ConfigError, shown
from bagbasis.core.yaml_text import parse_yaml
from bagbasis.data.storage.files import storage_errors


class Section(BaseModel):
    """A part of a config: unknown keys are refused, and "5" is not accepted as a number."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, protected_namespaces=()
    )


class JobConfig(Section):
    """What every job's config is."""

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
        """Where the JSON report goes, as given."""
        return self.report


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


C = TypeVar("C", bound=JobConfig)


def load_config(
    config_type: type[C],
    path: str | os.PathLike[str] | None = None,
    overrides: Sequence[str] = (),
    given: Mapping[str, Any] | None = None,
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
    given : mapping, optional
        Values of top-level keys from other arguments; they win over the file's.

    Raises
    ------
    ConfigError
        No such file, no YAML, an unknown key, a wrong value or one with credentials; one line that
        names it.
    """
    values = (read_yaml(path) if path is not None else {}) | dict(given or {})
    changed = set()
    for override in overrides:
        key, value = parse_override(override)
        _put(values, key, value)
        changed.add(key)
    refuse_credentials(values, "" if path is None else f"{path}: ")
    try:
        return config_type.model_validate(values)
    except ValidationError as error:
        wrong = first_error(_adapter(config_type), error)
        key = wrong.key
        source = "" if path is None else f"{path}: "
        if any(f"{key}.".startswith(f"{one}.") or one.startswith(f"{key}.") for one in changed):
            source = "--set: "
        hint = f"; give it in the config file or with --set {key}=..." if wrong.is_missing else ""
        raise ConfigError(f"{source}{wrong.text}{hint}") from None


@cache
def _adapter(config_type: type[C]) -> TypeAdapter[C]:
    return TypeAdapter(config_type)


def read_yaml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a YAML file that holds a mapping, or nothing."""
    with storage_errors(f"config {path}", "cannot be read", kind=ConfigError):
        content = Path(path).read_bytes()
    values = parse_yaml(content, str(path))
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise ConfigError(f"{path}: expected 'key: value' lines, found {type(values).__name__}")
    return dict(values)


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
    if not equals or not key or not all(key.split(".")):
        raise ConfigError(f"--set {override}: expected key=value, such as --set model.alpha=gcv")
    return key, parse_yaml(text, f"--set {key}: {shown(text)}")


def _put(values: dict[str, Any], key: str, value: object) -> None:
    *sections, last = key.split(".")
    at = values
    for depth, name in enumerate(sections):
        inner = at.get(name)
        if inner is not None and not isinstance(inner, Mapping):
            section = ".".join(sections[: depth + 1])
            raise ConfigError(f"--set {key}: {section!r} is {shown(inner)} and has no keys")
        at[name] = dict(inner or {})
        at = at[name]
    at[last] = value
