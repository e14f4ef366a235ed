"""Responses that are bags with ids belong to the bags of these ids, in whichever order."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import (
    BagbasisWarning,
    Bags,
    BagStore,
    DataError,
    KernelSmoother,
    MomentsEmbedding,
    TripleBasisRegressor,
)

RNG = np.random.default_rng(0)
N = 12
IDS = [f"p{i:02}" for i in range(N)]
POINTS, ANSWERS = RNG.normal(size=(2, N * 5, 1))
OFFSETS = np.arange(0, N * 5 + 1, 5)
BAGS, RESPONSES = Bags(POINTS, OFFSETS, ids=IDS), Bags(ANSWERS, OFFSETS, ids=IDS)
ORDER = RNG.permutation(N)
TURNED = RESPONSES[ORDER]
OTHERS = Bags(ANSWERS, OFFSETS, ids=[f"q{i}" for i in range(N)])


def triple(responses, _):
    return TripleBasisRegressor(MomentsEmbedding(), alpha=1.0).fit(BAGS, responses).coef_


def score(responses, _):
    model = TripleBasisRegressor(MomentsEmbedding(), alpha=1.0).fit(BAGS, RESPONSES)
    return model.score(BAGS, responses)


def smoother(responses, _):
    model = KernelSmoother(MomentsEmbedding()).fit(BAGS, responses=responses)
    return model.score(BAGS, responses=RESPONSES)


def append(responses, folder):
    store = BagStore.create(folder / "s.zarr", 1, response_dims=1, overwrite=True)
    return store.append(BAGS, responses=responses).responses(0, N).points


@pytest.mark.parametrize("call", [triple, score, smoother, append])
def test_responses_follow_the_ids_of_the_bags(call, tmp_path):
    """They were taken in their own order without a word."""
    assert TURNED.ids.tolist() == [IDS[i] for i in ORDER]
    np.testing.assert_array_equal(call(TURNED, tmp_path), call(RESPONSES, tmp_path))
    with pytest.raises(DataError, match=r"responses: .* the bag with id 'p00' has no response"):
        call(OTHERS, tmp_path)


@pytest.mark.long
def test_ids_that_only_count_are_taken_in_order(tmp_path):
    counted = Bags(ANSWERS, OFFSETS, ids=np.arange(N))
    with pytest.warns(BagbasisWarning, match="taken in the order of the bags"):
        result = append(counted, tmp_path)
    np.testing.assert_array_equal(result, append(RESPONSES, tmp_path))
    plain = Bags(ANSWERS, OFFSETS)
    np.testing.assert_array_equal(append(plain, tmp_path), result)
