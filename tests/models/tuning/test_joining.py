"""`Search.join`: unions are taken where the bags held out say so; leads are counted by groups."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import (
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    EmbeddingUnion,
    HistogramEmbedding,
    MomentsEmbedding,
    ProjectionEmbedding,
    RandomFourierFeatures,
    TripleBasisRegressor,
)
from bagbasis.models import Search, tune
from bagbasis.models.tuning.leads import Losses, difference
from tests.oracles.labelled import stored

N = 450
RNG = np.random.default_rng(1)
CENTRE, WIDTH = RNG.uniform(0.3, 0.7, N), RNG.uniform(0.02, 0.2, N)
BAGS = [RNG.normal(m, s, (40, 1)).clip(0, 1) for m, s in zip(CENTRE, WIDTH, strict=True)]
DAY = np.arange(N) // 3
MEAN = MomentsEmbedding(covariance=False)
PARTS = Search(
    [MEAN, HistogramEmbedding(n_bins=4)], scale_multipliers=(0.7, 1.4), linear=[MEAN], join=True
)


def tuned(folder, y, kind=DoubleBasisRegressor, precision="float32", **options):
    labels = np.stack([y, DAY], axis=1).astype(float)
    store = stored(folder / "s.zarr", BAGS, labels, ("y", "day"))
    second = RandomFourierFeatures(n_features=64)
    model = kind(random_features=second, validation_fraction=0.4, precision=precision)
    return tune(model, store, search=PARTS, target="y", **options)


@pytest.mark.long
def test_what_two_parts_know_is_joined(tmp_path):
    """The winner is a union, ahead of every part by two standard errors; its refit is the same."""
    result = tuned(tmp_path, np.sin(12 * CENTRE) + 10 * WIDTH)
    winner = result.candidates[result.winner]
    assert isinstance(winner.first, EmbeddingUnion)
    assert result.model.features_ == winner.features
    last = result.scores[-1]
    assert {result.candidates[lead.candidate].embedding for lead in result.leads} >= {0, 1, 2}
    for lead in result.leads:
        gap = last[lead.candidate].error - last[result.winner].error
        assert lead.gap == pytest.approx(gap, abs=1e-5)
        assert lead.gap > 2 * lead.standard_error


@pytest.mark.long
def test_nothing_is_joined_for_nothing(tmp_path):
    """Where the mean says all, and linearly, it wins alone: no union is worth its noise."""
    result = tuned(tmp_path, CENTRE)
    winner = result.candidates[result.winner]
    assert winner.first is MEAN
    union = next(lead for lead in result.leads if result.candidates[lead.candidate].embedding > 2)
    assert union.gap > -union.standard_error
    assert type(result.embeddings[3]) is EmbeddingUnion
    linear = next(c for c in result.candidates if c.scale_multiplier is None)
    assert linear.features.second is None
    assert linear.estimator(DoubleBasisRegressor()).random_features is False


@pytest.mark.long
def test_classes_weights_and_groups(tmp_path):
    """Gaps of leads are those of the scores, which are weighed; held out are whole days."""
    holdout, options = {"fraction": 0.0, "groups": "day"}, {"sample_weight": "day"}
    y = DAY % 2 * (CENTRE > 0.5)
    # the least penalty wins, and sums in float32 are rounded by more than it
    result = tuned(tmp_path, y, DoubleBasisClassifier, "float64", holdout=holdout, **options)
    last = result.scores[-1]
    assert last[result.winner].n_held_out % 3 == 0
    for lead in result.leads:
        gap = last[lead.candidate].error - last[result.winner].error
        assert lead.gap == pytest.approx(gap, abs=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("kind", [DoubleBasisRegressor, TripleBasisRegressor])
def test_leads_are_gaps_of_the_scores_in_any_unit(kind):
    """A target in any unit with a constant one, and densities, whose unit is one of all
    coefficients."""
    bags, arguments = BAGS[:150], {}
    if kind is DoubleBasisRegressor:
        far = np.ldexp(np.sin(12 * CENTRE) + 10 * WIDTH, -400)
        labels = np.column_stack([far, np.full(N, 3.0)])[:150]
    else:
        labels, arguments = [bag[:9] for bag in bags], {"response_embedding": ProjectionEmbedding()}
    model = kind(
        random_features=RandomFourierFeatures(n_features=32),
        validation_fraction=0.4,
        precision="float64",
        **arguments,
    )
    result = tune(model, bags, labels, search=PARTS)
    last = result.scores[-1]
    gaps = [lead.gap for lead in result.leads]
    assert gaps == sorted(gaps) != []
    for lead in result.leads:
        gap = last[lead.candidate].error - last[result.winner].error
        assert lead.gap == pytest.approx(gap, abs=1e-6)


def test_standard_errors():
    """For independent bags that of a mean; for groups that of their sums, whatever their copies."""
    gaps, index = RNG.standard_normal(200), np.arange(200)
    ones = np.ones(200)
    ours, theirs = (Losses(index, values, ones) for values in (np.zeros(200), gaps))
    mean, error = difference(ours, theirs)
    assert (mean, error) == pytest.approx((gaps.mean(), gaps.std(ddof=1) / np.sqrt(200)))
    copied = [
        Losses(np.arange(600), np.repeat(item.values, 3), np.ones(600)) for item in (ours, theirs)
    ]
    assert difference(*copied, groups=np.repeat(index, 3)) == pytest.approx((mean, error))
    assert difference(*copied)[1] < 0.6 * error
    times = 1 + index % 3
    weighed = [Losses(index, item.values, times.astype(float)) for item in (ours, theirs)]
    several = [
        Losses(np.arange(times.sum()), np.repeat(item.values, times), np.ones(times.sum()))
        for item in (ours, theirs)
    ]
    expected = difference(*several, groups=np.repeat(index, times))
    assert difference(*weighed) == pytest.approx(expected)
    assert expected[0] == pytest.approx(np.average(gaps, weights=times))
    halves = Losses(index[::2], gaps[::2], ones[::2]) + Losses(index[1::2], gaps[1::2], ones[1::2])
    np.testing.assert_array_equal(halves.values, gaps)
