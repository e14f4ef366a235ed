"""Stores on ``s3://`` URLs, played by moto over HTTP: appends, listings, locks and refusals."""

from __future__ import annotations

from pathlib import Path

import boto3
import fsspec
import icechunk
import numpy as np
import pytest

from bagbasis import Bags, BagStore, ModelError, StoreError, WriterBusyError, load_model
from bagbasis.data.storage.files import names_in, reading, writing
from bagbasis.data.storage.lock import writer_lock
from tests.data.storage.objects import among_objects
from tests.data.store.processes import BATCH, append_batch, batch, check_two_appends, hold, model_of
from tests.models.predicting import fitted
from tests.object_stores.elsewhere import N_ROUNDS, append_rounds, elsewhere
from tests.object_stores.moto_server import forget_clients


@pytest.fixture
def store(bucket):
    """An empty store."""
    return BagStore.create(f"icechunk+{bucket}/data/s", 2, target_names=["y"], chunk_points=8)


@pytest.mark.long
def test_moto_store_grows_and_is_read(bucket):
    """Appends with responses are committed, seen by others, whole, and can be replaced."""
    url = f"icechunk+{bucket}/data/s"
    store = BagStore.create(url, 2, target_names=["y"], response_dims=3, chunk_points=8)
    other = BagStore.open(url)
    for _ in range(2):
        append_batch(store)
    bags, targets, ids, responses = batch(2)
    other.append(bags, targets, ids=ids, responses=responses)
    assert other.n_bags == 3 * BATCH
    model_of(3 * BATCH).check(store.refresh())
    store.verify()
    with pytest.raises(StoreError, match="exists already"):
        BagStore.create(url, 2)
    fresh = BagStore.create(url, 2, target_names=["y"], overwrite=True)
    fresh.append(batch(0)[0], batch(0)[1], ids=list("abcde"))
    fresh.append(batch(1)[0], batch(1)[1], ids=list("fghij"))
    assert BagStore.open(url).ids().tolist() == list("abcdefghij")
    fresh.verify()


@pytest.mark.long
def test_moto_plain_zarr_is_read_and_not_written(bucket, tmp_path):
    """A plain store on S3 is read, and seen to grow when its files are copied there anew; whatever
    would write it is refused, and says what to do."""
    url = f"{bucket}/data/s.zarr"
    local = BagStore.create(
        tmp_path / "s.zarr", 2, target_names=["y"], response_dims=3, chunk_points=8
    )
    append_batch(local)
    store = among_objects(local, url)
    model_of(BATCH).check(store)
    append_batch(local)
    client = boto3.client("s3")  # another client: nothing here hears of it
    for path in Path(local.url).rglob("*"):
        if path.is_file():
            key = f"data/s.zarr/{path.relative_to(local.url)}"
            client.put_object(Bucket=bucket.removeprefix("s3://"), Key=key, Body=path.read_bytes())
    store.refresh().verify()
    model_of(2 * BATCH).check(store)
    for write in (
        lambda: append_batch(store),
        lambda: BagStore.create(f"{bucket}/t.zarr", 2),
        lambda: BagStore.create(url, 2, overwrite=True),
    ):
        with pytest.raises(StoreError, match=r"can only be read; .* give icechunk\+s3://bags-"):
            write()
    model_of(2 * BATCH).check(BagStore.open(url))
    assert names_in(bucket) == ["data"]


@pytest.mark.long
@pytest.mark.parametrize("first", [None, b"first"])
def test_moto_second_writer_of_an_object_is_refused(bucket, first):
    """What changed on S3 since it was read is not written over: one conditional PUT."""
    with writer_lock(f"{bucket}/state") as ours, writer_lock(f"{bucket}/state") as theirs:
        if first is not None:
            ours.read("a.json")
            ours.write("a.json", first)
        assert ours.read("a.json") == theirs.read("a.json") == first
        theirs.write("a.json", b"theirs")
        with pytest.raises(WriterBusyError, match="another process changed it meanwhile"):
            ours.write("a.json", b"ours")
        assert ours.read("a.json") == b"theirs"
        ours.remove("a.json")
        assert ours.read("a.json") is None
        with pytest.raises(WriterBusyError):
            theirs.write("a.json", b"theirs, again")
        ours.write("a.json", b"ours")
        assert theirs.read("a.json") == b"ours"


@pytest.mark.long
@pytest.mark.usefixtures("impatient")
def test_moto_answer_to_a_conditional_write_is_lost(bucket, moto):
    """An object that was written, though nobody heard so, is written; the next write, which finds
    its own content, is no second writer."""
    with writer_lock(f"{bucket}/state") as hold:
        assert hold.read("a.json") is None
        lost = pytest.raises(StoreError, match=r"a\.json: cannot be reached")
        with lost, moto.losing("PUT .*/state/a.json$", done=True):
            hold.write("a.json", b"ours")
        hold.write("a.json", b"ours")
        assert hold.read("a.json") == b"ours"


@pytest.mark.long
def test_moto_existence_is_never_old(bucket, tmp_path):
    """A model is found when another client has put it into a folder that was listed here, and is
    missed when it has been deleted."""
    url, client = f"{bucket}/models/m.zarr", boto3.client("s3")
    name = bucket.removeprefix("s3://")
    client.put_object(Bucket=name, Key="models/other", Body=b"")
    fitted("one target").save(tmp_path / "m.zarr")
    files = [path for path in (tmp_path / "m.zarr").rglob("*") if path.is_file()]
    keys = [f"models/{path.relative_to(tmp_path)}" for path in files]
    fs = fsspec.filesystem("s3")
    assert fs.ls(f"{bucket}/models", detail=False) == [f"{name}/models/other"]
    for path, key in zip(files, keys, strict=True):
        client.put_object(Bucket=name, Key=key, Body=path.read_bytes())
    np.testing.assert_array_equal(load_model(url).coef_, fitted("one target").coef_)
    fs.find(bucket)
    for key in keys:
        client.delete_object(Bucket=name, Key=key)
    with pytest.raises(ModelError, match="no model there"):
        load_model(url)


@pytest.mark.long
def test_moto_two_appends_at_once(s3, store):
    """Two processes that append at the same time: every append is there, once, and neither waits
    for a lock."""
    writers = [elsewhere(s3, append_rounds, store.url, first) for first in (0, N_ROUNDS)]
    check_two_appends(store, N_ROUNDS, *writers)


@pytest.mark.long
def test_moto_killed_writer(s3, store):
    """A writer killed in its session leaves the store as it was, and nobody waits for it."""
    append_batch(store)
    with elsewhere(s3, hold, store.url) as (process, pipe):
        assert pipe.recv() == "holding"
        process.kill()
        process.join()
    model_of(BATCH).check(BagStore.open(store.url))
    append_batch(store)
    model_of(2 * BATCH).check(BagStore.open(store.url))
    store.verify()


def leave_half_a_repository(url):
    """As a maker that was killed before the last object, which makes a repository of it."""
    BagStore.create(url, 2)
    fs, path = fsspec.core.url_to_fs(url.removeprefix("icechunk+"))
    snapshots = [name for name in fs.find(path) if name.endswith("/1CECHNKREP0F1RSTCMT0")]
    fs.rm([name for name in fs.find(path) if name not in snapshots])
    assert len(snapshots) == 1


@pytest.mark.long
def test_moto_half_a_repository_is_finished(bucket):
    """A killed maker leaves a place where a store is made again, unless others have files there."""
    url = f"icechunk+{bucket}/data/s"
    leave_half_a_repository(url)
    with pytest.raises(StoreError, match="not found"):
        BagStore.open(url)
    fsspec.filesystem("s3").pipe_file(f"{bucket}/data/s/notes", b"mine")
    with pytest.raises(StoreError, match="/s: exists and is not a bag store"):
        BagStore.create(url, 2, overwrite=True)
    fsspec.filesystem("s3").rm_file(f"{bucket}/data/s/notes")
    append_batch(BagStore.create(url, 2, target_names=["y"], response_dims=3, chunk_points=8))
    model_of(BATCH).check(BagStore.open(url))


@pytest.mark.long
@pytest.mark.parametrize("remaining", [True, False])
def test_moto_one_of_two_makers_is_refused(bucket, monkeypatch, remaining):
    """Another process makes the store, or finishes it, while this one does: theirs stays."""
    url, create = f"icechunk+{bucket}/data/s", icechunk.Repository.create

    def be_overtaken(storage):
        monkeypatch.setattr(icechunk.Repository, "create", create)
        if remaining:
            leave_half_a_repository(url)
        append_batch(BagStore.create(url, 2, target_names=["y"], response_dims=3, chunk_points=8))
        return create(storage)

    monkeypatch.setattr(icechunk.Repository, "create", be_overtaken)
    with pytest.raises(StoreError, match="exists already"):
        BagStore.create(url, 2)
    model_of(BATCH).check(BagStore.open(url))


@pytest.mark.long
def test_moto_no_such_bucket(s3):
    """A bucket that is not there is refused by everything that writes, and is not made."""
    url = "s3://no-such-bucket/data"
    with pytest.raises(StoreError, match=r"object store service error|bucket"):
        BagStore.create(f"icechunk+{url}/s", 2)
    with pytest.raises(StoreError, match="bucket 'no-such-bucket' does not exist"):
        write_file(f"{url}/run.json")
    for read in (lambda: BagStore.open(f"{url}/s.zarr"), lambda: names_in(url)):
        with pytest.raises(StoreError, match="bucket 'no-such-bucket' does not exist"):
            read()
    assert "no-such-bucket" not in fsspec.filesystem("s3").ls("s3://", detail=False)


def read_file(url):
    with reading(url) as path:
        path.read_text()


def write_file(url):
    with writing(url) as path:
        path.write_text("{}")


@pytest.mark.long
def test_moto_icechunk_reader_sees_one_snapshot(bucket):
    """A store kept by Icechunk on S3: a reader keeps its snapshot until it looks again."""
    url = f"icechunk+{bucket}/data/r"
    with pytest.raises(StoreError, match="not found"):
        BagStore.open(url)
    store = BagStore.create(url, 2, target_names=["y"], chunk_points=8)
    append_batch(store)
    reader = BagStore.open(url)
    append_batch(store)
    model_of(BATCH).check(reader)
    model_of(2 * BATCH).check(reader.refresh())
    reader.verify()


@pytest.mark.long
@pytest.mark.usefixtures("impatient")
def test_moto_connection_lost_in_an_append(store, moto):
    """A connection that breaks off in the middle of an append is one error of ours that names the
    store; it is as it was, and the next append succeeds.

    Icechunk tries a request ten times, within half a minute, and fifty times all requests together:
    a bag of many objects is given up within seconds.
    """
    append_batch(store)
    bag = np.zeros((200 * 8, 2), dtype=np.float32)

    def append_losing():
        with store.appending() as session, moto.losing("PUT .*/data/s/(chunks|manifests)"):
            session.write(Bags.from_list([bag]), [[1.0]], [BATCH])
            session.commit()

    with pytest.raises(StoreError, match=r"^icechunk\+s3://.*; nothing was committed"):
        append_losing()
    model_of(BATCH).check(BagStore.open(store.url))
    append_batch(store)
    model_of(2 * BATCH).check(BagStore.open(store.url))
    store.verify()


@pytest.mark.long
@pytest.mark.parametrize("wrong", ["credentials", "endpoint"])
def test_moto_out_of_reach(bucket, monkeypatch, wrong):
    """Missing credentials, or a server that does not answer: one error that names the URL."""
    if wrong == "credentials":
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    else:
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    forget_clients()
    message = r"s3://.*: cannot be reached \((NoCredentials|EndpointConnection)Error"
    try:
        for action in (
            lambda: BagStore.open(f"{bucket}/s.zarr"),
            lambda: names_in(bucket),
            lambda: read_file(f"{bucket}/run.json"),
            lambda: write_file(f"{bucket}/run.json"),
        ):
            with pytest.raises(StoreError, match=message):
                action()
        with pytest.raises(ModelError, match=message):
            load_model(f"{bucket}/m.zarr")
    finally:
        forget_clients()
