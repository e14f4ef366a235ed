"""Channels of cytometers: which are taken, and what a file says about its events."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from flowio import create_fcs

from bagbasis import BagbasisWarning, DataError
from bagbasis.ingest import ingest_fcs
from bagbasis.ingest.formats.cytometry import is_stained


def write(path, names, markers=None, events=None, **text):
    """Write an FCS file whose channel j has events around 1000 (j + 1)."""
    if events is None:
        events = np.tile(1000.0 * np.arange(1, len(names) + 1), (20, 1)) + np.arange(20)[:, None]
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        create_fcs(file, events.ravel().tolist(), list(names), markers, text)
    return path


def change(path, old, new):
    """Replace a keyword's value by one of the same length."""
    content = path.read_bytes()
    assert len(old) == len(new)
    assert content.count(old) == 1, old
    path.write_bytes(content.replace(old, new))


@pytest.mark.long
@pytest.mark.parametrize(
    "names",
    [
        ["FSC-A", "SSC-A", "FL1", "Time"],
        ["FS INT", "SS INT", "FL1 INT", "TIME"],
        ["FSC_A", "SSC.A", "FL1", "HDR-T"],
        ["FS Lin", "SS Log", "FL1 Log", "Time (ms)"],
        ["FSC 488/10-A", "VSSC-A", "B525-A", "Width"],
        ["FSC1-H", "BSC-A", "FL1-A", "TLSW"],
        ["SALS", "LALS", "Green", "Event Info"],
        ["Time", "Event_length", "Yb176Di", "Center"],
        ["Time", "Cell_length", "(Dy161)Dd", "Residual"],
        ["Forward Scatter", "Side Scatter", "GFP", "Sorting: Sort Result Bits"],
    ],
)
def test_scatter_time_and_bookkeeping_are_left_out(names, tmp_path, caplog):
    """One coordinate is left, and a line of the log says which, and what was done to it."""
    write(tmp_path / "d" / "a.fcs", names)
    with caplog.at_level(logging.INFO):
        store = ingest_fcs(tmp_path / "d", tmp_path / "s.zarr", dtype="float64")
    (stained,) = (name for name in names if is_stained(name))
    expected = 1000.0 * (names.index(stained) + 1) + np.arange(20)
    if stained == "(Dy161)Dd":
        assert names.index(stained) == 2
    np.testing.assert_allclose(store[0][:, 0], np.arcsinh(expected / 150))
    (line,) = (record.getMessage() for record in caplog.records if "arcsinh" in record.message)
    assert f"coordinates are the channels {stained}; left out: {names[0]}" in line
    assert f"arcsinh of {stained} (cofactor 150)" in line


def test_the_type_of_a_channel_decides(tmp_path):
    """FCS 3.2 names types; they go before names, and unknown ones after."""
    assert not is_stained("P1", "", "Forward_Scatter")
    assert is_stained("Time-lapse GFP", "", "Raw Fluorescence")
    assert not is_stained("Time", "", "something else")
    assert is_stained("FL1-A", "FLAG tag")
    assert not is_stained("P1", "SSC-A")
    write(tmp_path / "a.fcs", ["P1", "P2"], p1type="Side_Scatter", p2type="Unmixed_Fluorescence")
    store = ingest_fcs(tmp_path / "a.fcs", tmp_path / "s.zarr", cofactor=None)
    assert store[0][0].tolist() == [2000.0]


def test_a_marker_in_two_channels_is_refused(tmp_path):
    """With both channels; one can be named. The same of two channels of one name."""
    names = ["FITC-H", "FITC-A", "PE-A"]
    write(tmp_path / "a.fcs", names, ["CD4", "CD4", "CD8"])
    call = {"cofactor": None, "overwrite": True}
    with pytest.raises(DataError, match=r"'CD4' is in 2 channels, \['FITC-H', 'FITC-A'\]"):
        ingest_fcs(tmp_path / "a.fcs", tmp_path / "s.zarr", coordinates=["CD4"], **call)
    chosen = ["FITC-A", "CD8"]
    store = ingest_fcs(tmp_path / "a.fcs", tmp_path / "s.zarr", coordinates=chosen, **call)
    assert store[0][0].tolist() == [2000.0, 3000.0]
    write(tmp_path / "b.fcs", ["PE-A", "PE-A"])
    with pytest.raises(DataError, match=r"'PE-A' is in 2 channels, \[1, 2\]; rename one"):
        ingest_fcs(tmp_path / "b.fcs", tmp_path / "s.zarr", **call)


def test_channels_keep_their_names(tmp_path, caplog):
    """Files that come later have the channels in another order, and one more, and other markers."""
    folder, url = tmp_path / "d", tmp_path / "s.zarr"
    first = write(folder / "a.fcs", ["FL1-A", "FL2-A", "Time"], ["CD4", "CD8", ""])
    options = {"cofactor": None, "dtype": "float64"}
    assert ingest_fcs(first, url, **options).coordinate_names == ["FL1-A", "FL2-A"]
    later = write(folder / "b.fcs", ["FL3-A", "FL2-A", "FL1-A"], ["CD3", "CD8", "CD4"])
    with pytest.warns(BagbasisWarning, match="lie outside the store's box"):
        store = ingest_fcs(later, url, mode="append", **options)
    np.testing.assert_array_equal(store[1] - store[0], np.tile([2000.0, 0.0], (20, 1)))
    assert "has the marker" not in caplog.text
    write(folder / "c.fcs", ["FL1-A", "FL2-A"], ["CD19", " cd8"])
    ingest_fcs(folder, url, mode="overwrite", **options)
    assert caplog.text.count("has the marker") == 1
    assert f"channel 'FL1-A' has the marker 'CD19', and 'CD4' in {first}" in caplog.text
