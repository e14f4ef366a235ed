"""The measurements of `make bench`: each yields a row of ratios when it is measured."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import RidgeCV

from bagbasis import (
    Bags,
    BagStore,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    NystroemFeatures,
    ProjectionEmbedding,
    RandomFourierFeatures,
    connect,
    cross_val_score,
)
from bagbasis.data.bags.bags import concatenate
from bagbasis.data.store.reading import partitions
from bagbasis.datasets import BLOCK, Digits
from bagbasis.jobs.experiments.speed.peers_regression import fit_dask, fit_sklearn
from bagbasis.models.ridge.penalties import Penalties
from bagbasis.models.ridge.ridge import solve, solve_gcv
from bagbasis.models.ridge.sums import RidgeStatistics, StatisticsBuilder
from tests.oracles.table import TIMED
from tests.passes import compiling_at_once, kernel_threads

from .data import OUTPUT, mixture_store
from .hdd import hdd
from .hypotheses import hypotheses
from .pairing import Row, pair
from .serving import prepare_first_answer, requests, serving

SCALE = 1.0
README = Path(__file__).parents[2] / "README.md"


def table() -> Iterator[Row]:
    """Every implementation of the oracles' table that has a peer, and the peer: what tests compare
    with the same oracle is what is timed."""
    for name, entry in TIMED.items():
        assert entry.peer is not None
        inputs = entry.make(np.random.default_rng(0), entry.n_timed)
        yield pair(
            f"{name} / peer, {entry.n_timed:,}",
            partial(entry.implementation, *inputs),
            partial(entry.peer, *inputs),
            target=entry.target,
        )


def floor(n_bags: int = 200_000, n_features: int = 4096) -> Iterator[Row]:
    """A whole fit from Zarr against the bare float32 SYRK of the same N and D."""
    store = mixture_store(n_bags)

    def syrk() -> None:
        block = np.random.default_rng(0).random((8192, n_features), dtype=np.float32)
        gram = np.zeros((n_features, n_features), dtype=np.float32, order="F")
        for start in range(0, n_bags, 8192):
            rows = block[: min(8192, n_bags - start)].T
            gram = scipy.linalg.blas.ssyrk(1.0, rows, beta=1.0, c=gram, overwrite_c=1, lower=1)

    name = f"whole fit / float32 SYRK, N = {n_bags:,}, D = {n_features:,}"
    yield pair(
        name,
        lambda: _fit(store, n_features, 1e-3 * n_bags, "cholesky"),
        syrk,
        repeats=3,
        target="≤ 1.15, withdrawn",
        floor=True,
    )


def peers(n_bags: int = 50_000, n_features: int = 4096) -> Iterator[Row]:
    """A whole fit against scikit-learn, and against dask.array on two workers.

    Both as the experiment `peers` has them: float32 all through, bags of one size in one product.
    """
    store = mixture_store(n_bags)
    gamma, alpha = 1 / (2 * SCALE**2), 1e-3 * n_bags
    sampler = RBFSampler(gamma=gamma, n_components=n_features, random_state=0)
    yield pair(
        f"whole fit / scikit-learn RBFSampler + Ridge, N = {n_bags:,}, D = {n_features:,}",
        lambda: _fit(store, n_features, alpha),
        lambda: fit_sklearn(store.url, n_bags, sampler, alpha),
        repeats=2,
        target="≥ 4 ×",
    )
    with connect("local", n_workers=2, cores_per_worker=1) as client:
        yield pair(
            f"whole fit on two workers / dask.array, N = {n_bags:,}, D = {n_features:,}",
            lambda: _fit(store, n_features, alpha),
            lambda: fit_dask(client, store.url, n_bags, n_features, gamma, alpha),
            repeats=2,
            target="≥ 4 ×",
        )


def first_example() -> Iterator[Row]:
    """CPU seconds of the README's first example, imports included, in a process of its own: with
    an empty cache of kernels, and with the cache that this leaves."""
    example = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert example is not None
    yield _cold_and_warm("first example", partial(_run, ["-c", example.group(1)]), "10 s")


def commands(n_bags: int = 500) -> Iterator[Row]:
    """CPU seconds of commands as the shell starts them, without kernels and with them kept."""
    store, first = mixture_store(n_bags), mixture_store(1)
    bags = ["-m", "bagbasis.jobs"]
    yield _cold_and_warm("bags --help", partial(_run, [*bags, "--help"]))
    with tempfile.TemporaryDirectory() as folder:
        urls = [f"model_url={folder}/model.zarr", "overwrite=true"]

        def command(job: str, data: str, *settings: str) -> Callable[[], None]:
            settings = f"data_url={data}", *urls, *settings
            return partial(
                _run, [*bags, job, *(p for setting in settings for p in ("--set", setting))]
            )

        yield _cold_and_warm(f"bags fit, {n_bags} bags of 200 points", command("fit", store.url))
        output = f"output_url={folder}/predictions.parquet"
        yield _cold_and_warm("bags predict, one bag", command("predict", first.url, output))
    yield _cold_and_warm("bags serve, start, one prediction and stop", prepare_first_answer())


def _cold_and_warm(name: str, run: Callable[[], None], target: str = "") -> Row:
    """Return CPU seconds of processes with an empty cache of kernels, and with what this leaves."""
    with (
        tempfile.TemporaryDirectory() as kernels,
        patch.dict(os.environ, NUMBA_CACHE_DIR=kernels),
    ):
        cold, warm = (_cpu_seconds_of_children(run) for _ in range(2))
    name = f"{name}, CPU seconds without kernels / with them kept"
    return Row(name, cold, warm, cold / warm, cold / warm, cold / warm, target, True)


def memory(n_bags: int = 100_000, n_features: int = 2048) -> Iterator[Row]:
    """Peak memory of a fit in its own process at N and at 10 N, both past the fixed buffers."""
    small, large = (_peak_mib(n, n_features) for n in (n_bags, 10 * n_bags))
    name = f"peak memory at 10 N ({large:.0f} MiB) / at N ({small:.0f} MiB), N = {n_bags:,}"
    yield Row(name, large, small, large / small, large / small, large / small, "≤ 1.05", True)


def solving() -> Iterator[Row]:
    """A penalty by GCV: of more rows than features against one Cholesky factor of that size, and
    of 1,257 digits against scikit-learn's `RidgeCV` on the same float32 features.

    A search begins where a part of the features has its best penalty. Of features of bags that is
    near the whole's; of a target that eight features make, and a part knows nothing of, it is not.
    """
    for n_features in (4096, 8192):
        z = np.random.default_rng(0).random((3 * n_features // 2, n_features), np.float32)
        made = {
            "mixtures": (_mixture_sums(n_features), "≤ 6"),
            "eight features": (_sums(z, z[:, :8].sum(axis=1) ** 2), ""),
        }
        for name, (sums, target) in made.items():
            penalties = Penalties.default(sums.n, "float32", is_summed=True)
            yield pair(
                f"solve with GCV / Cholesky, {name}, D = {n_features:,}",
                partial(_in_worker, solve_gcv, sums, penalties),
                partial(_in_worker, solve, sums, 1.0, 1e-7),
                repeats=2,
                target=target,
                floor=True,
            )
    bags, labels = _digits("train")
    features = RandomFourierFeatures(n_features=3000)
    model = DoubleBasisClassifier(ProjectionEmbedding(), features, alpha="gcv").fit(bags, labels)
    z = np.concatenate([z.copy() for _, z, _ in model.features_.blocks(bags, "float32")])
    peer = RidgeCV(len(bags) * 10.0 ** np.arange(-9, 2.5, 0.5))
    yield pair(
        f"fit with GCV / RidgeCV on its features, {len(bags):,} digits, D = 3,000",
        lambda: model.fit(bags, labels),
        partial(peer.fit, z, labels[:, None] == model.classes_),
        repeats=3,
        target="≤ 1",
        floor=True,
    )


def nystroem(n_bags: int = 50_000) -> Iterator[Row]:
    """Landmarks against random frequencies: a whole fit, the test errors in the names; digits are
    fewer than 2,048, so that they have 1,024 and 512 landmarks."""
    store = mixture_store(n_bags + 5000)
    bags, y = store.read(), store.targets()[:, 0]
    fits = [(bags[:n_bags], y[:n_bags], bags[n_bags:], y[n_bags:], DoubleBasisRegressor)]
    train, test = _digits("train"), _digits("test")
    fits.append((*train, *test, DoubleBasisClassifier))
    sizes_of = ((2048, 1536, 1024), (1024, 512))
    for (x, labels, others, truth, kind), sizes in zip(fits, sizes_of, strict=True):
        other = kind(ProjectionEmbedding(), RandomFourierFeatures(n_features=2048))
        for n_features in sizes:
            is_out_of_reach = n_features == 2048  # see `kept.REASONS`
            ours = kind(ProjectionEmbedding(), NystroemFeatures(n_features=n_features))
            row = pair(
                f"Nyström {n_features:,} / Fourier 2,048, fit of {len(x):,} {kind.__name__}",
                partial(ours.fit, x, labels),
                partial(other.fit, x, labels),
                repeats=3,
                target="≤ 1.3, withdrawn" if is_out_of_reach else "≤ 1.3",
                floor=True,
            )
            errors = [_error(model, others, truth) for model in (ours, other)]
            yield replace(row, name=f"{row.name}, error {errors[0]:.4g} / {errors[1]:.4g}")


def fractions(n_bags: int = 50_000) -> Iterator[Row]:
    """Points as 16-bit fractions against float32: bytes on the disk, and seconds to read all."""
    source = mixture_store(n_bags)
    stores, sizes = [], []
    for dtype in ("uint16", "float32"):
        url = OUTPUT / f"gmm-{n_bags}-{dtype}.zarr"
        store = BagStore.create(
            url, source.n_dims, target_names=(), box=source.box, dtype=dtype, overwrite=True
        )
        stores.append(store.append(source.read()))
        files = (path for path in (url / "points").rglob("*") if path.is_file())
        sizes.append(sum(path.stat().st_size for path in files))
    ratio = sizes[0] / sizes[1]
    reads = [partial(_read_through, store) for store in stores]
    name = f"uint16 / float32, {source.n_points:,} points"
    yield Row(f"{name}: bytes", *sizes, ratio, ratio, ratio, "≤ .55", True)
    yield pair(f"{name}: reading", *reads, repeats=15, target="≤ .7", floor=True)


def choice(n_bags: int = 100_000, n_dims: int = 5863) -> Iterator[Row]:
    """CPU seconds of the default's choice, against what it may take: ten, or a tenth of the fit.

    Measured on many bags with few coordinates, and on few bags with as many as text has.
    """
    DoubleBasisRegressor().fit(mixture_store(2000))  # compiles the kernels
    store, rng = mixture_store(n_bags), np.random.default_rng(0)
    yield _choice(f"choice of the default / its limit, CPU seconds, N = {n_bags:,}, d = 2", store)
    wide = [rng.random((30, n_dims)) * (rng.random(n_dims) < 0.05) for _ in range(110)]
    of_first = np.array([bag[:, :10].mean() for bag in wide])
    yield _choice(f"the same, N = {len(wide)}, d = {n_dims:,}", wide, of_first)


def _choice(name: str, *arguments: Any) -> Row:
    begun = time.process_time()
    report = DoubleBasisRegressor().fit(*arguments).report_
    seconds = report["choice"]["seconds"]
    limit = max(10.0, 0.1 * (time.process_time() - begun - seconds))
    ratio = seconds / limit
    return Row(name, seconds, limit, ratio, ratio, ratio, "≤ 1", True)


def _read_through(store: BagStore) -> None:
    for start, stop in partitions(store, 0, store.n_bags):
        store.read(start, stop)


def folds(n_bags: int = 200_000, n_features: int = 1024) -> Iterator[Row]:
    """Five folds from one pass against one fit; both choose their penalties by GCV."""
    store = mixture_store(n_bags)
    bases = ProjectionEmbedding(), RandomFourierFeatures(n_features=n_features, scale=SCALE)
    model = DoubleBasisRegressor(*bases)
    name = f"five folds / one fit, N = {n_bags:,}, D = {n_features:,}"
    ours, other = partial(cross_val_score, model, store), partial(model.fit, store)
    yield pair(name, ours, other, repeats=3, target="≤ 1.3, withdrawn", floor=True)


def gradients(n_bags: int = 50_000) -> Iterator[Row]:
    """A fit as ``solver="auto"`` makes it, by conjugate gradients, against the exact one."""
    store = mixture_store(n_bags)
    for n_features, target in ((4096, "≤ .45"), (8192, "≤ .3")):
        yield pair(
            f"fit, auto / exact, N = {n_bags:,}, D = {n_features:,}",
            partial(_fit, store, n_features, 1e-3 * n_bags),
            partial(_fit, store, n_features, 1e-3 * n_bags, "cholesky"),
            repeats=2,
            target=target,
            floor=True,
        )


def _mixture_sums(n_features: int) -> RidgeStatistics:
    """Sums of the features of half as many bags again."""
    n_bags = 3 * n_features // 2
    store = mixture_store(50_000)
    bags, labels = store.read(0, n_bags), store.targets(0, n_bags)[:, 0]
    model = _fit(mixture_store(2000), n_features, 1.0)
    z = np.concatenate([z.copy() for _, z, _ in model.features_.blocks(bags, "float32")])
    return _sums(z, labels)


def _sums(z: NDArray[np.float32], y: NDArray[Any]) -> RidgeStatistics:
    builder = StatisticsBuilder(z.shape[1], 1)
    builder.add(z, y[:, None])
    return builder.finish()


def _digits(split: str) -> tuple[Bags, NDArray[np.float64]]:
    digits = Digits(split=split)
    blocks = [digits.block(i) for i in range(-(-digits.n_bags // BLOCK))]
    labels = np.concatenate([labels[:, 0] for _, labels in blocks])
    return concatenate([bags for bags, _ in blocks]), labels


def _error(model: Any, bags: Bags, truth: NDArray[np.float64]) -> float:
    """RMSE of numbers, the fraction of wrong classes."""
    predicted = model.predict(bags)
    if isinstance(model, DoubleBasisClassifier):
        return float(np.mean(predicted != truth))
    return float(np.sqrt(np.mean((predicted - truth) ** 2)))


def _in_worker(call: Callable[..., object], *arguments: object) -> None:
    with kernel_threads():
        call(*arguments)


SUITES: dict[str, Callable[[], Iterator[Row]]] = {
    "table": table,
    "floor": floor,
    "peers": peers,
    "memory": memory,
    "first": first_example,
    "commands": commands,
    "solving": solving,
    "gradients": gradients,
    "nystroem": nystroem,
    "fractions": fractions,
    "folds": folds,
    "choice": choice,
    "hdd": hdd,
    "hypotheses": hypotheses,
    "serving": serving,
    "requests": requests,
}


def _fit(
    store: object, n_features: int, alpha: float, solver: str = "auto"
) -> DoubleBasisRegressor:
    bases = ProjectionEmbedding(), RandomFourierFeatures(n_features=n_features, scale=SCALE)
    return DoubleBasisRegressor(*bases, alpha=alpha, solver=solver).fit(store)


def _run(arguments: list[str]) -> None:
    """Run Python in a new process and an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd=folder)


def _cpu_seconds_of_children(run: Callable[[], None]) -> float:
    """Return the CPU seconds of the processes that a call starts and waits for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _peak_mib(n_bags: int, n_features: int) -> float:
    store = mixture_store(n_bags)
    script = (
        "import json, sys\n"
        "from bagbasis import BagStore\n"
        "from tests.benchmarks.data import peak_mib\n"
        "from tests.benchmarks.suites import _fit\n"
        "_fit(BagStore.open(sys.argv[1]), int(sys.argv[2]), 1.0)\n"
        "print(json.dumps(peak_mib()))\n"
    )
    command = [sys.executable, "-c", script, store.url, str(n_features)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(json.loads(done.stdout))


def one_worker() -> None:
    """Compile the kernels before anything is timed."""
    with kernel_threads(), compiling_at_once():
        _fit(mixture_store(2000), 64, 1.0)
