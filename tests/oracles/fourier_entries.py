"""Random features next to their oracles."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagbasis.data.store.sampling import median_distance
from bagbasis.embeddings import FourierSpec
from bagbasis.embeddings.random_features.kernels.fourier_kernels import sine_cosine

from . import fourier
from .implementation import DTYPES, Implementation


def random_features() -> Iterator[Implementation]:
    for dtype in DTYPES:
        name = np.dtype(dtype).name
        for orthogonal in (False, True):
            spec = FourierSpec(30, 200, scale=1.5, seed=3, orthogonal=orthogonal)
            yield Implementation(
                f"random features {name} orthogonal={orthogonal}",
                partial(_transform, spec=spec),
                lambda a, spec=spec: fourier.features(a, spec.frequencies()),
                lambda rng, n, dtype=dtype: (rng.standard_normal((n, 30)).astype(dtype),),
                300,
                atol=3e-6 if dtype == np.float32 else 1e-14,
            )
    yield Implementation(
        "sine_cosine float32",
        _sine_cosine,
        lambda phases, out: (np.sin(phases.astype(float)), np.cos(phases.astype(float))),
        _phases,
        64,
        atol=2e-7,
        peer=_sine_cosine_of_numpy,
        n_timed=32_768,
        target="> 1 ×",
    )
    yield Implementation(
        "median distance",
        median_distance,
        fourier.median_distance_by_loop,
        lambda rng, n: (rng.standard_normal((n, 5)) + 100,),
        62,  # an odd number of pairs: the median is one of them
        rtol=1e-9,
    )


def _transform(embeddings: NDArray[Any], spec: FourierSpec) -> NDArray[Any]:
    out = np.empty((len(embeddings), spec.n_features), dtype=embeddings.dtype)
    spec.transform(embeddings, out)
    return out


def _phases(rng: np.random.Generator, n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Phases (n, 256), and room for both functions of them."""
    return rng.normal(0, 50, (n, 256)).astype(np.float32), np.zeros((n, 512), np.float32)


def _sine_cosine(phases: NDArray[Any], out: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    out[:, :256] = phases
    sine_cosine(0, len(out), out, np.float32(1))
    return out[:, :256], out[:, 256:]


def _sine_cosine_of_numpy(
    phases: NDArray[Any], out: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    np.sin(phases, out=out[:, :256])
    np.cos(phases, out=out[:, 256:])
    return out[:, :256], out[:, 256:]
