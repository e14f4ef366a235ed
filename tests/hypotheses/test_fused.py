"""Kernels of many widths at once: `fuse` and `agg` against matrices, levels, power, stores."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import BagStore, MomentsEmbedding
from bagbasis.hypotheses import Aggregate, Fuse, two_sample_test
from bagbasis.hypotheses.kernels.kernels import Kernel
from bagbasis.hypotheses.kernels.scales import Scales
from bagbasis.hypotheses.kernels.split_kernels import sum_over_sets
from bagbasis.hypotheses.nulls.permutation import draw_splits, p_values
from bagbasis.hypotheses.samples.samples import read_samples
from bagbasis.hypotheses.two_samples import fused, unit_grams, unit_sums
from bagbasis.hypotheses.two_samples.aggregated import aggregate
from bagbasis.hypotheses.two_samples.comparison import TwoSamples
from bagbasis.hypotheses.two_samples.fused import BOTH, EXACT_SECONDS
from bagbasis.hypotheses.two_samples.unit_grams import seconds_of_pairs
from bagbasis.hypotheses.two_samples.unit_sums import bucket_labels, plan_units
from tests.oracles.fused import fuse_by_matrices, perturbed_uniforms, two_mixtures
from tests.passes import kernel_threads, pass_limits, use_cores

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((40, 3)), 0.4 + RNG.standard_normal((31, 3))


def scales_of(a, b, statistic, kernel=BOTH, groups=None, seed=0):
    """The scales that a test chooses, and the samples."""
    labels = None if groups is None else dict(zip("ab", groups, strict=True))
    samples = TwoSamples(
        *read_samples({"a": a, "b": b}, groups=labels), "permutation", 9, seed, kernel=kernel
    )
    with kernel_threads():
        return statistic.choose_scales(samples), samples


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("kernel", [None, "gaussian", "laplacian", "matern"])
def test_statistic_and_null_of_all_pairs(exact, kernel):
    """The observed split and every permutation: to 1e-10 those of the kernels' matrices."""
    statistic, rows = Fuse(n_frequencies=16, exact=exact), np.vstack([X, Y])
    arguments = {"statistic": statistic, "kernel": kernel, "standardize": False}
    r = two_sample_test(X, Y, n_permutations=9, seed=4, **arguments)
    scales, _ = scales_of(X, Y, statistic, kernel or BOTH, seed=4)
    if exact:
        grams = [split(rows, rows) for split in scales.kernels]
    else:
        features = scales(rows).reshape(71, len(scales.kernels), -1).swapaxes(0, 1)
        grams = [z @ z.T for z in features]
    splits = draw_splits(np.arange(71) < 40, 9, 4)
    expected = [fuse_by_matrices(grams, scales.norms, split) for split in splits]
    assert r.statistic == pytest.approx(expected[0], abs=1e-10)
    np.testing.assert_allclose(r.null_distribution, np.sort(expected[1:]), atol=1e-10)
    assert r.p_value == p_values(expected[0], np.array(expected[1:]))
    assert sum(r.details["scales"]["weight"]) == pytest.approx(1.0)


@pytest.mark.parametrize("exact", [True, False])
def test_groups_are_compared_across(exact):
    """Pairs within a group tell nothing of the samples, and are left out; groups are unequal."""
    labels = np.repeat(np.arange(20), np.arange(20) % 4 + 1)[:40]
    groups = labels, 100 + np.arange(31) // 2
    statistic = Fuse(n_frequencies=16, exact=exact)
    arguments = {"statistic": statistic, "groups": groups, "standardize": False}
    r = two_sample_test(X, Y, n_permutations=9, **arguments)
    scales, _ = scales_of(X, Y, statistic, groups=groups)
    rows, both = np.vstack([X, Y]), np.concatenate(groups)
    features = scales(rows).reshape(71, len(scales.kernels), -1).swapaxes(0, 1)
    grams = [k(rows, rows) if exact else z @ z.T
             for k, z in zip(scales.kernels, features, strict=True)]  # fmt: skip
    expected = fuse_by_matrices(grams, scales.norms, np.arange(71) < 40, both)
    assert r.statistic == pytest.approx(expected, abs=1e-10)
    assert r.unit == "group"


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("sizes", [(40, 31), (200, 31), (900, 40), (31, 900)])
def test_buckets_change_no_statistic(sizes, exact, monkeypatch):
    """Joined rows: the statistic of all rows, whatever the units; all rows are in some unit."""
    a, b = RNG.standard_normal((sizes[0], 2)), RNG.standard_normal((sizes[1], 2))
    statistic = Fuse(n_frequencies=8, exact=exact)
    whole = two_sample_test(a, b, statistic=statistic, n_permutations=1)
    monkeypatch.setattr(unit_sums, "plan_units", lambda n, m, _: plan_units(n, m, 24))
    r = two_sample_test(a, b, statistic=statistic, n_permutations=99)
    assert r.statistic == pytest.approx(whole.statistic, abs=1e-10)
    assert np.ptp(r.null_distribution) > 0


@pytest.mark.parametrize("matrices", [71, 7], ids=["each row", "few units"])
def test_kernel_values_are_summed_tile_by_tile(matrices, monkeypatch):
    """Units of any size, in any order of the rows, over the edges of tiles: as of matrices."""
    monkeypatch.setattr(unit_grams, "TILE", 16)
    rows = np.vstack([X, Y])
    units = RNG.permutation(71) if matrices == 71 else RNG.choice([0, 1, 4, 5], 71)
    members = units == np.arange(matrices)[:, None]
    kernels = [Kernel(name, w) for name in ("gaussian", "laplacian", "matern") for w in (0.3, 2.0)]
    result = unit_grams.unit_grams(rows, units, matrices, kernels)
    expected = [members @ kernel(rows, rows) @ members.T for kernel in kernels]
    np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (7, 3), (64, 40), (67, 513), (130, 1025)])
def test_sums_over_sets(n, m):
    """Equal to a product of matrices, for any number of units and sets, across edges of blocks."""
    rng = np.random.default_rng(n)
    gram = rng.standard_normal((n + 2, n + 2))
    gram = np.tril(gram) + np.tril(gram, -1).T
    sets = rng.random((m, n)) < rng.random((m, 1))
    bits = np.ascontiguousarray(np.packbits(sets, axis=1, bitorder="little").T)
    out = np.full(m, np.nan)
    sum_over_sets(gram[:-2, :-2], sets.astype(np.float64), bits, out)
    expected = np.einsum("ij,jk,ik->i", sets, gram[:-2, :-2], sets)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-11)


@pytest.mark.long
def test_exact_kernels_where_they_take_seconds(monkeypatch):
    """The default: exact kernels for a few thousand rows, random features for more."""
    a, b = RNG.standard_normal((450, 2)), RNG.standard_normal((300, 2))
    own, exact = (
        two_sample_test(a, b, statistic=Fuse(exact=which), n_permutations=19)
        for which in (None, True)
    )
    assert own.statistic == exact.statistic
    np.testing.assert_array_equal(own.null_distribution, exact.null_distribution)
    kernels = [Kernel(name, 1.0) for name in ("gaussian", "laplacian") for _ in range(10)]
    for n_rows, n_dims in ((12_700, 2), (4_180, 512)):
        assert seconds_of_pairs(n_rows, n_dims, kernels) <= EXACT_SECONDS
        assert seconds_of_pairs(n_rows + 10, n_dims, kernels) > EXACT_SECONDS
    # the rows of both samples count
    monkeypatch.setattr(fused, "EXACT_SECONDS", seconds_of_pairs(750, 2, kernels) / 2)
    more, features = (
        two_sample_test(a, b, statistic=Fuse(exact=which), n_permutations=19)
        for which in (None, False)
    )
    assert more.statistic == features.statistic != exact.statistic


@pytest.mark.parametrize(
    ("sizes", "length", "counts"),
    [
        ((500, 500), 1, (500, 500)),
        ((3, 2), 1, (3, 2)),
        ((600, 500), 2, (300, 250)),
        ((10**6, 10**6), 1954, (511, 511)),
        ((10**6, 100), 1, (924, 100)),
        ((100, 10**6), 1, (100, 924)),
        ((10**6, 10**5), 781, (896, 128)),
    ],
)
def test_plan_of_units(sizes, length, counts):
    assert plan_units(*sizes, 1024) == (length, counts)


def test_buckets_are_dealt_at_random():
    """The level holds for sorted data too: neighbours are not a unit."""
    sample = read_samples({"a": np.sort(RNG.standard_normal(1000)), "b": np.arange(9.0)})[0]
    labels = bucket_labels(sample, 9, 110, 0)
    assert np.bincount(labels).tolist() == [9] * 110 + [10]
    means = np.bincount(labels, sample.rows[:, 0])[:110] / 9
    assert means.std() == pytest.approx(1 / 3, rel=0.2)


@pytest.mark.long
def test_stores_are_summed_in_passes(tmp_path, monkeypatch):
    """The same as of bags in memory, in tasks of any length, in buckets, of unequal sizes."""
    rng = np.random.default_rng(1)
    a, b = (
        [shift + rng.standard_normal((rng.integers(5, 9), 2), np.float32) for _ in range(n)]
        for n, shift in ((211, 0.0), (27, 1.2))
    )
    stores = [
        BagStore.create(tmp_path / f"{name}.zarr", 2).append(bags)
        for name, bags in (("a", a), ("b", b))
    ]
    arguments = {"embedding": MomentsEmbedding(box=[(-4, 4)] * 2), "thin": 6, "seed": 3}
    for most in (1024, 30):
        monkeypatch.setattr(unit_sums, "plan_units", lambda n, m, _, k=most: plan_units(n, m, k))
        for statistic in (
            Fuse(n_frequencies=8, exact=False),
            Fuse(),
            Aggregate(n_frequencies=8, exact=False),
        ):
            single = two_sample_test(a, b, statistic=statistic, **arguments)
            with pass_limits(rows_per_block=7, small_task_seconds=1e-5):
                two = two_sample_test(*stores, statistic=statistic, **arguments)
            assert two.statistic == pytest.approx(single.statistic, rel=1e-9)
            assert (two.p_value, two.n, two.n_units) == (single.p_value, single.n, single.n_units)
            assert single.p_value < 0.05
            assert single.details["bags_left_out_of_a"] > 0


@pytest.mark.long
@pytest.mark.parametrize("exact", [True, False])
def test_the_same_bits_on_any_number_of_cores(exact):
    a, b = RNG.standard_normal((1700, 5)), RNG.standard_normal((1100, 5))
    values = []
    for n in (1, 3):
        with use_cores(n):
            values.append(two_sample_test(a, b, statistic=Fuse(exact=exact), n_permutations=49))
    assert values[1].statistic == values[0].statistic
    np.testing.assert_array_equal(values[1].null_distribution, values[0].null_distribution)


def test_offset_and_unit_change_nothing():
    """Rows far from 0 keep their digits, in any unit."""
    base = two_sample_test(X, Y, statistic=Fuse(exact=False), n_permutations=99)
    for moved in ((X + 1e6, Y + 1e6), (X * 1e-20, Y * 1e-20), (X * 1e20, Y * 1e20)):
        r = two_sample_test(*moved, statistic=Fuse(exact=False), n_permutations=99)
        assert r.statistic == pytest.approx(base.statistic, rel=1e-4)
        assert r.p_value == base.p_value


DRAWN = {
    "points": lambda rng: (rng.standard_normal((60, 2)), rng.standard_normal((45, 2)), {}),
    "features": lambda rng: (
        rng.standard_normal((60, 2)), rng.standard_normal((45, 2)), {"exact": False},
    ),
    "ties": lambda rng: (rng.integers(0, 3, (70, 1)), rng.integers(0, 3, (40, 1)), {}),
    "groups": lambda rng: (
        *(np.repeat(rng.standard_normal((n, 2)), 3, axis=0) for n in (30, 20)),
        {"groups": (np.repeat(np.arange(30), 3), 50 + np.repeat(np.arange(20), 3))},
    ),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "drawn"),
    [*((Fuse, drawn) for drawn in DRAWN), (Aggregate, "ties"), (Aggregate, "groups")],
)
def test_levels(kind, drawn):
    """Without a difference each rejects about as often as α says; with a large one, always. Levels
    of series: tests/hypotheses/test_wild_bootstrap.py."""

    def p_value(rng, seed, n_permutations, shift=0):
        a, b, options = DRAWN[drawn](rng)
        options["statistic"] = kind(n_frequencies=16, exact=options.pop("exact", None))
        options["n_permutations"] = n_permutations
        return two_sample_test(a, b + shift, seed=seed, **options).p_value

    values = [p_value(np.random.default_rng([1, seed]), seed, 19) for seed in range(60)]
    for alpha in (0.05, 0.1, 0.5):
        share = (np.array(values) <= alpha).mean()
        assert share - alpha < 0.01 + 4 * (alpha * (1 - alpha) / 60) ** 0.5
        assert alpha - share < 0.02 + 4 * (alpha * (1 - alpha) / 60) ** 0.5
    assert p_value(np.random.default_rng(2), 0, 99, shift=3) <= 0.02


@pytest.mark.long
@pytest.mark.parametrize("statistic", [None, "agg"])
@pytest.mark.parametrize(
    ("draw", "printed"),
    [
        (lambda rng: two_mixtures(rng, 500, 2.0), 0.905),
        (lambda rng: perturbed_uniforms(rng, 1000, 1, 0.2), 0.43),
    ],
    ids=["mixture", "perturbed"],
)
def test_power_where_the_median_sees_nothing(statistic, draw, printed):
    """The papers' problems at the smallest size of their tables: within three standard errors of
    20 data sets each of the printed powers of FUSE (.905, and .43 at 1,000) or above them. No
    more data sets are drawn than decide that."""
    missing = np.ceil(20 * printed - 3 * (20 * printed * (1 - printed)) ** 0.5)
    for seed in range(20):
        pair = draw(np.random.default_rng([8, seed]))
        options = {"statistic": statistic, "n_permutations": 199, "seed": seed}
        missing -= two_sample_test(*pair, **options).p_value <= 0.05
        if missing == 0:
            return
    pytest.fail(f"{missing:.0f} of 20 rejections are missing")


def test_weights_name_the_scale_of_the_difference():
    """A fine difference weighs on narrow kernels, a coarse one on wide ones."""
    rng = np.random.default_rng(3)
    coarse = rng.standard_normal((400, 1)), 0.5 + rng.standard_normal((400, 1))
    fine = tuple(
        np.round(rng.standard_normal((400, 1)) * 4) / 4 + offset for offset in (0.0, 0.125)
    )
    tops = []
    for pair in (fine, coarse):
        r = two_sample_test(*pair, kernel="gaussian", n_permutations=99)
        scales = r.details["scales"]
        tops.append(np.array(scales["bandwidth"])[np.argmax(scales["weight"])])
        assert "largest weight" in r.report()
        assert r.p_value == 0.01
    assert tops[0] < 0.5 * tops[1]


@pytest.mark.long
def test_standard_error_and_effect():
    """The error is the statistic's own spread over data sets; the effect does not grow with n."""
    effects = {}
    for n in (150, 600):
        result = []
        for seed in range(24):
            rng = np.random.default_rng([n, seed])
            a, b = rng.standard_normal((n, 1)), 1 + rng.standard_normal((n * 2 // 3, 1))
            r = two_sample_test(
                a, b, n_permutations=1, statistic=Fuse(n_frequencies=64, exact=False)
            )
            result.append((r.statistic, r.standard_error, r.effect))
        values = np.array(result)
        error = (values[:, 1] ** 2).mean() ** 0.5
        assert error == pytest.approx(values[:, 0].std(ddof=1), rel=0.35)
        effects[n] = values[:, 2].mean()
    assert effects[150] == pytest.approx(effects[600], rel=0.2)


def test_standard_errors_fall_with_the_root_of_the_size():
    rng = np.random.default_rng(0)
    first, second = (
        two_sample_test(
            rng.standard_normal((n, 1)),
            1 + rng.standard_normal((n, 1)),
            n_permutations=1,
            statistic=Fuse(n_frequencies=64, exact=False),
        ).standard_error
        for n in (600, 2400)
    )
    assert first / second == pytest.approx(2, rel=0.2)


def test_aggregate_is_the_smallest_p_value_compared():
    """By loops: a kernel's corrected p-value is how often any kernel does as well by chance."""
    rng = np.random.default_rng(0)
    drawn, values = rng.standard_normal((199, 4)), np.array([0.3, 2.9, -1.0, 1.2])
    result = aggregate(values, drawn)
    pool = np.vstack([values, drawn])
    own = np.array([[(pool[:, k] >= v).mean() for k, v in enumerate(row)] for row in pool])
    np.testing.assert_allclose(result.p_values, own[0])
    smallest = own.min(axis=1)
    assert result.top == 1
    low = ((smallest < own[0].min()).sum() + 1) / 200
    high = (smallest <= own[0].min()).mean()
    assert low <= result.null.p_value <= high
    assert result.corrected[1] == result.null.p_value
    assert (result.corrected >= result.p_values).all()
    assert -result.statistic == pytest.approx(np.log(own[0].min()), abs=np.log(2))


def test_equal_values_of_a_kernel_count_together():
    """Half of a kernel's values are the largest: its p-value is 1/2, and another one is better."""
    ties, distinct = np.roll(np.arange(200) % 2, -1), np.roll(np.arange(200), -140)
    pool = np.column_stack([ties, distinct]).astype(float)
    result = aggregate(pool[0], pool[1:])
    np.testing.assert_allclose(result.p_values, [0.5, 0.3])
    assert result.top == 1


@pytest.mark.long
def test_agg_says_which_scales_reject():
    r = two_sample_test(*two_mixtures(np.random.default_rng(0), 500, 2.0), statistic="agg")
    scales = r.details["scales"]
    corrected = np.array(scales["corrected"])
    assert r.p_value == corrected.min() <= 0.01
    widths = np.array(scales["bandwidth"])  # the components have standard deviation 1 and 2
    assert (corrected[widths < 3] <= 0.05).any()
    assert (corrected[widths > 8] > 0.05).all()
    assert "scales that reject" in r.report()


@pytest.mark.long
def test_features_stand_for_their_kernels():
    """With many frequencies, products of features equal the kernels' values."""
    with kernel_threads():
        scales = Scales.choose(("gaussian", "laplacian"), X, 4096, 0)
        features = scales(X).reshape(40, len(scales.kernels), -1)
    for k, kernel in enumerate(scales.kernels):
        values = features[:, k] @ features[:, k].T
        np.testing.assert_allclose(values, kernel(X, X), atol=0.08)
        off = ~np.eye(40, dtype=bool)
        assert scales.norms[k] == pytest.approx((kernel(X, X)[off] ** 2).mean() ** 0.5)


def test_rows_are_permuted_in_stages():
    """A stage in which more than ten permutations reach the statistic is the last one, and only
    such a stage, or the last that the level asks for."""
    rng, stages, ends = np.random.default_rng(5), (19, 190, 1900, 2000), []
    for seed in range(60):
        rows = rng.standard_normal((16, 2))
        rows[:8] += 6 * (seed == 59)
        p = fused.fuse_rows(rows, np.arange(16) < 8, 19, seed, 0.001, n_frequencies=8).p_value
        n = next(n for n in stages if abs(p * (1 + n) - round(p * (1 + n))) < 1e-9)
        assert round(p * (1 + n)) > 10 or n == 2000
        ends.append(n)
    assert 15 < ends.count(19) < 45
    assert ends[-1] == 2000
    assert fused.fuse_rows(rows, np.arange(16) < 8, 19, 0).p_value == 1 / 20
