"""Images as bags: of their pixels, or of patches of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import DTypeLike, NDArray

from ...bags import MOST_DIMS, PACKED, WHOLE, Box, box_of
from ...errors import DataError, ParameterError, needing_extra, shown
from ...parameters import Boolean, Integer, Items, Url, checked, is_iterable
from ...params import as_array, check_dtype
from ...storage import local_path, normalize_url, visible_files
from ...store import BagStore
from ..arrays import ingest_arrays

ENDINGS = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".gif", ".webp", ".ppm", ".pgm")
CLASS = "class"  # the target of images in a folder per class


@checked(
    images=Url | Items,
    url=Url,
    patch=Integer(1, int(MOST_DIMS**0.5)),
    positions=Boolean,
    grey=Boolean,
    overwrite=Boolean,
)
def ingest_images(
    images: str | os.PathLike[str] | Iterable[Any],
    url: str | os.PathLike[str],
    *,
    targets: Any = None,
    patch: int = 1,
    positions: bool = False,
    grey: bool = False,
    box: Box | Sequence[Sequence[float]] | None = None,
    dtype: DTypeLike = np.float32,
    overwrite: bool = False,
) -> BagStore:
    """Make a store of images: an image is a bag, its pixels or patches are the points.

    Parameters
    ----------
    images : path, or iterable of arrays
        A local folder of image files (``pip install 'bagbasis[images]'``), or arrays of shape
        (height, width) or (height, width, channels). Integers are divided by the largest value of
        their dtype, so that they lie from 0 to 1; other numbers stay as they are, and with dtype
        uint8 all.
    url : str or path
        The store to write.
    targets : data frame, mapping, array or iterable, optional
        Of files a table with a column ``file``, their paths in the folder; its other columns are
        targets, and files that it does not have are not labelled. None: the folder in the folder
        is the target "class", if there are two or more. Of arrays as for `ingest_arrays`.
    patch : int ≥ 1
        Side of the square patches that do not overlap, in pixels; what is left at the right and
        the lower edge is left out. A point has patch² · channels coordinates.
    positions : bool
        Whether the middle of the pixel or patch comes first: column and row, from 0 to 1.
    grey : bool
        Read files as grey, one channel; otherwise as colour, three.
    box, dtype, overwrite
        As for `ingest_arrays`. uint8 keeps pixels of 8 bits as they are, in a byte each; it has no
        ``positions``. The box of files is from 0 to 1, of uint8 from 0 to 255.

    Returns
    -------
    BagStore
        The ids are the paths in the folder, or 0, 1, ….

    Raises
    ------
    DataError
        No image, one that cannot be read or is smaller than a patch, a table without the column
        or with files that are not there; whatever `ingest_arrays` refuses. Names the image.
    ParameterError, StoreError
        As `ingest_arrays`.
    """
    whole = check_dtype("dtype", dtype, *PACKED) == WHOLE
    if whole and positions:
        raise ParameterError("positions lie from 0 to 1, and dtype uint8 holds whole numbers")
    given: dict[str, Any] = {"box": box, "dtype": dtype, "overwrite": overwrite}
    if not isinstance(images, (str, os.PathLike)):
        if not is_iterable(images):
            raise DataError(f"images is {shown(images)}; expected a folder, or arrays")
        named = ((f"image {i}", image) for i, image in enumerate(images))
        return ingest_arrays(
            _bags_of(named, patch, positions, whole), url, targets=targets, **given
        )
    folder = _folder(images)
    files = sorted(str(path.relative_to(folder)) for path in _files_in(folder))
    if not files:
        raise DataError(f"{folder}: no images; expected files such as {', '.join(ENDINGS[:4])}")
    read = ((str(folder / file), _read(folder / file, grey)) for file in files)
    if box is None:
        n_dims = patch**2 * (1 if grey else 3) + 2 * positions
        given["box"] = box_of(None, n_dims, dtype)
    labels = _labels_of(files, targets, folder)
    bags = _bags_of(read, patch, positions, whole)
    return ingest_arrays(bags, url, targets=labels, ids=files, **given)


def _bags_of(
    images: Iterable[tuple[str, Any]], patch: int, positions: bool, whole: bool
) -> Iterator[NDArray[Any]]:
    for name, image in images:
        yield _points_of(as_array(name, image), name, patch, positions, whole)


def _points_of(
    image: NDArray[Any], name: str, patch: int, positions: bool, whole: bool
) -> NDArray[Any]:
    """Return the patches of an image, row by row, shape (n, patch² · channels)."""
    if image.ndim not in (2, 3) or image.dtype.kind not in "biuf":
        what = f"shape {image.shape} and dtype {image.dtype}"
        raise DataError(f"{name} has {what}; expected numbers of (height, width[, channels])")
    rows, columns = (side // patch for side in image.shape[:2])
    if not rows * columns:
        raise DataError(f"{name} has shape {image.shape}, smaller than a patch of {patch} pixels")
    if image.dtype.kind in "iu" and not whole:
        image = image / np.float32(np.iinfo(image.dtype).max)
    cropped = image[: rows * patch, : columns * patch]
    blocks = cropped.reshape(rows, patch, columns, patch, -1).swapaxes(1, 2)
    points = blocks.reshape(rows * columns, -1)
    if not positions:
        return points
    middles = [(np.arange(n) + 0.5) * patch for n in (columns, rows)]
    places = [middle / side for middle, side in zip(middles, image.shape[1::-1], strict=True)]
    x, y = np.meshgrid(*places)
    return np.column_stack([x.ravel(), y.ravel(), points])


def _folder(images: str | os.PathLike[str]) -> Path:
    where = local_path(normalize_url(images))
    if where is None or not Path(where).is_dir():
        raise DataError(f"images is {shown(images)}; expected a local folder that is there")
    return Path(where)


def _files_in(folder: Path) -> Iterator[Path]:
    """Yield the images of a folder without hidden ones."""
    files = visible_files((path.as_posix() for path in folder.rglob("*")), folder.as_posix())
    for path in map(Path, files):
        if path.suffix.lower() in ENDINGS and path.is_file():
            yield path


def _read(path: Path, grey: bool) -> NDArray[Any]:
    with needing_extra("images", path):
        from PIL import Image, UnidentifiedImageError  # noqa: PLC0415
    try:
        with Image.open(path) as image:
            if grey and image.mode.startswith("I;16"):  # more than 8 bits stay so
                return np.asarray(image)
            return np.asarray(image.convert("L" if grey else "RGB"))
    except (OSError, ValueError, Image.DecompressionBombError, UnidentifiedImageError) as error:
        raise DataError(f"{path}: cannot be read as an image ({error})") from error


def _labels_of(files: Sequence[str], targets: Any, folder: Path) -> Mapping[str, Any] | None:
    if targets is None:
        names = [Path(file).parts[0] if len(Path(file).parts) > 1 else "" for file in files]
        return {CLASS: names} if len({*names} - {""}) > 1 else None
    try:
        table = pd.DataFrame(targets) if isinstance(targets, Mapping) else targets
    except (ValueError, TypeError) as error:
        raise DataError(
            f"targets is no table ({error}); expected columns as long as each other"
        ) from error
    if not isinstance(table, pd.DataFrame) or "file" not in table:
        raise DataError(f"targets is {shown(targets)}; expected a table with a column 'file'")
    table = table.set_index(table["file"].astype(str)).drop(columns="file")
    unknown = table.index.difference(list(files))
    if len(unknown) or table.index.has_duplicates:
        what = f"no image is called {unknown[0]!r}" if len(unknown) else "a file is there twice"
        raise ParameterError(f"targets: {what} in {folder}")
    found = table.reindex(list(files))
    return {str(name): found[name].to_numpy() for name in found}
