"""Every implementation beside its oracle: what the oracle tests run and benchmarks time."""

from __future__ import annotations

from .embedding_entries import embeddings
from .fourier_entries import random_features
from .hdd_entries import hdd_embeddings
from .implementation import Implementation
from .ridge_entries import regression
from .series_entries import evaluations, projections

IMPLEMENTATIONS: dict[str, Implementation] = {
    entry.name: entry
    for entries in (
        projections(),
        evaluations(),
        random_features(),
        regression(),
        embeddings(),
        hdd_embeddings(),
    )
    for entry in entries
}
