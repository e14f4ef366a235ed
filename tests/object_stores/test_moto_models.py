"""Models, predictions and the registry on ``s3://`` URLs, played by moto over HTTP."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from botocore.exceptions import BotoCoreError

from bagbasis import ModelError, load_model
from bagbasis.models import write_predictions
from bagbasis.operations import Registry
from tests.models.predicting import BAGS, Y, fitted, ids_of
from tests.object_stores.elsewhere import N_ROUNDS, elsewhere, promote_rounds
from tests.oracles.labelled import stored

OLD, NEW = "one target", "two targets"


def assert_is(model, kind):
    np.testing.assert_array_equal(model.coef_, fitted(kind).coef_)


@pytest.mark.long
def test_moto_model_is_saved_and_replaced(bucket):
    """A model is read as it was saved; another one takes its place only when told to."""
    url = f"{bucket}/m.zarr"
    fitted(OLD).save(url)
    assert_is(load_model(url), OLD)
    with pytest.raises(ModelError, match="exists already"):
        fitted(NEW).save(url)
    fitted(NEW).save(url, overwrite=True)
    assert_is(load_model(url), NEW)
    np.testing.assert_array_equal(load_model(url).predict(BAGS), fitted(NEW).predict(BAGS))


def causes(error):
    """What an error was raised from, one after the other."""
    while error.__cause__ is not None:
        error = error.__cause__
        yield error


@pytest.mark.long
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("saved", ["c/", "zarr.json"])
def test_moto_connection_lost_in_a_save(bucket, moto, saved):
    """A connection that breaks off while a model is saved or registered is one error of ours; no
    part of a model is loaded or listed, and the next try succeeds."""
    url, registry = f"{bucket}/m.zarr", Registry(f"{bucket}/registry")
    for where, save in (
        ("m.zarr", lambda: fitted(OLD).save(url, overwrite=True)),
        ("registry", lambda: registry.register(fitted(OLD))),
    ):
        message = "s3://.*cannot be reached .*try again; (nothing|the model) was"
        lost = moto.losing(f"PUT .*/{where}.*{saved}")
        with pytest.raises(ModelError, match=message) as caught, lost:
            save()
        assert any(isinstance(cause, BotoCoreError) for cause in causes(caught.value))
    with pytest.raises(ModelError):
        load_model(url)
    assert registry.list() == ()
    fitted(OLD).save(url, overwrite=True)
    assert_is(load_model(url), OLD)
    registry.promote(registry.register(fitted(OLD)))
    assert_is(registry.load_current(), OLD)


@pytest.mark.long
@pytest.mark.usefixtures("impatient")
def test_moto_connection_lost_while_the_old_model_is_looked_at(bucket, moto):
    """Nobody knows then what is there: it is not called another's, which were to be removed."""
    url = f"{bucket}/m.zarr"
    fitted(OLD).save(url)
    for use in (lambda: fitted(NEW).save(url, overwrite=True), lambda: load_model(url)):
        lost = moto.losing("GET .*/m.zarr/zarr.json")
        with pytest.raises(ModelError, match=r"cannot be reached .*try again"), lost:
            use()
    assert_is(load_model(url), OLD)


@pytest.mark.long
def test_moto_registry(bucket):
    """Register, promote, list, load and roll back; another handle sees each change at once."""
    registry, other = Registry(f"{bucket}/registry"), Registry(f"{bucket}/registry")
    assert other.list() == ()
    assert other.current() is None
    names = [registry.register(fitted(kind), report={"kind": kind}) for kind in (OLD, NEW)]
    assert other.register(fitted(OLD)) == names[0]
    for name, kind in zip(names, (OLD, NEW), strict=True):
        registry.promote(name)
        assert other.current() == name
        assert_is(other.load_current(), kind)
    assert [(record.name, record.current) for record in other.list()] == [
        (names[0], False),
        (names[1], True),
    ]
    assert other.rollback() == names[0]
    assert registry.current() == names[0]
    with pytest.raises(ModelError, match="no champion before"):
        registry.rollback()


@pytest.mark.long
def test_moto_two_promotions_at_once(s3, bucket):
    """Two processes that promote at the same time: each change is in the history, none is lost."""
    registry = Registry(f"{bucket}/registry")
    names = [registry.register(fitted(kind)) for kind in (OLD, NEW)]
    with (
        elsewhere(s3, promote_rounds, registry.url, names) as (_, item),
        elsewhere(s3, promote_rounds, registry.url, names) as (_, two),
    ):
        for pipe in (item, two):
            assert pipe.recv() == "ready"
        for pipe in (item, two):
            pipe.send("go")
        assert [item.recv(), two.recv()] == [2 * N_ROUNDS] * 2
    changes = [change.name for change in registry.history()]
    assert registry.current() == changes[-1]
    # the champion promoted again is no change
    assert all(a != b for a, b in pairwise(changes))
    assert len(names) <= len(changes) <= 4 * N_ROUNDS


@pytest.mark.long
@pytest.mark.parametrize("format", ["parquet", "zarr"])
def test_moto_predictions(bucket, format):
    """Predictions of a store are written next to it, and replaced when told to."""
    store = stored(f"icechunk+{bucket}/s", BAGS, Y)
    url = f"{bucket}/predictions"
    for kind in (OLD, NEW):
        write_predictions(fitted(kind), store, url, format=format, overwrite=kind == NEW)
    expected = fitted(NEW).predict(BAGS)
    if format == "parquet":
        import pandas as pd

        frame = pd.read_parquet(url)
        assert frame["id"].tolist() == ids_of(store)
        values = frame[[name for name in frame if name != "id"]].to_numpy()
    else:
        import zarr

        group = zarr.open_group(url, mode="r")
        group = group[group.attrs["bagbasis_current"]]
        assert group["ids"][:].tolist() == ids_of(store)
        values = group["predictions"][:]
    np.testing.assert_allclose(values, expected, rtol=1e-12)
