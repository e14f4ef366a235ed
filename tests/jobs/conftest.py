"""One small regression and one small classification, generated and fitted once."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.jobs.running import done, settings
from tests.networks import compiled_soon


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine, in a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(scope="session")
def regression(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with bags.zarr (300 mixtures) and a model.zarr that held 30 % of them out."""
    where = tmp_path_factory.mktemp("regression")
    data = settings(url=where / "bags.zarr", n_bags=300, params__n_points=40)
    done("generate", "gmm_components", *data)
    urls = settings(data_url=where / "bags.zarr", model_url=where / "model.zarr", holdout=0.3)
    model = settings(model__embedding="projection", model__random_features__n_features=64)
    done("fit", *urls, *model)
    return where


@pytest.fixture(scope="session")
def classification(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with bags.zarr (540 digits) and a classifier of them, model.zarr."""
    where = tmp_path_factory.mktemp("classification")
    done("generate", "digits", *settings(url=where / "bags.zarr", params__split="test"))
    urls = settings(data_url=where / "bags.zarr", model_url=where / "model.zarr")
    model = settings(
        model__task="classification",
        model__embedding__n_per_dim=4,
        model__random_features__n_features=64,
    )
    done("fit", *urls, *model)
    return where


@pytest.fixture(scope="module", autouse=True)
def _coarse_pictures_and_small_forests() -> Iterator[None]:
    """Fewer pixels and trees: drawing and the trees of heads take most of the time of jobs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bagbasis.jobs.pictures.evaluation.DOTS_PER_INCH", 60)
        patch.setattr("bagbasis.models.stacking.N_RANDOMISED", 20)
        yield


@pytest.fixture
def with_networks() -> Iterator[None]:
    """What this process alone compiles of networks is compiled soon, and forgotten."""
    with compiled_soon():
        yield
