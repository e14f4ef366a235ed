"""`read_predictions`: written predictions of any format as one table."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from zarr.types import AnyArray

from ...core import UrlOrPath, checked
from ...core.errors import BagbasisError, ModelError, refuse_exhaustion, shown
from ...core.saved import newer_error
from ...data.storage.files import GROUP_FILE, check_regular, reading, storage_errors
from ...data.storage.folders import read_one
from ...data.storage.urls import filesystem, local_path, normalize_url
from ...data.storage.zarr_reading import array_of
from ...data.storage.zarr_stores import attributes_of, exists, holds_parts, read_group
from ...data.store.chunks import check_objects, is_fill, read_rows
from ...execution.memory import available_memory
from ..outcomes.base import Outcome, Prediction
from ..outcomes.kinds import OUTCOMES, Reals
from .formats import COLUMNS_KEY, ID, N_PREDICTED, PREDICTIONS_FORMAT, pandas_for, table_of

if TYPE_CHECKING:
    from pandas import DataFrame

AGAIN = "write the predictions again"
# A field of CSV, and the character that ends it.
CSV_FIELD = re.compile(rb'("(?:[^"]|"")*"|[^",\n]*)(,|\n)')


@checked
def read_predictions(url: UrlOrPath) -> DataFrame:
    """Read the predictions of `write_predictions` or ``bags predict`` as one table.

    The table is the same for Zarr, Parquet and CSV: a row per bag, in the order of the bags of the
    store. Removed bags have no row. Checksums are verified, and ids that are text stay text. If the
    predictions are being replaced at the same time, the old or the new predictions are returned.

    Parameters
    ----------
    url : str or path
        URL of the predictions. Their format is detected.

    Returns
    -------
    pandas.DataFrame
        Table with the columns ``id``, one per target (or ``prediction``), ``p_<class>`` for
        classifiers, and additional columns that were written, such as ``std``.

    Raises
    ------
    ModelError
        If there are no predictions at the URL, or they are damaged, incomplete or unfinished; or if
        pandas is missing, which ``bagbasis[tables]`` installs.

    See Also
    --------
    write_predictions : Write predictions to a file.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import BagStore, DoubleBasisRegressor
    >>> from bagbasis.models import read_predictions, write_predictions
    >>> store = BagStore.create('bags.zarr', n_dims=2, target_names=['y']).append(X, y)
    >>> write_predictions(DoubleBasisRegressor('moments').fit(store), store, 'y.parquet')
    >>> read_predictions('y.parquet').columns.tolist()
    ['id', 'y']
    """
    url = normalize_url(url)
    pandas_for(url)
    return read_one(url, lambda: _read(url), last=GROUP_FILE)


def _read(url: str) -> DataFrame:
    with storage_errors(url, "cannot be read", kind=ModelError):
        if not exists(url):
            raise ModelError(f"{url}: no predictions there")
        fs, path = filesystem(url)
        try:
            if not fs.isdir(path):
                return _read_csv(url)
            attributes = attributes_of(url)
            if PREDICTIONS_FORMAT.key in attributes:
                return _read_zarr(url, attributes)
            if not attributes and holds_parts(url):
                return _read_parquet(url)
        except (BagbasisError, OSError):
            raise
        except Exception as error:  # whatever damaged bytes lead to
            refuse_exhaustion(url, error)
            raise newer_or_damaged(url, error) from error
    raise ModelError(f"{url}: not written predictions")


def newer_or_damaged(url: str, error: Exception) -> ModelError:
    """Return the message for predictions that cannot be read: newer, or damaged."""
    newer = newer_error(error, {})
    reason = f"damaged predictions ({type(error).__name__}: {error}); {AGAIN}"
    return ModelError(f"{url}: {newer or reason}")


# ------------------------------------------------------------------ Zarr


def _read_zarr(url: str, attributes: Mapping[str, Any]) -> DataFrame:
    if not attributes[PREDICTIONS_FORMAT.key]:
        raise ModelError(f"{url}: predictions whose writing was interrupted; {AGAIN}")
    values = PREDICTIONS_FORMAT.strip(attributes, url, ModelError)
    group = read_group(url)
    stored = {name: array_of(group, name) for name in group.array_keys()}
    n_rows = {name: array.shape[0] if array.ndim else 0 for name, array in stored.items()}
    if len({n_rows[name] for name in (*n_rows, "ids", "predictions")}) > 1:
        raise ValueError(f"its arrays have different lengths: {n_rows}")
    n_bytes = sum(math.prod(a.shape) * max(1, a.dtype.itemsize) for a in stored.values())
    if n_bytes > (available := available_memory()):
        raise ModelError(
            f"{url}: the predictions take {n_bytes:,} bytes, and {available:,} are free; open the "
            "arrays with zarr.open_group and read them in parts"
        )
    arrays = {name: np.asarray(read_whole(array)) for name, array in stored.items()}
    present = _present(stored, arrays)
    arrays = {
        name: array[present].astype(object if array.dtype.kind == "T" else array.dtype)
        for name, array in arrays.items()
    }
    check_complete(url, int(present.sum()), values)
    ids = arrays.pop("ids")
    predicted = arrays.pop("predictions"), arrays.pop("probabilities", None)
    outcome = _outcome_of(values, *predicted)
    table: DataFrame = pandas_for(url).DataFrame(
        table_of(outcome, ids, Prediction(*predicted, arrays))
    )
    return table


def read_whole(array: AnyArray) -> NDArray[Any]:
    """Return all rows; `ChunkError` names the first chunk that is damaged."""
    try:
        return np.asarray(array[:])
    except Exception as error:  # Zarr and codecs raise anything; `read_rows` names the chunk
        refuse_exhaustion(f"array {array.path!r}", error)
        return read_rows(array, 0, array.shape[0])


def _present(
    stored: Mapping[str, AnyArray], arrays: Mapping[str, NDArray[Any]]
) -> NDArray[np.bool_]:
    """Return which rows have predictions; rows of removed bags have fill values.

    Raises
    ------
    ChunkError
        If an object with predictions is missing.
    """
    missing = {}
    for name, rows in arrays.items():
        is_missing = is_fill(rows, stored[name].fill_value)
        missing[name] = is_missing.all(axis=tuple(range(1, rows.ndim)))
    present: NDArray[np.bool_] = ~np.logical_and.reduce([*missing.values()])
    for name, array in stored.items():
        step = array.chunks[0]
        suspect = np.unique(np.flatnonzero(missing[name] & present) // step)
        for chunk in suspect.tolist():
            check_objects(array, chunk * step, min((chunk + 1) * step, array.shape[0]))
    return present


def _outcome_of(
    values: Mapping[str, Any], predictions: NDArray[Any], probabilities: NDArray[Any] | None
) -> Outcome:
    """Return the outcome of the predictions, from their attributes."""
    kind = next((kind for kind in OUTCOMES if kind.key in values), Reals)
    columns = predictions[:, None] if probabilities is None else probabilities
    columns = columns if predictions.ndim == 1 else predictions
    names = tuple(map(str, values["target_names"]))
    return kind.from_dict({Reals.key: predictions.ndim == 1, **values}, names, columns.shape[1])


# ------------------------------------------------------------------ tables


def _read_parquet(url: str) -> DataFrame:
    import pyarrow.parquet  # noqa: PLC0415

    fs, path = filesystem(url)
    parts = sorted(name for name in map(str, fs.ls(path, detail=False)) if name.endswith("parquet"))
    pandas = pandas_for(url)
    frames = []
    for part in parts:
        name = part.rpartition("/")[2]
        if (folder := local_path(url)) is not None:
            check_regular(folder / name)
        with fs.open(part, "rb") as file:
            content = pyarrow.py_buffer(file.read())
        try:
            table = pyarrow.parquet.read_table(
                pyarrow.BufferReader(content), page_checksum_verification=True
            )
            frames.append(table.to_pandas())
        except Exception as error:  # whatever damaged bytes lead to
            refuse_exhaustion(f"{url}/{name}", error)
            raise ModelError(f"{url}: {name} is damaged ({error}); {AGAIN}") from error
    if not frames:
        empty: DataFrame = pandas.DataFrame({ID: []})
        return empty
    # the names of a Parquet file's columns have no checksum
    expected = frames[0].attrs.get(COLUMNS_KEY, frames[0].columns.tolist())
    for frame, part in zip(frames, parts, strict=True):
        if frame.columns.tolist() != expected or (frame.dtypes != frames[0].dtypes).any():
            name = part.rpartition("/")[2]
            raise ModelError(f"{url}: {name} is damaged (it has columns of its own); {AGAIN}")
    predictions: DataFrame = pandas.concat(frames, ignore_index=True)
    check_complete(url, len(predictions), frames[0].attrs)
    predictions.attrs = {}
    return predictions


def check_complete(url: str, n_rows: int, values: Mapping[str, Any]) -> None:
    """Raise ModelError if rows are missing; older files do not have the number of rows."""
    n_written = values.get(N_PREDICTED, n_rows)
    if n_rows != n_written:
        raise ModelError(
            f"{url}: holds predictions of {n_rows:,} of {shown(n_written)} bags; copy all of it "
            f"again, or {AGAIN}"
        )


def _read_csv(url: str) -> DataFrame:
    import pyarrow  # noqa: PLC0415
    from pyarrow import csv  # noqa: PLC0415

    with reading(url) as path:
        with path.open("rb") as file:
            fields = [*_first_lines(file.read(2**20), 2)]
            if len(fields) < 2:  # very many columns
                file.seek(0)
                fields = [*_first_lines(file.read(), 2)]
        names = [text.decode() for text, is_text in fields[0]] if fields else [ID]
        if names[0] != ID:
            raise ModelError(f"{url}: not written predictions; their first column is {ID!r}")
        if len(fields) < 2:
            empty: DataFrame = pandas_for(url).DataFrame({name: [] for name in names})
            return empty
        # a reader would make numbers of texts such as "007"
        types = {
            name: pyarrow.string()
            for name, (_, is_text) in zip(names, fields[1], strict=True)
            if is_text
        }
        table: DataFrame = csv.read_csv(
            path,
            parse_options=csv.ParseOptions(newlines_in_values=True),
            convert_options=csv.ConvertOptions(column_types=types, strings_can_be_null=False),
        ).to_pandas()
    return table


def _first_lines(content: bytes, n: int) -> Iterator[list[tuple[bytes, bool]]]:
    """Yield the fields of the first lines of a CSV file, each with whether it stands in quotes."""
    line: list[tuple[bytes, bool]] = []
    at = 0
    while n and at < len(content):
        field = CSV_FIELD.match(content, at)
        if field is None:  # the rest is no whole line
            return
        text, at = field[1], field.end()
        is_text = text.startswith(b'"')
        line.append((text[1:-1].replace(b'""', b'"') if is_text else text, is_text))
        if field[2] != b",":
            yield line
            line, n = [], n - 1
