"""Stores kept by Icechunk: appends are transactions, readers see one snapshot."""

from __future__ import annotations

import fcntl
import pickle
import shutil
import sys
import threading
from types import SimpleNamespace

import icechunk
import numpy as np
import pytest

from bagbasis import (
    Bags,
    BagStore,
    DoubleBasisRegressor,
    ModelError,
    ProjectionEmbedding,
    RandomFourierFeatures,
    StoreError,
    WriterBusyError,
)
from bagbasis.core import systems
from bagbasis.data.storage import transactions
from bagbasis.data.storage.zarr_stores import writer_store
from bagbasis.data.store import creation, store as stores
from bagbasis.data.store.schema import POINTS
from bagbasis.data.store.writer import AppendSession
from bagbasis.models import Checkpoints
from bagbasis.models.tuning.cache import store_identity
from tests.copied import copied
from tests.data.store.processes import (
    BATCH,
    append_batch,
    batch,
    check_two_appends,
    hold,
    model_of,
    running,
)
from tests.oracles.labelled import labelled_bags, stored

ROUNDS = 4
BAGS, Y = labelled_bags(40, most=12)


@pytest.fixture
def url(tmp_path):
    """Return a place for a store kept by Icechunk."""
    return f"icechunk+file://{tmp_path}/data/r"


@copied
def empty(url):
    """Make an empty store."""
    BagStore.create(url, 2, target_names=["y"], response_dims=3, chunk_points=8)


@pytest.fixture
def store(url):
    """Return an empty store there."""
    return empty(url)


def regressor():
    """Return a small estimator."""
    return DoubleBasisRegressor(
        ProjectionEmbedding(n_per_dim=3),
        RandomFourierFeatures(n_features=16),
        alpha=0.1,
        precision="float64",
    )


def append_rounds(pipe, url, first):
    """Append batches one after the other, whatever others append in between."""
    store = BagStore.open(url)
    pipe.send("ready")
    pipe.recv()
    for i in range(first, first + ROUNDS):
        bags, targets, ids, responses = batch(i)
        store.append(bags, targets, ids=ids, responses=responses)
    pipe.send("appended")


@pytest.mark.long
def test_a_reader_sees_one_snapshot(store):
    """What a store object holds stays as it was, in pickled copies too.

    It does not matter what is appended or made in its place; a refresh shows the last snapshot.
    """
    append_batch(store)
    before = BagStore.open(store.url)
    copy = pickle.loads(pickle.dumps(before))
    for _ in range(2):
        append_batch(store)
    for seen in (before, copy):
        model_of(BATCH).check(seen)
        seen.verify()
    model_of(3 * BATCH).check(BagStore.open(store.url))
    fresh = BagStore.create(store.url, 2, overwrite=True)
    assert fresh.n_bags == 0
    model_of(3 * BATCH).check(store)
    store.verify()
    snapshots = [s.snapshot for s in (before, store, fresh)]
    assert copy.snapshot == before.snapshot
    assert len(set(snapshots)) == 3
    assert before.refresh().snapshot == fresh.snapshot


@pytest.mark.parametrize("see", [lambda store: BagStore.open(store.url), BagStore.refresh])
def test_a_commit_while_a_store_is_opened(store, monkeypatch, see):
    """The counts are those of the snapshot from which the data are read."""
    writer, current = BagStore.open(store.url), stores.current_snapshot

    def overtaken(url):
        snapshot = current(url)
        monkeypatch.undo()
        append_batch(writer)
        return snapshot

    monkeypatch.setattr(stores, "current_snapshot", overtaken)
    seen = see(store)
    assert (seen.n_bags, writer.n_bags) == (0, BATCH)
    seen.verify()


@pytest.mark.long
def test_the_repository_is_opened_once_for_all_arrays(store, monkeypatch):
    """Among objects each opening is half a dozen requests."""
    append_batch(store)
    opened = []
    reader = transactions.reader
    monkeypatch.setattr(transactions, "reader", lambda *args: opened.append(args) or reader(*args))
    model_of(BATCH).check(store)
    assert opened == [(store.url, store.snapshot)]
    append_batch(store)
    opened.clear()
    model_of(2 * BATCH).check(store)
    assert opened == [(store.url, store.snapshot)]


@pytest.mark.long
def test_killed_writer(store):
    """A writer killed in its session leaves nothing, and nobody waits for its lock."""
    append_batch(store)
    with running(hold, store.url) as (process, pipe):
        assert pipe.recv() == "holding"
        append_batch(store)
        process.kill()
        process.join()
    append_batch(store)
    model_of(3 * BATCH).check(BagStore.open(store.url))
    store.verify()


@pytest.mark.long
def test_second_of_two_sessions(store):
    """The second of two open sessions is refused when it commits; nothing of it is kept."""
    first, second = BagStore.open(store.url), BagStore.open(store.url)
    message = r"another writer committed meanwhile; nothing was committed; try again"

    def late():
        with second.appending() as session:
            session.write(Bags.from_list([np.full((200, 2), 9.0)]))
            append_batch(first)

    with pytest.raises(WriterBusyError, match=message):
        late()
    assert second.n_bags == 0
    model_of(BATCH).check(second.refresh())
    second.verify()


@pytest.mark.long
def test_two_processes_append_at_once(store):
    """Every append of two processes is there, whole and once; both see the other's in the end."""
    writers = [running(append_rounds, store.url, first) for first in (0, ROUNDS)]
    check_two_appends(store, ROUNDS, *writers)


@pytest.mark.long
def test_overtaken_append_is_written_again(store, monkeypatch):
    """An append that another writer overtakes lands behind theirs, with the next free ids."""
    overtaken = []
    commit = AppendSession.commit

    def late(self, source=None):
        if not overtaken:
            overtaken.append(1)
            append_batch(BagStore.open(store.url))
        return commit(self, source)

    monkeypatch.setattr(AppendSession, "commit", late)
    bags = batch(7)[0]
    store.append(bags)
    assert store.ids().tolist() == list(range(2 * BATCH))
    for actual, value in zip(store.read(BATCH), bags, strict=True):
        np.testing.assert_array_equal(actual, value)
    store.verify()


@pytest.mark.long
def test_overtaken_before_it_writes(store, monkeypatch):
    """A commit between a writer's look at the store and its first write is not written over."""
    check_ends, overtaken = store.check_ends, []

    def late():
        check_ends()
        if not overtaken:
            overtaken.append(1)
            append_batch(BagStore.open(store.url))

    monkeypatch.setattr(store, "check_ends", late)
    bags, targets, _, responses = batch(1)
    store.append(bags, targets, responses=responses)
    model_of(2 * BATCH).check(store)
    store.verify()


@pytest.mark.long
@pytest.mark.parametrize(("nth", "message"), [(1, "exists already"), (2, "committed meanwhile")])
def test_of_two_makers_one_is_refused(url, monkeypatch, nth, message):
    """What another process makes, and appends to, behind any of this one's looks stays."""
    look, looks = creation.is_vacant, []

    def be_overtaken(place):
        vacant = look(place)
        looks.append(place)
        if len(looks) == nth:
            append_batch(empty(url))
        return vacant

    monkeypatch.setattr(creation, "is_vacant", be_overtaken)
    with pytest.raises(StoreError, match=message):
        BagStore.create(url, 2)
    model_of(BATCH).check(BagStore.open(url))


@pytest.mark.long
def test_one_commit_at_a_time(store, tmp_path, monkeypatch):
    """On local files a commit waits for the one that is under way."""
    waiting = threading.Event()

    def flock(file, operation):
        try:
            fcntl.flock(file, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting.set()
            fcntl.flock(file, operation)

    stand_in = SimpleNamespace(flock=flock, LOCK_EX=fcntl.LOCK_EX, LOCK_UN=fcntl.LOCK_UN)
    monkeypatch.setattr(systems, "fcntl", stand_in)
    thread = threading.Thread(target=append_batch, args=(store,))
    with open(tmp_path / "data" / "r" / transactions.COMMIT_LOCK, "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        thread.start()
        assert waiting.wait(60)
        assert BagStore.open(store.url).n_bags == 0
    thread.join(60)
    model_of(BATCH).check(BagStore.open(store.url))


@pytest.mark.long
def test_a_fit_reads_one_snapshot(url, tmp_path):
    """A fit while others append is the fit of the bags it began with.

    Its report, kept with the model, names the snapshot; checkpoints and tuning's cache tell
    snapshots apart.
    """
    store = stored(url, BAGS, Y)
    alone = regressor().fit(stored(tmp_path / "s.zarr", BAGS, Y))
    reader = BagStore.open(url)
    identity = store_identity(reader)
    appended = []

    def append(done, total):
        if not appended:
            appended.append(store.append(BAGS, Y[:, None]))

    model = regressor().fit(reader, progress=append, checkpoints=Checkpoints(tmp_path / "c"))
    assert appended[0].n_bags == 2 * len(BAGS)
    np.testing.assert_array_equal(model.coef_, alone.coef_)
    assert model.report_["data_snapshot"] == reader.snapshot != store.snapshot
    assert "data_snapshot" not in alone.report_
    assert store_identity(reader) == identity != store_identity(store)
    model.save(tmp_path / "m.zarr")


def test_refusals(store, tmp_path, monkeypatch):
    """What cannot be done is one line that names the URL."""
    append_batch(store)
    with pytest.raises(StoreError, match="exists already"):
        BagStore.create(store.url, 2)
    with pytest.raises(StoreError, match="nowhere: not found"):
        BagStore.open(f"icechunk+file://{tmp_path}/nowhere")
    assert not (tmp_path / "nowhere").exists()
    with pytest.raises(StoreError, match=r"expected icechunk\+file:///PATH or icechunk\+s3://"):
        BagStore.open("icechunk+gs://bucket/r")
    with pytest.raises(StoreError, match=r"/proc/r: cannot be written"):
        BagStore.create("icechunk+file:///proc/r", 2)
    model = regressor().fit(BAGS, Y)
    with pytest.raises(ModelError, match="bag stores alone can be kept by Icechunk"):
        model.save(f"icechunk+file://{tmp_path}/m")
    shutil.rmtree(f"{tmp_path}/data/r/snapshots")
    with pytest.raises(StoreError, match=r"icechunk\+file://.*/r: "):
        BagStore.open(store.url)
    monkeypatch.setitem(sys.modules, "icechunk", None)
    with pytest.raises(StoreError, match=r"needs pip install 'bagbasis\[icechunk\]'"):
        BagStore.open(store.url)


def test_half_a_snapshot_is_no_empty_store(store, tmp_path):
    """What a network that broke off leaves of it: an error for readers and writers, each alone."""
    (file,) = (tmp_path / "data/r/snapshots").glob(store.snapshot)
    whole = file.read_bytes()
    for look in (
        lambda: BagStore.open(store.url),
        lambda: store.array(POINTS),
        lambda: writer_store(store.url, lambda: None, store.snapshot),
    ):
        file.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(StoreError, match=r"/r: cannot be (read|written) \("):
            look()
        file.write_bytes(whole)
    append_batch(store)


def test_folders_that_are_no_repository(tmp_path):
    """A store can be made in an empty folder, and never among what is somebody else's."""
    (tmp_path / "empty").mkdir()
    url = f"icechunk+file://{tmp_path}/empty"
    assert BagStore.open(BagStore.create(url, 2).url).n_bags == 0
    (tmp_path / "notes").mkdir()
    for place in ("notes/a.txt", "notes"):
        (tmp_path / "notes" / "a.txt").write_text("mine")
        with pytest.raises(StoreError, match="exists and is not a bag store"):
            BagStore.create(f"icechunk+file://{tmp_path}/{place}", 2, overwrite=True)
    assert [path.name for path in (tmp_path / "notes").iterdir()] == ["a.txt"]


@pytest.mark.parametrize("error", [icechunk.ConflictError, icechunk.IcechunkError, OSError])
def test_a_commit_whose_answer_is_lost_is_not_repeated(store, monkeypatch, error):
    """Icechunk asks again and finds a conflict with the very commit, or gives up: it was done."""
    open_session = transactions.Transaction.__init__

    class Lost:
        def __init__(self, session):
            self._session = session

        def __getattr__(self, name):
            return getattr(self._session, name)

        def commit(self, *args, **more):
            self._session.commit(*args, **more)
            raise error("no answer")

    def opened(self, *args):
        open_session(self, *args)
        self._session = Lost(self._session)

    monkeypatch.setattr(transactions.Transaction, "__init__", opened)
    append_batch(store)
    model_of(BATCH).check(BagStore.open(store.url))
    assert store.n_bags == BagStore.open(store.url).n_bags
