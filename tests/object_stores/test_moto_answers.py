"""What answers instead of objects: a bucket that does not exist, pages of captive portals."""

from __future__ import annotations

import shutil

import fsspec
import pytest

from bagbasis import BagbasisError, BagStore, load_model
from bagbasis.data.storage.files import names_in, read_bytes
from bagbasis.data.storage.zarr_stores import exists, is_empty, is_taken
from bagbasis.operations import Registry
from tests.models.predicting import BAGS, Y, fitted
from tests.oracles.labelled import stored

PAGE = b"<!DOCTYPE html><html><head><title>Sign in</title></head><body>Welcome</body></html>"
NOT_XML = b"\n<HTML><head><meta a=b><br></head><p>Welcome</html>"
NO_BUCKET = (
    b'<?xml version="1.0"?><Error><Code>NoSuchBucket</Code>'
    b"<Message>The specified bucket does not exist</Message></Error>"
)
ANSWERS = {
    "no bucket": ("404 Not Found", "application/xml", NO_BUCKET),
    "page": ("200 OK", "text/html", PAGE),
    "page that is no XML": ("200 OK", "text/html; charset=utf-8", NOT_XML),
}
REASONS = {
    "no bucket": r"bucket '[^']*' does not exist; see to its name|NoSuchBucket",
    "page": "a page of HTML came instead of this object; .* see to network and endpoint",
    # S3's client reads errors out of what is no XML
    "page that is no XML": "a page of HTML came instead of this object|cannot be ",
}


@pytest.fixture(scope="module")
def place(s3, tmp_path_factory):
    """A registry with a champion, a model, and stores, plain and kept by Icechunk."""
    url, folder = "s3://bags-with-answers", tmp_path_factory.mktemp("plain")
    fs = fsspec.filesystem("s3")
    fs.mkdir(url)
    fitted("one target").save(f"{url}/m.zarr")
    registry = Registry(f"{url}/registry")
    registry.promote(registry.register(fitted("one target")))
    stored(folder / "s.zarr", BAGS, Y)
    fs.put(str(folder / "s.zarr"), f"{url}/s.zarr", recursive=True)
    shutil.rmtree(folder)
    BagStore.create(f"icechunk+{url}/i", 2, target_names=["y"]).append(BAGS, Y)
    return url


def operations(place):
    """Return calls by name, those of open stores with a store that was opened before."""
    registry, plain = Registry(f"{place}/registry"), BagStore.open(f"{place}/s.zarr")
    opened = BagStore.open(f"icechunk+{place}/i")
    return {
        "current": registry.current,
        "list": registry.list,
        "load the champion": registry.load_current,
        "promote": lambda: registry.promote("0" * 16),
        "register": lambda: registry.register(fitted("classes")),
        "load": lambda: load_model(f"{place}/m.zarr"),
        "save": lambda: fitted("classes").save(f"{place}/new.zarr"),
        "open": lambda: BagStore.open(f"{place}/s.zarr"),
        "read": plain.read,
        "refresh": plain.refresh,
        "open Icechunk": lambda: BagStore.open(f"icechunk+{place}/i"),
        "append to Icechunk": lambda: opened.append(BAGS, Y),
        "create Icechunk": lambda: BagStore.create(f"icechunk+{place}/j", 2),
        "names": lambda: names_in(place),
        "bytes": lambda: read_bytes(f"{place}/registry/champion.json"),
    }


@pytest.mark.long
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("answer", ANSWERS)
def test_moto_something_else_answers(place, moto, answer):
    """Nothing is taken for absent, damaged or another's: the cause is named, with what to do."""
    for name, call in operations(place).items():
        with (
            moto.answering(*ANSWERS[answer]),
            pytest.raises(BagbasisError, match=REASONS[answer]) as caught,
        ):
            call()
        message = str(caught.value)
        assert place in message, name
        for word in ("remove it", "not found", "damaged", "no model"):
            assert word not in message, (name, message)
    assert Registry(f"{place}/registry").load_current().n_features_in_ == 2


@pytest.mark.long
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("answer", ["no bucket", "page"])
@pytest.mark.parametrize("look", [exists, is_taken, is_empty, names_in])
def test_moto_one_listing_is_another_answer(place, moto, answer, look):
    """One listing that S3 did not give does not make a folder that is there an empty one."""
    with (
        moto.answering(*ANSWERS[answer], pattern="list-type=2", times=1),
        pytest.raises(BagbasisError, match=REASONS[answer]),
    ):
        look(f"{place}/m.zarr")
    assert bool(look(f"{place}/m.zarr")) is (look is not is_empty)


@pytest.mark.long
@pytest.mark.usefixtures("impatient")
def test_moto_one_page_hides_no_repository(place, moto):
    """Icechunk takes a page in answer to its first question for a place without a repository."""
    with moto.answering(*ANSWERS["page"], pattern=r"GET .*ref\.json", times=1):
        assert exists(f"icechunk+{place}/i")
    assert not exists(f"icechunk+{place}/nothing")
