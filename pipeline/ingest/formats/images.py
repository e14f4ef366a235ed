"""Ingest of images, each of which is a bag of its pixels or patches."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from numpy.typing import DTypeLike, NDArray

from ...core import Integer, Items, Url, UrlOrPath, checked, is_iterable
from ...core.arrays import as_array, check_dtype
from ...core.errors import DataError, ParameterError, needing_extra, shown
from ...data.bags.box import MAX_DIMS, Box
from ...data.bags.format_rules import FormatRules
from ...data.bags.packed_points import PACKED, WHOLE, box_of
from ...data.storage.hidden import visible_files
from ...data.storage.urls import local_path, normalize_url
from ...data.store.store import BagStore
from ..arrays import ingest_arrays
from ..batches import classes_of

_ENDINGS = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".gif", ".webp", ".ppm", ".pgm")
OPAQUE = 255
PHOTOMETRIC, WHITE_IS_ZERO = 262, 0  # a tag of TIFF, and its value
LARGEST_OF_12_BITS = 4095

IMAGE_RULES = FormatRules(
    name="Images",
    calls=("ingest_images",),
    honoured={
        "bits per channel": "1, 2, 4 and 8 bits; grey also 12 and 16 bits, divided by the largest",
        "floating-point values": "from 0 to 1, as they are",
        "EXIF and TIFF orientation": "the picture is turned upright",
        "palette, CMYK, YCbCr": "converted to red, green and blue, or to grey",
        "white is 0": "inverted, of up to 8 bits",
    },
    refused={
        "16-bit colour": "read it with another library, and pass the array (height, width, 3)",
        "32-bit and signed integers": "pass arrays, divided by the value of white",
        "floating-point values": "pass arrays, divided by the value of white",
        "white is 0, of more than 8 bits": "invert it, or pass the array",
        "pages and frames": "write each page or frame to a file of its own, or pass arrays",
    },
    warned={
        "transparency": "the colours below are taken: paste it on a background before",
        "channels first": "if the first axis has the channels, pass np.moveaxis(image, 0, -1)",
    },
    ignored={
        "gamma, ICC profile": "values are as stored, in the picture's own colour space",
        "previews (MPO)": "the first picture is read",
        "resolution": "a pixel is a pixel",
    },
)

CLASS = "class"  # the target of images that are in one folder per class


@checked
def ingest_images(
    images: Annotated[str | os.PathLike[str] | Iterable[Any], Url | Items],
    url: UrlOrPath,
    *,
    targets: Any = None,
    patch: Annotated[int, Integer(1, int(MAX_DIMS**0.5))] = 1,
    positions: bool = False,
    grey: bool = False,
    box: Box | Sequence[Sequence[float]] | None = None,
    dtype: DTypeLike | None = None,
    overwrite: bool = False,
) -> BagStore:
    """Make a store from images. Each image is a bag; its pixels or patches are the points.

    Parameters
    ----------
    images : path, or iterable of arrays
        A local folder of image files (``pip install 'bagbasis[images]'``), or arrays of shape
        (height, width) or (height, width, channels). Unsigned integers of 8 or 16 bits are divided
        by the largest value of their dtype, so that they lie in [0, 1]. Floats stay as they are,
        and may be above 1 only if no array has integers. Other integers are refused. With dtype
        uint8, all numbers stay as they are.
    url : str or path
        The store to write.
    targets : data frame, mapping, array or iterable, optional
        Labels of the images. For files, a table with a column ``file``, which holds the paths in
        the folder. The other columns are targets; files without a row are not labelled. Default:
        the name of the subfolder is the target "class" if there are two or more subfolders. For
        arrays, as in `ingest_arrays`.
    patch : int ≥ 1
        Side of the square patches, in pixels. Patches do not overlap; incomplete patches at the
        right and lower edges are dropped. A point has patch² · channels coordinates.
    positions : bool
        Whether each point begins with the centre of its pixel or patch: column and row, from 0 to
        1.
    grey : bool
        Whether to read files as grey images with one channel, instead of colour with three
        channels. Grey images of 16 bits keep their levels; as colour they have three equal
        channels. Images are rotated as their EXIF data say.
    box, dtype, overwrite
        As for `ingest_arrays`. The dtype uint8 keeps pixels of 8 bits unchanged, in one byte each;
        it cannot be combined with ``positions``. The default box of files is [0, 1], with uint8 [0,
        255].

    Returns
    -------
    BagStore
        Store whose ids are the paths in the folder; for arrays 0, 1, ….

    Raises
    ------
    DataError
        If there are no images, or if an image cannot be read, is smaller than a patch, or has
        several pages, 16 bits per colour, or values without a scale. Also if the table of targets
        lacks the column ``file`` or names missing files, or if `ingest_arrays` refuses the data.
        The message names the image.
    ParameterError, StoreError
        As `ingest_arrays`.

    See Also
    --------
    ingest_patches : Read patches of slides.
    bagbasis.BagStore : Bags on disk or in object storage.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> from bagbasis.ingest import ingest_images
    >>> images = rng.integers(0, 256, (3, 8, 8), dtype=np.uint8)
    >>> store = ingest_images(images, 'bags.zarr', positions=True)
    >>> len(store), store.n_dims
    (3, 3)
    """
    whole = dtype is not None and check_dtype("dtype", dtype, *PACKED) == WHOLE
    if whole and positions:
        raise ParameterError("positions lie from 0 to 1, and dtype uint8 holds whole numbers")
    options: dict[str, Any] = {"box": box, "dtype": dtype, "overwrite": overwrite}
    if not isinstance(images, (str, os.PathLike)):
        if not is_iterable(images):
            raise DataError(f"images is {shown(images)}; expected a folder, or arrays")
        named = ((f"image {i}", image) for i, image in enumerate(images))
        return ingest_arrays(
            _bags_of(named, patch, positions, whole), url, targets=targets, **options
        )
    folder = _folder(images)
    files = sorted(str(path.relative_to(folder)) for path in _files_in(folder))
    if not files:
        raise DataError(f"{folder}: no images; expected files such as {', '.join(_ENDINGS[:4])}")
    read = ((str(folder / file), _read(folder / file, grey)) for file in files)
    if box is None:
        n_dims = patch**2 * (1 if grey else 3) + 2 * positions
        options["box"] = box_of(None, n_dims, np.float32 if dtype is None else dtype)
    labels = _labels_of(files, targets, folder)
    if targets is None:  # names of folders are classes, also "0", …, "9"
        options["class_names"] = classes_of(labels)
    bags = _bags_of(read, patch, positions, whole)
    return ingest_arrays(bags, url, targets=labels, ids=files, **options)


def _bags_of(
    images: Iterable[tuple[str, Any]], patch: int, positions: bool, whole: bool
) -> Iterator[NDArray[Any]]:
    scaled: dict[bool, str] = {}  # the first image whose integers are scaled, and of floats
    for name, image in images:
        array = as_array(name, image)
        if not whole and array.dtype.kind in "uf" and array.size:
            has_levels = array.dtype.kind == "u"
            if has_levels or array.max() > 1:  # floats from 0 to 1 have the scale of integers
                scaled.setdefault(has_levels, name)
            if len(scaled) > 1:
                raise DataError(
                    f"{scaled[True]} has integers, which are divided by their largest value, and "
                    f"{scaled[False]} has floating-point values above 1, which are not; give all "
                    "images as integers, or divide the floating-point values by the value of white"
                )
        yield _points_of(array, name, patch, positions, whole)


def _points_of(
    image: NDArray[Any], name: str, patch: int, positions: bool, whole: bool
) -> NDArray[Any]:
    """Return the patches of an image, row by row, shape (n, patch² · channels)."""
    if image.ndim not in (2, 3) or image.dtype.kind not in "biuf":
        what = f"shape {image.shape} and dtype {image.dtype}"
        raise DataError(f"{name} has {what}; expected numbers of (height, width[, channels])")
    if image.ndim == 3 and image.shape[0] in (1, 3, 4) and image.shape[2] > 4:
        problem = f"the shape {image.shape} is read as (height, width, channels)"
        IMAGE_RULES.warn("channels first", name, problem)
    rows, columns = (side // patch for side in image.shape[:2])
    if not rows * columns:
        raise DataError(f"{name} has shape {image.shape}, smaller than a patch of {patch} pixels")
    if image.dtype.kind in "iu" and not whole:
        if image.dtype.kind == "i" or image.dtype.itemsize > 2:
            problem = f"integers are of 32 bits or more, or signed ({image.dtype})"
            raise IMAGE_RULES.refusal("32-bit and signed integers", name, problem)
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
    """Yield the images in a folder, without hidden files."""
    files = visible_files((path.as_posix() for path in folder.rglob("*")), folder.as_posix())
    for path in map(Path, files):
        if path.suffix.lower() in _ENDINGS and path.is_file():
            yield path


def _read(path: Path, grey: bool) -> NDArray[Any]:
    """Return the pixels of a file, upright: (height, width), or (height, width, 3) in colour."""
    with needing_extra("images", path):
        from PIL import Image, ImageOps, UnidentifiedImageError  # noqa: PLC0415
    try:
        # from memory: Pillow maps files of TIFF, and then turns them before it knows their width
        with Image.open(BytesIO(path.read_bytes())) as image:
            raw_mode = _check_image(image, str(path))
            image.load()  # TIFF is turned upright here
            upright = ImageOps.exif_transpose(image)
            if image.mode.startswith("I") or image.mode == "F":
                levels = _levels(np.asarray(upright), image.mode, raw_mode, str(path))
                return levels if grey else np.repeat(levels[..., None], 3, axis=2)
            if upright.has_transparency_data:
                alpha = np.asarray(upright.convert("RGBA").getchannel("A"))
                if alpha.min() < OPAQUE:
                    IMAGE_RULES.warn("transparency", str(path), "some pixels are transparent")
            return np.asarray(upright.convert("L" if grey else "RGB"))
    except DataError:
        raise
    except UnidentifiedImageError:
        size = f"{path.stat().st_size:,} bytes of no format that Pillow knows"
        raise DataError(f"{path}: cannot be read as an image ({size})") from None
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise DataError(f"{path}: cannot be read as an image ({error})") from error


def _check_image(image: Any, place: str) -> str:
    """Refuse images whose pixels Pillow would change; return the raw mode."""
    n_pages = getattr(image, "n_frames", 1)
    if n_pages > 1 and image.format != "MPO":  # a photo with its preview
        raise IMAGE_RULES.refusal(
            "pages and frames", place, f"there are {n_pages} pictures in the file"
        )
    arguments = image.tile[0][3] if image.tile else ""
    raw_mode = str(arguments[0] if isinstance(arguments, tuple) and arguments else arguments)
    if ";16" in raw_mode and not image.mode.startswith("I"):
        problem = f"colours have 16 bits ({raw_mode}), of which Pillow reads 8"
        raise IMAGE_RULES.refusal("16-bit colour", place, problem)
    is_deep = image.mode.startswith("I") or image.mode == "F"
    if is_deep and getattr(image, "tag_v2", {}).get(PHOTOMETRIC) == WHITE_IS_ZERO:
        problem = "0 is white (PhotometricInterpretation 0)"
        raise IMAGE_RULES.refusal("white is 0, of more than 8 bits", place, problem)
    return raw_mode


def _levels(values: NDArray[Any], mode: str, raw_mode: str, place: str) -> NDArray[Any]:
    """Return grey values of more than 8 bits: uint16, or float32 that needs no scale."""
    if mode == "F":
        lo, hi = float(values.min()), float(values.max())
        if not (lo >= 0 and hi <= 1):  # nor NaN
            problem = f"floating-point values run from {lo:g} to {hi:g}, not from 0 to 1"
            raise IMAGE_RULES.refusal("floating-point values", place, problem)
        return values
    if raw_mode.endswith(";12"):
        return values / np.float32(LARGEST_OF_12_BITS)
    has_16_bits = ";16" in raw_mode or (mode == "I" and not raw_mode.startswith("I;32"))
    if not has_16_bits or raw_mode.endswith("S"):
        problem = f"integers are of 32 bits or signed ({raw_mode})"
        raise IMAGE_RULES.refusal("32-bit and signed integers", place, problem)
    return values.astype(np.uint16)


def _labels_of(files: Sequence[str], targets: Any, folder: Path) -> Mapping[str, Any] | None:
    if targets is None:
        names = [Path(file).parts[0] if len(Path(file).parts) > 1 else "" for file in files]
        return {CLASS: names} if len({*names} - {""}) > 1 else None
    try:
        table = pd.DataFrame(targets) if isinstance(targets, Mapping) else targets
    except (ValueError, TypeError) as error:
        raise DataError(
            f"targets is not a table ({error}); expected columns as long as each other"
        ) from error
    if not isinstance(table, pd.DataFrame) or "file" not in table:
        raise DataError(f"targets is {shown(targets)}; expected a table with a column 'file'")
    table = table.set_index(table["file"].astype(str)).drop(columns="file")
    unknown = table.index.difference(list(files))
    if len(unknown) or table.index.has_duplicates:
        what = f"no image is called {unknown[0]!r}" if len(unknown) else "a file is there twice"
        raise ParameterError(f"targets: {what} in {folder}")
    rows = table.reindex(list(files))
    return {str(name): rows[name].to_numpy() for name in rows}
