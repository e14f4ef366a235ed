"""What passes declare of memory: above what they take, and refused where a worker has less."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from distributed import Client, LocalCluster

from bagbasis import (
    Bags,
    Box,
    DoubleBasisRegressor,
    ExtremesEmbedding,
    KernelSmoother,
    MomentsEmbedding,
    ParameterError,
    ProjectionEmbedding,
    RandomFourierFeatures,
    SlicedWassersteinEmbedding,
)
from bagbasis.embeddings import EMBEDDINGS, FourierSpec, base
from bagbasis.embeddings.base import ChoiceSample
from bagbasis.embeddings.kernels.same_bits import INTERMEDIATE_NUMBERS
from bagbasis.embeddings.random_features.fourier import frequency_bytes
from bagbasis.execution import passes
from bagbasis.execution.costs import Cost
from bagbasis.execution.passes import PARTITIONS_HELD, RangeTask, rows_of
from bagbasis.execution.tasks import worker_memory
from bagbasis.models import stacking
from bagbasis.models.smoothing.sums import QuerySums, RowsInMemory, smoothing_cost
from tests.early import never_compiled
from tests.models.splits import Split
from tests.oracles.labelled import LabelledBags, labelled, labelled_bags, stored
from tests.oracles.planned import FeatureMap, plan_of
from tests.passes import pass_limits
from tests.traced import peak_of

PARTITION = 2**16  # bytes
FEW = labelled_bags(30)


def random_bags(n, size, n_dims):
    rng = np.random.default_rng(0)
    return Bags(rng.random((n * size, n_dims)), np.arange(n + 1) * size)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "n_dims", "options"),
    [
        (name, n_dims, {"marginals": marginals} if "marginals" in kind().get_params() else {})
        for name, kind in sorted(EMBEDDINGS.items())
        for n_dims, marginals in [(1, None), (3, 1), (3, 2)]
        if marginals != 2 or "marginals" in kind().get_params()
    ],
    ids=str,
)
def test_embeddings(name, n_dims, options):
    """Every registered embedding stays below what it declares, for few bags and for many."""
    embedding = EMBEDDINGS[name]().set_params(**options)
    for n in (1, 1024):
        bags = random_bags(n, 20, n_dims)
        spec = embedding.resolve(n_dims, Box.unit(n_dims), ChoiceSample.whole(bags))
        features = FeatureMap(spec, None)
        for dtype in ("float32", "float64"):
            with never_compiled():
                most = features.cost.bytes(n)
                peak = peak_of(lambda f=features, b=bags, t=dtype: f.embed(b, t), enough=most)
            assert peak <= most, (n, dtype)


@pytest.mark.parametrize(
    ("embedding", "size", "n_dims"),
    [
        (MomentsEmbedding(out_of_box="drop", standardize=False), 20, 1),
        (MomentsEmbedding(standardize=False), 300, 10),
        (SlicedWassersteinEmbedding(n_directions=1, n_quantiles=2**15), 2**15, 2),
        (SlicedWassersteinEmbedding(n_directions=4, n_quantiles=300), 20, 1),
        (ExtremesEmbedding(n_directions=32), 2**12, 3),
    ],
)
def test_before_kernels_are_compiled(embedding, size, n_dims, monkeypatch):
    """NumPy stays below what is declared, with as many numbers as it takes at once."""
    monkeypatch.setattr(base, "weighted_edges", lambda offsets, seconds: [0, len(offsets) - 1])
    n = INTERMEDIATE_NUMBERS // (size * n_dims)
    bags = random_bags(n, size, n_dims)
    box = Box.of([(0, 0.9)] * n_dims, n_dims)
    spec = embedding.resolve(n_dims, box, ChoiceSample.whole(bags[:10]))
    spec.fill(bags[:1], *filled(spec, 1))  # what is imported and kept at first
    out, outside = filled(spec, n)
    with never_compiled():
        peak = peak_of(lambda: spec.fill(bags, out, outside), enough=spec.scratch_bytes)
    assert INTERMEDIATE_NUMBERS * 8 < peak <= spec.scratch_bytes, peak / INTERMEDIATE_NUMBERS


def filled(spec, n):
    return np.empty((n, spec.n_features)), np.zeros(n, np.int64)


@pytest.mark.long
@pytest.mark.parametrize("head", ["trees", "stack"])
def test_predictions_by_trees(head, monkeypatch):
    """What trees see of bags, and what each head predicts, is declared besides the features."""
    monkeypatch.setattr(stacking, "N_RANDOMISED", 5)
    bags = random_bags(1024, 20, 30)
    y = np.stack([bags.means[:, j] for j in range(12)], axis=1)
    second = RandomFourierFeatures(n_features=16)
    estimator = DoubleBasisRegressor(ProjectionEmbedding(marginals=1), second, head=head)
    model = estimator.fit(bags[:60], y[:60]).model_
    for n in (1, 1024):
        most = model.prediction_cost.bytes(n)
        peak = peak_of(lambda some=bags[:n]: model.predicted(some), enough=most)
        assert peak <= most, n
        assert n < 1024 or peak > model.features.cost.bytes(n)


@pytest.mark.long
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("validation", [None, Split(0.3, 2)])
def test_a_task_of_a_fit(tmp_path, precision, validation):
    """Sums, blocks and partitions of a task stay below what the pass declares."""
    bags, y = labelled_bags(3000, most=20)
    source = labelled(stored(tmp_path / "s.zarr", bags, y))
    spec = ProjectionEmbedding(n_per_dim=8).fit(bags).spec_
    features = FeatureMap(
        spec, RandomFourierFeatures(n_features=700, scale=1.0).fit(np.eye(64)).spec_
    )
    fit = plan_of(source, features, validation, precision)
    with pass_limits(partition_bytes=PARTITION, rows_per_block=512):
        task = RangeTask.of(source, fit.reduction, [(0, 3000)])
    most = fit.cost.bytes(512) + PARTITIONS_HELD * PARTITION + 2**20  # Zarr's own
    peak = peak_of(lambda: task((0, 3000), lambda done: None), enough=most)
    assert peak <= most
    assert peak > fit.cost.bytes(512) / 4  # nor is it declared out of proportion


@pytest.mark.parametrize("n_bandwidths", [1, pytest.param(21, marks=pytest.mark.long)])
def test_a_task_of_a_smoother(n_bandwidths):
    """So do the sums of a kernel smoother."""
    rng = np.random.default_rng(0)
    rows, y, queries = rng.random((4096, 30)), rng.random((4096, 2)), rng.random((500, 30))
    saved = RowsInMemory(rows, (rows**2).sum(axis=1) / 2, y)

    def run():
        sums = QuerySums(queries, np.linspace(0.1, 1, n_bandwidths), 2)
        for block in saved.batches(0, 4096, rows_per_block=1024):
            sums.add(block)

    most = smoothing_cost(500, n_bandwidths, 30, 2).bytes(1024)
    assert peak_of(run, enough=most) <= most


def test_a_pass_that_does_not_fit_is_refused(tmp_path):
    """Before anything is read, with what it needs and what there is: fits and predictions."""
    bags, y = labelled_bags(30)
    store = stored(tmp_path / "s.zarr", bags, y)
    base = ProjectionEmbedding(n_per_dim=3)
    model = DoubleBasisRegressor(
        base, RandomFourierFeatures(n_features=2**31, scale=1.0), alpha=1.0
    )
    message = r"gradients for 2,147,483,648 features needs [\d.e+]+ GiB and has [\d.]+ GiB: take f"
    for data, labels in ((store, None), (bags, y)):
        with pytest.raises(ParameterError, match=message):
            model.fit(data, labels)
    wide = rows_of("rows", len, Cost(bytes_per_bag=2 * worker_memory()))
    with pytest.raises(ParameterError, match=r"a task of this pass needs"):
        RangeTask.of(LabelledBags(store), wide, [(0, 30)])
    assert KernelSmoother(base, bandwidth=1.0).fit(store).predict(bags).shape == (30,)


def test_a_fit_too_wide_for_the_workers(tmp_path):
    """A worker that has less memory than the matrices of a fit take is not asked to try."""
    source = labelled(stored(tmp_path / "s.zarr", *labelled_bags(30)))
    spec = ProjectionEmbedding(n_per_dim=8).fit(random_bags(2, 5, 2)).spec_
    features = FeatureMap(
        spec, RandomFourierFeatures(n_features=2**13, scale=1.0).fit(np.eye(64)).spec_
    )
    fit = plan_of(source, features, precision="float64")
    refused = r"a task of this pass needs [\d.]+ GiB and has 0\.684 GiB: take fewer features"
    with (
        LocalCluster(1, processes=False, memory_limit="700MiB", dashboard_address=None) as cluster,
        Client(cluster),
        pytest.raises(ParameterError, match=refused),
    ):
        fit.run()


def test_embeddings_alone_declare_no_frequencies():
    """A smoother, or features of an embedding alone, may be as wide as its vectors fit."""
    spec = ProjectionEmbedding(n_per_dim=250).fit(random_bags(2, 5, 2)).spec_
    assert spec.n_features == 62_500
    assert FeatureMap(spec, None).cost.bytes(16) < 2**25  # 16 bags in both precisions, 16 MB


def test_short_ranges_need_no_memory_for_long_batches(tmp_path):
    """Blocks of a lazy array hold fewer bags than a batch may: they are what is declared."""
    bags, y = labelled_bags(30)
    source = LabelledBags(stored(tmp_path / "s.zarr", bags, y))
    wide = rows_of("rows", len, Cost(bytes_per_bag=worker_memory() // 4))
    RangeTask.of(source, wide, [(start, start + 2) for start in range(0, 30, 2)])
    with pytest.raises(ParameterError, match=r"a task of this pass needs"):
        RangeTask.of(source, wide, [(0, 30)])


@pytest.mark.long
def test_frequencies_take_what_they_declare():
    """Those of a wide embedding are drawn block by block, in the type that they are used in."""
    rng = np.random.default_rng(0)
    for dtype, orthogonal in (("float32", False), ("float64", False), ("float32", True)):
        s, half = (500, 600) if orthogonal else (3000, 2000)
        rows = rng.random((4, s)).astype(dtype)
        out = np.empty((4, 2 * half), dtype)
        seeds = iter(range(1, 5))  # others are kept
        declared = frequency_bytes(
            FourierSpec(s, 2 * half, scale=1.0, seed=1, orthogonal=orthogonal), dtype
        )
        peak = peak_of(
            lambda s=s, half=half, o=orthogonal, r=rows, out=out, seeds=seeds: FourierSpec(
                s, 2 * half, scale=1.0, seed=next(seeds), orthogonal=o
            ).transform(r, out),
            enough=declared + 2**16,
        )
        assert declared / 2 < peak <= declared + 2**16, (dtype, orthogonal)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: RandomFourierFeatures(n_features=10**9, scale=1.0).fit_transform(np.eye(9)),
            r"1,000,000,000 features of 9 rows needs [\d.]+ GiB and has [\d.]+ GiB: take fewer",
        ),
        (
            lambda: DoubleBasisRegressor(None, RandomFourierFeatures(n_features=10**9)).fit(*FEW),
            r"solving for 1,000,000,000 features needs [\d.e+]+ GiB and has [\d.]+ GiB: take fewer",
        ),
        (
            lambda: DoubleBasisRegressor(
                None, RandomFourierFeatures(n_features=10**9), alpha=1.0
            ).fit(*FEW),
            r"conjugate gradients for 1,000,000,000 features needs",
        ),
    ],
)
def test_a_billion_features_are_refused(call, message):
    """With both numbers, before anything is asked for."""
    with pytest.raises(ParameterError, match=message):
        call()


def test_a_smoother_in_memory_is_refused(monkeypatch):
    """Where N embeddings do not fit, before they are made."""
    monkeypatch.setattr(passes, "AVAILABLE_BYTES", 0)
    monkeypatch.setattr(passes, "worker_memory", lambda here: 1000)
    with pytest.raises(ParameterError, match=r"keeping 30 embeddings needs .*: leave in_mem"):
        KernelSmoother(ProjectionEmbedding(n_per_dim=3), bandwidth=1.0, in_memory=True).fit(*FEW)


REUSED = """
import resource
from pathlib import Path
import numpy as np
from bagbasis.execution.worker_threads import kernel_threads, reusing_memory

def page_faults_of(n_arrays):  # of 2 MiB, one after the other
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(n_arrays):
        np.ones(2**18)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

with kernel_threads():
    print(page_faults_of(50) * resource.getpagesize())
    with reusing_memory(), reusing_memory():
        held = [np.ones(2**18) for _ in range(12)]
        full = resident()
        del held
        print(page_faults_of(50) * resource.getpagesize())
    print(full - resident())
    print(page_faults_of(50) * resource.getpagesize())
"""


def test_freed_memory_is_reused_within_a_block():
    """Each array of 2 MiB has new pages outside; inside, 50 arrays share the pages of a few. At the
    end of the block the system has them back, and arrays are new again."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    command = [sys.executable, "-c", REUSED]
    ran = subprocess.run(command, env=plain, capture_output=True, text=True, check=True)
    before, within, given_back, after = map(int, ran.stdout.split())
    assert min(before, after) > 40 * 2**21
    assert within < 10 * 2**21
    assert given_back > 8 * 2**21
