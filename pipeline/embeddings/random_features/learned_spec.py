"""`LearnedSpec`: random features of frequencies that are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from numpy.typing import NDArray
from typing_extensions import override

from ...core.arrays import Floats
from ...execution.costs import SECONDS_PER_PRODUCT, Cost
from ...execution.products import multiply
from ..transforms import NO_ARRAYS, Arrays
from .base import ArraySpec
from .fourier import complete_sines


@dataclass(frozen=True, eq=False)
class LearnedSpec(ArraySpec):
    """Random Fourier features with given frequencies.

    Attributes
    ----------
    frequencies : float64, shape (n_inputs, n_features / 2)
        Frequencies as columns.
    scale : float
        Width of the kernel from which learning started.

    See Also
    --------
    bagbasis.LearnedFourierFeatures : Random features whose frequencies are learned.
    FeatureSpec : Base class of fitted random features.

    Examples
    --------
    >>> import numpy as np
    >>> from bagbasis.embeddings import LearnedSpec
    >>> spec = LearnedSpec(np.ones((5, 16)), scale=1.0)
    >>> spec.n_features
    32
    """

    frequencies: Floats
    scale: float
    array_names = ("frequencies",)

    @property
    def n_inputs(self) -> int:
        """Length s of an input row."""
        return len(self.frequencies)

    @property
    def n_features(self) -> int:
        """Number D of features."""
        return int(2 * self.frequencies.shape[1])

    @property
    @override
    def plain(self) -> object:
        return self.scale

    def cost_in(self, precision: str) -> Cost:
        """Return the cost of features per row, without the array of features."""
        return Cost(
            seconds_per_bag=self.n_features * self.n_inputs * SECONDS_PER_PRODUCT,
            bytes_per_bag=4 * self.n_features,
            bytes_per_task=2 * self.frequencies.nbytes,
        )

    def transform(self, embeddings: NDArray[Any], out: NDArray[Any]) -> None:
        """Write √(2/D) [sin(ωᵀa), cos(ωᵀa)], shape (n, D), in the dtype of ``out``."""
        a, omega = (array.astype(out.dtype, copy=False) for array in (embeddings, self.frequencies))
        multiply(a, omega, out[:, : self.n_features // 2])
        complete_sines(out)

    @classmethod
    @override
    def from_dict(cls, values: Mapping[str, Any], arrays: Arrays = NO_ARRAYS) -> Self:
        spec = cls(arrays["frequencies"], values["scale"])
        if spec.to_dict() != values:
            raise ValueError("the frequencies are not those that the description is of")
        return spec
