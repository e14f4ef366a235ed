"""Ingest of patches of slides or scenes: HDF5 files, each of which is a bag."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
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
    """Make a store from slides in HDF5 files, or append to one.

    Each file is a bag, and its patches are the points. Files have the layout of CLAM:
    ``h5_files/slide.h5`` with the arrays ``features``, shape (n, d) or (1, n, d), and ``coords``,
    shape (n, 2). Only one slide is in memory at a time.

    Parameters
    ----------
    points : str, path or list of str
        A folder of ``.h5`` or ``.hdf5`` files, a glob or files, at a path or any URL that fsspec
        supports (``pip install 'bagbasis[hdf5]'``). The id of a bag is the name of its file without
        the ending. Bags are stored in the order of their ids.
    url : str or path
        The store to write.
    coordinates
        Names of the arrays in each file, whose columns are joined side by side. ``["coords",
        "features"]`` puts the position of a patch before its features.
    target_table : path, data frame or mapping
        Table with one row per slide: a file of a kind that `TableIngest` reads, or a table in
        memory. Slides without a row are not labelled.
    target_id_column
        Column of the target table with the file names, with or without the ending. Names are read
        as text: 007 and 7 are different names, and NA and None are names too.
    targets
        Columns of the target table to store: numbers, or text, which becomes classes. A column with
        the patient makes it possible to group slides. None: all columns. With mode="append" None
        stands for the targets of the store.
    read : mapping
        Options for reading a CSV target_table, as in `TableIngest`: ``{"encoding": "latin-1"}``.
    box, dtype, overwrite, chunk_points
        As for `ingest_arrays`.
    mode, known_ids
        As for `TableIngest`. ``mode="append", known_ids="skip"`` adds only the new files of a
        folder.
    progress : callable
        Function that is called with the number of files read and the number of all files.

    Returns
    -------
    BagStore

    Raises
    ------
    DataError
        If there are no files, or if a file cannot be read, lacks an array, or holds an array that
        cannot be used. The message names the file, the array and the row.
    ParameterError
        If a row of the target_table has no file, or two rows name the same file.
    StoreError
        If the URL is taken or cannot be written.

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

    _: KW_ONLY
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
