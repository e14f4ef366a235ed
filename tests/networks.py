"""Small networks take longer to compile than to run: most optimisations are left out here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def compiled_soon() -> Iterator[None]:
    """Other tests compare networks with those of other processes, so none compiled here remains."""
    import jax

    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    try:
        yield
    finally:
        jax.config.update("jax_disable_most_optimizations", before)
        jax.clear_caches()
