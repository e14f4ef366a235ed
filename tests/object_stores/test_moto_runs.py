"""Fits and submitted runs on ``s3://`` URLs, played by moto over HTTP."""

from __future__ import annotations

import fsspec
import numpy as np
import pytest

from bagbasis import BagStore, RunError, connect, load_model
from bagbasis.jobs.runs import attach, runs_in, submit
from bagbasis.models import Checkpoints
from tests.execution.logged import many_tasks
from tests.models.predicting import BAGS, Y, regressor
from tests.oracles.labelled import stored

pytestmark = pytest.mark.long


@pytest.fixture
def store(bucket):
    return stored(f"icechunk+{bucket}/data/s", BAGS, Y)


def test_moto_fit_on_workers(bucket, store, tmp_path):
    """Worker processes open the store, keep checkpoints next to it, and make the model that one
    process makes of local files; the checkpoints are gone when the fit is over."""
    alone = regressor().fit(stored(tmp_path / "s.zarr", BAGS, Y))
    url = f"{bucket}/checkpoints"
    with (
        connect("local", n_workers=2, cores_per_worker=1, store=store.url),
        Checkpoints(url) as checkpoints,
    ):
        model = regressor().fit(BagStore.open(store.url), checkpoints=checkpoints)
        saved = fsspec.filesystem("s3").find(url)
        assert any(path.endswith(".npz") for path in saved)
    fsspec.filesystem("s3").invalidate_cache()
    assert fsspec.filesystem("s3").find(url) == []
    np.testing.assert_allclose(model.coef_, alone.coef_, rtol=0, atol=1e-12)


def test_moto_fit_goes_on_from_checkpoints(bucket, store):
    """A fit that was cut off reads only the bags whose sums are not kept yet."""
    checkpoints = Checkpoints(f"{bucket}/checkpoints")

    def cut_off(done, total):
        if done >= total // 2:
            raise KeyboardInterrupt

    with many_tasks():
        with pytest.raises(KeyboardInterrupt):
            regressor().fit(store, checkpoints=checkpoints, progress=cut_off)
        model = regressor().fit(store, checkpoints=checkpoints)
        assert 0 < model.report_["n_bags_resumed"] < len(BAGS)
        whole = regressor().fit(store, checkpoints=Checkpoints(f"{bucket}/others"))
        np.testing.assert_array_equal(model.coef_, whole.coef_)


def test_moto_submitted_run(bucket, store):
    """The state of a run, its log and its model stand on S3, for any client."""
    config = {
        "data_url": store.url,
        "model_url": f"{bucket}/models/m.zarr",
        "model": {"embedding": {"name": "moments"}, "random_features": {"n_features": 32}},
    }
    run = submit("fit", config)
    assert run.url.startswith(f"{bucket}/models/runs/")
    report = run.result(timeout=120)
    assert report["n_bags_fitted"] == len(BAGS)
    assert load_model(config["model_url"]).report_["n_bags_fitted"] == len(BAGS)
    assert run.progress() == (len(BAGS), len(BAGS))
    assert "fitted to" in run.logs()
    root = f"{bucket}/models/runs"
    assert [value.id for value in runs_in(root)] == [run.id]
    assert attach(run.id, root=root) == run
    with pytest.raises(RunError, match="is done; there is nothing to cancel"):
        run.cancel()
    with pytest.raises(RunError, match="no run there"):
        attach("nobody", root=root)
