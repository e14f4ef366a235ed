"""Ingest in this process and on a cluster, whole and cut into many small parts."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis.ingest import TableIngest, batches as ingest_batches
from bagbasis.ingest.tables import Database, LocalEngine
from bagbasis.ingest.tables.engines import ClusterEngine
from tests.data.store.conftest import url  # noqa: F401 - the same places for stores
from tests.ingest.stored_arrays import SIZES
from tests.oracles.ragged import random_bags, random_responses
from tests.workers import two_workers

SMALL = 2**12  # bytes: the tests' tables are cut into about ten pieces and ranges


@pytest.fixture(scope="module", params=["here", pytest.param("cluster", marks=pytest.mark.long)])
def client(request):
    """None, or the client of two worker processes that is open."""
    if request.param == "here":
        yield None
    else:
        with two_workers() as client:
            yield client


@pytest.fixture
def ingest_cut(client, tmp_path):
    """`ingest_tables` in small parts: pieces and ranges, or sorted on disk under a tight limit."""

    def run(*args, piece_bytes=SMALL, range_bytes=SMALL, **options):
        if client is not None:
            return TableIngest(*args, **options).run(ClusterEngine(piece_bytes, range_bytes))
        with Database(2**26, str(tmp_path / "spill")) as database:
            return TableIngest(*args, **options).run(LocalEngine(database))

    return run


@pytest.fixture
def arrays():
    return random_bags(np.random.default_rng(0), SIZES, 3, np.float64)


@pytest.fixture
def place(tmp_path):
    """For what does not depend on the kind of filesystem."""
    return tmp_path / "store.zarr"


@pytest.fixture(params=[4000, 1], ids=["some", "one a bag"])
def batches(request, monkeypatch):
    """Several batches, a batch a bag; elsewhere all bags are in one."""
    monkeypatch.setattr(ingest_batches, "BATCH_BYTES", request.param)


@pytest.fixture
def responses():
    """A response for some of the arrays."""
    return random_responses(np.random.default_rng(1), len(SIZES), 2, np.float64)
