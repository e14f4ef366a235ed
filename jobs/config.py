"""From a YAML file and ``--set key=value`` to a job's validated config."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from bagbasis.config_errors import first_error
from bagbasis.errors import ConfigError
from bagbasis.storage.files import storage_errors


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
        default=None, description="where to write the JSON report; null: nowhere"
    )

    @property
    def report_path(self) -> str | None:
        """Where the JSON report goes, as given."""
        return self.report


class DirectoryConfig(JobConfig):
    """Config of a job that fills a directory, its JSON report among the files."""

    out_dir: str = Field(description="directory for report.json and the pictures")

    @property
    def report_path(self) -> str | None:
        """Where the JSON report goes: into the directory."""
        return os.path.join(self.out_dir, "report.json")


class ClusterConfig(JobConfig):
    """Config of a job that can run on a cluster."""

    cluster: str = Field(
        default="none",
        description="none (this process), local, a scheduler's tcp:// address, or a profile",
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
        No such file, no YAML, an unknown key or a wrong value; one line that names it.
    """
    values = (read_yaml(path) if path is not None else {}) | dict(given or {})
    changed = set()
    for override in overrides:
        key, value = parse_override(override)
        _put(values, key, value)
        changed.add(key)
    try:
        return config_type.model_validate(values)
    except ValidationError as error:
        wrong = first_error(TypeAdapter(config_type), error)
        key = wrong.key
        source = "" if path is None else f"{path}: "
        if any(f"{key}.".startswith(f"{one}.") or one.startswith(f"{key}.") for one in changed):
            source = "--set: "
        hint = f"; give it in the config file or with --set {key}=..." if wrong.is_missing else ""
        raise ConfigError(f"{source}{wrong.text}{hint}") from None


def read_yaml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a YAML file that holds a mapping, or nothing."""
    with storage_errors(f"config {path}", "can not be read", kind=ConfigError):
        content = Path(path).read_bytes()
    try:
        values = yaml.load(content, Loader=_Loader)
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: no valid YAML: {_where(error)}") from error
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise ConfigError(f"{path}: expected 'key: value' lines, found {type(values).__name__}")
    return dict(values)


def parse_override(override: str) -> tuple[str, Any]:
    """Return the dotted key and the value of ``key=value``."""
    key, equals, text = override.partition("=")
    key = key.strip()
    if not equals or not key or not all(key.split(".")):
        raise ConfigError(f"--set {override}: expected key=value, such as --set model.alpha=gcv")
    try:
        return key, yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise ConfigError(f"--set {key}: {text!r} is no valid YAML: {_where(error)}") from error


def _put(values: dict[str, Any], key: str, value: object) -> None:
    *sections, last = key.split(".")
    at = values
    for depth, name in enumerate(sections):
        inner = at.get(name)
        if inner is not None and not isinstance(inner, Mapping):
            section = ".".join(sections[: depth + 1])
            raise ConfigError(f"--set {key}: {section!r} is {inner!r} and has no keys")
        at[name] = dict(inner or {})
        at = at[name]
    at[last] = value


def _where(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem}"
    return " ".join(str(error).split())


class _Loader(yaml.SafeLoader):
    """Safe YAML that refuses a key given twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, str) and key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} is given twice", key_node.start_mark
                )
            seen.add(key if isinstance(key, str) else repr(key))
        return super().construct_mapping(node, deep=deep)


# YAML 1.1 reads 1e-3 as a text and 001 as an octal number; here they are a number and a text.
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9_]*)$")
_EXPONENT = re.compile(r"[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+$")
_Loader.yaml_implicit_resolvers = {
    first: [(tag, _INTEGER if tag.endswith(":int") else pattern) for tag, pattern in resolvers]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _EXPONENT, list("-+0123456789"))
