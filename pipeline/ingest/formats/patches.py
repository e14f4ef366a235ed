"""Patches of slides or scenes: a folder of HDF5 files, of which each is a bag."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ...core import ListOf, Text
from ...core.errors import DataError, closest, needing_extra, shown
from ...data.bags.format_rules import FormatRules
from ...data.bags.packed_attributes import days_of, has_meaning, unpacked
from ...data.bags.precision import IntegerRange, check_array_apart
from ..calls import function_of
from ..registry import FORMATS
from .bag_files import FileIngest
from .catalogues import HDF5_RULES, check_stored_within
from .folders import check_finite_rows, reading_bag

PATCH_RULES = FormatRules(
    name="Patches (an HDF5 file per bag)",
    calls=("ingest_patches",),
    honoured={
        "shape (n, d)": "a row per patch",
        "shape (1, n, d)": "a row per patch",
        "scale_factor, add_offset": "numbers are scaled, as in all HDF5 files",
    },
    refused={
        "other shapes": "expected numbers of shape (n, d)",
        "complex numbers": HDF5_RULES.refused["complex numbers"],
        "links to other files": HDF5_RULES.refused["links to other files"],
        "_FillValue, missing_value": "fill it or leave it out",
    },
    ignored={"other arrays of the file": "name them in `coordinates`"},
)


@FORMATS.register
@dataclass(frozen=True)
class PatchIngest(FileIngest):
    """Make a store of slides, or append to one: an HDF5 file is a bag, its patches are the points.

    This is the layout of CLAM and of those that follow it: ``h5_files/slide.h5`` with the arrays
    ``features``, shape (n, d) or (1, n, d), and ``coords``, shape (n, 2). One slide is in memory
    at a time.

    Parameters
    ----------
    points : str, path or list of str
        A folder of ``.h5`` or ``.hdf5`` files, a glob or files, at a path or any URL of fsspec
        (``pip install 'bagbasis[hdf5]'``). The id of a bag is the name of its file without the
        ending; bags are stored in their order.
    url : str or path
        The store to write.
    coordinates : list of str
        Arrays of each file; their columns stand side by side. ``["coords", "features"]`` puts the
        place of a patch before its features.
    target_table : path, data frame or mapping, optional
        A file of a kind that `TableIngest` reads, or a table in memory, with a row per
        slide. Slides that it does not have are not labelled.
    target_id_column : str
        Its column of the files' names, with or without the ending; texts as they are written, so
        that 007 and 7, NA and None are names.
    targets : list of str, optional
        Its columns to be stored: numbers, or text, which becomes classes. Among them may be the
        patient, to group slides by. None: all, or those of the store that is appended to.
    read : mapping, optional
        How a CSV target_table is read, as for `TableIngest`: ``{"encoding": "latin-1"}``.
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
        No files; a file that cannot be read, lacks an array, or holds one that cannot be used;
        names the file, the array and the row.
    ParameterError
        A row of the target_table for which there is no file, or two rows for one file.
    StoreError
        Something is stored at the URL, or it cannot be written.

    See Also
    --------
    ingest_images : Read images.
    bagbasis.BagStore : Bags on disk or in object storage.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> import h5py
    >>> from pathlib import Path
    >>> from bagbasis.ingest import ingest_patches
    >>> Path('slides').mkdir()
    >>> for name in ('a', 'b'):
    ...     with h5py.File(f'slides/{name}.h5', 'w') as file:
    ...         file['features'] = rng.normal(size=(4, 3))
    >>> store = ingest_patches('slides', 'bags.zarr')
    >>> len(store), store.n_dims
    (2, 3)
    """

    name: ClassVar[str] = "patches"
    endings: ClassVar[tuple[str, ...]] = (".h5", ".hdf5")
    rules: ClassVar[FormatRules] = PATCH_RULES

    coordinates: Annotated[Sequence[str], ListOf(Text, 1)] = ("features",)
    target_id_column: Annotated[str, Text] = "slide_id"

    @override
    def bags(self, urls: Sequence[str]) -> Iterator[NDArray[Any]]:
        first: list[int] | None = None
        integers = [IntegerRange(f"array {name!r} of the files") for name in self.coordinates]
        for url in urls:
            parts = _read(url, self.coordinates)
            for whole, part in zip(integers, parts, strict=True):
                whole.add(part, part)
            widths = [part.shape[1] for part in parts]
            if first is not None and widths != first:
                names = list(self.coordinates)
                raise DataError(f"{url}: {names} have {widths} columns, not {first} as before")
            first = widths
            yield parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        for whole in integers:
            whole.check()


ingest_patches = function_of(PatchIngest, "ingest_patches")


def _read(url: str, arrays: Sequence[str]) -> list[NDArray[Any]]:
    """Return arrays of a file, each of shape (n, d) with the same n."""
    with needing_extra("hdf5", url):
        import h5py  # noqa: PLC0415
    with reading_bag(url, "HDF5") as stream, h5py.File(stream, "r") as file:
        parts = [_array(file, name, url, h5py.Dataset) for name in arrays]
    rows = {name: len(part) for name, part in zip(arrays, parts, strict=True)}
    if len({*rows.values()}) > 1:
        raise DataError(f"{url}: arrays differ in their numbers of rows: {shown(rows)}")
    return parts


def _array(file: Any, name: str, url: str, kind: Any) -> NDArray[Any]:
    check_stored_within(file, name, url)
    dataset: Any = file.get(name)
    if not isinstance(dataset, kind):
        hint, there = closest(name, list(file)), shown(sorted(file))
        raise DataError(f"{url}: no array {name!r}{hint}; there are {there}")
    shape = (
        dataset.shape[1:] if len(dataset.shape) == 3 and dataset.shape[0] == 1 else dataset.shape
    )
    if dataset.dtype.kind == "c":
        raise HDF5_RULES.refusal("complex numbers", f"{url}: {name!r}", "numbers are complex")
    if len(shape) != 2 or not all(shape) or dataset.dtype.kind not in "fiu":
        what = f"shape {dataset.shape} and dtype {dataset.dtype}"
        raise DataError(f"{url}: {name!r} has {what}; expected numbers of shape (n, d)")
    points: NDArray[Any] = dataset[...].reshape(shape)
    check_array_apart(f"{url}: {name!r}", points, is_whole=False)
    if has_meaning(dataset.attrs):
        values = unpacked(points, dict(dataset.attrs), HDF5_RULES, f"{url}: {name!r}")
        missing = np.ma.getmaskarray(values)
        if missing.any():
            row, column = np.unravel_index(np.argmax(missing), missing.shape)
            raise DataError(
                f"{url}: row {row}, {name}[{column}] is missing; fill it or leave it out"
            )
        points = days_of(np.ma.getdata(values))
    check_finite_rows(points, url, [f"{name}[{j}]" for j in range(shape[1])])
    return points
