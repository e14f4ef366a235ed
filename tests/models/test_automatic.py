"""`embedding="auto"`: what is chosen, from what, and that it is a function of the data alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from bagbasis import (
    Bags,
    BagStore,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    ProjectionEmbedding,
    RandomFourierFeatures,
    RankedSummariesEmbedding,
    cross_val_score,
    load_model,
)
from bagbasis.embeddings import FourierSpec, NystroemSpec
from bagbasis.models import judge_fit
from bagbasis.models.fitting.choice.short_list import short_list
from tests.passes import use_cores

SMALL = RandomFourierFeatures(n_features=64)


def bags_of(n=60, d=2, seed=0, size=20):
    """Bags whose label is the spread of their first coordinate."""
    rng = np.random.default_rng(seed)
    spread = rng.uniform(0.2, 2.0, n)
    points = [rng.normal(size=(size, d)) * np.r_[s, np.ones(d - 1)] for s in spread]
    return Bags.from_list(points), np.log(spread)


@pytest.fixture(scope="module")
def chosen():
    """The default with few random features, fitted to `bags_of`."""
    return DoubleBasisRegressor(random_features=SMALL).fit(*bags_of())


@pytest.fixture(scope="module")
def by_default():
    return DoubleBasisRegressor().fit(*bags_of())


def ranks_of(candidate):
    """The ranks of summaries of the same points."""
    return replace(candidate, name="ranks", embedding=RankedSummariesEmbedding())


def tried(model):
    """The names of what a choice has tried."""
    return {item["name"] for item in model.report_["choice"]["tried"]}


def test_none_is_the_projection_of_before():
    bags, y = bags_of()
    before = DoubleBasisRegressor(None, SMALL).fit(bags, y)
    explicit = DoubleBasisRegressor(ProjectionEmbedding(), SMALL).fit(bags, y)
    np.testing.assert_array_equal(before.coef_, explicit.coef_)
    assert "choice" not in before.report_


@pytest.mark.long
def test_the_fit_is_that_of_the_embedding_and_width_chosen(chosen):
    """Given by hand, what was chosen is the same model. Folds of what is given go by position, and
    sums over other folds round otherwise."""
    (bags, y), model = bags_of(), chosen
    width = model.report_["choice"]["tried"][0]["width"]
    names = {item.name: item for item in short_list(2)}
    names["ranks"] = ranks_of(names["moments"])
    name, _, scale = model.report_["choice"]["chosen"].partition(", ")
    first, *others = (names[part] for part in name.split(" + "))
    embedding = first
    for other in others:
        embedding = embedding.plus(other)
    if weights := model.report_["choice"]["tried"][0].get("weights"):
        embedding.embedding.set_params(weights=weights)
    embedding = embedding.on(scale) if scale else embedding
    second = clone(SMALL).set_params(scale_multiplier=width)
    again = DoubleBasisRegressor(embedding.made(), second, alpha="folds").fit(bags, y)
    assert again.alpha_ == model.alpha_
    np.testing.assert_allclose(again.coef_, model.coef_, rtol=1e-10)


@pytest.mark.long
@pytest.mark.parametrize("kind", [DoubleBasisRegressor, DoubleBasisClassifier])
def test_the_second_basis_of_a_choice_is_landmarks(kind, by_default):
    """With as many landmarks as bags it is the kernel itself."""
    bags, y = bags_of()
    model = kind().fit(bags, y > 0) if kind is DoubleBasisClassifier else by_default
    assert any(name.startswith("linear") for name in tried(model))
    second = model.features_.second
    assert isinstance(second, NystroemSpec)
    rows = np.empty((len(bags), second.n_inputs))
    model.features_.embedding.embed(bags, rows)
    z = np.empty((len(bags), second.n_features))
    second.transform(rows, z)
    kernel = second.kernel(rows / second.scale, rows / second.scale)
    np.testing.assert_allclose(z @ z.T, kernel, atol=1e-4)


def test_widths_close_to_the_best_on_both_sides_err_no_less(by_default):
    """The width of the best kernel is found to a factor of 1.5."""
    kernels = [item for item in by_default.report_["choice"]["tried"] if item["width"]]
    best = min(kernels, key=lambda item: item["error"])
    ratios = {item["width"] / best["width"] for item in kernels if item["name"] == best["name"]}
    assert any(1 < ratio < 1.5 for ratio in ratios)
    assert any(1 / 1.5 < ratio < 1 for ratio in ratios)


def test_random_features_that_are_given_are_kept(chosen):
    assert isinstance(chosen.features_.second, FourierSpec)
    assert DoubleBasisRegressor("moments").fit(*bags_of()).features_.second.n_features == 2048


def test_landmarks_are_counted_by_the_bags_and_not_by_a_smaller_sample(monkeypatch):
    """Only some points of large bags are read for the choice; the fit reads all."""
    monkeypatch.setattr("bagbasis.models.fitting.choice.sample.MAX_JUDGED_BAGS", 32)
    monkeypatch.setattr("bagbasis.models.fitting.choice.sample.MIN_SAMPLED_BAGS", 32)
    bags, y = bags_of(60)
    model = DoubleBasisRegressor().fit(bags, y)
    assert model.report_["choice"]["n_bags"] < 60
    assert model.features_.second.n_features > 40


@pytest.mark.long
@pytest.mark.parametrize("d", [1, 4, 2000])
def test_every_dimension_has_a_default(d):
    bags, y = bags_of(24, d, size=6)
    model = DoubleBasisRegressor(random_features=SMALL).fit(bags, y)
    assert "left_out" not in model.report_["choice"]
    assert np.isfinite(model.predict(bags)).all()
    for item in short_list(d):
        marginals = item.embedding.get_params().get("marginals", 0)
        assert d <= 3 or marginals is not None


@pytest.mark.parametrize("n", [1, 2, 4, 9])
def test_few_bags_are_no_reason_to_refuse(n):
    bags, y = bags_of(n)
    model = DoubleBasisRegressor(random_features=SMALL, alpha=0.1).fit(bags, y)
    assert np.isfinite(model.predict(bags)).all()


@pytest.mark.long
def test_a_store_and_memory_choose_alike_on_any_number_of_cores(tmp_path):
    bags, y = bags_of(50)
    box = [(-8, 8), (-8, 8)]
    store = BagStore.create(tmp_path / "s.zarr", n_dims=2, target_names=["y"], box=box)
    store.append(bags, targets={"y": y})
    values = []
    for cores in (1, 2):
        with use_cores(cores):
            model = DoubleBasisRegressor(random_features=SMALL).fit(store)
        report = {**model.report_["choice"], "seconds": 0}
        values.append((report, model.coef_.tobytes()))
    assert values[0] == values[1]
    # the error of the folds that chose has a standard error, which is that of its root
    judged, best = judge_fit(model, store), model.report_["choice"]["tried"][0]
    spread = best["standard_error"] / (2 * judged["error"])
    assert judged["standard_error"] == pytest.approx(spread)
    held_out = DoubleBasisRegressor(random_features=SMALL, alpha="validation").fit(store)
    assert "standard_error" not in judge_fit(held_out, store)


@pytest.mark.long
def test_held_out_and_unlabelled_bags_are_not_looked_at(tmp_path):
    bags, y = bags_of(80)
    y[::7] = np.nan
    model = DoubleBasisRegressor(random_features=SMALL).fit(bags, y, holdout=0.3)
    assert model.report_["choice"]["n_bags"] == model.report_["n_bags_fitted"]


@pytest.mark.long
def test_groups_are_left_out_whole(tmp_path):
    """Where a group's bags are copies but for its label, folds of bags find a label that folds of
    groups cannot: errors of grouped folds are those of new groups."""
    rng = np.random.default_rng(1)
    n_groups, per_group = 40, 4
    labels, centres = rng.normal(size=n_groups), rng.uniform(-3, 3, (n_groups, 2))
    groups = np.repeat(np.arange(n_groups), per_group)
    points = [centres[g] + 0.01 * rng.normal(size=(10, 2)) for g in groups]
    box = [(-4, 4), (-4, 4)]
    store = BagStore.create(tmp_path / "g.zarr", n_dims=2, target_names=["y", "g"], box=box)
    store.append(Bags.from_list(points), targets={"y": labels[groups], "g": groups})
    model = DoubleBasisRegressor(random_features=SMALL)
    alone = model.fit(store, target="y").report_["choice"]
    grouped = clone(model).fit(store, target="y", holdout={"groups": "g"}).report_["choice"]
    assert (alone["by"], grouped["by"]) == ("bags", "groups")
    assert alone["tried"][0]["error"] < 0.3
    assert grouped["tried"][0]["error"] > 0.8


@pytest.mark.long
def test_a_linear_model_is_taken_where_it_is_best(by_default):
    """For labels that are linear in means; where random features are given, none is tried."""
    rng = np.random.default_rng(2)
    centres = rng.normal(size=(80, 12))
    bags = Bags.from_list([centre + rng.normal(size=(15, 12)) for centre in centres])
    y = bags.means.sum(axis=1) + 0.2 * rng.normal(size=80)
    model = DoubleBasisRegressor().fit(bags, y)
    values = model.report_["choice"]
    assert values["chosen"] == "linear in means"
    assert model.features_.second is None
    fitted = DoubleBasisRegressor(random_features=SMALL).fit(bags, y)
    assert not any(name.startswith("linear") for name in tried(fitted))
    assert {"linear in means", "linear in moments", "extremes"} <= tried(by_default)
    assert not by_default.report_["choice"]["chosen"].startswith("linear in means")


def is_line(candidate):
    return candidate["name"].startswith("linear in means")


def grouped_bags(seed):
    """64 bags in 8 groups, and noisy labels that are linear in the means of bags."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(8), 8)
    centres = rng.normal(size=(64, 3)) + rng.normal(size=(8, 3))[groups]
    bags = Bags.from_list([centre + rng.normal(size=(12, 3)) for centre in centres])
    return bags, centres.sum(axis=1) + rng.normal(size=64), groups


@pytest.mark.long
def test_the_simplest_model_is_chosen_if_its_error_is_about_as_small():
    """By few groups, the least of many errors is so by chance."""
    outcomes = set()
    for seed in range(6):
        bags, y, groups = grouped_bags(seed)
        model = DoubleBasisRegressor().fit(bags, y, groups=groups)
        best, *others = model.report_["choice"]["tried"]
        if is_line(best):
            assert model.features_.second is None
            ahead = [item for item in others if item["behind"] < 0]
            assert all(-item["behind"] <= item["standard_error_behind"] for item in ahead)
            assert all(best["error"] <= 1.1 * item["error"] for item in ahead)
            outcomes.add("line near" if ahead else "line best")
        else:
            line = min(filter(is_line, others), key=lambda item: item["error"])
            far = line["error"] > 1.1 * best["error"]
            assert far or line["behind"] > line["standard_error_behind"]
            outcomes.add("line behind")
    assert outcomes == {"line near", "line best", "line behind"}


def families(n, seed=0):
    """Bags of a family of distributions each, all of mean 0 and variance 1; and the family."""
    rng = np.random.default_rng(seed)
    root, y = np.sqrt(3), np.arange(n) % 3
    draw = (
        lambda m: rng.normal(size=(m, 1)),
        lambda m: rng.uniform(-root, root, (m, 1)),
        lambda m: rng.exponential(size=(m, 1)) - 1,
    )
    return Bags.from_list([draw[k](25) for k in y]), y


@pytest.fixture(scope="module")
def of_families():
    """The choice for few bags that kernels do not tell apart."""
    return DoubleBasisClassifier().fit(*families(90))


def test_a_kernel_of_ranks_is_averaged_in_units_of_penalties(of_families):
    """Ranks have .3 of the sum, and the best kernel .7, each kernel divided by its penalty."""
    report = of_families.report_["choice"]
    chosen, *others = report["tried"]
    assert chosen["name"] == report["chosen"]
    name, ranks = chosen["name"].split(",")[0].rsplit(" + ", 1)
    assert ranks == "ranks"
    alone = {item["name"].split(",")[0]: item for item in reversed(others)}
    signal, of_ranks = 0.7 / alone[name]["alpha"], 0.3 / alone["ranks"]["alpha"]
    share = of_ranks / (signal + of_ranks)
    n = name.count(" + ") + 1
    np.testing.assert_allclose(chosen["weights"], [(1 - share) / n] * n + [share], rtol=1e-12)
    spec = of_families.features_.embedding
    np.testing.assert_allclose([w for _, w in spec.blocks], chosen["weights"], rtol=1e-12)


def test_an_average_with_ranks_errs_less(of_families, monkeypatch):
    """On new bags, by log loss; with more bags or coordinates than the limit there is none."""
    new, y = families(600, seed=1)
    fits = []
    for limit, n in (("AVERAGED_DIMS", 24), ("AVERAGED_BAGS", 90)):
        with monkeypatch.context() as patch:
            patch.setattr(f"bagbasis.models.fitting.choice.automatic.{limit}", 0)
            fits.append(DoubleBasisClassifier().fit(*families(n)))
    assert "ranks" not in tried(fits[0]) | tried(fits[1])
    losses = [
        -np.log(model.predict_proba(new)[np.arange(len(y)), y]).mean()
        for model in (of_families, fits[1])
    ]
    assert losses[0] < 0.97 * losses[1]


def test_ranks_are_left_out_where_they_err_more():
    """Four levels of the rank of a mean follow no wave of it."""
    rng = np.random.default_rng(3)
    centres = rng.uniform(0, 1, 150)
    bags = Bags.from_list([centre + 0.05 * rng.normal(size=(40, 1)) for centre in centres])
    model = DoubleBasisRegressor().fit(bags, np.cos(20 * centres))
    assert "ranks" in tried(model)
    assert "ranks" not in model.report_["choice"]["chosen"]


def test_extremes_are_chosen_where_one_point_decides():
    """One point of eighty beyond the others makes a bag's class."""
    rng = np.random.default_rng(0)
    points = [rng.random((80, 2)) for _ in range(80)]
    y = np.arange(80) % 2
    for i in np.flatnonzero(y):
        points[i][rng.integers(80)] = [1.25, rng.random()]
    bags = Bags.from_list(points)
    model = DoubleBasisClassifier(random_features=SMALL).fit(bags, y)
    assert "extremes" in model.report_["choice"]["chosen"]


def test_without_random_features_ridge_on_the_embeddings_decides():
    bags, y = bags_of()
    model = DoubleBasisRegressor(random_features=False).fit(bags, y)
    assert model.features_.second is None
    assert all(item["width"] is None for item in model.report_["choice"]["tried"])


@pytest.mark.long
def test_a_width_that_is_given_stays():
    bags, y = bags_of()
    for second in (
        RandomFourierFeatures(n_features=64, scale_multiplier=0.3),
        RandomFourierFeatures(n_features=64, scale=0.9),
    ):
        model = DoubleBasisRegressor(random_features=second).fit(bags, y)
        widths = {item["width"] for item in model.report_["choice"]["tried"]}
        assert widths == {0.3 if second.scale == "median" else None}
        if second.scale == 0.9:
            assert model.features_.second.scale == 0.9


@pytest.mark.parametrize("n", [30, 100])
def test_an_outlier_does_not_keep_others_from_being_told_apart(n):
    """One point ten thousand deviations away stretches the box of bags in memory."""
    bags, y = bags_of(n)
    points = bags.points.copy()
    points[0] = 1e4
    model = DoubleBasisRegressor(random_features=SMALL).fit(Bags(points, bags.offsets), y)
    assert any(name.endswith(("standardised", "tails drawn in")) for name in tried(model))
    assert model.score(bags[1:], y[1:]) > 0.7


@pytest.mark.long
def test_folds_choose_anew():
    """Labels of test bags have no part in the choice: of labels that are noise R² is not above
    chance, whatever is tried."""
    bags, _ = bags_of(40)
    y = np.random.default_rng(5).normal(size=40)
    scores = cross_val_score(DoubleBasisRegressor(random_features=SMALL), bags, y, cv=2)
    assert scores.mean() < 0.1


SIZE = "number of points"


def sized(label, n=80, least=5, most=150, seed=4):
    """Bags in the plane with random sizes, and ``label`` of each bag, with a little noise."""
    rng = np.random.default_rng(seed)
    sizes = np.exp(rng.uniform(np.log(least), np.log(most), n)).astype(int)
    arrays = [rng.normal(rng.uniform(0, 2), 1, (size, 2)) for size in sizes]
    return arrays, np.array([label(bag) for bag in arrays]) + rng.normal(0, 0.05, n)


@pytest.mark.long
@pytest.mark.parametrize(
    "label",
    [
        lambda bag: np.log(len(bag)),
        lambda bag: np.log(np.exp(bag[:, 0]).sum()),
        lambda bag: bag[:, 0].sum() / 50,
    ],
    ids=["log n", "log of a total", "sum"],
)
def test_the_number_of_points_is_used_where_it_helps(label):
    """Labels that the distribution of the points alone does not explain."""
    arrays, y = sized(label, n=160)
    train, test = (arrays[:120], y[:120]), (arrays[120:], y[120:])
    model = DoubleBasisRegressor().fit(*train)
    assert SIZE in model.report_["choice"]["chosen"]
    assert model.score(*test) > 0.95


@pytest.mark.long
def test_the_number_of_points_is_left_out_where_it_does_not_help(by_default):
    """It is not tried where all bags have as many points, and not taken without a clear gain."""
    assert not any(SIZE in name for name in tried(by_default))
    arrays, y = sized(lambda bag: bag[:, 0].mean(), least=60, most=90)
    values = DoubleBasisRegressor().fit(arrays, y).report_["choice"]
    assert SIZE not in values["chosen"]
    assert any(SIZE in item["name"] for item in values["tried"])
    assert values["tried"][0]["name"] == values["chosen"]


@pytest.mark.long
def test_the_number_of_points_is_joined_to_others_where_it_helps_the_best():
    """It is joined to the best embedding first, and to others only if that has less error."""
    n_joined = []
    for data in (
        sized(lambda bag: bag[:, 0].sum() / 50),
        sized(lambda bag: bag[:, 0].mean(), least=20, most=90, seed=1),
    ):
        model = DoubleBasisRegressor().fit(*data)
        n_joined.append(sum(name.endswith(f" × {SIZE}") for name in tried(model)))
    assert n_joined == [4, 1]


def decades(n=120, d=1, offset=0.0, seed=0):
    """Bags of heavy tails, whose class is their scale, from a thousandth to about 20."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 6, n)
    scales = 10.0 ** (0.85 * classes - 3)
    return [offset + s * rng.standard_t(3, (30, d)) for s in scales], classes


@pytest.mark.long
def test_scales_over_decades_are_told_apart(tmp_path):
    """Roots see small scales next to large ones, which standardising and arcsinh do not."""
    bags, classes = decades(d=2)
    new, truth = decades(d=2, seed=1)
    model = DoubleBasisClassifier().fit(bags, classes)
    assert "roots" in model.report_["choice"]["chosen"]
    assert model.score(new, truth) > 0.93
    model.save(tmp_path / "m.zarr")
    loaded = load_model(tmp_path / "m.zarr")
    np.testing.assert_array_equal(loaded.predict_proba(new), model.predict_proba(new))
    store = BagStore.create(tmp_path / "s.zarr", 2, target_names=["y"], dtype=np.float64)
    stored = DoubleBasisClassifier().fit(store.append(bags, {"y": classes.astype(float)}))
    assert (stored.predict(new).astype(int) == truth).mean() > 0.93


@pytest.mark.long
@pytest.mark.parametrize("kind", ["one-hot", "shifted", "constant"])
def test_roots_are_not_tried_where_points_do_not_spread_over_decades(kind, chosen):
    bags, y = bags_of()
    arrays = {
        "one-hot": [np.eye(3)[(bag[:, 0] > 0).astype(int)] for bag in bags],
        "shifted": [bag + 1990 for bag in bags],
        "constant": [np.column_stack([bag, np.full((len(bag), 2), [5.0, 0.0])]) for bag in bags],
    }[kind]
    model = DoubleBasisRegressor(random_features=SMALL).fit(arrays, y)
    assert not any("roots" in name for name in tried(model) | tried(chosen))


@pytest.mark.long
def test_a_fit_with_the_number_of_points_is_like_any_other(tmp_path):
    """Stores, groupbys, lazy predictions, files and intervals; classes too."""
    pd = pytest.importorskip("pandas")
    arrays, y = sized(lambda bag: np.log(len(bag)))
    model = DoubleBasisRegressor().fit(arrays, y)
    assert SIZE in model.report_["choice"]["chosen"]
    expected = model.predict(arrays)
    frame = pd.DataFrame(np.concatenate(arrays), columns=["a", "b"])
    frame["id"] = np.repeat(np.arange(len(arrays)), [len(bag) for bag in arrays])
    of_frame = DoubleBasisRegressor().fit(frame.groupby("id"), y)
    np.testing.assert_allclose(of_frame.predict(frame.groupby("id")), expected, atol=1e-6)
    store = BagStore.create(tmp_path / "s.zarr", 2, target_names=["y"], dtype=np.float64)
    store = store.append(arrays, targets={"y": y})
    stored = DoubleBasisRegressor(uncertainty=True).fit(store)
    np.testing.assert_allclose(stored.predict(store).compute(), expected, atol=1e-4)
    assert (stored.predict(arrays, return_std=True)[1] > 0).all()
    stored.save(tmp_path / "m.zarr")
    loaded = load_model(tmp_path / "m.zarr")
    np.testing.assert_array_equal(loaded.predict(arrays), stored.predict(arrays))
    classes = DoubleBasisClassifier().fit(arrays, y > np.median(y))
    assert SIZE in classes.report_["choice"]["chosen"]
    assert classes.score(arrays, y > np.median(y)) > 0.9


def test_a_sum_keeps_its_weights():
    """A part that is joined to an average has the weight of a part; weights sum to one."""
    moments = short_list(2)[0]
    pair = moments.plus(ranks_of(moments), 0.1)
    np.testing.assert_allclose(pair.weights, [0.9, 0.1])
    np.testing.assert_allclose(pair.shrunk().weights, [0.9, 0.1])
    np.testing.assert_allclose(pair.plus(moments).weights, [0.6, 0.2 / 3, 1 / 3])
    assert moments.plus(moments).weights == []
