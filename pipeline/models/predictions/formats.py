"""Formats of written predictions, chosen by the URL; the table of predictions, and CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from ...core.errors import ModelError, ParameterError, needing_extra, shown, warn
from ...core.saved import Format
from ...data.storage.files import writing
from ...data.storage.urls import filesystem
from ..outcomes.base import Outcome, Prediction

if TYPE_CHECKING:
    from pandas import DataFrame

PREDICTIONS_FORMAT = Format("predictions", key="bagbasis_predictions")
N_PREDICTED = "n_predicted"  # number of bags that were predicted; earlier versions did not write it
COLUMNS_KEY = "columns"  # the names of a table's columns, kept a second time in Parquet
ID = "id"  # the column of a table with the bags' ids
# First characters of a cell that spreadsheet programs execute.
FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")
_CSV_START = f'"{ID}",'.encode()
PREDICTION_FORMATS = ("zarr", "parquet", "csv")
_ENDINGS = {f".{name}": name for name in PREDICTION_FORMATS}


def format_of(url: str, asked: str | None, default: str = "zarr") -> str:
    """Return the format of predictions at a URL: the given format, or that of the URL's suffix.

    Raises
    ------
    ParameterError
        If the URL has the suffix of another format, or an unknown suffix and no format is given.
    """
    name = url.rstrip("/").rpartition("/")[2].lower()
    ending = f".{name.rpartition('.')[2]}" if "." in name.lstrip(".") else ""
    named = _ENDINGS.get(ending)
    if asked is not None and named not in (None, asked):
        raise ParameterError(
            f"{url}: ends in {ending}, and format is {asked!r}; name it .{asked}, or "
            f"take format {named!r}"
        )
    if asked is None and ending and named is None:
        raise ParameterError(
            f"{url}: predictions are written to names that end in {', '.join(_ENDINGS)}; for "
            "another one give the format"
        )
    return asked or named or default


def table_of(outcome: Outcome, ids: NDArray[Any], prediction: Prediction) -> dict[str, Any]:
    """Return the columns of a table of predictions."""
    return {ID: ids.tolist(), **outcome.columns(prediction), **outcome.more_columns(prediction)}


def attrs_of(frame: DataFrame, n_predicted: int) -> dict[str, Any]:
    """Return the attributes of a Parquet file: its columns, and the number of bags in all files."""
    return {N_PREDICTED: n_predicted, COLUMNS_KEY: frame.columns.tolist()}


def pandas_for(url: str) -> ModuleType:
    """Return pandas; ModelError if the packages that write tables are missing."""
    with needing_extra("tables", f"{url} in a table", ModelError):
        import pandas  # noqa: PLC0415
        import pyarrow  # noqa: F401, PLC0415
    module: ModuleType = pandas
    return module


def check_csv(url: str, overwrite: bool) -> None:
    """Raise ModelError if the URL has something that may not be replaced."""
    fs, path = filesystem(url)
    if fs.isdir(path):
        raise ModelError(f"{url}: a folder, not a file; choose another name")
    if not fs.exists(path):
        return
    if not overwrite:
        raise ModelError(f"{url}: exists already; choose another name, or overwrite=True")
    with fs.open(path, "rb") as file:
        start = file.read(len(_CSV_START))
    if start not in (b"", _CSV_START):
        raise ModelError(
            f"{url}: exists already and holds no predictions of bagbasis; choose another name"
        )


def write_csv(url: str, blocks: Iterable[tuple[int, dict[str, Any]]]) -> None:
    """Write one file with a header and all blocks, in the order of their first rows.

    Numbers have enough digits to be read back exactly. Texts are quoted, so that an id may contain
    a line break. The file appears when it is complete. Texts that spreadsheet programs would run as
    formulas are written unchanged, and a warning names them.
    """
    frames = [
        pandas_for(url).DataFrame(columns)
        for _, columns in sorted(blocks, key=lambda block: block[0])
    ]
    with writing(url) as path, open(path, "w", encoding="utf-8", newline="") as file:
        for i, frame in enumerate(frames):
            frame.to_csv(
                file, index=False, header=i == 0, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC
            )
    formulas = [
        text for frame in frames for text in _texts(frame) if text.startswith(FORMULA_SIGNS)
    ]
    if formulas:
        warn(
            f"{url}: {len(formulas):,} texts, such as {shown(formulas[0])}, begin with =, +, - or "
            "@, which spreadsheet programs take for formulas; import the file with its columns as "
            "text"
        )


def _texts(frame: DataFrame) -> Iterator[str]:
    """Yield the names of the columns, and the cells that are texts."""
    yield from map(str, frame.columns)
    for name in frame:
        if frame[name].dtype.kind not in "biuf":
            yield from (cell for cell in frame[name] if isinstance(cell, str))
