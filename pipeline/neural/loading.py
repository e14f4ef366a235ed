"""`load_network`: estimators of this room from their files."""

from __future__ import annotations

import os

from ..errors import StoreError
from .bag_density import BagDensity
from .estimator import NeuralEstimator
from .files import read_arrays
from .sequences import NextPointRegressor, SequenceClassifier, SequenceRegressor
from .set_models import DeepSetsClassifier, DeepSetsRegressor
from .tan import TANDensity

KINDS: dict[str, type[NeuralEstimator]] = {
    kind.__name__: kind
    for kind in (
        BagDensity,
        DeepSetsClassifier,
        DeepSetsRegressor,
        NextPointRegressor,
        SequenceClassifier,
        SequenceRegressor,
        TANDensity,
    )
}


def load_network(path: str | os.PathLike[str]) -> NeuralEstimator:
    """Return the fitted estimator that ``save`` wrote; nothing in the file is run.

    Raises
    ------
    StoreError
        There is no such file, or it is no saved estimator.
    """
    leaves, header = read_arrays(path)
    kind = KINDS.get(str(header.get("kind")))
    if kind is None:
        raise StoreError(f"{path}: is no saved network (kind {header.get('kind')!r})")
    return kind.from_header(header, leaves, str(path))
