"""`tune` for densities: the same search, by the L2 error of the predicted densities."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bagbasis import DataError, ParameterError, ProjectionEmbedding, TripleBasisRegressor
from bagbasis.models import tune
from bagbasis.models.outcomes.densities import DensityOutcome
from bagbasis.models.tuning import halving
from tests.models.splits import held_out
from tests.models.tuning.problems import (
    ANSWERED,
    BAGS,
    SEARCH,
    Embedded,
    N,
    Y,
    density_errors_by_solve,
    density_estimator,
    errors_of,
    estimator,
    kept_blocks,
    stored_pairs,
)
from tests.oracles.labelled import stored

FEW = replace(SEARCH, embeddings=SEARCH.embeddings[1:], scale_multipliers=(0.02, 1.0))


@pytest.fixture
def store(tmp_path):
    return stored_pairs(tmp_path / "s.zarr")


@pytest.fixture
def projected(monkeypatch):
    """Numbers of responses projected, one a call."""
    counts = []
    encode = DensityOutcome.encode

    def counted(outcome, labels):
        counts.append(len(labels))
        return encode(outcome, labels)

    monkeypatch.setattr(DensityOutcome, "encode", counted)
    return counts


@pytest.mark.long
@pytest.mark.parametrize(
    ("precision", "holdout", "rtol"),
    [("float64", 0.0, 1e-8), ("float64", 0.2, 1e-8), ("float32", 0.0, 1e-3)],
)
def test_one_rung_is_brute_force(store, precision, holdout, rtol):
    """Every path is that of direct solves, bags without a response or in the holdout left out;
    the best candidate wins, and the model is what fit makes of it."""
    base = density_estimator(precision=precision, alphas=N * 10.0 ** np.arange(-4, 1))
    result = tune(base, store, search=replace(SEARCH, first_bags=N), holdout=holdout)
    bags, best = store.read(), []
    for c, candidate in enumerate(result.candidates):
        score = result.scores[0][c]
        truth = density_errors_by_solve(candidate.features, bags, score.alphas, holdout)
        np.testing.assert_allclose(score.errors, truth, rtol=rtol)
        best.append(min(truth))
    assert result.winner == int(np.argmin(best))
    assert best[result.winner] < 0.9 < max(best), "neither all of the variance, nor all alike"
    out = held_out(holdout, N)
    score = result.scores[0][result.winner]
    assert score.n_train + score.n_held_out == int((ANSWERED & ~out).sum())
    assert isinstance(result.model, TripleBasisRegressor)
    assert result.model.alpha_ == score.alpha
    winner = result.candidates[result.winner].estimator(base)
    again = winner.fit(store, holdout=holdout)
    np.testing.assert_array_equal(result.model.coef_, again.coef_)
    assert result.model.response_spec_ == again.response_spec_


@pytest.mark.long
def test_responses_are_projected_once(store, projected, monkeypatch):
    """Once a bag for all embeddings and rungs, once more by the last fit and by the baselines;
    those of bags in the holdout once, when the winner is judged. A kept cache spares the first,
    and a damaged block of it is made again."""
    out = held_out(0.2, N)
    used = int((ANSWERED & ~out).sum())
    embedded = Embedded(monkeypatch)
    search = replace(FEW, first_bags=N)
    first = tune(density_estimator(), store, search=search, holdout=0.2, keep_cache=True)
    judged = int(ANSWERED.sum())
    assert sum(projected) == 2 * used + judged
    assert embedded.most == 1
    assert sum(embedded.counts.values()) == 2 * used
    projected.clear()
    embedded.counts.clear()
    again = tune(density_estimator(), store, search=search, holdout=0.2, keep_cache=True)
    assert sum(projected) == used + judged
    winner = first.candidates[first.winner].features.embedding
    assert not embedded.of(winner)
    for block in kept_blocks(f"{store.url}.cache", "float64")[:2]:
        block.write_bytes(block.read_bytes()[:-20])
    projected.clear()
    repaired = tune(density_estimator(), store, search=search, holdout=0.2)
    assert used < sum(projected) - judged <= used + 2 * 32
    assert errors_of(first) == errors_of(again) == errors_of(repaired)
    assert not embedded.of(winner)


@pytest.mark.long
def test_scores_and_caches_are_of_one_response_basis(store, tmp_path, projected):
    """With as many functions of another basis nothing is taken from what was kept, but the
    coefficients of the bags themselves."""
    options = {"checkpoints": tmp_path / "state", "keep_cache": True}
    search = replace(FEW, embeddings=FEW.embeddings[:1], scale_multipliers=(1.0,), first_bags=N)
    tune(density_estimator(), store, search=search, **options)
    projected.clear()
    third = ProjectionEmbedding(n_per_dim=5, basis="legendre")
    base = density_estimator(response_embedding=third)
    after = tune(base, store, search=search, **options)
    assert sum(projected) == 3 * int(ANSWERED.sum())
    assert errors_of(after) == errors_of(
        tune(base, store, search=search, checkpoints=tmp_path / "fresh")
    )


def test_wrong_input_is_one_error(store, tmp_path):
    """A target, a store without responses, a response outside the box: before any score."""
    with pytest.raises(ParameterError, match="target is 'y'; a TripleBasisRegressor learns resp"):
        tune(density_estimator(), store, search=FEW, target="y")
    plain = stored(tmp_path / "plain.zarr", BAGS, Y)
    with pytest.raises(DataError, match=r"plain\.zarr: holds no responses"):
        tune(density_estimator(), plain, search=FEW)
    half = ProjectionEmbedding(n_per_dim=3, box=[(0, 0.5)], out_of_box="error")
    with pytest.raises(DataError, match=r"s\.zarr, bag \d+: .*outside"):
        tune(density_estimator(response_embedding=half), store, search=FEW)
    with pytest.raises(DataError, match="has no targets"):
        tune(estimator(), store, search=FEW)


@pytest.mark.long
def test_killed_tune_goes_on(store, tmp_path, projected, monkeypatch):
    """What was scored and projected before an interrupt is not done again, and the result is the
    same."""
    whole = tune(density_estimator(), store, search=FEW)
    run = halving.score_statistics
    passes = []

    def interrupted(*args, **options):
        if len(passes) == 5:
            raise KeyboardInterrupt
        passes.append(args[3])  # the blocks
        return run(*args, **options)

    def counted(*args, **options):
        passes.append(args[3])  # the blocks
        return run(*args, **options)

    checkpoints = tmp_path / "state"
    projected.clear()
    monkeypatch.setattr(halving, "score_statistics", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tune(density_estimator(), store, search=FEW, checkpoints=checkpoints)
    monkeypatch.setattr(halving, "score_statistics", counted)
    passes.clear()
    result = tune(density_estimator(), store, search=FEW, checkpoints=checkpoints)
    assert errors_of(result) == errors_of(whole)
    assert result.winner == whole.winner
    np.testing.assert_array_equal(result.model.coef_, whole.model.coef_)
    assert len(passes) == 2, "one candidate left, with its first rung from the cache"
    last = result.scores[-1][result.winner]
    # the rest of the last rung, the last fit and the baselines
    assert sum(projected) == last.n_train + last.n_held_out + 2 * int(ANSWERED.sum())
    passes.clear()
    single = replace(FEW, embeddings=FEW.embeddings[:1], scale_multipliers=(1.0,))
    tune(density_estimator(), store, search=single, checkpoints=checkpoints)
    assert not passes
