"""Networks are small and compiled for a handful of calls: most of the work of optimising what is
compiled is spared, which takes several times as long as the calls."""

from __future__ import annotations

import jax
import pytest


@pytest.fixture(autouse=True, scope="package")
def _compiled_soon():
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)
