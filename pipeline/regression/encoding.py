"""The names that labels are encoded by until every pass goes over `LabelledBags`."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .outcomes import Classes, Densities, Outcome, Reals, identify_outcome


class Encoding(Outcome, Protocol):
    """An outcome that encodes some of a batch's labels."""

    def labelled(self, labels: Any) -> NDArray[np.bool_]: ...
    def rows(self, labels: Any, rows: NDArray[np.int64]) -> tuple[NDArray[np.float64], int]: ...


ResponseCoefficients = Densities
encoding_to_dict = identify_outcome

__all__ = ["Classes", "Encoding", "Reals", "ResponseCoefficients", "encoding_to_dict"]
