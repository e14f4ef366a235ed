"""The base of all second bases: the estimator that users configure, and the spec that travels."""

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

SCALE_BOUNDS = 1e-30, 1e30  # beyond, embeddings divided by the width may overflow float32
KernelWidth = Annotated[float, Real(*SCALE_BOUNDS)]

FEWER = "take fewer features, or transform fewer rows at a time"

SampleRows = Callable[[int], NDArray[Any]]
"""Gives about so many rows; called only where something is chosen from data."""
Blocks = tuple[tuple[int, float], ...]
"""Consecutive inputs that have a kernel of their own: how many, and its weight. (): one kernel."""
BLOCKS = ListOf(Pair(Integer(1), Real(gt=0)))


class FeatureSpec(Transform):
    """A fitted second basis: immutable and picklable.

    Attributes
    ----------
    n_inputs : int
        Length s of its input.
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
            """Length s of its input."""

        @property
        def scale(self) -> float:
            """Width σ of the kernel."""

    @abstractmethod
    def cost_in(self, precision: str) -> Cost:
        """Return what features of a row take; their own block is the caller's."""

    @abstractmethod
    def transform(self, embeddings: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the features of rows (n, s) into ``out``, shape (n, D), in its dtype."""

    @property
    def completion(self) -> Completion:
        """The completion of begun features, done once for the sums of any number of rows."""
        return COMPLETE

    def begin(self, embeddings: NDArray[Any], out: NDArray[Any]) -> None:
        """Write features v into ``out`` as `transform` does z; the completion makes z of them."""
        self.transform(embeddings, out)


class LabelledSums(Protocol):
    """From a `FeatureSpec` to sums of about so many labelled rows; the text says which they are."""

    @property
    def checkpoint_store(self) -> StateCheckpoints | None:
        """Where learning keeps what it has come to."""
        ...

    def __call__(self, spec: FeatureSpec, n_rows: int, stage: str, /) -> SpectrumSums:
        """Return the centred sums."""
        ...


class ArraySpec(FeatureSpec):
    """A `FeatureSpec` that holds arrays; two are equal if all their bits are."""

    @property
    @abstractmethod
    def plain(self) -> object:
        """Everything besides the arrays; its ``repr`` tells all of it."""

    @override
    def arrays(self) -> dict[str, Floats]:
        return {name: getattr(self, name) for name in self.array_names}

    @property
    def described(self) -> dict[str, Any]:
        """What a description has besides what every one has."""
        return {}

    @override
    def to_dict(self) -> dict[str, Any]:
        # the digest stands for the arrays
        names = ("n_inputs", "n_features", "scale", "digest")
        own = {name: getattr(self, name) for name in names}
        return {"name": self.kind_name, **self.described, **own}

    def __eq__(self, other: object) -> bool:
        """Return whether all bits are the same."""
        return isinstance(other, type(self)) and self.digest == other.digest

    def __hash__(self) -> int:
        """Return one for `__eq__`."""
        return hash(self.digest)

    @cached_property
    def digest(self) -> str:
        """Hash of all parts."""
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
        """Return the spec for rows of R^n_inputs, of a sum of kernels where there are blocks.

        ``labelled`` is for a kind that learns from labels; None where none may be looked at.
        """

    def for_comparison(self, n_inputs: int, blocks: Blocks) -> RandomFeatures:
        """Return what embeddings and widths are compared with, where no label may be looked at."""
        return self

    def resolve_scale(
        self,
        sample: SampleRows,
        blocks: Blocks,
        median: Callable[[NDArray[Any]], float] = median_distance,
    ) -> float:
        """Return σ; the ``median`` distance of a sample is computed only if it is needed.

        For ``blocks`` it is the geometric mean of theirs, as their kernels see the inputs.
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
        """Decide what depends on data from rows of X, shape (n_samples, n_inputs)."""
        rows = validated(self, X, dtype=[np.float32, np.float64])
        self.spec_ = self.resolve(rows.shape[1], lambda n: spread_rows(rows, n))
        return self

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """Features, shape (n_samples, n_features), in the dtype of X (float32 or float64)."""
        check_is_fitted(self)
        rows = validated(self, X, dtype=[np.float32, np.float64], reset=False)
        cost = self.spec_.cost_in(rows.dtype.name)
        needed = cost.bytes_per_task + len(rows) * rows.itemsize * self.spec_.n_features
        check_memory(f"{self.spec_.n_features:,} features of {len(rows):,} rows", needed, FEWER)
        out = np.empty((len(rows), self.spec_.n_features), dtype=rows.dtype)
        self.spec_.transform(rows, out)
        return out

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn that float32 stays float32."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def check_blocks(blocks: object, n_inputs: int) -> Blocks:
    """Return blocks as plain numbers; ParameterError for what does not fit the inputs."""
    pairs = BLOCKS.check("blocks", blocks)
    plain = tuple((int(n), float(weight)) for n, weight in pairs)
    if plain and sum(n for n, _ in plain) != n_inputs:
        raise ParameterError(f"blocks is {plain}; expected {n_inputs} inputs in all")
    return plain
