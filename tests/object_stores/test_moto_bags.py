"""Stores on ``s3://`` URLs, played by moto over HTTP: appends, listings, locks and refusals."""

from __future__ import annotations

import time

import boto3
import fsspec
import numpy as np
import pytest
from botocore.exceptions import BotoCoreError
from zarr.core.sync import sync

from bagbasis import Bags, BagStore, load_model
from bagbasis.errors import ModelError, StoreError, WriterBusyError
from bagbasis.storage import lock
from bagbasis.storage.files import names_in, reading, writing
from bagbasis.storage.lock import LEASE_SECONDS
from tests.bags.processes import BATCH, append_batch, batch, hold, model_of
from tests.models.predicting import fitted
from tests.object_stores.elsewhere import N_ROUNDS, append_once, append_rounds, elsewhere


@pytest.fixture
def store(bucket):
    """An empty store whose objects hold 128 points."""
    return BagStore.create(f"{bucket}/data/s.zarr", 2, ["y"], chunk_points=8)


def test_moto_store_grows_and_is_read(bucket):
    """Appends with responses are committed, seen by others, whole, and can be replaced."""
    url = f"{bucket}/data/s.zarr"
    store = BagStore.create(url, 2, ["y"], response_dims=3, chunk_points=8)
    other = BagStore.open(url)
    for _ in range(2):
        append_batch(store)
    bags, targets, ids, responses = batch(2)
    other.append(bags, targets, ids, responses=responses)
    assert other.n_bags == 3 * BATCH
    model_of(3 * BATCH).check(store.refresh())
    store.verify()
    with pytest.raises(StoreError, match="exists already"):
        BagStore.create(url, 2)
    fresh = BagStore.create(url, 2, ["y"], overwrite=True)
    fresh.append(batch(0)[0], batch(0)[1], ids=list("abcde"))
    fresh.append(batch(1)[0], batch(1)[1], ids=list("fghij"))
    assert BagStore.open(url).ids().tolist() == list("abcdefghij")
    fresh.verify()


def test_moto_listings_are_never_old(s3, store):
    """Objects that another process wrote are found, even if Zarr has listed the store before."""
    append_batch(store)
    there = store.array("points").store

    async def objects():
        return [key async for key in there.list()]

    assert "points/c/0/0" in sync(objects())
    with elsewhere(s3, append_once, store.url) as (_, pipe):
        pipe.recv()
    store.refresh().verify()
    model_of(2 * BATCH).check(store)


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


@pytest.mark.parametrize("kept_by", ["zarr", "icechunk"])
def test_moto_two_appends_at_once(s3, bucket, kept_by):
    """Two processes that append at the same time: every append is there, once; in a store kept by
    Icechunk too, where neither waits for a lock."""
    prefix = "icechunk+" if kept_by == "icechunk" else ""
    store = BagStore.create(f"{prefix}{bucket}/data/s", 2, ["y"], chunk_points=8)
    firsts = [0, N_ROUNDS]
    with (
        elsewhere(s3, append_rounds, store.url, firsts[0]) as (_, one),
        elsewhere(s3, append_rounds, store.url, firsts[1]) as (_, two),
    ):
        for pipe in (one, two):
            assert pipe.recv() == "ready"
        for pipe in (one, two):
            pipe.send("go")
        for pipe in (one, two):
            assert pipe.recv() == "appended"
    store.refresh().verify()
    assert sorted(store.ids().tolist()) == list(range(2 * N_ROUNDS * BATCH))
    for i in range(2 * N_ROUNDS):
        at = store.ids().tolist().index(BATCH * i)
        for found, given in zip(store.read(at, at + BATCH), batch(i)[0], strict=True):
            np.testing.assert_array_equal(found, given)


def test_moto_killed_writer(s3, store, monkeypatch):
    """A writer killed in its session leaves the store as it was; the next one waits for the end
    of its lease, and no longer."""
    append_batch(store)
    with elsewhere(s3, hold, store.url) as (process, pipe):
        assert pipe.recv() == "holding"
        with pytest.raises(WriterBusyError, match="another writer"):
            append_batch(store)
        process.kill()
        process.join()
    model_of(BATCH).check(BagStore.open(store.url))
    with pytest.raises(WriterBusyError, match="its lease ends 120 s after"):
        append_batch(store)
    now = time.time

    class Later:
        @staticmethod
        def time():
            return now() + LEASE_SECONDS

    monkeypatch.setattr(lock, "time", Later)
    append_batch(store)
    monkeypatch.undo()
    model_of(2 * BATCH).check(BagStore.open(store.url))
    store.verify()


def test_moto_no_such_bucket(s3):
    """A bucket that is not there is refused by everything that writes, and is not made."""
    url = "s3://no-such-bucket/data"
    with pytest.raises(StoreError, match="bucket does not exist"):
        BagStore.create(f"{url}/s.zarr", 2)
    with pytest.raises(StoreError, match=r"can not be written .*bucket does not exist"):
        write_file(f"{url}/run.json")
    with pytest.raises(StoreError, match="not found"):
        BagStore.open(f"{url}/s.zarr")
    assert names_in(url) == []
    assert "no-such-bucket" not in fsspec.filesystem("s3").ls("s3://", detail=False)


def read_file(url):
    with reading(url) as path:
        path.read_text()


def write_file(url):
    with writing(url) as path:
        path.write_text("{}")


def test_moto_icechunk_reader_sees_one_snapshot(bucket):
    """A store kept by Icechunk on S3: a reader keeps its snapshot until it looks again."""
    url = f"icechunk+{bucket}/data/r"
    with pytest.raises(StoreError, match="not found"):
        BagStore.open(url)
    store = BagStore.create(url, 2, ["y"], chunk_points=8)
    append_batch(store)
    reader = BagStore.open(url)
    append_batch(store)
    model_of(BATCH).check(reader)
    model_of(2 * BATCH).check(reader.refresh())
    reader.verify()


def append_losing(store, losing):
    """Append the next batch, with a connection that breaks off once the session is open."""
    bags, targets, ids, responses = batch(store.n_bags // BATCH)
    responses = None if store.response_dims is None else responses
    with store.appending() as session, losing:
        session.write(Bags.from_list(bags), targets, ids, responses=responses)
        session.commit()


LOST = {
    "PUT .*/s.zarr/points/c/1/0$": "array 'points', object c/1/0: writing failed",
    "GET .*/responses/points/c/0/0$": "array 'responses/points', object c/0/0: reading failed",
    "PUT .*/ids/zarr.json$": "object 'ids/zarr.json': writing failed",
    "GET .*/writer.lock$": "points/writer.lock: can not be reached",
    "PUT .*/s.zarr/zarr.json$": "object 'zarr.json': writing failed",
}


@pytest.mark.usefixtures("impatient")
def test_moto_connection_lost_in_an_append(bucket, moto):
    """A connection that breaks off in the middle of an append is one error of ours that names
    store, array and object, with botocore's as its cause; the store is as it was, and the next
    append succeeds."""
    url = f"{bucket}/data/s.zarr"
    store = BagStore.create(url, 2, ["y"], response_dims=3, chunk_points=8)
    for _ in range(2):
        append_batch(store)
    for request, named in LOST.items():
        with pytest.raises(StoreError) as caught:
            append_losing(store, moto.losing(request))
        assert str(caught.value).startswith(url)
        assert named in str(caught.value)
        assert "try again" in str(caught.value)
        assert isinstance(caught.value.__cause__, BotoCoreError)
        model_of(2 * BATCH).check(BagStore.open(url))
    append_batch(store)
    model_of(3 * BATCH).check(BagStore.open(url))
    store.verify()


@pytest.mark.usefixtures("impatient")
def test_moto_answer_to_a_commit_is_lost(store, moto):
    """A commit that was made, though nobody heard so, is one; where nobody can tell, the error
    says that."""
    with moto.losing("PUT .*/s.zarr/zarr.json$", done=True):
        append_batch(store)
    model_of(BATCH).check(BagStore.open(store.url))
    told = r"s\.zarr: nobody can tell whether .* were committed .*`bags info`, before"
    with pytest.raises(StoreError, match=told) as caught:
        append_losing(store, moto.losing("(GET|PUT) .*/s.zarr/zarr.json$", done=True))
    assert isinstance(caught.value.__cause__, BotoCoreError)
    model_of(2 * BATCH).check(BagStore.open(store.url))


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
    fsspec.filesystem("s3").clear_instance_cache()
    told = r"s3://.*: can not be reached \((NoCredentials|EndpointConnection)Error"
    try:
        for action in (
            lambda: BagStore.open(f"{bucket}/s.zarr"),
            lambda: BagStore.create(f"{bucket}/s.zarr", 2),
            lambda: names_in(bucket),
            lambda: read_file(f"{bucket}/run.json"),
            lambda: write_file(f"{bucket}/run.json"),
        ):
            with pytest.raises(StoreError, match=told):
                action()
        with pytest.raises(ModelError, match=told):
            load_model(f"{bucket}/m.zarr")
    finally:
        fsspec.filesystem("s3").clear_instance_cache()
