"""Base classes of random features: the estimator that users configure, and its fitted spec."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from typing_extensions import override

from ...core import Integer, ListOf, OneOf, Pair, RandomSeed, Real, component
from ...core.arrays import Floats
from ...core.errors import ParameterError
from ...core.sklearn_bases import BaseEstimator, TransformerMixin, validated
from ...data.store.sampling import MEDIAN_ROWS, median_distance, spread_rows
from ...execution.checkpoint_stores import StateCheckpoints
from ...execution.costs import Cost
from ...execution.passes import check_memory
from ..transforms import Transform
from .completion import COMPLETE, Completion
from .spectrum_evidence import SpectrumSums

SCALE_BOUNDS = 1e-30, 1e30  # outside, embeddings divided by the width may overflow float32
KernelWidth = Annotated[float, Real(*SCALE_BOUNDS)]

_FEWER = "take fewer features, or transform fewer rows at a time"

SampleRows = Callable[[int], NDArray[Any]]
"""Function that returns about n rows; called only to choose open parameters."""
Blocks = tuple[tuple[int, float], ...]
"""Number of inputs and weight of each kernel in a sum of kernels; () for a single kernel."""
BLOCKS = ListOf(Pair(Integer(1), Real(gt=0)))


class FeatureSpec(Transform):
    """Base class of fitted random features: immutable and picklable.

    Attributes
    ----------
    n_inputs : int
        Length s of an input row.
    scale : float
        Width σ of the kernel.

    See Also
    --------
    RandomFeatures : Base class of random features.
    FourierSpec : Fitted random Fourier features.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import MomentsEmbedding, RandomFourierFeatures
    >>> A = MomentsEmbedding().fit_transform(X)
    >>> RandomFourierFeatures(n_features=64).fit(A).spec_.n_features
    64
    """

    if TYPE_CHECKING:  # at run time an inherited property would shadow a field of this name

        @property
        def n_inputs(self) -> int:
            """Length s of an input row."""

        @property
        def scale(self) -> float:
            """Width σ of the kernel."""

    @abstractmethod
    def cost_in(self, precision: str) -> Cost:
        """Return the cost of features per row, without the array of features."""

    @abstractmethod
    def transform(self, embeddings: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the features of rows (n, s) into ``out``, shape (n, D), in the dtype of ``out``."""

    @property
    def completion(self) -> Completion:
        """Linear map from the features of `begin` to those of `transform`; applied once to sums."""
        return COMPLETE

    def begin(self, embeddings: NDArray[Any], out: NDArray[Any]) -> None:
        """Write incomplete features into ``out``; `completion` turns them into `transform`'s."""
        self.transform(embeddings, out)


class LabelledSums(Protocol):
    """Function from a `FeatureSpec` to sums over labelled rows; ``stage`` is for progress."""

    @property
    def checkpoint_store(self) -> StateCheckpoints | None:
        """Checkpoint store for the state of learning, if there is one."""
        ...

    def __call__(self, spec: FeatureSpec, n_rows: int, stage: str, /) -> SpectrumSums:
        """Return the centred sums."""
        ...


class ArraySpec(FeatureSpec):
    """Base class of fitted features with arrays; two are equal if all bits are equal."""

    @property
    @abstractmethod
    def plain(self) -> object:
        """All fields except arrays, as an object whose ``repr`` is complete."""

    @override
    def arrays(self) -> dict[str, Floats]:
        return {name: getattr(self, name) for name in self.array_names}

    @property
    def described(self) -> dict[str, Any]:
        """Additional entries of the description of this class."""
        return {}

    @override
    def to_dict(self) -> dict[str, Any]:
        # the digest stands for the arrays
        names = ("n_inputs", "n_features", "scale", "digest")
        own = {name: getattr(self, name) for name in names}
        return {"name": self.kind_name, **self.described, **own}

    def __eq__(self, other: object) -> bool:
        """Return whether all bits are equal."""
        return isinstance(other, type(self)) and self.digest == other.digest

    def __hash__(self) -> int:
        """Return a hash that is consistent with `__eq__`."""
        return hash(self.digest)

    @cached_property
    def digest(self) -> str:
        """Hash of all fields and arrays."""
        digest = hashlib.sha256(repr(self.plain).encode())
        for array in self.arrays().values():
            digest.update(repr(array.shape).encode() + np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()[:32]


@component
class RandomFeatures(TransformerMixin, BaseEstimator):
    """Base class of transformers whose inner products approximate a kernel.

    Attributes
    ----------
    spec_ : FeatureSpec
        The fitted random features.

    See Also
    --------
    bagbasis.RandomFourierFeatures : Random Fourier features of embeddings.
    bagbasis.NystroemFeatures : Kernel features from landmark bags.
    bagbasis.LearnedFourierFeatures : Random features whose frequencies are learned.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import MomentsEmbedding
    >>> from bagbasis.embeddings import RANDOM_FEATURES
    >>> A = MomentsEmbedding().fit_transform(X)
    >>> RANDOM_FEATURES['fourier'](n_features=64).fit_transform(A).shape
    (80, 64)
    """

    scale: KernelWidth | Annotated[str, OneOf("median")] = "median"
    scale_multiplier: Annotated[float, Real(gt=0)] = 1.0
    seed: RandomSeed = 0
    spec_: FeatureSpec = field(init=False)
    spec_kind: ClassVar[type[FeatureSpec]]
    """Class of the spec."""
    kind_name: ClassVar[str]
    """Name under which the random features are registered."""
    learns: ClassVar[bool] = False  # whether `resolve` needs ``labelled``

    @abstractmethod
    def resolve(
        self,
        n_inputs: int,
        sample: SampleRows,
        blocks: Blocks = (),
        labelled: LabelledSums | None = None,
    ) -> FeatureSpec:
        """Return the spec for rows of R^n_inputs; ``blocks`` define a sum of kernels.

        ``labelled`` is for features that learn from labels. It is None if no label may be used.
        """

    def for_comparison(self, n_inputs: int, blocks: Blocks) -> RandomFeatures:
        """Return the features for comparing embeddings and widths without using labels."""
        return self

    def resolve_scale(
        self,
        sample: SampleRows,
        blocks: Blocks,
        *,
        median: Callable[[NDArray[Any]], float] = median_distance,
    ) -> float:
        """Return σ; the ``median`` distance of a sample is computed only if it is needed.

        For ``blocks``, σ is the geometric mean over the kernels of the blocks.
        """
        if not isinstance(self.scale, str):
            return float(self.scale)
        multiplier = self.scale_multiplier
        rows = sample(MEDIAN_ROWS)
        if not blocks:
            return multiplier * median(rows)
        ends = np.cumsum([n for n, _ in blocks])[:-1]
        medians = [median(part) for part in np.split(rows, ends, axis=1)]
        halves = 0.5 * np.log([weight for _, weight in blocks])
        return multiplier * float(np.exp(np.mean(np.log(medians) - halves)))

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Choose open parameters from rows of X, shape (n_samples, n_inputs)."""
        rows = validated(self, X, dtype=[np.float32, np.float64])
        self.spec_ = self.resolve(rows.shape[1], lambda n: spread_rows(rows, n))
        return self

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """Return features, shape (n_samples, n_features), float32 or float64 like X."""
        check_is_fitted(self)
        rows = validated(self, X, dtype=[np.float32, np.float64], reset=False)
        cost = self.spec_.cost_in(rows.dtype.name)
        needed = cost.bytes_per_task + len(rows) * rows.itemsize * self.spec_.n_features
        check_memory(f"{self.spec_.n_features:,} features of {len(rows):,} rows", needed, _FEWER)
        out = np.empty((len(rows), self.spec_.n_features), dtype=rows.dtype)
        self.spec_.transform(rows, out)
        return out

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags: the dtype of X is preserved."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def check_blocks(blocks: object, n_inputs: int) -> Blocks:
    """Return blocks as plain numbers; ParameterError if they do not match the inputs."""
    pairs = BLOCKS.check("blocks", blocks)
    plain = tuple((int(n), float(weight)) for n, weight in pairs)
    if plain and sum(n for n, _ in plain) != n_inputs:
        raise ParameterError(f"blocks is {plain}; expected {n_inputs} inputs in all")
    return plain
