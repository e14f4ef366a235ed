"""Images as bags of pixels and patches, in files that Pillow has written, and arrays."""

from __future__ import annotations

import shutil

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from bagbasis import DataError, ParameterError
from bagbasis.ingest import ingest_images

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Six images of two classes, one of them grey and one with a palette; and other files."""
    folder = tmp_path_factory.mktemp("photos")
    for i in range(6):
        place = folder / ("cats" if i % 2 else "dogs")
        place.mkdir(exist_ok=True)
        image = Image.fromarray(RNG.integers(0, 256, (7, 5 + i, 3), dtype=np.uint8))
        image.convert({2: "L", 3: "P"}.get(i, "RGB")).save(place / f"{i}.{'PNG' if i else 'png'}")
    (folder / "cats" / "notes.txt").write_text("none")
    return folder


def pixels(photos, name, kind="RGB"):
    with Image.open(photos / name) as image:
        return np.asarray(image.convert(kind)) / 255


def test_a_folder_per_class(photos, tmp_path):
    """Pixels in colour, between 0 and 1; the id is the path, the class its first folder."""
    store = ingest_images(photos, tmp_path / "s.zarr", dtype="uint16")
    assert store.ids().tolist() == [f"cats/{i}.PNG" for i in (1, 3, 5)] + [
        "dogs/0.png", "dogs/2.PNG", "dogs/4.PNG",
    ]  # fmt: skip
    assert store.meta.class_names["class"] == ["cats", "dogs"]
    assert store.targets()[:, 0].tolist() == [0, 0, 0, 1, 1, 1]
    assert store.box.bounds == [[0.0, 1.0]] * 3
    for name, bag in zip(store.ids(), store.read(), strict=True):
        np.testing.assert_allclose(bag, pixels(photos, name).reshape(-1, 3), atol=1e-4)


def test_folders_of_digits_are_classes(photos, tmp_path):
    """Their names are classes, and no numbers."""
    for name, digit in (("cats", "0"), ("dogs", "7")):
        shutil.copytree(photos / name, tmp_path / "digits" / digit)
    store = ingest_images(tmp_path / "digits", tmp_path / "s.zarr")
    assert store.meta.class_names["class"] == ["0", "7"]


def test_patches_and_a_table_of_targets(photos, tmp_path):
    """Patches one by one, with their middles; files that the table does not have are unlabelled."""
    table = pd.DataFrame(
        {"file": ["dogs/4.PNG", "cats/1.PNG"], "age": [4.0, 1.0], "sex": ["f", "m"]}
    )
    store = ingest_images(
        photos, tmp_path / "s.zarr", targets=table, patch=2, positions=True, grey=True
    )
    assert store.target_names == ("age", "sex")
    np.testing.assert_array_equal(store.targets()[:, 0], [1, np.nan, np.nan, np.nan, np.nan, 4])
    assert store.n_dims == 2 + 4
    for name, bag in zip(store.ids(), store.read(), strict=True):
        image = pixels(photos, name, "L")
        expected = [
            [
                (c + 1) / image.shape[1],
                (r + 1) / image.shape[0],
                *image[r : r + 2, c : c + 2].ravel(),
            ]
            for r in range(0, 6, 2)
            for c in range(0, image.shape[1] - 1, 2)
        ]
        np.testing.assert_allclose(bag, expected, atol=1e-6)


def test_pixels_of_a_byte(photos, tmp_path):
    """uint8 keeps files and arrays as they are; a file's box is from 0 to 255."""
    store = ingest_images(photos, tmp_path / "s.zarr", dtype="uint8")
    assert (store.stored_dtype, store.box.bounds) == (np.uint8, [[0.0, 255.0]] * 3)
    for name, bag in zip(store.ids(), store.read(), strict=True):
        np.testing.assert_array_equal(bag, pixels(photos, name).reshape(-1, 3) * 255)
    images = RNG.integers(0, 256, (2, 4, 4), dtype=np.uint8)
    patches = ingest_images(images, tmp_path / "p.zarr", dtype="uint8", patch=2)
    np.testing.assert_array_equal(patches.read()[1][0], images[1][:2, :2].ravel())


def test_sixteen_bits_and_arrays(tmp_path):
    """Integers are shares of the largest of their dtype; other numbers stay as they are."""
    deep = RNG.integers(0, 65536, (4, 4), dtype=np.uint16)
    (tmp_path / "f").mkdir()
    Image.fromarray(deep).save(tmp_path / "f" / "a.tiff")
    store = ingest_images(tmp_path / "f", tmp_path / "a.zarr", grey=True, dtype="float64")
    np.testing.assert_allclose(store.read()[0][:, 0], deep.ravel() / 65535, rtol=1e-6)
    assert store.target_names == ()
    arrays = [deep, deep[:2]]
    store = ingest_images(iter(arrays), tmp_path / "b.zarr", targets={"y": [1.0, 2.0]}, patch=2)
    np.testing.assert_allclose(store.read()[1][0], deep[:2, :2].ravel() / 65535, rtol=1e-6)
    floats = [RNG.normal(size=(3, 3, 2)) for _ in range(2)]
    store = ingest_images(floats, tmp_path / "c.zarr", targets=["a", "b"], dtype="float64")
    np.testing.assert_array_equal(store.read()[1], floats[1].reshape(-1, 2))


@pytest.mark.parametrize(
    ("images", "options", "error", "message"),
    [
        ("photos", {"targets": {"file": ["x.png"], "y": [1]}}, ParameterError, "called 'x.png'"),
        ("photos", {"targets": {"file": ["dogs/0.png"] * 2, "y": [1, 2]}}, ParameterError, "twice"),
        ("photos", {"targets": {"y": [1]}}, DataError, "a table with a column 'file'"),
        ("photos", {"targets": {"file": "dogs/0.png"}}, DataError, "targets is not a table"),
        ("photos", {"targets": {"file": ["a"], "y": [1, 2]}}, DataError, "targets is not a table"),
        ("photos", {"patch": 9}, DataError, "1.PNG has shape .* smaller than a patch of 9 pixels"),
        ("empty", {}, DataError, "no images; expected files such as .png"),
        ("nowhere", {}, DataError, "expected a local folder that is there"),
        ("broken", {}, DataError, r"a\.png: cannot be read as an image"),
        ([np.zeros((2, 2, 2, 2))], {}, DataError, "image 0 has shape"),
        (
            [np.full((1, 1), 256)],
            {"dtype": "uint8"},
            DataError,
            r"bag with id 0, .*\[256.0\] is no",
        ),
        ("photos", {"dtype": "uint8", "positions": True}, ParameterError, "positions lie from 0"),
    ],
)
def test_what_is_refused(images, options, error, message, photos, tmp_path):
    """Names the image, or what was given."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "a.png").write_bytes(b"none")
    if isinstance(images, str):
        images = photos if images == "photos" else tmp_path / images
    with pytest.raises(error, match=message):
        ingest_images(images, tmp_path / "s.zarr", **options)
    assert not (tmp_path / "s.zarr").exists()


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_images_of_one_store_have_one_scale(dtype, tmp_path):
    """Integers are divided by their largest value, and floats are not."""
    levels = np.full((2, 2), 51, np.uint8)
    floats = levels / 255
    store = ingest_images([levels, floats, floats > 2, floats], tmp_path / "a.zarr")
    np.testing.assert_allclose([bag[0, 0] for bag in store.read()], [0.2, 0.2, 0, 0.2], rtol=1e-6)
    for images in ([levels.astype(dtype), levels * 1.0], [floats, levels * 1.0, levels]):
        message = "image . has integers, which are divided .* image 1 has floating-point values"
        with pytest.raises(DataError, match=message):
            ingest_images(images, tmp_path / "b.zarr")
    whole = ingest_images([levels, levels * 1.0], tmp_path / "c.zarr", dtype="uint8")
    assert [bag[0, 0] for bag in whole.read()] == [51, 51]
