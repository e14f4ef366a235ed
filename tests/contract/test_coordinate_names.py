"""Every public call where bags meet others compares names: one order, or a refusal."""

from __future__ import annotations

import inspect
from copy import deepcopy
from functools import cache

import numpy as np
import pandas as pd
import pytest

import bagbasis.embeddings
from bagbasis import (
    BagbasisError,
    BagStore,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    KernelSmoother,
    MomentsEmbedding,
    PointTransformer,
    TripleBasisRegressor,
    as_bags,
    as_responses,
    evaluate,
    features,
    merge_stores,
)
from bagbasis.densities import (
    DivergenceKernel,
    ExponentialFamilyDensity,
    divergence_matrix,
    estimate_densities,
    kde_at,
)
from bagbasis.embeddings import Embedding, RandomFeatures
from bagbasis.hypotheses import IndependentSubspaces, fit_test, two_sample_test
from bagbasis.models import explain, iter_predictions, permutation_importance, write_predictions
from bagbasis.operations import DriftDetector, drift_test
from tests.contract.public import public_callables

RNG = np.random.default_rng(0)
N = 16
Y = np.arange(N) / N
CLASSES = ["a", "b"] * (N // 2)
ANSWERS = [RNG.random((5, 1)) for _ in range(N)]
FRAMES = [
    pd.DataFrame({"u": RNG.random(9) * (1 + i), "v": RNG.random(9) * 5, "w": RNG.random(9)})
    for i in range(N)
]
TURNED = [frame[["w", "u", "v"]] for frame in FRAMES]
RENAMED = [frame.rename(columns={"u": "uu"}) for frame in FRAMES]
BOX = [(0, 20)] * 3
KINDS = {
    name: kind
    for name in bagbasis.embeddings.__all__
    if inspect.isclass(kind := getattr(bagbasis.embeddings, name))
    and issubclass(kind, Embedding)
    and not inspect.isabstract(kind)
}


def stored(frames, url, ids=None):
    made = BagStore.create(url, 3, target_names=["y"], box=BOX, overwrite=True)
    return made.append(frames, {"y": Y}, ids=ids)


def read_only(frames, url):
    """A store of these frames in the folder, made once: no call changes it."""
    place = url / f"{'-'.join(frames[0].columns)}.zarr"
    return BagStore.open(place) if place.exists() else stored(frames, place)


@cache
def regressor(**arguments):
    return DoubleBasisRegressor(MomentsEmbedding(), alpha=1.0, **arguments).fit(FRAMES, Y)


@cache
def classifier(**arguments):
    return DoubleBasisClassifier(MomentsEmbedding(), alpha=1.0, **arguments).fit(FRAMES, CLASSES)


@cache
def triple(**arguments):
    return TripleBasisRegressor(MomentsEmbedding(), alpha=1.0, **arguments).fit(FRAMES, ANSWERS)


@cache
def smoother():
    return KernelSmoother(MomentsEmbedding()).fit(FRAMES, responses=ANSWERS)


@cache
def calibrated(make):
    """A model with intervals, or sets, of its own: `make` hands out one that all share."""
    model = deepcopy(make())
    return model.conformalize(FRAMES, Y if make is regressor else CLASSES, cv=4)


def written(frames, url):
    write_predictions(regressor(), read_only(frames, url), url / "p.zarr", overwrite=True)
    import zarr

    return zarr.open_group(url / "p.zarr", mode="r")["predictions"][:]


def conformal(frames, url):
    model = deepcopy(regressor()).conformalize(frames, Y, cv=4)
    return np.column_stack(model.predict_interval(FRAMES, coverage=0.5))


@cache
def density():
    return ExponentialFamilyDensity(n_features=16, bandwidth=1.0, alpha=1e-3).fit(FRAMES)


@cache
def embedding(kind):
    return kind().fit(FRAMES)


@cache
def detector():
    return DriftDetector(n_permutations=9, n_frequencies=8).fit(FRAMES)


@cache
def subspaces():
    return IndependentSubspaces(n_features=4).fit(pd.concat(FRAMES))


@cache
def densities():
    return estimate_densities(FRAMES, smoothness=1.0, box=BOX)


def detected(frames, url):
    return detector().test(frames).p_value


CALLS = {
    "as_bags": lambda b, _: as_bags([FRAMES[0], *b]).points,
    "as_responses": lambda b, _: as_responses([FRAMES[0], *b], N + 1).points,
    "ExponentialFamilyDensity.log_density": lambda b, _: density().log_density(b[0]),
    "ExponentialFamilyDensity.score": lambda b, _: density().score(b[0]),
    "ExponentialFamilyDensity.log_density_gradient": lambda b, _: pd.DataFrame(
        density().log_density_gradient(b[0]), columns=b[0].columns
    ).reindex(columns=["u", "v", "w"]),
    "Densities.at": lambda b, _: densities().at(b[0]),
    "Densities.l2_distance": lambda b, _: densities().l2_distance(
        estimate_densities(b, smoothness=1.0, box=BOX)
    ),
    "kde_at": lambda b, _: kde_at(FRAMES, b[0], bandwidth=0.2, box=BOX),
    "fit_test": lambda b, _: fit_test(b[0], density(), n_draws=9).statistic,
    "IndependentSubspaces.transform": lambda b, _: subspaces().transform(b[0]),
    "DivergenceKernel.transform": lambda b, _: DivergenceKernel().fit(FRAMES).transform(b),
    "divergence_matrix": lambda b, _: divergence_matrix(FRAMES, b),
    "PointTransformer.transform_points": lambda b, _: (
        PointTransformer(embedding=MomentsEmbedding()).fit(FRAMES).transform_points(b).points
    ),
    "evaluate": lambda b, _: evaluate(regressor(), b, Y).score,
    "explain": lambda b, _: explain(regressor(), b[0]).shift,
    "permutation_importance": lambda b, _: np.array(permutation_importance(regressor(), b, Y).drop),
    "two_sample_test": lambda b, _: two_sample_test(FRAMES, b, n_permutations=9).statistic,
    "DoubleBasisClassifier.bag_scores": lambda b, _: np.array(
        classifier(uncertainty=True).bag_scores(b)
    ),
    "DoubleBasisClassifier.conformalize": lambda b, _: (
        deepcopy(classifier()).conformalize(b, CLASSES, cv=4).predict_set(FRAMES, coverage=0.5)
    ),
    "DoubleBasisClassifier.predict_set": lambda b, _: calibrated(classifier).predict_set(
        b, coverage=0.5
    ),
    "DoubleBasisClassifier.decision_function": lambda b, _: classifier().decision_function(b),
    "DoubleBasisClassifier.predict": lambda b, _: classifier().predict(b) == "a",
    "DoubleBasisClassifier.predict_proba": lambda b, _: classifier().predict_proba(b),
    "DoubleBasisClassifier.predict_log_proba": lambda b, _: classifier().predict_log_proba(b),
    "DoubleBasisClassifier.score": lambda b, _: classifier().score(b, CLASSES),
    "DoubleBasisRegressor.bag_scores": lambda b, _: np.array(
        regressor(uncertainty=True).bag_scores(b)
    ),
    "DoubleBasisRegressor.conformalize": conformal,
    "DoubleBasisRegressor.predict": lambda b, _: regressor().predict(b),
    "RidgeModel.predict": lambda b, _: regressor().model_.predict(b),
    "DoubleBasisRegressor.predict_interval": lambda b, _: np.array(
        calibrated(regressor).predict_interval(b, coverage=0.5)
    ),
    "DoubleBasisRegressor.score": lambda b, _: regressor().score(b, Y),
    "KernelSmoother.densities": lambda b, _: smoother().densities(b).coefficients,
    "KernelSmoother.predict": lambda b, _: smoother().predict(b),
    "KernelSmoother.predict_density": lambda b, _: smoother().predict_density(b, grid=4),
    "KernelSmoother.sample": lambda b, _: smoother().sample(b, 5).points,
    "KernelSmoother.score": lambda b, _: smoother().score(b, responses=ANSWERS),
    "TripleBasisRegressor.bag_scores": lambda b, _: np.array(
        triple(uncertainty=True).bag_scores(b)
    ),
    "TripleBasisRegressor.densities": lambda b, _: triple().densities(b).coefficients,
    "TripleBasisRegressor.predict": lambda b, _: triple().predict(b),
    "TripleBasisRegressor.predict_density": lambda b, _: triple().predict_density(b, grid=4),
    "TripleBasisRegressor.sample": lambda b, _: triple().sample(b, 5).points,
    "TripleBasisRegressor.score": lambda b, _: triple().score(b, ANSWERS),
    "features": lambda b, url: np.asarray(features(read_only(b, url), embedding(MomentsEmbedding))),
    "iter_predictions": lambda b, url: np.concatenate(
        [item.prediction for item in iter_predictions(regressor(), read_only(b, url))]
    ),
    "write_predictions": written,
    "DriftDetector.predict": lambda b, _: detector().predict(b).p_value,
    "DriftDetector.test": detected,
    "drift_test": lambda b, _: drift_test(FRAMES, b, n_permutations=9).statistic,
    "BagStore.append": lambda b, url: stored(FRAMES, url / "s").append(b).read().points,
    "merge_stores": lambda b, url: (
        merge_stores(
            [read_only(FRAMES, url), stored(b, url / "t", ids=np.arange(N) + N)],
            url / "m",
            overwrite=True,
        )
        .read()
        .points
    ),
    "DoubleBasisRegressor.predict of a store": lambda b, url: np.asarray(
        regressor().predict(read_only(b, url))
    ),
    "DoubleBasisRegressor.predict_interval of a store": lambda b, url: np.stack(
        calibrated(regressor).predict_interval(read_only(b, url), coverage=0.5)
    ),
    "DoubleBasisClassifier.predict_proba of a store": lambda b, url: np.asarray(
        classifier().predict_proba(read_only(b, url))
    ),
    "TripleBasisRegressor.predict of a store": lambda b, url: np.asarray(
        triple().predict(read_only(b, url))
    ),
    "KernelSmoother.predict of a store": lambda b, url: np.asarray(
        smoother().predict(read_only(b, url))
    ),
    "evaluate of a store": lambda b, url: evaluate(regressor(), read_only(b, url), Y).score,
    "DriftDetector.test of a store": lambda b, url: detected(read_only(b, url), url),
    "two_sample_test of stores": lambda b, url: (
        two_sample_test(FRAMES, read_only(b, url), n_permutations=9).statistic
    ),
    **{
        f"{name}.transform": lambda b, _, kind=kind: embedding(kind).transform(b)
        for name, kind in KINDS.items()
    },
}
# calls of these names in which no second set of named coordinates meets the first
ALONE = {
    "connect": "no bags",
    "GMMComponents.densities": "of one set",
    "SyntheticMapping.densities": "of one set",
    "Densities.sample": "takes no bags",
    "ExponentialFamilyDensity.sample": "takes no bags",
    "choose_smoothness": "of one set",
    "PSDRepair.transform": "matrices",
    "PrecomputedNystroem.transform": "matrices",
    "Embedding.transform": "abstract",
    "EmbeddingSpec.embed": "abstract",
    "SeriesEmbedding.transform": "arrays of series",
    "judge_fit": "fits models to the bags that they are judged on",
    "StreamingRidge.predict": "scikit-learn's check of columns",
    "register_images": "pictures",
    "tune": "of one set",
    "derivative_norms": "by the model's predict; norms are in the order of the bags' coordinates",
    "ingest_fcs": "columns are chosen by name",
    "ingest_frame": "columns are chosen by name",
    "ingest_patches": "columns are chosen by name",
    "ingest_tables": "columns are chosen by name",
    "log_model": "no bags",
    "save_model": "no bags",
}
VERBS = {
    "predict", "score", "transform", "predict_proba", "predict_interval", "predict_density",
    "predict_log_proba", "predict_set",
    "conformalize", "bag_scores", "densities", "sample", "log_density", "decision_function",
    "transform_points", "test", "append", "score_samples", "at", "l2_distance",
}  # fmt: skip
# names of a second set, or of what was made from a first one
OTHERS = {"data", "store", "new", "Y", "b", "reference", "stores", "points", "model", "score"}


def test_the_table_has_every_call():
    """Rows (random features) and specs, which are made inside, have no names of their own."""
    expected = set()
    for name, (call, owner) in public_callables():
        parameters = list(inspect.signature(call).parameters)
        is_method = owner is not None and name.split(".")[-1] in VERBS and parameters[1:]
        is_function = owner is None and not inspect.isclass(call) and OTHERS & set(parameters)
        spec = owner is not None and owner.__name__.endswith("Spec")
        rows = owner is not None and issubclass(owner, RandomFeatures)
        if (is_method or is_function) and not spec and not rows:
            expected.add(name)
    assert expected - CALLS.keys() - ALONE.keys() == set()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("names")


@pytest.mark.long
@pytest.mark.parametrize("name", CALLS)
def test_names_are_compared(name, folder):
    straight, turned = (
        np.asarray(CALLS[name](bags, folder), dtype=float) for bags in (FRAMES, TURNED)
    )
    np.testing.assert_allclose(turned, straight, rtol=1e-6, atol=1e-9)
    with pytest.raises(BagbasisError, match=r"'u' is missing.* 'uu' is extra"):
        CALLS[name](RENAMED, folder)
