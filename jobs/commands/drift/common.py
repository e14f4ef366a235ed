"""Common parts of ``bags drift fit|test``: what is watched."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pydantic import Field

from bagbasis.core.errors import DataError

from ...configs.config import ClusterConfig
from ..hypotheses.common import BagRange

if TYPE_CHECKING:
    from bagbasis import BagStore

_TABLES = (".parquet", ".csv", ".npy")
_UNNAMED = re.compile(r"Unnamed: \d+")  # what pandas calls a column without a name


class WatchedConfig(ClusterConfig):
    """Keys that say what is watched."""

    data_url: str = Field(
        examples=["example-output/bags.zarr"],
        description="a store of bags; or a table: a .parquet, .csv or .npy file",
    )
    bags: BagRange = Field(default=None, examples=[[0, 1000]])
    columns: list[str] | None = Field(
        default=None,
        description="columns of a .parquet or .csv file; null: all, which must be numbers",
    )
    detector_url: str = Field(
        examples=["example-output/detector.npz"], description="the file of the detector"
    )


def read_watched(config: WatchedConfig) -> tuple[Any, str | None]:
    """Return the rows of a table, or the bags of a store and its URL.

    Raises
    ------
    DataError
        A file that is no such table, or keys that are for the other kind.
    """
    url = config.data_url
    if not url.lower().endswith(_TABLES):
        from bagbasis import BagStore

        if config.columns is not None:
            raise DataError("columns are of a table; a store's bags are watched as they are")
        store: BagStore = BagStore.open(url)
        return (store, *(config.bags or (0, store.n_bags))), store.url
    if config.bags is not None:
        raise DataError(f"bags are of a store; {url} is a table, whose rows are watched")
    from bagbasis.data.storage.files import reading

    try:
        with reading(url) as path:
            return _read_table(str(path), url.lower().rpartition(".")[2], config.columns), None
    except FileNotFoundError as error:
        raise DataError(f"{url}: no file there") from error
    except (ValueError, KeyError, OSError) as error:
        raise DataError(f"{url} cannot be read as a table: {error}") from error


def _read_table(path: str, kind: str, columns: list[str] | None) -> Any:  # noqa: ANN401 - a frame
    if kind == "npy":
        import numpy as np

        if columns is not None:
            raise DataError("columns have no names in an .npy file")
        return np.load(path, mmap_mode="r", allow_pickle=False)
    import pandas as pd

    if kind == "parquet":
        return pd.read_parquet(path, columns=columns)
    return pd.read_csv(path, usecols=columns)


def refuse_unnamed(data: Any, url: str) -> None:  # noqa: ANN401 - a frame, or what has no columns
    """Raise DataError for a column of a CSV file without a name, such as pandas' row numbers."""
    for place, name in enumerate(getattr(data, "columns", ())):
        if _UNNAMED.fullmatch(str(name)):
            raise DataError(
                f"{url}: column {place} has no name, like the row numbers that pandas writes; give "
                "columns without it, or write the table with index=False"
            )
