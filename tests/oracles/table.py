"""Every implementation against its oracle, for the tests; those with a peer, for benchmarks."""

from __future__ import annotations

from .embedding_entries import embeddings
from .fourier_entries import random_features
from .hdd_entries import hdd_embeddings
from .implementation import Implementation
from .ridge_entries import regression
from .series_entries import evaluations, projections
from .timed_entries import timed

IMPLEMENTATIONS: dict[str, Implementation] = {
    entry.name: entry
    for entries in (
        projections(),
        evaluations(),
        random_features(),
        regression(),
        embeddings(),
        hdd_embeddings(),
        timed(),
    )
    for entry in entries
}

TIMED = {name: entry for name, entry in IMPLEMENTATIONS.items() if entry.peer is not None}
