"""Cases of the declared attributes of HDF5, FITS, xarray, FCS and images: a value, or a text."""

from __future__ import annotations

import h5py
import numpy as np
import xarray as xr
from astropy.io import fits
from PIL import Image

from bagbasis import BagStore
from bagbasis.data.bags.packed_attributes import XARRAY_RULES
from bagbasis.ingest import (
    ingest_catalogue,
    ingest_fcs,
    ingest_frame,
    ingest_images,
)
from bagbasis.ingest.formats import cytometry, images
from bagbasis.ingest.formats.catalogues import FITS_RULES, HDF5_RULES
from tests.ingest.formats.test_channels import change, write
from tests.ingest.formats.test_pictures import REFUSED as PICTURES

EVENTS = [[100, 2], [200, 4]]
CALL = {"id_column": "halo", "missing": "drop_point", "dtype": "float64"}
I2 = np.array([1, -9, 3, 4], "i2")
CF = {  # stored values, their attributes, and the values that are read
    "_FillValue": (I2, {"_FillValue": np.int16(-9)}, [1, 3, 4]),
    "missing_value": (I2, {"missing_value": np.array([-9, 4], "i2")}, [1, 3]),
    "valid_range, valid_min, valid_max": (I2, {"valid_min": np.int16(0)}, [1, 3, 4]),
    "scale_factor": (I2, {"scale_factor": 0.5}, [0.5, -4.5, 1.5, 2]),
    "add_offset": (I2, {"scale_factor": 2.0, "add_offset": 1.0}, [3, -17, 7, 9]),
    "_Unsigned": (np.array([1, -1, 3, 4], "i1"), {"_Unsigned": "true"}, [1, 255, 3, 4]),
    "units": (I2 * 1.0, {"units": "days since 1970-01-03"}, [3, -7, 5, 6]),
    "calendar": (
        I2 * 1.0,
        {"units": "hours since 1970-01-03", "calendar": "gregorian"},
        2 + I2 / 24.0,
    ),
}
CF_REFUSED = {
    "calendar": {"units": "days since 2000-01-01", "calendar": "noleap"},
    "attribute of another type": {"scale_factor": "x"},
}


def of_hdf5(values, see=lambda store: store.read().points.ravel(), **attributes):
    """Return what a store of a column of an HDF5 file holds."""

    def run(folder):
        with h5py.File(folder / "c.h5", "w") as file:
            file["halo"] = np.ones(len(values), int)
            file.create_dataset("v", data=values).attrs.update(attributes)
        store = ingest_catalogue(folder / "c.h5", folder / "s.zarr", coordinates=["v"], **CALL)
        return see(store)

    return run


def of_unwritten(value):
    """Return the points of a column of which one cell was never written."""

    def run(folder):
        with h5py.File(folder / "c.h5", "w") as file:
            file["halo"] = np.ones(3, int)
            file.create_dataset("v", (3,), "f8", fillvalue=value)[[0, 2]] = 5.0
        store = ingest_catalogue(folder / "c.h5", folder / "s.zarr", coordinates=["v"], **CALL)
        return store.read().points.ravel()

    return run


def of_lists(folder):
    """Return the points of two bags of variable lengths."""
    with h5py.File(folder / "c.h5", "w") as file:
        file["halo"] = [1, 2]
        lists = file.create_dataset("v", (2,), h5py.vlen_dtype(np.dtype("i4")))
        lists[0], lists[1] = [1, 2], [3]
    store = ingest_catalogue(folder / "c.h5", folder / "s.zarr", coordinates=["v"], **CALL)
    return store.read().sizes


def of_enumeration(folder):
    """Return the names of the classes of an enumeration, and a target of truth values."""
    with h5py.File(folder / "c.h5", "w") as file:
        file["halo"], file["v"] = [1, 2], [1.0, 2.0]
        kind = h5py.enum_dtype({"ill": 0, "well": 1}, "i1")
        file["arm"] = np.array([1, 0], "i1").astype(kind)
        file["flag"] = np.array([True, False])
    call = {**CALL, "coordinates": ["v"], "targets": ["arm", "flag"]}
    store = ingest_catalogue(folder / "c.h5", folder / "s.zarr", **call)
    assert store.targets()[:, 1].tolist() == [1, 0]
    return store.meta.class_names["arm"]


def of_pandas(folder):
    """Ingest a file as pandas writes it."""
    with h5py.File(folder / "c.h5", "w") as file:
        group = file.create_group("df")
        group.attrs["pandas_type"] = "frame_table"
        group["table"] = np.zeros(3, [("halo", "i8"), ("v", "f8")])
    ingest_catalogue(folder / "c.h5", folder / "s.zarr", coordinates=["v"], **CALL)


def of_reference(folder):
    """Ingest references."""
    with h5py.File(folder / "c.h5", "w") as file:
        file["halo"] = [1, 2]
        file.create_dataset("v", (2,), h5py.ref_dtype)[:] = file["halo"].ref
    ingest_catalogue(folder / "c.h5", folder / "s.zarr", coordinates=["v"], **CALL)


def of_link(link):
    """Return a call that ingests a column that is a link."""

    def run(folder):
        with h5py.File(folder / "c.h5", "w") as file:
            file["halo"], file["v"] = [1, 2], link
        ingest_catalogue(folder / "c.h5", folder / "s.zarr", coordinates=["v"], **CALL)

    return run


def of_values_elsewhere(folder):
    """Ingest a column whose values are in a file of their own."""
    np.ones(2).tofile(folder / "raw.bin")
    with h5py.File(folder / "c.h5", "w") as file:
        file["halo"] = [1, 2]
        file.create_dataset("v", (2,), "f8", external=[(str(folder / "raw.bin"), 0, 16)])
    ingest_catalogue(folder / "c.h5", folder / "s.zarr", coordinates=["v"], **CALL)


def ragged(rows, dtype="i2"):
    """Return lists of different lengths as a column."""
    result = np.empty(len(rows), object)
    result[:] = [np.array(row, dtype) for row in rows]
    return result


def of_fits(*columns, name="V", header=(), kind=fits.BinTableHDU, change_bytes=None):
    """Return the points of a FITS table."""

    def run(folder):
        halo = fits.Column("HALO", "J" if kind is fits.BinTableHDU else "I4", array=np.ones(4, int))
        table = kind.from_columns([halo, *columns])
        table.header.update(dict(header))
        table.writeto(folder / "a.fits")
        if change_bytes:
            content = (folder / "a.fits").read_bytes()
            assert content.count(change_bytes[0]) == 1
            (folder / "a.fits").write_bytes(content.replace(*change_bytes))
        call = {**CALL, "coordinates": [name]}
        return ingest_catalogue(folder / "a.fits", folder / "s.zarr", **call).read().points.ravel()

    return run


def of_xarray(values, **attributes):
    """Return the points of a variable of a data set, as a table."""

    def run(folder):
        dataset = xr.Dataset({"halo": ("obs", np.ones(4, int)), "v": ("obs", values, attributes)})
        return (
            ingest_frame(dataset, folder / "s.zarr", coordinates=["v"], **CALL).read().points[:, 0]
        )

    return run


def of_ragged(see, **variables):
    """Return what a store of a ragged data set holds."""

    def run(folder):
        sizes = ("bag", [3, 1], {"sample_dimension": "obs"})
        dataset = xr.Dataset({"v": ("obs", np.arange(4.0)), "n": sizes, **variables})
        return see(BagStore.from_xarray(dataset, folder / "s.zarr"))

    return run


def of_picture(save, name="a.tif", **options):
    """Return the numbers of a picture's points."""

    def run(folder):
        (folder / "d").mkdir()
        save(folder / "d" / name)
        store = ingest_images(folder / "d", folder / "s.zarr", grey=True, **options)
        return np.round(255 * store[0][:, 0].astype(float), 3)

    return run


GREY = np.array([[0, 51, 102], [153, 204, 255]], np.uint8)
RATIOS = GREY.astype(np.float32) / 255


def save_16_bits(path):
    Image.fromarray(GREY.astype(np.uint16) * 257).save(path)


def save_on_its_head(path):
    Image.fromarray(GREY[::-1, ::-1]).save(path, tiffinfo={0x0112: 3})


def save_white_as_0(path):
    Image.fromarray(GREY).save(path, tiffinfo={262: 0})
    assert (255 - GREY).tobytes() in path.read_bytes()


def save_transparent(path):
    pixels = np.dstack([GREY, GREY, GREY, np.full_like(GREY, 7)])
    Image.fromarray(pixels).save(path)


def of_events(old=b"", new=b"", names=("FL1-A", "Time"), **options):
    """Return the first event of an FCS file of which a keyword was changed."""

    def run(folder):
        text = {"p1qatatype": "D", **options.pop("text", {})}
        path = write(folder / "a.fcs", list(names), options.pop("markers", None), **text)
        path.write_bytes(path.read_bytes().replace(b"p1qatatype", b"P1QATATYPE"))
        if old:
            change(path, old, new)
        call = {"cofactor": None, **options}
        return ingest_fcs(path, folder / "s.zarr", **call)[0][0]

    return run


def of_bytes(
    rows, coordinates=("A",), datatype="F", order="1,2,3,4", compensate=False, widths=(2, 2), **text
):
    """Return what a store has of an FCS file whose every byte is written here."""
    sign = "<" if order.startswith("1") else ">"
    kinds = {"F": ["f4"] * 2, "D": ["f8"] * 2, "I": [f"u{width}" for width in widths]}[datatype]
    record = np.dtype([(name, sign + kind) for name, kind in zip("AT", kinds, strict=True)])
    keys = {"$BYTEORD": order, "$DATATYPE": datatype, "$MODE": "L", "$NEXTDATA": "0", "$PAR": "2"}
    for j, name in ((1, "A"), (2, "Time")):
        keys |= {f"$P{j}N": name, f"$P{j}B": str(8 * record[j - 1].itemsize), f"$P{j}E": "0,0"}
        keys |= {f"$P{j}R": str(min(65536, 256 ** record[j - 1].itemsize))}
    keys |= {"$TOT": str(len(rows)), **{name.replace("_", "$"): text[name] for name in text}}
    data = np.array([tuple(row) for row in rows], record).tobytes()

    def run(folder):
        def segment(first):
            ends = {"$BEGINDATA": f"{first:06d}", "$ENDDATA": f"{first + len(data) - 1:06d}"}
            return "".join(f"/{key}/{value}" for key, value in {**keys, **ends}.items()) + "/"

        first = 58 + len(segment(0))
        places = (58, first - 1, first, first + len(data) - 1, 0, 0)
        head = "FCS3.0    " + "".join(f"{place:8d}" for place in places)
        (folder / "a.fcs").write_bytes((head + segment(first)).encode() + data)
        call = {"cofactor": None, "dtype": "float64", "coordinates": coordinates}
        return ingest_fcs(folder / "a.fcs", folder / "s.zarr", compensate=compensate, **call)[0]

    return run


def of_panels(folder):
    """Return a store of two files whose first detector has another marker."""
    write(folder / "d" / "a.fcs", ["FL1-A", "FL2-A"], ["CD4", "CD8"])
    write(folder / "d" / "b.fcs", ["FL1-A", "FL2-A"], ["CD19", "cd8 "])
    return ingest_fcs(folder / "d", folder / "s.zarr")


PACKED_DONE = {
    HDF5_RULES: {
        **{name: (of_hdf5(values, **more), read) for name, (values, more, read) in CF.items()},
        "fill value of netCDF": (of_unwritten(9.969209968386869e36), [5, 5]),
        "booleans, enumerations": (of_enumeration, ["ill", "well"]),
        "variable lengths": (of_lists, [2, 1]),
        "byte order, half and long double": (of_hdf5(np.array([1, 2], ">f2")), [1, 2]),
    },
    FITS_RULES: {
        "TNULLn": (of_fits(fits.Column("V", "I", null=-9, array=I2)), [1, 3, 4]),
        "TSCALn, TZEROn": (
            of_fits(fits.Column("V", "I", array=I2), header={"TSCAL2": 0.5, "TZERO2": 1.0}),
            [1.5, -3.5, 2.5, 3],
        ),
        "TFORMn": (of_fits(fits.Column("V", "B", array=np.uint8([1, 2, 3, 200]))), [1, 2, 3, 200]),
        "TFORMn P, Q": (
            of_fits(
                fits.Column("V", "PI()", null=-9, array=ragged([[-32768, 32767], [-9], [5], [5]])),
                header={"QZERO2": 32768},
                change_bytes=(b"QZERO2  ", b"TZERO2  "),
            ),
            [0, 65535, 32773, 32773],
        ),
        "TDIMn": (
            of_fits(fits.Column("V", "2I", array=np.arange(8).reshape(4, 2))),
            np.arange(8),
        ),
        "blank fields": (
            of_fits(
                fits.Column("V", "F8.3", array=[5.0, 2.0, 7, 8]),
                kind=fits.TableHDU,
                change_bytes=(b"   2.000", b" " * 8),
            ),
            [5, 7, 8],
        ),
    },
    XARRAY_RULES: {
        **{name: (of_xarray(values, **more), read) for name, (values, more, read) in CF.items()},
        "sample_dimension": (of_ragged(lambda store: store.read().sizes), [3, 1]),
        "cf_role": (
            of_ragged(lambda s: s.ids(), who=("bag", ["q", "p"], {"cf_role": "profile_id"})),
            ["q", "p"],
        ),
        "coordinates": (of_ragged(lambda s: [s.n_dims], lat=("obs", np.arange(4.0))), [2]),
    },
    images.IMAGE_RULES: {
        "bits per channel": (of_picture(save_16_bits), GREY.ravel()),
        "floating-point values": (
            of_picture(lambda path: Image.fromarray(RATIOS).save(path)),
            GREY.ravel(),
        ),
        "EXIF and TIFF orientation": (of_picture(save_on_its_head), GREY.ravel()),
        "palette, CMYK, YCbCr": (
            of_picture(lambda path: Image.fromarray(GREY).convert("P").save(path), "a.png"),
            GREY.ravel(),
        ),
        "white is 0": (of_picture(save_white_as_0), GREY.ravel()),
    },
    cytometry.FCS_RULES: {
        "$PnE": (
            of_bytes([[0, 1], [512, 1], [1023, 1]], datatype="I", _P1E="4,1", _P1R="1024"),
            10.0 ** (4 * np.array([[0], [512], [1023]]) / 1024),
        ),
        "$PnG": (of_bytes(EVENTS, _P1G="4"), [[25], [50]]),
        "$PnR": (of_bytes([[1029, 1], [7, 1]], datatype="I", _P1R="1024"), [[5], [7]]),
        "$PnB": (
            of_bytes(
                [[515, 7], [65535, 255]],
                ["A", "Time"],
                datatype="I",
                order="4,3,2,1",
                widths=(4, 1),
            ),
            [[515, 7], [65535, 255]],
        ),
        "$PnN, $PnS": (of_bytes(EVENTS, ["CD4", "A"], _P2S="CD4"), [[2, 100], [4, 200]]),
        "$PnTYPE": (
            of_bytes(EVENTS, None, _P1TYPE="Side_Scatter", _P2TYPE="Raw_Fluorescence"),
            [[2], [4]],
        ),
        "$TIMESTEP": (of_bytes(EVENTS, ["Time"], _TIMESTEP="0.5"), [[1], [2]]),
        "$SPILLOVER, SPILL": (
            of_bytes(EVENTS, ["A", "Time"], compensate=True, SPILL="2,A,Time,1,0.01,0,1"),
            [[100, 1], [200, 2]],
        ),
        "$BYTEORD": (of_bytes(EVENTS, order="4,3,2,1"), [[100], [200]]),
        "$DATATYPE": (of_bytes([[1e-300, 1], [0.1, 1]], datatype="D"), [[1e-300], [0.1]]),
        "$TOT": (of_bytes(EVENTS), [[100], [200]]),
        "$MODE": (of_bytes(EVENTS, _MODE="l"), [[100], [200]]),
    },
}
PACKED_REFUSED = {
    HDF5_RULES: {
        **{name: of_hdf5(I2 * 1.0, **attributes) for name, attributes in CF_REFUSED.items()},
        "complex numbers": of_hdf5(np.ones(3, complex)),
        "references": of_reference,
        "records, opaque values": of_hdf5(np.zeros(3, "V4")),
        "pandas_type": of_pandas,
        "text": of_hdf5(np.array([b"\xe9"] * 3)),
        "links to other files": of_link(h5py.ExternalLink("b.h5", "v")),
        "soft links": of_link(h5py.SoftLink("/gone")),
        "external storage, virtual data sets": of_values_elsewhere,
    },
    FITS_RULES: {
        "TFORMn C, M": of_fits(fits.Column("V", "M", array=np.ones(4, complex))),
        "TFORMn P, Q of bits": of_fits(
            fits.Column("V", "PB()", array=ragged([[1], [1, 0], [1], [0]], "u1")),
            change_bytes=(b"PB(2)", b"PX(2)"),
        ),
        "TDIMn of P, Q": of_fits(
            fits.Column("V", "PI()", array=ragged([[1, 2, 3, 4]] * 4)),
            header={"QDIM2": "(2,2)"},
            change_bytes=(b"QDIM2   ", b"TDIM2   "),
        ),
        "ZTABLE": of_fits(fits.Column("V", "D", array=np.ones(4)), header={"ZTABLE": True}),
        "TFORMn of text": of_fits(
            fits.Column("V", "4A", array=["abcd"] * 3 + ["wxyz"]),
            change_bytes=(b"wxyz", b"wx\xe9z"),
        ),
    },
    XARRAY_RULES: {
        **{name: of_xarray(I2 * 1.0, **attributes) for name, attributes in CF_REFUSED.items()},
        "complex numbers": of_xarray(np.ones(4, complex)),
    },
    images.IMAGE_RULES: {
        "16-bit colour": of_picture(PICTURES["colour.png"][0], "a.png"),
        "32-bit and signed integers": of_picture(PICTURES["int32.tif"][0]),
        "floating-point values": of_picture(lambda p: Image.fromarray(2 * RATIOS).save(p)),
        "white is 0, of more than 8 bits": of_picture(PICTURES["white.tif"][0]),
        "pages and frames": of_picture(PICTURES["pages.tif"][0]),
    },
    cytometry.FCS_RULES: {
        "$TOT": of_events(b"$TOT/20/", b"$TOT/30/"),
        "$MODE": of_events(b"$MODE/L/", b"$MODE/H/"),
        "$BYTEORD": of_events(b"$BYTEORD/1,2,3,4/", b"$BYTEORD/3,4,1,2/"),
        "$DATATYPE": of_events(b"$DATATYPE/F/", b"$DATATYPE/A/"),
        "$PnDATATYPE": of_events(b"P1QATATYPE/D/", b"P1DATATYPE/D/"),
        "$PnE": of_events(b"P1E/0,0/", b"P1E/4,1/"),
        "$PnB": of_bytes(EVENTS, datatype="I", _P1B="10"),
        "$PnR": of_bytes(EVENTS, datatype="I", _P1R="0"),
        "$PnG": of_bytes(EVENTS, datatype="I", _P1G="2", _P1E="4,1"),
        "empty values": of_bytes(EVENTS, _P1S="", _P2G="2"),
        "$NEXTDATA": of_events(b"$NEXTDATA/0/", b"$NEXTDATA/9/"),
    },
}
WARNED = {
    HDF5_RULES: {"fill value of the data set": of_unwritten(-1.0)},
    XARRAY_RULES: {
        "other variables": of_ragged(lambda store: store, place=("obs", list("abcd"))),
    },
    images.IMAGE_RULES: {
        "transparency": of_picture(save_transparent, "a.png"),
        "channels first": lambda folder: ingest_images(
            [np.eye(5)[:3, :, None] * np.ones(6)], folder / "s.zarr"
        ),
    },
    cytometry.FCS_RULES: {"$PnS of several panels": of_panels},
}
ELSEWHERE = {"$COMP, $DFCnTOm": "tests/ingest/formats/test_bag_files.py"}  # needs a matrix
