"""What image files say about their pixels: bits, signs, orientation, pages, transparency."""

from __future__ import annotations

import logging
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from bagbasis import DataError
from bagbasis.ingest import ingest_images

DEEP = (np.arange(64).reshape(8, 8) * 1000).astype(np.uint16)
SMALL = (np.arange(12).reshape(3, 4) * 20).astype(np.uint8)


def png16(path, pixels):
    """Write a PNG of 16 bits per colour, which Pillow cannot."""

    def chunk(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    height, width, channels = pixels.shape
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in pixels)
    kind = {3: 2, 4: 6, 2: 4}[channels]
    header = struct.pack(">IIBBBBB", width, height, 16, kind, 0, 0, 0)
    content = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + content)


@pytest.mark.long
@pytest.mark.parametrize("name", ["a.png", "a.tif", "a.pgm"])
@pytest.mark.parametrize("grey", [False, True])
def test_grey_of_16_bits(name, grey, tmp_path):
    """All levels, divided by 65535 as in arrays; three equal channels as colour."""
    (tmp_path / "d").mkdir()
    Image.fromarray(DEEP).save(tmp_path / "d" / name)
    store = ingest_images(tmp_path / "d", tmp_path / "s.zarr", grey=grey)
    expected = DEEP.reshape(-1, 1).astype(np.float32) / np.float32(65535)
    np.testing.assert_array_equal(store[0], np.repeat(expected, 1 if grey else 3, axis=1))
    with pytest.raises(DataError, match=r"255|whole"):
        ingest_images(tmp_path / "d", tmp_path / "t.zarr", grey=grey, dtype="uint8")


def save_pages(path):
    first, second = Image.fromarray(SMALL), Image.fromarray(255 - SMALL)
    first.save(path, save_all=True, append_images=[second])


def white_is_zero(path):
    Image.fromarray(DEEP).save(path, tiffinfo={262: 0})


REFUSED = {
    "int32.tif": (lambda p: Image.fromarray(DEEP.astype(np.int32)).save(p), "32 bits or signed"),
    "int16.tif": (lambda p: signed_tiff(p), "32 bits or signed"),
    "pages.tif": (save_pages, "there are 2 pictures"),
    "moving.gif": (save_pages, "there are 2 pictures"),
    "moving.png": (save_pages, "there are 2 pictures"),
    "moving.webp": (save_pages, "there are 2 pictures"),
    "colour.png": (lambda p: png16(p, np.dstack([DEEP] * 3)), "colours have 16 bits"),
    "alpha.png": (lambda p: png16(p, np.dstack([DEEP] * 4)), "colours have 16 bits"),
    "grey.png": (lambda p: png16(p, np.dstack([DEEP] * 2)), "colours have 16 bits"),
    "white.tif": (white_is_zero, "0 is white"),
}


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "uint32", "int64", "uint64"])
def test_arrays_of_integers_without_a_white_are_refused(dtype, tmp_path):
    """numpy's own integers were divided by 2^63 − 1; uint8 and uint16 say what white is."""
    with pytest.raises(DataError, match=rf"image 0: integers are .*{dtype}.*value of white"):
        ingest_images([(SMALL // 2).astype(dtype)], tmp_path / "s.zarr")
    store = ingest_images([(SMALL // 2).astype(dtype)], tmp_path / "w.zarr", dtype="uint8")
    np.testing.assert_array_equal(store.read().points.ravel(), (SMALL // 2).ravel())


def signed_tiff(path):
    """Write an int32 TIFF, and say that it has int16 of twice the width."""
    tags = [
        (256, 4, 4), (257, 4, 2), (258, 3, 16), (259, 3, 1), (262, 3, 1),
        (273, 4, 8), (277, 3, 1), (278, 4, 2), (279, 4, 16), (339, 3, 2),
    ]  # fmt: skip
    pixels = np.arange(-4, 4, dtype="<i2").tobytes()
    entries = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in tags)
    directory = struct.pack("<H", len(tags)) + entries + b"\0\0\0\0"
    path.write_bytes(b"II*\0" + struct.pack("<I", 24) + pixels + directory)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_name(name, tmp_path):
    """What Pillow would read as other pixels; no store is left."""
    (tmp_path / "d").mkdir()
    write, message = REFUSED[name]
    write(tmp_path / "d" / name)
    with pytest.raises(DataError, match=f"{name}: .*{message}.*; "):
        ingest_images(tmp_path / "d", tmp_path / "s.zarr")
    assert not (tmp_path / "s.zarr").exists()


@pytest.mark.parametrize("ending", ["jpg", "png", "tif", "webp"])
def test_a_picture_is_turned_upright(ending, tmp_path):
    """As its EXIF data say: the same bag as of the picture that was turned before."""
    for folder in ("d", "e"):
        (tmp_path / folder).mkdir()
    pixels = np.zeros((16, 32), np.uint8)
    pixels[:, :8] = 255
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    options = {"lossless": True} if ending == "webp" else {}
    Image.fromarray(pixels).save(tmp_path / "d" / f"a.{ending}", exif=exif, **options)
    turned = Image.fromarray(pixels).transpose(Image.Transpose.ROTATE_270)
    turned.save(tmp_path / "e" / f"a.{ending}", **options)
    options = {"grey": True, "patch": 8, "positions": True}
    single = ingest_images(tmp_path / "d", tmp_path / "s.zarr", **options)
    other = ingest_images(tmp_path / "e", tmp_path / "t.zarr", **options)
    np.testing.assert_allclose(single[0], other[0], atol=0.05)
    assert single[0][0, 2] > 0.9 > 0.1 > single[0][-1, 2]


def test_transparency_is_told_of(tmp_path, caplog):
    """Alpha and palettes with a transparent colour; an opaque alpha has no effect."""
    (tmp_path / "d").mkdir()
    alpha = np.full((*SMALL.shape, 4), 255, np.uint8)
    Image.fromarray(alpha).save(tmp_path / "d" / "opaque.png")
    ingest_images(tmp_path / "d", tmp_path / "s.zarr")
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]
    alpha[0, 0, 3] = 7
    Image.fromarray(alpha).save(tmp_path / "d" / "alpha.png")
    Image.fromarray(SMALL).convert("P").save(tmp_path / "d" / "palette.png", transparency=0)
    ingest_images(tmp_path / "d", tmp_path / "s.zarr", overwrite=True)
    lines = [r.getMessage() for r in caplog.records if "transparent" in r.getMessage()]
    assert [line.split(":")[0][-9:] for line in lines] == ["alpha.png", "lette.png"]
