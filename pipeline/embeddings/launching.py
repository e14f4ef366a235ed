"""Calls of kernels by embeddings: compiled, or replaced by equal functions within a block."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from ..execution.pool import run_kernel

DROP_POSITION = 5  # position of ``drop`` among the arguments of a kernel over bags
KernelFunctions = Mapping[Callable[..., None], Callable[..., None]]

substitutes: ContextVar[KernelFunctions | None] = ContextVar("substitutes", default=None)
"""Functions that are called instead of kernels; see `kernels.by_arrays`."""


def embed_by(kernel: Callable[..., None], edges: Sequence[int], *arguments: Any) -> None:  # noqa: ANN401 - a kernel's
    """Call a kernel by `run_kernel`, or its substitute; a substitute cannot drop points."""
    function = (substitutes.get() or {}).get(kernel)
    if function is None or arguments[DROP_POSITION] is True:
        run_kernel(kernel, edges, *arguments)
    else:
        function(edges[0], edges[-1], *arguments)
