"""`Exported`: a store as a sequence of bags, and as tables and data sets of other libraries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from ....core import checked
from ...bags.arrow_arrays import arrow_table
from ...bags.bags import Bags, concatenate
from ...bags.frames import points_frame
from ...bags.html import html_table
from ..reading import partitions, prefetch, read_runs
from ..snapshot import Snapshot
from .xarray_datasets import dataset_of

if TYPE_CHECKING:
    from pandas import DataFrame
    from pyarrow import Table
    from xarray import Dataset


class Exported(Snapshot):
    """A snapshot as a sequence of bags, with export to pandas, Arrow and xarray."""

    def _repr_html_(self) -> str:
        """Describe the same, and the box, for a notebook; no points are read."""
        n_present = self.n_bags - self.n_removed
        mean = f"{self.n_points / n_present:.4g}" if n_present else "-"
        rows = {
            "url": self.url,
            "bags": self.n_bags,
            "removed": self.n_removed,
            "points": self.n_points,
            "points per bag": f"mean {mean}",
            "box, measured" if self.meta.is_measured else "box": [
                f"{lo:.4g} to {hi:.4g}" for lo, hi in self.box.bounds
            ],
            "dtype": self.stored_dtype,
            "targets": self.target_names,
        }
        if self.response_dims is not None:
            rows |= {"response points": self.n_response_points, "of dimension": self.response_dims}
        return html_table(type(self).__name__, rows)

    @overload
    def __getitem__(self, key: int) -> NDArray[Any]: ...
    @overload
    def __getitem__(self, key: slice | NDArray[Any] | list[int]) -> Bags: ...
    def __getitem__(self, key: Any) -> Any:
        """Read one bag for an integer, several bags as `Bags` for a slice, a mask or indices.

        As in `read`, a removed bag is empty.
        """
        if isinstance(key, (int, np.integer)):
            i = range(self.n_bags)[int(key)]
            return self.read(i, i + 1)[0]
        index = np.arange(self.n_bags)[key]
        if not len(index):
            return self.read(0, 0)
        wanted, places = np.unique(index, return_inverse=True)
        runs = np.split(wanted, np.flatnonzero(np.diff(wanted) > 1) + 1)
        ranges = [(int(run[0]), int(run[-1]) + 1) for run in runs]
        bags = concatenate(list(read_runs(self, ranges)))
        return bags if np.array_equal(wanted, index) else bags[places]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Yield each bag; a removed bag is empty. 32 MiB are read ahead."""
        ranges = partitions(self, 0, self.n_bags)
        with closing(prefetch(lambda part: self.read(*part), ranges)) as read:
            for bags in read:
                yield from bags

    @checked
    def to_xarray(self, start: int = 0, stop: int | None = None) -> Dataset:
        """Read bags ``start:stop`` into an xarray data set, in CF's contiguous ragged layout.

        Variables are ``points`` (point, coordinate), ``row_size`` (bag), which is the number of
        points of each bag, ``targets`` (bag, target), and for responses ``responses`` and
        ``response_row_size``. The coordinates of the data set are ``id`` and, if the store has
        names of coordinates, ``coordinate_name``. Removed bags are left out.

        Raises
        ------
        DataError
            If xarray is not installed.
        StoreError
            As `read`.
        """
        return dataset_of(self, start, stop)

    @checked
    def to_arrow(self, start: int = 0, stop: int | None = None) -> Table:
        """Read bags ``start:stop`` into a pyarrow.Table with a row per bag.

        Columns are ``id``, ``points`` (a list of points) and the targets, which are numbers or the
        names of classes. The metadata of ``points`` hold the names of the coordinates, which
        `Bags.from_arrow` reads. Removed bags are left out.

        Raises
        ------
        DataError
            If pyarrow is not installed.
        StoreError
            As `read`.
        """
        present = np.flatnonzero(self.present(start, stop))
        bags = self.read(start, stop)[present]
        columns = {"id": self.ids(start, stop)[present], "points": bags.to_arrow()["points"]}
        return arrow_table({**columns, **self._labels(start, stop, present)}, self.coordinate_names)

    @checked
    def to_pandas(self, start: int = 0, stop: int | None = None) -> DataFrame:
        """Read bags ``start:stop`` into a pandas.DataFrame with a row per point.

        Columns are ``id``, the targets of the bag, and the coordinates of the point. Coordinates
        have the names from the ingested table, else ``x0``, ``x1``, …. `ingest_frame` makes the
        same store from this table again. Removed bags are left out.

        Raises
        ------
        DataError
            If pandas is not installed.
        StoreError
            As `read`.
        """
        present = np.flatnonzero(self.present(start, stop))
        bags, ids = self.read(start, stop)[present], self.ids(start, stop)[present]
        columns = {"id": ids.astype(object) if ids.dtype.kind == "T" else ids}
        columns |= self._labels(start, stop, present)
        rows = {name: np.repeat(values, bags.sizes) for name, values in columns.items()}
        return points_frame(bags.points, rows, self.coordinate_names or ())

    def _labels(self, start: int, stop: int | None, present: Any) -> dict[str, Any]:  # noqa: ANN401
        """Return the columns of targets: numbers, or names of classes and None."""
        labels: dict[str, Any] = {}
        if not self.target_names:
            return labels
        for name, values in zip(
            self.target_names, self.targets(start, stop)[present].T, strict=True
        ):
            classes = self.meta.class_names.get(name)
            if classes is None:
                labels[name] = values
                continue
            names = np.array([*classes, None], dtype=object)
            labels[name] = names[np.where(np.isnan(values), len(classes), values).astype(int)]
        return labels
