"""``bags evaluate`` with every registered embedding."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bagbasis import DoubleBasisRegressor, RandomFourierFeatures
from bagbasis.embeddings import EMBEDDINGS
from tests.jobs.running import assert_picture, done, settings
from tests.oracles.labelled import labelled_bags, stored

SERIES = {"projection", "hdd"}  # these start from a series estimate of the density
MARGINALS = {"projection", "hdd", "histogram"}
CASES = [(name, None) for name in sorted(EMBEDDINGS)] + [(name, 1) for name in sorted(MARGINALS)]


@pytest.mark.parametrize(("name", "marginals"), CASES)
def test_every_embedding_is_evaluated(name, marginals, tmp_path):
    """The report has the model's errors; bags are drawn where there is a density to draw."""
    bags, y = labelled_bags(60)
    store = stored(tmp_path / "s.zarr", bags, y)
    parameters = {} if marginals is None else {"marginals": marginals}
    embedding = EMBEDDINGS[name][0](**parameters)
    model = DoubleBasisRegressor(embedding, RandomFourierFeatures(32)).fit(store, target="y")
    model.save(tmp_path / "m.zarr")
    urls = settings(data_url=store.url, model_url=tmp_path / "m.zarr")
    done("evaluate", *urls, *settings(out_dir=tmp_path / "out"))
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    error = np.sqrt(np.mean((model.predict(bags) - y) ** 2))
    assert report["targets"]["y"]["rmse"] == pytest.approx(error, rel=1e-6)
    drawn = {path.rsplit("/", 1)[1] for path in report["pictures"]}
    assert drawn == {"predictions.png", "residuals.png"} | (
        {"densities.png"} if name in SERIES else set()
    )
    for picture in drawn:
        assert_picture(tmp_path / "out" / picture)
