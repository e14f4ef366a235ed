"""`independence_test`: statistics and nulls by name, kinds of variables, units, and refusals."""

from __future__ import annotations

import re

import numpy as np
import pytest

from bagbasis import BagbasisError, BagStore, DataError, ParameterError
from bagbasis.hypotheses import (
    INDEPENDENCE,
    KCCA,
    NFSIC,
    RDC,
    HSICBlock,
    HSICFourier,
    HSICNystroem,
    KCCAFourier,
    independence_test,
)
from bagbasis.hypotheses.kernels.kernels import resolve_kernel
from tests.oracles import dependence
from tests.passes import pass_limits

OF_THREE = "lancaster", "dhsic"
CASES = [(name, null) for name, kind in INDEPENDENCE.items() for null in kind.nulls]


def draw(n=80, slope=1.0, seed=0):
    """x in R², y that depends on its first coordinate, z = their product's sign and noise."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    y = slope * np.sin(2 * x[:, 0]) + 0.5 * rng.normal(size=n)
    return x, y, slope * np.sign(x[:, 0] * y) + 0.5 * rng.normal(size=n)


def run(name, null=None, data=None, n_permutations=99, **more):
    x, y, z = draw() if data is None else data
    variables = (x, y, z) if name in OF_THREE else (x, y)
    return independence_test(
        *variables, statistic=name, null=null, n_permutations=n_permutations, **more
    )


def bandwidths(*variables):
    rows = [np.asarray(v).reshape(len(v), -1) for v in variables]
    return [(z, resolve_kernel("gaussian", "median", z).bandwidth) for z in rows]


class TestStatistics:
    @pytest.mark.long
    @pytest.mark.parametrize(("name", "null"), CASES)
    def test_dependence_is_found_and_independence_is_not(self, name, null):
        """Results for 400 pairs, in JSON and in words, too; the same seed gives the same result."""
        result = run(name, null, draw(400))
        assert result.p_value <= 0.02
        few, again = run(name, null), run(name, null)
        assert (again.statistic, again.p_value) == (few.statistic, few.p_value)
        other = run(name, null, draw(400, slope=0.0, seed=5))
        assert other.p_value > 0.02
        assert (np.diff(result.null_distribution) >= 0).all()
        assert result.to_dict()["null"] == null
        [p_value] = re.findall(r"^p-value +(\S+)$", result.report(), re.MULTILINE)
        assert float(p_value) == pytest.approx(result.p_value, rel=0.05, abs=5e-4)

    def test_values(self):
        """The names give the formulas' values, with the median distances as bandwidths."""
        x, y, z = data = draw(12)
        (x, y, z), grams = zip(
            *[(v, dependence.gaussian(v, v, width)) for v, width in bandwidths(x, y, z)],
            strict=True,
        )
        K, L, M = grams
        n = len(x)
        expected = {
            "hsic_b": dependence.hsic_b(K, L),
            "hsic_u": dependence.hsic_u(K, L),
            "dcov": dependence.dcov(x, y),
            "lancaster": dependence.lancaster(K, L, M),
            "dhsic": dependence.dhsic([K, L, M]),
            "kcca": dependence.kcca(K, L, n * 0.01 / 2),
        }
        for name, value in expected.items():
            assert run(name, data=data, standardize=False).statistic == pytest.approx(
                value, rel=1e-6
            ), name
        every = run(HSICNystroem(n_landmarks=50), data=data, standardize=False).statistic
        assert every == pytest.approx(expected["hsic_b"], rel=1e-5)

    @pytest.mark.long
    def test_joint_dependence_of_four(self):
        """Bits of which any three are independent, and all four are not; of x and others by name;
        the value is that of loops, and of two variables HSIC_b's."""
        bits = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, 8).repeat(50, axis=1)
        x, y, z = bits  # every three as often
        last = bits.prod(axis=0)
        arguments = {"statistic": "dhsic", "n_permutations": 99}
        result = independence_test(x, y, {"z": z, "last": last}, **arguments)
        assert result.p_value <= 0.01
        assert independence_test(x, y, z, **arguments).p_value > 0.05
        x, y, z, last = (v[::10] for v in (x, y, z, last))
        few = independence_test(x, y, {"z": z, "last": last}, **arguments)
        grams = [dependence.gaussian(v, v, w) for v, w in bandwidths(x, y, z, last)]
        assert few.statistic == pytest.approx(dependence.dhsic(grams), rel=1e-9)
        two = dependence.dhsic(grams[:2])
        assert two == pytest.approx(dependence.hsic_b(*grams[:2]), rel=1e-9)
        with pytest.raises(ParameterError, match="other than 'x' and 'y'"):
            independence_test(x, y, {"x": z}, **arguments)
        with pytest.raises(ParameterError, match="'dhsic' takes 3 or more variables; you passed 2"):
            independence_test(x, y, **arguments)

    @pytest.mark.long
    def test_joint_level(self):
        """p ≤ .1 in a tenth of 300 samples of four independent variables, within three errors."""
        p = []
        for seed in range(300):
            x, y, z, w = np.random.default_rng(seed).standard_normal((4, 25))
            result = independence_test(
                x, y, {"z": z, "w": w}, statistic="dhsic", n_permutations=19, seed=seed
            )
            p.append(result.p_value)
        assert np.mean(np.array(p) <= 0.1) == pytest.approx(0.1, abs=3 * (0.09 / 300) ** 0.5)

    def test_features_come_near_the_exact_statistics(self):
        data = draw(100)
        for features, exact in (
            (HSICFourier(n_features=2000), "hsic_b"),
            (KCCAFourier(n_features=2000, ridge=0.05), KCCA(ridge=0.05)),
        ):
            near = run(features, data=data, n_permutations=1).statistic
            assert near == pytest.approx(run(exact, data=data).statistic, rel=0.1)

    def test_ranks_alone_count_for_rdc(self):
        x, y, z = draw()
        result = run(RDC(), data=(np.exp(x), y**3, z)).statistic
        assert result == pytest.approx(run("rdc").statistic)

    @pytest.mark.parametrize("name", ["hsic_fourier", "kcca_fourier", "nfsic", "dcov"])
    def test_numbers_far_from_zero(self, name):
        """As dates are, in seconds: float32, in which features are, would hold none of them."""
        x, y, z = draw()
        near, far = (run(name, data=(x[:, 0] + at, y + at, z)) for at in (0.0, 1e8))
        assert far.statistic == pytest.approx(near.statistic, rel=1e-3)
        assert far.p_value == near.p_value

    @pytest.mark.parametrize("name", ["hsic_b", "hsic_u", "dcov", "hsic_fourier", "hsic_nystroem"])
    def test_nulls_agree(self, name):
        """p-values of weak dependence by closed-form and spectral nulls, and 1,999 permutations."""
        data = draw(150, slope=0.22, seed=3)
        exact = run(name, "permutation", data, 1999).p_value
        assert 0.005 < exact < 0.5
        for null in set(INDEPENDENCE[name].nulls) & {"gamma", "pearson", "spectral"}:
            assert run(name, null, data, 1999).p_value == pytest.approx(exact, rel=0.25, abs=0.01)

    @pytest.mark.long
    @pytest.mark.parametrize(
        ("name", "null", "n"),
        [("hsic_u", "gamma", 60), ("hsic_fourier", "spectral", 60), ("nfsic", "chi_square", 60),
         ("hsic_block", "normal", 60), ("rdc", "permutation", 60)],
    )  # fmt: skip
    def test_level(self, name, null, n):
        """p ≤ .1 in a tenth of 200 samples without dependence, within three standard errors."""
        p = [run(name, null, draw(n, 0.0, seed), 19).p_value for seed in range(200)]
        assert np.mean(np.array(p) <= 0.1) == pytest.approx(0.1, abs=3 * (0.09 / 200) ** 0.5)

    @pytest.mark.long
    @pytest.mark.parametrize(("name", "far"), [("dcov", 0.03), ("hsic_b", 0.03)])
    def test_three_moments_reach_the_tail(self, name, far):
        """The null's 99 % quantile is that of 20,000 orders, of evenly spread rows, too."""
        data = draw(60, 0.0)
        exact = np.quantile(run(name, "permutation", data, 20_000).null_distribution, 0.99)
        result = run(name, "pearson", data)
        assert np.quantile(result.null_distribution, 0.99) == pytest.approx(exact, rel=far)

    def test_learnt_locations_are_tested_on_others(self):
        result = run(NFSIC(n_locations=3, learn=0.4), "chi_square", data=draw(300))
        assert result.p_value < 0.001
        assert result.details["n_tested"] == 180
        assert len(result.details["locations"]["v"]) == 3

    @pytest.mark.long
    def test_a_series_is_shifted(self):
        """Two slow series without any connection: only rotations keep the level."""
        p = {"shift": [], "permutation": []}
        for seed in range(40):
            rng = np.random.default_rng(seed)
            steps = rng.normal(size=(2, 150))
            for t in range(1, 150):
                steps[:, t] += 0.9 * steps[:, t - 1]
            for null, actual in p.items():
                actual.append(run("hsic_b", null, (*steps, None), 19).p_value)
        assert np.mean(np.array(p["permutation"]) <= 0.1) > 0.5
        assert np.mean(np.array(p["shift"]) <= 0.1) < 0.25


class TestVariables:
    @pytest.mark.long
    def test_bags_with_labels(self, tmp_path):
        """The unit is the bag; a store and its targets give what bags in memory and labels give."""
        rng = np.random.default_rng(1)
        means = rng.normal(size=30)
        arrays = [
            rng.normal(m, 1, size=(20 + i % 5, 2)).astype(np.float32) for i, m in enumerate(means)
        ]
        classes = np.where(means > 0, "high", "low")
        result = independence_test(arrays, means, n_permutations=99)
        assert (result.unit, result.n, result.p_value) == ("bag", {"pairs": 30}, 0.01)
        store = BagStore.create(
            tmp_path / "s.zarr", 2, target_names=["m", "c"], class_names={"c": ["high", "low"]}
        )
        store = store.append(arrays, {"m": [*means[:-1], np.nan], "c": classes})
        by_class = independence_test(arrays, classes, n_permutations=99)
        stored = independence_test(store, "c", n_permutations=99)
        assert stored.statistic == pytest.approx(by_class.statistic, rel=1e-5)
        assert independence_test(store, "m", n_permutations=9).n == {"pairs": 29}
        part = independence_test((store, 5, 25), "c", n_permutations=9)
        assert part.n == {"pairs": 20}

    @pytest.mark.long
    @pytest.mark.parametrize(("name", "null"), [("hsic_fourier", None), ("nfsic", "chi_square")])
    def test_a_pass_over_a_store(self, name, null, tmp_path, monkeypatch):
        """Statistics of a fixed size are summed over a store, in tasks of any length, without all
        embeddings at once, to what bags and labels in memory give."""
        rng = np.random.default_rng(4)
        means = rng.normal(size=60)
        arrays = [
            rng.normal(m, 1, size=(20 + i % 3, 2)).astype(np.float32) for i, m in enumerate(means)
        ]
        store = BagStore.create(tmp_path / "s.zarr", 2, target_names=["m"])
        store = store.append(arrays, {"m": [*means[:-1], np.nan]})
        expected = independence_test(arrays[:-1], means[:-1], statistic=name, null=null)
        monkeypatch.setattr("bagbasis.hypotheses.samples.row_sources.EmbeddedRows.all", None)
        with pass_limits(small_task_seconds=1e-7, small_tasks=8, rows_per_block=5):
            result = independence_test((store, 0, 59), "m", statistic=name, null=null)
            whole = independence_test(store, "m", statistic=name, null=null)
        assert result.statistic == pytest.approx(expected.statistic, rel=1e-5)
        assert result.p_value == pytest.approx(expected.p_value, rel=1e-5)
        assert whole.n == result.n == {"pairs": 59}
        with pytest.raises(BagbasisError, match="no target 'k'"):
            independence_test(store, "k", statistic=name)

    @pytest.mark.long
    def test_nfsic_has_a_known_law_where_a_store_has_many_bags(self, tmp_path):
        """Unless people ask for a null, or have groups; all else is permuted."""
        rng = np.random.default_rng(4)
        bags, y = list(rng.random((1000, 3, 1))), rng.random(1000)
        store = BagStore.create(tmp_path / "s.zarr", 1, target_names=["y"]).append(bags, {"y": y})

        def null(*variables, **more):
            return independence_test(*variables, statistic="nfsic", n_permutations=9, **more).null

        assert null(store, "y") == "chi_square"
        assert null(store, "y", null="permutation") == "permutation"
        assert null(store, "y", groups=np.arange(1000) // 2) == "permutation"
        assert null((store, 0, 999), "y") == "permutation"
        assert null(bags, y) == "permutation"

    def test_times(self):
        """Seconds since the first; drift of a value in time is dependence on it."""
        times = np.datetime64("2026-01-01") + np.arange(60)
        values = np.random.default_rng(2).normal(size=60) + np.arange(60) / 20
        result = independence_test(times, values, n_permutations=99)
        numbers = independence_test(np.arange(60), values, n_permutations=99)
        assert result.p_value == 0.01
        assert result.statistic == pytest.approx(numbers.statistic)

    @pytest.mark.long
    @pytest.mark.parametrize("statistic", ["hsic_u", "hsic_fourier"])
    def test_groups_of_pairs_that_are_left_out(self, tmp_path, statistic):
        """A label per bag that is given, though one is too small and three have no label: the
        result is that of the others with theirs, in memory and stored."""
        rng = np.random.default_rng(4)
        bags = [rng.normal(size=(k, 2)) for k in [24] * 60 + [3] + [24] * 59]
        y, groups = rng.normal(size=120), np.arange(120) // 4
        few = np.delete(np.arange(120), [60])
        more = {"statistic": statistic, "n_permutations": 99}
        alone = independence_test([bags[i] for i in few], y[few], groups=groups[few], **more)
        result = independence_test(bags, y, groups=groups, **more)
        # the embedding is decided by all bags
        assert result.statistic == pytest.approx(alone.statistic, rel=0.05)
        assert result.n == {"pairs": 119}
        assert result.n_units == {"pairs": 30}
        assert result.details["pairs_left_out"] == 1
        assert "pairs_left_out" not in alone.details
        y[[5, 6, 100]] = np.nan
        store = BagStore.create(tmp_path / "s.zarr", 2, target_names=["y", "g"], box=[(-6, 6)] * 2)
        store.append(bags, targets={"y": y, "g": groups})
        stored = independence_test(store, "y", groups=groups, **more)
        assert (stored.n, stored.n_units) == ({"pairs": 116}, {"pairs": 30})
        assert stored.details["pairs_left_out"] == 4
        without = independence_test(store, "y", **more)
        assert without.details["pairs_left_out"] == 4
        missing = np.where(groups == 2, np.nan, groups)
        with pytest.raises(DataError, match=r"missing \(NaN\) for 4 bags"):
            independence_test(bags, rng.normal(size=120), groups=missing)

    @pytest.mark.long
    def test_groups_are_the_units(self):
        """20 days of 10 pairs alike: without groups the test finds what is not there."""
        rng = np.random.default_rng(3)
        alone, grouped = [], []
        for _ in range(30):
            x, y = (np.repeat(rng.normal(size=20), 10) + 0.1 * rng.normal(size=200) for _ in "xy")
            alone.append(independence_test(x, y, n_permutations=19).p_value)
            days = np.repeat(np.arange(20), 10)
            result = independence_test(x, y, n_permutations=19, groups=days)
            grouped.append(result.p_value)
        assert result.n_units == {"pairs": 20}
        assert np.mean(np.array(alone) <= 0.05) > 0.8
        assert np.mean(np.array(grouped) <= 0.1) < 0.3

    @pytest.mark.parametrize(
        ("x", "y", "more", "text"),
        [
            (np.zeros((5, 2)), np.arange(4), {}, "different lengths: x 5, y 4"),
            (np.arange(3), np.arange(3), {}, "3 pairs of points; .* needs 4"),
            (np.zeros(9), np.arange(9), {}, "x: all rows are alike"),
            (np.zeros(9), np.arange(9), {"statistic": "rdc"}, "x: all rows are alike"),
            (np.arange(9), np.arange(9), {"statistic": "hsic_block", "groups": np.arange(9)},
             "'normal', which takes pairs for independent; with groups .* 'hsic_block' has none"),
            (np.arange(9), [np.nan] * 9, {}, "NaN"),
            (np.arange(9), "label", {}, "'label', the name of a target"),
            (np.array(["NaT", *["2026"] * 8], "M8[s]"), np.arange(9), {}, "time 0 is missing"),
            (np.arange(9), np.arange(9), {"null": "normal"}, "'hsic_fuse' admits"),
            (np.arange(9), np.arange(9), {"statistic": "hsic"}, "statistic is 'hsic'"),
            (np.arange(9), np.arange(9), {"statistic": "lancaster"}, "3 variables; you passed 2"),
            (np.arange(9), np.arange(9), {"z": np.arange(9)}, "2 variables; you passed 3"),
            (np.arange(9), np.arange(9), {"statistic": "nfsic", "kernel": "matern"}, "kernel"),
            (np.arange(9), np.arange(9), {"groups": np.arange(8)}, "label"),
            (np.arange(9), np.arange(9), {"groups": [0] * 9}, "1 group"),
            (np.arange(9), np.arange(9),
             {"statistic": "hsic_u", "groups": [0, 0, 0, 0, 1, 1, 2, 3, 3], "null": "gamma"},
             "takes pairs for independent"),
            (np.arange(9), np.arange(9), {"statistic": HSICBlock(block=5)}, "less than two blocks"),
            (np.arange(9), np.arange(9), {"statistic": NFSIC(learn=0.2)}, "both need 4"),
            (np.arange(9), np.arange(9), {"statistic": "nfsic", "null": "chi_square"},
             "9 pairs; null 'chi_square' at 10 locations needs 11"),
            (np.arange(9), np.arange(9), {"statistic": KCCA(ridge=1e12)}, "leaves nothing"),
            (2.0 ** np.arange(31) ** 2, np.arange(31), {"statistic": "dcov", "null": "spectral"},
             "take null='permutation'"),
        ],
    )  # fmt: skip
    def test_refusals(self, x, y, more, text):
        with pytest.raises(BagbasisError, match=text):
            independence_test(x, y, **more)
