"""Flow and mass cytometry: a folder of FCS files, of which each is a bag of cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...arrays import Floats
from ...errors import DataError, closest, needing_extra, shown
from ...parameters.checks import Table
from ...parameters.ingest import FCS
from ..calls import function_of
from .bag_files import FileIngest
from .folders import check_finite, reading_bag

SPILLOVER = ("spillover", "spill")  # keys of the matrix, as FlowIO has them


@dataclass(frozen=True)
class FcsIngest(FileIngest):
    """Make a store of FCS files, or append to one: a file is a bag, its events are the points.

    Numbers are those of `flowio.FlowData.as_array`: linear, with each channel's gain applied. One
    file is in memory at a time.

    Parameters
    ----------
    points : str, path or list of str
        A folder of ``.fcs`` files, a glob or files, at a path or any URL of fsspec
        (``pip install 'bagbasis[fcs]'``). The id of a bag is the name of its file without the
        ending; bags are stored in their order.
    url : str or path
        The store to write.
    coordinates : list of str, optional
        Channels, by the names in PnN or in PnS ("CD4"). None: all fluorescence channels of the
        first file, that is all but scatter and time. Other files may have them in another order.
    cofactor : float > 0 or mapping from channel to float, optional
        Of the transform arcsinh(x / cofactor). A number is for all channels but scatter and time;
        a mapping for those it names. 150 is usual for fluorescence, 5 for mass cytometry. None:
        the numbers stay as they are.
    compensate : bool
        Whether the spillover matrix of a file is divided out, before the transform.
    target_table : path, data frame or mapping, optional
        A CSV or Parquet file, or a table in memory, with a row per file. Files that it does not
        have are not labelled.
    target_id_column : str
        Its column of the files' names, with or without the ending.
    targets : list of str, optional
        Its columns to be stored: numbers, or text, which becomes classes. None: all, or those of
        the store that is appended to.
    box, dtype, overwrite, chunk_points
        As for `ingest_arrays`.
    mode, known_ids
        As for `TableIngest`: ``mode="append", known_ids="skip"`` takes what is new in a folder.
    progress : callable, optional
        Called with the files read and their number.

    Returns
    -------
    BagStore

    Raises
    ------
    DataError
        No files; a file that cannot be read, lacks a channel or the spillover matrix, or holds a
        number that is not finite; names the file, the channel and the row.
    ParameterError
        A row of the target_table for which there is no file, or two rows for one file.
    StoreError
        Something is stored at the URL, or it cannot be written.
    """

    PARAMETERS: ClassVar[Table] = FCS
    ENDINGS: ClassVar[tuple[str, ...]] = (".fcs",)

    coordinates: Sequence[str] | None = None
    cofactor: float | Mapping[str, float] | None = 150.0
    compensate: bool = False

    def bags(self, urls: Sequence[str]) -> Iterator[Floats]:
        """Yield the transformed channels of each file."""
        channels = self.coordinates
        for url in urls:
            events = _read(url, self.compensate)
            if channels is None:
                channels = [events.names[j] for j in events.stained]
                if not channels:
                    raise DataError(
                        f"{url}: all channels are scatter or time; name the coordinates"
                    )
            at = [events.find(name) for name in channels]
            points = events.numbers[:, at]
            check_finite(points, url, [f"channel {name!r}" for name in channels])
            for j, name in enumerate(channels):
                if isinstance(self.cofactor, Mapping):
                    by = self.cofactor.get(name)
                else:
                    by = self.cofactor if at[j] in events.stained else None
                if by is not None:
                    points[:, j] = np.arcsinh(points[:, j] / by)
            yield points


ingest_fcs = function_of(FcsIngest, "ingest_fcs")


@dataclass(frozen=True)
class _Events:
    """Events of a file, shape (n, channels), and what its channels are called."""

    url: str
    numbers: Floats
    names: list[str]
    markers: list[str]
    stained: list[int]
    """Channels of fluorescence (or metal): neither scatter nor time."""

    def find(self, channel: str) -> int:
        """Return the number of a channel; PnN goes before PnS."""
        for names in (self.names, self.markers):
            if channel in names:
                return names.index(channel)
        known = [*self.names, *filter(None, self.markers)]
        hint = closest(channel, known)
        raise DataError(f"{self.url}: no channel {channel!r}{hint}; there are {shown(known)}")


def _read(url: str, compensate: bool) -> _Events:
    with needing_extra("fcs", url):
        from flowio import FlowData  # noqa: PLC0415
    with reading_bag(url, "FCS") as stream:
        data = FlowData(stream)
        if not data.event_count:
            raise DataError(f"{url}: there are no events")
        numbers = data.as_array()
        names = list(data.pnn_labels)
        if compensate:
            _compensate(numbers, names, data.text, url)
        return _Events(url, numbers, names, list(data.pns_labels), list(data.fluoro_indices))


def _compensate(numbers: Floats, names: Sequence[str], text: Mapping[str, str], url: str) -> None:
    """Divide the spillover out in place: a row of measured = a row of true numbers times matrix.

    The matrix is text: the number of channels, their names, then its rows (FCS 3.1, $SPILLOVER).
    """
    told = next((text[key] for key in SPILLOVER if text.get(key)), "")
    parts = [part.strip() for part in told.split(",")]
    n = int(parts[0]) if parts[0].isdigit() else 0
    channels = parts[1 : n + 1]
    if not n or len(parts) != 1 + n + n * n or not set(channels) <= set(names):
        what = "no spillover matrix of its channels"
        raise DataError(f"{url}: {what}; set compensate to false, or compensate before")
    matrix = np.array(parts[n + 1 :], np.float64).reshape(n, n)
    at = [names.index(name) for name in channels]
    numbers[:, at] = np.linalg.solve(matrix.T, numbers[:, at].T).T
