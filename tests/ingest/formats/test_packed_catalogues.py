"""What HDF5 and FITS files say about their numbers: missing, scaled, unsigned, times, types."""

from __future__ import annotations

import h5py
import numpy as np
import pytest
from astropy.io import fits

from bagbasis import DataError
from bagbasis.ingest import ingest_catalogue

HALO = np.array([1, 1, 1, 2, 2, 2])


def missing_of(path, names, tmp_path, **options):
    """Ingest a file with missing points left out: its points, and how many are missing."""
    with pytest.raises(DataError, match=r"row [13]: .* is (missing|nan)"):
        ingest_catalogue(
            path, tmp_path / "refused.zarr", id_column="halo", coordinates=names, **options
        )
    call = {"missing": "drop_point", "dtype": "float64", "mode": "overwrite", **options}
    store = ingest_catalogue(path, tmp_path / "s.zarr", id_column="halo", coordinates=names, **call)
    return store.read().points.ravel()


COLUMNS = {
    "SNR": (fits.Column("SNR", "I", null=-999, array=np.array([5, -999, 7, 8, 9, 4], "i2")), 5),
    "CNT": (
        fits.Column(
            "CNT", "I", bzero=32768, null=32767, array=np.array([5, 65535, 7, 8, 9, 4], "u2")
        ),
        5,
    ),
    "BIG": (
        fits.Column("BIG", "K", null=-1, array=np.array([2**53 + 2, -1, 7, 8, 9, 4], "i8")),
        2**53 + 2,
    ),
    "BYTE": (
        fits.Column("BYTE", "B", bzero=-128, null=0, array=np.array([5, -128, 7, 8, 9, 4], "i1")),
        5,
    ),
    "FLAG": (fits.Column("FLAG", "L", array=np.array([1, 0, 1, 1, 0, 1], bool)), 1),
    "REAL": (fits.Column("REAL", "D", array=np.array([5, np.nan, 7, 8, 9, 4])), 5),
}


@pytest.mark.long
@pytest.mark.parametrize("name", COLUMNS)
def test_fits_nulls(name, tmp_path):
    """By a name in letters of any case; of unsigned numbers, of logical ones."""
    column, first = COLUMNS[name]
    table = fits.BinTableHDU.from_columns([fits.Column("HALO", "J", array=HALO), column])
    table.writeto(tmp_path / "a.fits")
    if name == "FLAG":
        content = (tmp_path / "a.fits").read_bytes()
        at = content.rindex(b"T\0\0\0\1F") + 5
        (tmp_path / "a.fits").write_bytes(content[:at] + b"\0" + content[at + 1 :])
    points = missing_of(tmp_path / "a.fits", [name.lower()], tmp_path)
    assert points.tolist()[0] == first
    assert len(points) == 5


def test_fits_scales_and_nulls(tmp_path):
    """TNULL speaks of numbers as they are stored, before TSCAL and TZERO."""
    raw = fits.Column("S", "I", array=np.array([500, -32768, 700, 800, 900, 400], "i2"))
    table = fits.BinTableHDU.from_columns([fits.Column("HALO", "J", array=HALO), raw])
    table.header["TSCAL2"], table.header["TZERO2"], table.header["TNULL2"] = 0.01, 3.0, -32768
    table.writeto(tmp_path / "a.fits")
    points = missing_of(tmp_path / "a.fits", ["s"], tmp_path)
    np.testing.assert_allclose(points, [8, 10, 11, 12, 7])


@pytest.mark.long
def test_fits_tables_of_text(tmp_path):
    """TNULL is a text there."""
    numbers = fits.Column("V", "I6", null="   -99", array=np.array([5, -99, 7, 8, 9, 4]))
    halo = fits.Column("HALO", "I4", array=HALO)
    fits.TableHDU.from_columns([halo, numbers]).writeto(tmp_path / "a.fits")
    assert missing_of(tmp_path / "a.fits", ["v"], tmp_path).tolist() == [5, 7, 8, 9, 4]


@pytest.mark.long
def test_fits_vectors_and_lists(tmp_path):
    """Nulls within a vector, a bit column, and lists of variable length."""
    halo = fits.Column("HALO", "J", array=HALO)
    vectors = np.array([[5, 1], [-9, 2], [7, 3], [8, 4], [9, 5], [4, 6]], "i2")
    columns = [halo, fits.Column("V", "2I", null=-9, array=vectors)]
    columns += [fits.Column("X", "3X", array=np.eye(6, 3, dtype=bool))]
    fits.BinTableHDU.from_columns(columns).writeto(tmp_path / "a.fits")
    assert missing_of(tmp_path / "a.fits", ["v"], tmp_path)[:4].tolist() == [5, 1, 7, 3]
    store = ingest_catalogue(
        tmp_path / "a.fits", tmp_path / "t.zarr", id_column="HALO", coordinates=["X"]
    )
    np.testing.assert_array_equal(store[0], np.eye(3))
    lists = np.array([np.array([1, 2]), np.array([3, -9, 5])], dtype=object)
    columns = [
        fits.Column("HALO", "J", array=HALO[2:4]),
        fits.Column("P", "PI()", null=-9, array=lists),
    ]
    fits.BinTableHDU.from_columns(columns).writeto(tmp_path / "b.fits")
    assert missing_of(tmp_path / "b.fits", ["P"], tmp_path).tolist() == [1, 2, 3, 5]


LISTS = {  # type, stored lists, words of the header, what they mean (None: missing)
    "scaled": ("PI()", "i2", {"TSCAL2": 0.1, "TZERO2": 1.0}, [[1.1, 1.2], [0.1, 1.5]]),
    "scaled with nulls": ("PI()", "i2", {"TSCAL2": 0.5, "TNULL2": -9}, [[0.5, 1.0], [None, 2.5]]),
    "scaled of 64 bits": ("QJ()", "i4", {"TSCAL2": 0.5}, [[0.5, 1.0], [-4.5, 2.5]]),
    "signed bytes": ("PB()", "u1", {"TZERO2": -128}, [[-127, -126], [119, -123]]),
    "unsigned, 16 bits": ("PI()", "i2", {"TZERO2": 2**15}, [[32769, 32770], [32759, 32773]]),
    "unsigned, 32 bits": (
        "PJ()",
        "i4",
        {"TZERO2": 2**31},
        [[2**31 + 1, 2**31 + 2], [2147483639, 2147483653]],
    ),
    "unsigned, 64 bits": (
        "PK()",
        "i8",
        {"TZERO2": 2**63, "TNULL2": 5},
        [[2**63 + 2**40, 2**63 + 2**41], [2**63 - 9 * 2**40, None]],
    ),
    "numbers": ("PE()", "f4", {"TSCAL2": 2.0}, [[2, 4], [-18, 10]]),
}


@pytest.mark.parametrize("case", LISTS)
def test_fits_lists_that_are_scaled(case, tmp_path):
    """Astropy scales lists within their own type, so that 0.5 would be 0, and 65535 be -1."""
    form, dtype, words, expected = LISTS[case]
    rows = ([1, 2], [-9, 5]) if dtype != "i8" else ([2**40, 2**41], [-9 * 2**40, 5])
    stored = np.empty(2, dtype=object)
    stored[:] = [np.array(row).astype(dtype) for row in rows]
    columns = [fits.Column("HALO", "J", array=[1, 2]), fits.Column("P", form, array=stored)]
    table = fits.BinTableHDU.from_columns(columns)
    for word, value in words.items():  # astropy would scale what it writes, too
        table.header[f"Q{word[1:]}"] = value
    table.writeto(tmp_path / "a.fits")
    content = (tmp_path / "a.fits").read_bytes()
    for word in words:
        content = content.replace(f"Q{word[1:]}".encode(), word.encode())
    (tmp_path / "a.fits").write_bytes(content)
    store = ingest_catalogue(
        tmp_path / "a.fits",
        tmp_path / "s.zarr",
        id_column="halo",
        coordinates=["p"],
        dtype="float64",
        missing="drop_point",
    )
    for bag, numbers in zip(store, expected, strict=True):
        known = [number for number in numbers if number is not None]
        np.testing.assert_allclose(bag.ravel(), known, rtol=1e-15)


def test_fits_lists_of_truth_values(tmp_path):
    """NULL is missing; NULL is neither true nor false."""
    lists = np.empty(2, dtype=object)
    lists[:] = [np.array([True, False, True]), np.array([True])]
    columns = [fits.Column("HALO", "J", array=[1, 2]), fits.Column("P", "PL()", array=lists)]
    fits.BinTableHDU.from_columns(columns).writeto(tmp_path / "a.fits")
    content = (tmp_path / "a.fits").read_bytes()
    assert content.count(b"TFTT") == 1
    (tmp_path / "a.fits").write_bytes(content.replace(b"TFTT", b"T\0FT"))
    call = {"id_column": "HALO", "coordinates": ["P"]}
    with pytest.raises(DataError, match="row 0: bag 1: coordinate 'P' is missing"):
        ingest_catalogue(tmp_path / "a.fits", tmp_path / "s.zarr", **call)
    store = ingest_catalogue(tmp_path / "a.fits", tmp_path / "s.zarr", missing="drop_point", **call)
    assert store.read().points.ravel().tolist() == [1, 0, 1]


def test_fits_ids_and_targets_of_several_values(tmp_path):
    """A vector is no id; one bit is."""
    columns = [
        fits.Column("HALO", "J", array=[1, 2, 3]),
        fits.Column("BITS", "3X", array=np.eye(3, dtype=bool)),
        fits.Column("BIT", "X", array=np.array([[1], [0], [1]], bool)),
        fits.Column("V", "D", array=[1.0, 2.0, 3.0]),
    ]
    fits.BinTableHDU.from_columns(columns).writeto(tmp_path / "a.fits")
    for names in ({"id_column": "BITS"}, {"id_column": "HALO", "targets": ["BITS"]}):
        with pytest.raises(DataError, match="'BITS' has 3 values in a row; ids and targets have"):
            ingest_catalogue(tmp_path / "a.fits", tmp_path / "s.zarr", coordinates=["V"], **names)
    store = ingest_catalogue(
        tmp_path / "a.fits",
        tmp_path / "s.zarr",
        id_column="HALO",
        coordinates=["V"],
        targets=["BIT"],
    )
    assert store.targets().ravel().tolist() == [1, 0, 1]


def test_fits_null_ids(tmp_path):
    """An id that is null is refused, in letters of any case."""
    halo = fits.Column("HALO", "J", null=-1, array=np.array([1, -1, 1, 2, 2, 2]))
    columns = [halo, fits.Column("X", "D", array=np.arange(6.0))]
    fits.BinTableHDU.from_columns(columns).writeto(tmp_path / "a.fits")
    for name in ("HALO", "halo"):
        with pytest.raises(DataError, match="row 1: the bag id is missing"):
            ingest_catalogue(
                tmp_path / "a.fits", tmp_path / "s.zarr", id_column=name, coordinates=["X"]
            )


I2 = np.array([1000, -9999, 1200, 1300, 1400, 1500], "i2")
PACKED = {
    "scaled": (I2, {"_FillValue": np.int16(-9999), "scale_factor": 0.1, "add_offset": 5.0}, 105.0),
    "wide fill": (I2, {"missing_value": -9999.0}, 1000),
    "valid_range": (I2, {"valid_range": np.array([0, 1500], "i2")}, 1000),
    "unpacked range": (I2, {"valid_range": np.array([0.0, 151]), "scale_factor": 0.1}, 100),
    "valid_max": (-I2, {"valid_max": 0, "scale_factor": -1.0}, 1000),
    "unsigned": (
        np.array([200, 255, 1, 2, 3, 4], "u1").view("i1"),
        {"_Unsigned": "true", "_FillValue": np.int8(-1)},
        200,
    ),
    "unsigned range": (
        np.array([200, 255, 1, 2, 3, 4], "u1").view("i1"),
        {"_Unsigned": b"true", "valid_range": np.array([0, -2], "i1")},
        200,
    ),
    "float": (I2.astype("f4") * 0.1, {"_FillValue": -9999 * 0.1}, 100),
}


@pytest.mark.long
@pytest.mark.parametrize("case", PACKED)
def test_packed_columns(case, tmp_path):
    """As CF has them; one point is missing."""
    values, attributes, first = PACKED[case]
    with h5py.File(tmp_path / "c.h5", "w") as file:
        file["halo"] = HALO
        file["v"] = values
        file["v"].attrs.update(attributes)
    points = missing_of(tmp_path / "c.h5", ["v"], tmp_path)
    assert points[0] == pytest.approx(first, rel=1e-6)
    assert len(points) == 5


def test_hdf5_attributes_refused(tmp_path):
    """Another type, another number of values, and unreadable times are refused by name."""
    with h5py.File(tmp_path / "c.h5", "w") as file:
        file["halo"] = HALO
        for name, attributes in {
            "texts": {"_FillValue": "none"},
            "range": {"valid_range": [1, 2, 3]},
            "when": {"units": "days since whenever"},
        }.items():
            file[name] = np.arange(6.0)
            file[name].attrs.update(attributes)
    for name, message in {
        "texts": "_FillValue is 'none', the values are float64; correct",
        "range": "there is {'valid_range'",
        "when": "'days since whenever' cannot be read as times",
    }.items():
        with pytest.raises(DataError, match=message):
            ingest_catalogue(
                tmp_path / "c.h5", tmp_path / "s.zarr", id_column="halo", coordinates=[name]
            )


@pytest.mark.parametrize("names", [("A", "B"), ("A", "A"), ("", "")])
def test_two_tables_of_fits_with_the_columns(names, tmp_path):
    """Are refused by their numbers, unless a number, or a name of one of them, says which."""
    columns = [fits.Column("HALO", "J", array=HALO), fits.Column("X", "D", array=np.arange(6.0))]
    other = [columns[0], fits.Column("x", "D", array=np.arange(6.0) + 10)]
    pairs = zip([columns, other], names, strict=True)
    tables = [fits.BinTableHDU.from_columns(some, name=name or None) for some, name in pairs]
    short = fits.BinTableHDU.from_columns([fits.Column("Y", "D", array=HALO)], name="C")
    fits.HDUList([fits.PrimaryHDU(), *tables, short]).writeto(tmp_path / "a.fits")
    call = {"id_column": "halo", "coordinates": ["x"], "dtype": "float64", "mode": "overwrite"}
    message = rf"a\.fits: the extensions 1 \('{names[0]}'\), 2 \('{names[1]}'\) are .*table=1"
    for table in [None] + ["A"] * (names == ("A", "A")):
        with pytest.raises(DataError, match=message):
            ingest_catalogue(tmp_path / "a.fits", tmp_path / "s.zarr", table=table, **call)
    for table in [2] + ["B"] * (names == ("A", "B")):
        store = ingest_catalogue(tmp_path / "a.fits", tmp_path / "s.zarr", table=table, **call)
        assert store[0].ravel().tolist() == [10, 11, 12]
