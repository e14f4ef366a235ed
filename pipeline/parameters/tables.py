"""All tables of what configs can name, by class or function."""

from __future__ import annotations

from . import (
    embeddings,
    hypotheses,
    ingest,
    neural,
    random_features,
    regression,
    retraining,
    tuning,
)
from .checks import Table

TABLES: dict[str, Table] = {
    **embeddings.TABLES,
    **random_features.TABLES,
    **regression.TABLES,
    **hypotheses.TABLES,
    **ingest.TABLES,
    **tuning.TABLES,
    **retraining.TABLES,
    **neural.TABLES,
}
