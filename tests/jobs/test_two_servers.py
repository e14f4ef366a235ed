"""Two servers of one registry, with one token file: both answer, and both follow the champion."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bagbasis import DoubleBasisRegressor, MomentsEmbedding
from bagbasis.operations import Registry
from tests.execution.gated import until
from tests.jobs.serving import serving


@pytest.mark.long
def test_two_servers(tmp_path):
    bags = [np.random.default_rng(i).random((5, 2)) for i in range(20)]
    labels = [bag.mean() for bag in bags]
    registry = Registry(tmp_path / "registry")
    names = [
        registry.register(DoubleBasisRegressor(MomentsEmbedding(), alpha=alpha).fit(bags, labels))
        for alpha in (0.1, 10.0)
    ]
    registry.promote(names[0])
    args = registry.url, "--token-file", tmp_path / "token"
    body = json.dumps({"bag": bags[0].tolist()})
    with serving(*args) as first, serving(*args) as second:
        assert first.token == second.token
        assert first.ask("/predict", body) == second.ask("/predict", body)
        registry.promote(names[1])
        for server in (first, second):
            until(lambda server=server: server.ask("/health")[1]["model"] == names[1])
        assert first.ask("/predict", body) == second.ask("/predict", body)
        first.process.terminate()
        first.process.wait()
        assert second.ask("/predict", body)[0] == 200
