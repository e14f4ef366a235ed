"""Small networks take longer to compile than to run: most optimisations are left out here."""

from __future__ import annotations

import jax
import pytest


@pytest.fixture(autouse=True, scope="module")  # a package is a folder with __init__.py for pytest
def _compiled_soon():
    """Other tests compare networks with those of other processes, so none compiled here remains."""
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)
    jax.clear_caches()
