"""`tune`: the best candidate wins, coefficients are shared, and nothing is done twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bagbasis import (
    DataError,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    HDDEmbedding,
    MomentsEmbedding,
    ParameterError,
    ProjectionEmbedding,
    RandomFourierFeatures,
    StoreError,
)
from bagbasis.models import Search, tune
from bagbasis.models.tuning import halving, scoring
from tests.models.splits import held_out
from tests.models.tuning.problems import (
    BAGS,
    SEARCH,
    Embedded,
    N,
    Y,
    errors_by_loop,
    errors_of,
    estimator,
    kept_blocks,
)
from tests.oracles.labelled import labelled_bags, stored
from tests.traced import peak_of


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store that no test appends to."""
    return stored(tmp_path_factory.mktemp("tune") / "s.zarr", BAGS, Y)


@pytest.fixture
def own_store(tmp_path):
    """The same store for one test alone."""
    return stored(tmp_path / "s.zarr", BAGS, Y)


class Halved:
    """A tune in two rungs: its result, the passes it took, its calls of progress."""

    def __init__(self, store):
        self.progress = []
        with pytest.MonkeyPatch.context() as patch:
            self.embedded, self.passes = Embedded(patch), counted_passes(patch)
            self.result = tune(
                estimator(), store, search=SEARCH, progress=lambda *at: self.progress.append(at)
            )


@pytest.fixture(scope="module")
def halved(store):
    return Halved(store)


@pytest.mark.long
def test_one_rung_is_brute_force(store):
    """With all bags in the first rung every path is scikit-learn's, the best candidate wins, and
    the model is what fit makes of it."""
    result = tune(estimator(), store, search=replace(SEARCH, first_bags=N))
    assert [(rung.n_bags, rung.n_candidates) for rung in result.rungs] == [(N, 9)]
    best = []
    for c, candidate in enumerate(result.candidates):
        score = result.scores[0][c]
        truth = errors_by_loop(candidate.features, store.read(), Y, score.alphas)
        np.testing.assert_allclose(score.errors, truth, rtol=2e-3)
        assert score.error == min(score.errors)
        best.append(min(truth))
    assert result.winner == int(np.argmin(best))
    winner = result.candidates[result.winner]
    assert result.model.features_ == winner.features
    assert result.model.alpha_ == result.scores[0][result.winner].alpha
    again = winner.estimator(estimator()).fit(store)
    np.testing.assert_array_equal(result.model.coef_, again.coef_)


@pytest.mark.long
def test_halving_finds_the_best_of_all(store, halved):
    """The winner after two rungs is the best by brute force, and each rung kept its best."""
    result = halved.result
    assert [rung.n_candidates for rung in result.rungs] == [9, 3]
    full = []
    for candidate in result.candidates:
        alphas = 0.75 * N * 10.0 ** np.arange(-12, 2.5, 0.5)
        full.append(min(errors_by_loop(candidate.features, store.read(), Y, alphas)))
    assert result.winner == int(np.argmin(full))
    for before, after in zip(result.scores, result.scores[1:], strict=False):
        remaining = {c: score.error for c, score in before.items() if c not in after}
        assert min(remaining.values()) >= max(before[c].error for c in after)


@pytest.mark.long
def test_statistics_add_up_over_rungs(store, halved, monkeypatch):
    """A rung's errors are those of its bags in one pass, whether the statistics of the rung
    before were held or had to be let go."""
    held = halved.result
    monkeypatch.setattr(halving, "HELD_STATISTICS_BYTES", 0)
    passes = counted_passes(monkeypatch)
    again = tune(estimator(), store, search=SEARCH)
    assert errors_of(again) == errors_of(held)
    assert len(passes) == 9 + 2 * 3
    last = held.rungs[-1].n_bags
    alone = tune(estimator(), store, search=replace(SEARCH, first_bags=last))
    assert alone.rungs[0].n_bags == last
    for c, score in held.scores[-1].items():
        np.testing.assert_allclose(score.errors, alone.scores[0][c].errors, rtol=1e-5)


@pytest.mark.long
def test_rungs_of_few_bags_keep_rows(store, monkeypatch):
    """The first rung has no more bags than features, the last has more: its errors are those of
    sums all along."""
    base = estimator(random_features=RandomFourierFeatures(n_features=128))
    search = replace(SEARCH, scale_multipliers=(1.0, 50.0))
    rows = tune(base, store, search=search)
    assert rows.rungs[0].n_bags <= 128 < rows.rungs[-1].n_bags
    run = halving.score_statistics
    monkeypatch.setattr(
        halving, "score_statistics", lambda *arguments, **more: run(*arguments, **more).summed()
    )
    sums = tune(base, store, search=search)
    for ours, theirs in zip(rows.scores, sums.scores, strict=True):
        for c, score in theirs.items():
            np.testing.assert_allclose(ours[c].errors, score.errors, rtol=1e-4)


def counted_passes(monkeypatch):
    """The block ranges of all passes from now on."""
    passes = []
    run = halving.score_statistics

    def counted(*args, **options):
        passes.append(args[3])  # the blocks
        return run(*args, **options)

    monkeypatch.setattr(halving, "score_statistics", counted)
    return passes


@pytest.mark.parametrize(("join", "row_bytes"), [(False, 4 * 9 + 8 * 2), (True, 4 * 14 + 8 * 2)])
def test_a_block_has_as_many_bags_as_memory_holds(join, row_bytes, monkeypatch):
    """A bag has its coefficients in float32, of the longest embedding or of a union of all, and
    its targets in float64."""
    monkeypatch.setattr("bagbasis.models.tuning.order.MAX_BLOCK_BYTES", 4 * 5 * row_bytes)
    parts = [ProjectionEmbedding(n_per_dim=3), MomentsEmbedding()]
    search = Search(parts, scale_multipliers=(1.0,), first_bags=200, join=join)
    result = tune(estimator(), BAGS[:200], np.column_stack([Y, Y**2])[:200], search=search)
    assert [rung.n_blocks for rung in result.rungs] == [200 // (4 * 5)]


def test_a_task_of_a_search_takes_what_it_declares(monkeypatch):
    """Sums of the bags fitted and sums of those held out."""
    passes, run = [], scoring.run_pass

    def recorded(source, scored, **options):
        passes.append(scored)
        return run(source, scored, **options)

    monkeypatch.setattr(scoring, "run_pass", recorded)
    parts = SEARCH.embeddings[:1]
    search = replace(SEARCH, embeddings=parts, scale_multipliers=(1.0,), first_bags=N)
    tune(estimator(), BAGS, Y, search=search)
    most = passes[0].cost.bytes_per_task
    assert most / 2 < peak_of(passes[0].collector, enough=most) <= most


@pytest.mark.long
def test_each_bag_is_embedded_once_an_embedding(halved):
    """However many σ's and rungs: as many bags as the furthest rung of the embedding has."""
    result, embedded = halved.result, halved.embedded
    assert len(halved.passes) == 9 + 3
    assert embedded.most == 1
    for e in range(3):
        mine = [c for c, candidate in enumerate(result.candidates) if candidate.embedding == e]
        rungs = [
            rung.n_bags
            for rung, scores in zip(result.rungs, result.scores, strict=True)
            if set(mine) & set(scores)
        ]
        assert embedded.of(result.candidates[mine[0]].features.embedding) == rungs[-1]


@pytest.mark.long
def test_progress_covers_each_rung_and_the_fit(halved):
    """It starts at 0 for each rung and for the fit, and reaches the end of each."""
    seen = halved.progress
    totals = list(dict.fromkeys(total for _, total in seen))
    first, second = halved.result.rungs
    assert totals == [9 * first.n_bags, 3 * (second.n_bags - first.n_bags), N]
    for total in totals:
        done = [n for n, of in seen if of == total]
        assert (done[0], done[-1]) == (0, total)
        assert done == sorted(done)


@pytest.mark.long
def test_cache_is_used_mended_rebuilt_and_bounded(own_store, monkeypatch):
    """A kept cache spares the embedding, but of blocks that are cut or lost; an append or another
    spec makes it anew; nothing of the losers, or of other counts, stays."""
    store, folder = own_store, Path(f"{own_store.url}.cache")
    search = replace(
        SEARCH,
        embeddings=[ProjectionEmbedding(n_per_dim=4)],
        scale_multipliers=(1.0,),
        first_bags=N,
    )
    tune(estimator(), store, search=search)
    assert not folder.exists()
    first = tune(estimator(), store, search=search, keep_cache=True)
    selected = {path.name for path in folder.iterdir()}
    assert len(selected) == 2, "coefficients and targets"
    blocks = kept_blocks(folder)
    blocks[1].write_bytes(blocks[1].read_bytes()[:-20])
    blocks[3].unlink()
    embedded = Embedded(monkeypatch)
    for n_embedded in (2 * 32, 0):
        again = tune(estimator(), store, search=search, keep_cache=True)
        assert errors_of(again) == errors_of(first)
        assert len(embedded.counts) == n_embedded
        embedded.counts.clear()
    other = replace(search, embeddings=[*search.embeddings, ProjectionEmbedding(n_per_dim=2)])
    both = tune(estimator(), store, search=other, keep_cache=True)
    assert embedded.of(both.candidates[-1].features.embedding) == N == len(embedded.counts)
    assert both.scores[0][0].errors == first.scores[0][0].errors
    assert len(list(folder.iterdir())) == 2
    embedded.counts.clear()
    store.append(*labelled_bags(40, seed=9))
    tune(estimator(), store, search=replace(search, first_bags=N + 40), keep_cache=True)
    assert len(embedded.counts) == N + 40
    fresh = {path.name for path in folder.iterdir()}
    assert len(fresh) == 2
    assert not fresh & selected


@pytest.mark.long
def test_killed_tune_goes_on(own_store, halved, tmp_path, monkeypatch):
    """What was scored before an interrupt is not scored again, and the result is the same."""
    store, whole = own_store, halved.result
    run = halving.score_statistics
    passes = []

    def interrupted(*args, **options):
        if len(passes) == 10:
            raise KeyboardInterrupt
        passes.append(args[3])  # the blocks
        return run(*args, **options)

    monkeypatch.setattr(halving, "score_statistics", interrupted)
    checkpoints = tmp_path / "state"
    with pytest.raises(KeyboardInterrupt):
        tune(estimator(), store, search=SEARCH, checkpoints=checkpoints)
    monkeypatch.setattr(halving, "score_statistics", run)
    passes = counted_passes(monkeypatch)
    embedded = Embedded(monkeypatch)
    result = tune(estimator(), store, search=SEARCH, checkpoints=checkpoints)
    assert errors_of(result) == errors_of(whole)
    assert result.winner == whole.winner
    np.testing.assert_array_equal(result.model.coef_, whole.model.coef_)
    assert len(passes) == 2 * 2, "two candidates left, with their first rung from the cache"
    assert embedded.most <= 1
    passes.clear()
    tune(estimator(), store, search=SEARCH, checkpoints=checkpoints)
    assert not passes
    tune(estimator(precision="float32"), store, search=SEARCH, checkpoints=checkpoints)
    assert len(passes) == 12


@pytest.mark.long
def test_records_of_other_data_are_dropped(own_store, tmp_path, monkeypatch):
    """After an append every score is taken again; a file that is no state is refused."""
    store = own_store
    checkpoints = tmp_path / "state"
    search = replace(SEARCH, scale_multipliers=(1.0,))
    tune(estimator(), store, search=search, checkpoints=checkpoints)
    passes = counted_passes(monkeypatch)
    store.append(*labelled_bags(40, seed=9))
    tune(estimator(), store, search=search, checkpoints=checkpoints)
    assert len(passes) == 3
    (checkpoints / "scores.json").write_text("{}")
    with pytest.raises(StoreError, match=r"scores\.json: not the state of a tune .*delete it"):
        tune(estimator(), store, search=search, checkpoints=checkpoints)


@pytest.mark.long
def test_classes_are_compared_by_their_one_hot_error(tmp_path):
    """A classifier's score is the squared error of its one-hot columns."""
    classes = np.digitize(Y, [-0.3, 0.5]).astype(float)
    store = stored(tmp_path / "s.zarr", BAGS, classes)
    search = Search([ProjectionEmbedding(n_per_dim=4)], scale_multipliers=(1.0, 2.0), first_bags=N)
    result = tune(estimator(DoubleBasisClassifier), store, search=search)
    one_hot = (classes[:, None] == np.unique(classes)).astype(float)
    for c, candidate in enumerate(result.candidates):
        score = result.scores[0][c]
        truth = errors_by_loop(candidate.features, store.read(), one_hot, score.alphas)
        np.testing.assert_allclose(score.errors, truth, rtol=2e-3)
    assert isinstance(result.model, DoubleBasisClassifier)
    assert list(result.model.classes_) == [0, 1, 2]


@pytest.mark.long
def test_bags_without_label_and_holdout_are_not_used(tmp_path, monkeypatch):
    """They are not even embedded: a point outside the box in each of them changes nothing."""
    y, bags = Y.copy(), list(BAGS)
    y[::7] = np.nan
    out = np.isnan(y) | held_out(0.2, N)
    for i in np.flatnonzero(out):
        bags[i] = bags[i] + 5.0
    store = stored(tmp_path / "s.zarr", bags, y)
    search = Search(
        [ProjectionEmbedding(n_per_dim=4, out_of_box="error")],
        scale_multipliers=(0.5, 2.0),
        first_bags=N,
    )
    for module in ("models.tuning.candidates", "models.fitting.feature_map"):
        monkeypatch.setattr(
            f"bagbasis.{module}.sampled_embeddings",
            lambda source, first, n: first.embed(source.data.read()[~out], np.float64)[0],
        )
    result = tune(estimator(), store, search=search, holdout=0.2)
    score = result.scores[0][0]
    assert score.n_train + score.n_held_out == int((~out).sum())
    clipped = replace(
        result.candidates[0].features,
        embedding=replace(result.candidates[0].features.embedding, out_of_box="clip"),
    )
    truth = errors_by_loop(clipped, store.read(), y, score.alphas, holdout=0.2)
    np.testing.assert_allclose(score.errors, truth, rtol=2e-3)
    assert result.model.holdout_ == 0.2


@pytest.mark.long
def test_given_penalties_are_shares_of_all_bags(store):
    """Numbers are in the units of the last fit; a rung takes its part of them."""
    search = replace(SEARCH, scale_multipliers=(1.0,))
    result = tune(estimator(alpha=[1.0, 5.0]), store, search=search)
    for rung, scores in zip(result.rungs, result.scores, strict=True):
        for score in scores.values():
            np.testing.assert_allclose(score.alphas, np.array([1.0, 5.0]) * rung.n_bags / N)
    assert result.model.alpha_ in (1.0, 5.0)


@pytest.mark.parametrize(
    ("search", "error"),
    [
        (Search([ProjectionEmbedding()], eta=1), "eta is 1"),
        (Search([ProjectionEmbedding()], first_bags=N + 1), f"there are {N} bags"),
        (
            Search([ProjectionEmbedding(), HDDEmbedding(bandwidth=0.001)]),
            "embedding 2 of the search, HDDEmbedding.*bandwidth is 0.001",
        ),
    ],
)
def test_bad_search_is_refused_before_any_pass(store, monkeypatch, search, error):
    """One line that names the parameter; nothing was read or written."""
    passes = counted_passes(monkeypatch)
    with pytest.raises(ParameterError, match=error) as refusal:
        tune(estimator(), store, search=search)
    assert "\n" not in str(refusal.value)
    assert not passes
    assert not Path(f"{store.url}.cache").exists()


@pytest.mark.long
def test_bad_estimators_are_refused(store):
    """Another kind of estimator, and multipliers of a width that is a number."""
    with pytest.raises(ParameterError, match="estimator is ProjectionEmbedding"):
        tune(ProjectionEmbedding(), store, search=SEARCH)
    base = DoubleBasisRegressor(random_features=RandomFourierFeatures(n_features=64, scale=2.0))
    with pytest.raises(ParameterError, match=r"scale is 2\.0"):
        tune(base, store, search=SEARCH)
    search = replace(SEARCH, scale_multipliers=(1.0,), first_bags=N)
    result = tune(base, store, search=search)
    assert {c.features.second.scale for c in result.candidates} == {2.0}


@pytest.mark.long
def test_too_few_labels_are_refused(tmp_path):
    """No label at all, and none held out in the first rung: the line has the counts."""
    y = np.full(N, np.nan)
    store = stored(tmp_path / "s.zarr", BAGS, y)
    with pytest.raises(DataError, match=r"s\.zarr: of 96 bags 0 are labelled"):
        tune(estimator(), store, search=SEARCH)
    y[:30] = 1.0 + np.arange(30)
    few = stored(tmp_path / "few.zarr", BAGS, y)
    with pytest.raises(DataError, match=r"of 480 bags 30 are labelled.*first_bags"):
        tune(estimator(validation_fraction=0.05), few, search=replace(SEARCH, first_bags=N))
