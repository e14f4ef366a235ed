"""What `search.embedding: auto` finds at small scale."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import pytest

from bagbasis.jobs.experiments.regression import embeddings
from bagbasis.jobs.experiments.regression.embeddings import AUTO, DATA, LEARNED, PEERS, SINGLES
from tests.jobs.experiments.contract import Contract


@pytest.fixture(scope="module", autouse=True)
def few_rounds():
    """Boosting in 5 rounds: the default's 100 are a thousand trees for ten digits."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HistGradientBoostingClassifier", "HistGradientBoostingRegressor"):
            patch.setattr(embeddings, name, partial(getattr(embeddings, name), max_iter=5))
        yield


class TestEmbeddings(Contract):
    name = "embeddings"
    sizes: ClassVar = {"n_train": 40, "n_test": 20, "n_features": 16, "n_trees": 5,
                       "network_steps": 4}  # fmt: skip

    def test_methods(self, report, results):
        """Every method on every set of bags; auto learns, and is behind itself by nothing."""
        assert [r.params["data"] for r in results] == list(DATA)
        for r in results:
            methods = r.values["methods"]
            assert set(methods) == {AUTO, *SINGLES, *PEERS, LEARNED}
            assert methods[AUTO]["behind"] == 0
            assert methods[AUTO]["error"] < r.values["constant"]
        assert len(report["tables"][0]["rows"]) == len(DATA) * (4 + len(SINGLES))
