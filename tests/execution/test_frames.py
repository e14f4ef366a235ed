"""Frames shuffled by Dask, range after range."""

from __future__ import annotations

import pandas as pd
import pytest
from distributed import Client

from bagbasis import ClusterError
from bagbasis.execution.dask_data.frames import shuffle_frames

META = pd.DataFrame({"key": pd.Series(dtype="int64"), "value": pd.Series(dtype="float64")})


@pytest.fixture(scope="module", autouse=True)
def client():
    with Client(processes=False, n_workers=2, dashboard_address=None) as client:
        yield client


def read(piece: int) -> pd.DataFrame:
    return pd.DataFrame({"key": [3 * piece, -piece, 100 - piece], "value": float(piece)})


def shuffled(finish, calls):
    return shuffle_frames(
        read,
        range(20),
        finish,
        by="key",
        divisions=[-(2**63), 0, 50, 1000, 1000],
        meta=META,
        sizes=[3] * 20,
        progress=lambda *call: calls.append(call),
    )


@pytest.mark.long
def test_each_row_is_in_its_range():
    """Ranges come in order; one may be empty."""
    calls = []
    ranges = list(shuffled(lambda frame: sorted(frame.index), calls))
    keys = sorted(key for piece in range(20) for key in (3 * piece, -piece, 100 - piece))
    bounds = ((-100, 0), (0, 50), (50, 1000), (1000, 2000))
    assert ranges == [[key for key in keys if lo <= key < hi] for lo, hi in bounds]
    assert calls[-1] == (60, 60)


@pytest.mark.long
def test_a_shuffle_that_fails_is_a_cluster_error():
    """Such as workers whose disks are full; what went wrong is told."""

    def full(frame):
        raise OSError("P2P ran out of available disk space")

    with pytest.raises(ClusterError, match="ran out of available disk space"):
        list(shuffled(full, []))
