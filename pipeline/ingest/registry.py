"""`FileFormat`: base of readers of one kind of file; `FORMATS`: the formats by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from ..core import REQUIRED, ComponentRegistry, None_, Parameter, check_parameters, parameters_of
from ..core.declarations import joined_parameters
from ..core.errors import ConfigError, shown
from ..data.bags.format_rules import FormatRules
from ..data.store.store import BagStore

_TABLES = "tables"  # the format of files with no ending of another one


class FileFormat(ABC):
    """Base of the formats that ``bags ingest`` reads.

    A format is a frozen dataclass whose fields are its parameters; ``points`` and ``url`` are the
    files and the store. The keys of ``bags ingest``, their help and their checks are derived from
    the fields, and the page "What is read from each format" from the rules.

    Attributes
    ----------
    name : str
        Name in `FORMATS`.
    endings : tuple of str
        Endings of the files, in lower case: ".fcs".
    files : str
        Name of the files in messages. Default: the endings.
    unit : str
        Unit of the progress.
    uses_cluster : bool
        Whether a cluster's workers may read the files.
    rules : FormatRules
        Treatment of the attributes of the format.
    """

    name: ClassVar[str]
    endings: ClassVar[tuple[str, ...]] = ()
    files: ClassVar[str]
    unit: ClassVar[str] = "points"
    uses_cluster: ClassVar[bool] = False
    rules: ClassVar[FormatRules]

    def __init_subclass__(cls) -> None:
        """Set the default of ``files``: the endings."""
        if cls.endings and "files" not in vars(cls):
            cls.files = f"{' and '.join(cls.endings)} files"

    def __post_init__(self) -> None:
        """Refuse values that the fields do not accept; ParameterError names the field."""
        for name, value in check_parameters(self).items():
            object.__setattr__(self, name, value)

    @abstractmethod
    def run(self) -> BagStore:
        """Make the store, or append to it, atomically."""

    @classmethod
    def names_in(cls, points: Any) -> list[str]:  # noqa: ANN401 - whatever a config has
        """Return the columns of the files for a message; empty if they cannot be read."""
        return []

    def run_counted(self) -> tuple[BagStore, Mapping[str, int]]:
        """Do the same as `run`; also return the counts of bags and points written and left out."""
        return self.run(), {}


FORMATS: ComponentRegistry[FileFormat] = ComponentRegistry(
    "format", "bagbasis.formats", __package__
)


def format_of_files(paths: Sequence[str]) -> type[FileFormat]:
    """Return the format of files by their endings; files with other endings are tables.

    Formats of this package take precedence over formats of other packages.
    """
    for kind in _in_order():
        if kind.endings and all(path.lower().endswith(kind.endings) for path in paths):
            return kind
    return FORMATS[_TABLES]


def parameters_of_formats() -> dict[str, Parameter]:
    """Return the parameters of all formats by name; the parameters of tables come first.

    A parameter accepts every value that one of the formats accepts. Its default is the formats'
    common default. If defaults differ, it is None, which stands for the default of the format that
    reads the files.
    """
    kinds = [FORMATS[_TABLES], *(kind for kind in _in_order() if kind.name != _TABLES)]
    return {name: _of_all(parameter, kinds) for name, parameter in joined_parameters(kinds).items()}


def arguments_of(
    kind: type[FileFormat], values: Mapping[str, Any], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments for one format out of values for all formats.

    Parameters
    ----------
    kind : type of FileFormat
    values : mapping from parameter to value
        Values of parameters. None and defaults are not passed on.
    defaults : mapping from parameter to value
        Defaults of the parameters.

    Raises
    ------
    ConfigError
        If a parameter belongs to other formats only, or a required parameter is None.
    """
    parameters, points = parameters_of(kind), values["points"]
    for name, value in values.items():
        if name not in parameters and value is not None and value != defaults.get(name):
            raise ConfigError(f"key {name!r} is for {_owners(name)}; points is {points!r}")
    required = [name for name, parameter in parameters.items() if parameter.default is REQUIRED]
    for name in required:
        if values.get(name) is None:
            needed = " and ".join(key for key in required if key not in ("points", "url"))
            names = kind.names_in(values["points"])
            there = f"; there are the columns {shown(names)}" if names else ""
            raise ConfigError(f"missing key {name!r}; {kind.files} need {needed}{there}")
    return {
        name: values[name]
        for name in parameters
        if values.get(name) is not None
        and (name in required or values[name] != defaults.get(name) or name not in defaults)
    }


def _in_order() -> list[type[FileFormat]]:
    """Return the formats of this package, then the formats of other packages."""
    return list(dict.fromkeys([*FORMATS.own.values(), *FORMATS.values()]))


def _owners(name: str) -> str:
    """Say which files have a parameter: "tables, and .h5 and .hdf5 files"."""
    owners = [kind.files for kind in _in_order() if name in parameters_of(kind)]
    owners.sort(key=lambda files: files != FORMATS[_TABLES].files)
    return ", and ".join(owners) or FORMATS[_TABLES].files


def _of_all(parameter: Parameter, kinds: Sequence[type[FileFormat]]) -> Parameter:
    """Return a parameter with the common default, text and owners of all formats that have it."""
    declared = {
        kind: parameters_of(kind)[parameter.name]
        for kind in kinds
        if parameter.name in parameters_of(kind)
    }
    default, accepts, owners = parameter.default, parameter.accepts, [*declared]
    text = declared[owners[0]].text
    if owners[0].name != _TABLES:
        text = f"For {' and '.join(kind.files for kind in owners)}: {text}"
    if any(own.default != default for own in declared.values()) or (
        default is REQUIRED and len(owners) < len(kinds)
    ):
        default = None
    if accepts is not None and default is None and not accepts.accepts(None):
        accepts |= None_
    return Parameter(parameter.name, accepts, default, text)
