"""The base of all first bases: the estimator that users configure, and the spec that travels.

An embedding is an `Embedding` with an `EmbeddingSpec`, in one module (and its kernels), and one
line of `bagbasis.embeddings.EMBEDDINGS`. Its parameters are checked when the spec is made, whether
an estimator, a saved model or a caller makes it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import combinations
from typing import Annotated, Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from typing_extensions import override

from ..core import (
    Instance,
    Integer,
    ListOf,
    None_,
    OneOf,
    Open,
    Precision,
    Real,
    Text,
    check_parameters,
    checked,
    component,
    keep_checked,
)
from ..core.arrays import Floats, Integers
from ..core.errors import DataError, ParameterError
from ..core.sklearn_bases import BaseEstimator, TransformerMixin, UnfittedError, of_bags
from ..data.bags.bags import Bags, BagsInMemory, as_bags
from ..data.bags.box import BOUNDS, Box
from ..data.bags.coordinates import Names
from ..data.labelled.labelled import LabelledBags, box_of_bags
from ..data.labelled.wide_bags import warn_of_wide_bag
from ..data.store.sampling import CHOICE_SAMPLE, RunSample
from ..data.store.store import BagStore
from ..execution.costs import Cost
from ..execution.pool import weighted_edges
from ..execution.progress import Progress
from .bases.coefficients import kernel_arguments
from .description import Description
from .launching import embed_by
from .refusals import check_dims, refuse_outside
from .remembering import fill_once
from .transforms import NO_ARRAYS, Arrays, Transform

OF_SIDE = "fraction of the box's side"  # what messages call a bandwidth
COUNT_BYTES = 64  # per bag: offsets, points outside the box, whether its embedding is finite
FITTED_ON = "the embedding was fitted on"
NUMBERS_AT_ONCE = 2048  # numbers compared with the box at a time: some KiB of memory
SCRATCH_BYTES = 2**17  # index sets, ranges of threads, tables of a kernel

BoxLike = Box | Sequence[Sequence[float]]
"""A box: as such, or one (lo, hi) per dimension."""
# Fraction of a box: with 0, new extremes are lost; with 2, polynomials diverge on heavy tails.
MARGIN = 1.0
BOX = Open("one (lo, hi) per dimension", BOUNDS | None_)
OUT_OF_BOX = OneOf("clip", "drop", "error")
OutOfBox = Annotated[str, OUT_OF_BOX]
Marginals = Annotated[int, Integer(1)] | None


@dataclass(frozen=True)
class ChoiceSample:
    """The bags from which an embedding's open choices are made; none is read before it is called.

    Attributes
    ----------
    source : LabelledBags
        All of them, for what takes a pass to decide.
    runs : RunSample
        Those that a call gives.
    responses : bool
        Whether it gives their responses.
    mapped : callable or None
        Bags to the bags that are embedded in their place; None: themselves.
    progress : Progress, optional
        Progress reporter of the passes that decide.
    """

    source: LabelledBags
    runs: RunSample = CHOICE_SAMPLE
    responses: bool = False
    mapped: Callable[[Bags], Bags] | None = None
    progress: Progress | None = None

    @classmethod
    def whole(cls, bags: Bags) -> ChoiceSample:
        """Return a sample that holds all of these bags."""
        return cls(LabelledBags(bags), RunSample(1, len(bags)))

    @property
    def every_bag(self) -> LabelledBags:
        """All bags, labelled or not."""
        return replace(self.source, labels=None, left_out=None, only=None)

    def __call__(self) -> Iterable[Bags]:
        """Read the sample."""
        read = self.source.response_sample if self.responses else self.source.sample
        bags = read(self.runs)
        return bags if self.mapped is None else map(self.mapped, bags)


@dataclass(frozen=True)
class _NoSample(ChoiceSample):
    """The sample of an embedding that was not fitted: to decide anything from it is refused."""

    name: str = ""

    @property
    def every_bag(self) -> LabelledBags:
        """Refuse.

        Raises
        ------
        UnfittedError
            Always.
        """
        raise _unfitted(self.name)

    def __call__(self) -> Iterable[Bags]:
        """Refuse as `every_bag`."""
        raise _unfitted(self.name)


def _unfitted(name: str) -> UnfittedError:
    return UnfittedError(
        f"{name} is not fitted, and its parameters leave something to be chosen from bags, such as "
        "the box; call fit first"
    )


@dataclass(frozen=True, kw_only=True)
class EmbeddingSpec(Transform):
    """A fitted embedding of bags in a box: immutable, small, picklable.

    Attributes
    ----------
    out_of_box : {"clip", "drop", "error"}
    box : Box
        Or one (lo, hi) per dimension.

    Raises
    ------
    ParameterError
        A field that cannot be used.

    See Also
    --------
    Embedding : Base class of embeddings.
    spec_to_dict : Write a fitted embedding as a dictionary.
    spec_from_dict : Read a fitted embedding from a dictionary.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import MomentsEmbedding
    >>> spec = MomentsEmbedding().fit(X).spec_
    >>> spec.n_features, spec.n_dims
    (5, 2)
    """

    out_of_box: OutOfBox = "clip"
    box: Box
    nesting: ClassVar[int] = 0
    """Level of the embedding: it may be inside embeddings of higher levels."""
    bytes_before_kernels: ClassVar[int] = 0
    """The most memory that NumPy takes before kernels are compiled, see `core.compiling`."""
    ALONE: ClassVar[frozenset[str]] = frozenset()
    """Those of OMITTED that came by themselves; all others came together."""

    def __post_init__(self) -> None:
        """Keep plain values; refuse what cannot be used."""
        box = Box.of(self.box, None)
        object.__setattr__(self, "box", box)  # first: the others may depend on its dimension
        keep_checked(self)
        self.check_together()

    def check_together(self) -> None:
        """Refuse fields that cannot be used together, or in so many dimensions."""

    @property
    def n_dims(self) -> int:
        """Coordinates of a point."""
        return self.box.n_dims

    @property
    def group_size(self) -> int:
        """Coordinates that are embedded together."""
        return self.n_dims

    @property
    def groups(self) -> Integers:
        """Columns of each marginal, shape (n_groups, g)."""
        sets = list(combinations(range(self.n_dims), self.group_size))
        return np.array(sets, dtype=np.int64)

    @property
    def blocks(self) -> tuple[tuple[int, float], ...]:
        """Length and weight of each part that has a kernel of its own; () for one of the whole."""
        return ()

    @property
    @abstractmethod
    def seconds_per_point(self) -> float:
        """Time that a point takes one core, in order of magnitude."""

    @property
    def seconds_per_bag(self) -> float:
        """Time that a bag takes one core, besides its points, in order of magnitude."""
        return 0.0

    @property
    def cost(self) -> Cost:
        """The cost of `embed`, including its output in double."""
        return Cost(
            seconds_per_point=self.seconds_per_point,
            seconds_per_bag=self.seconds_per_bag,
            bytes_per_bag=8 * self.n_features + COUNT_BYTES,
            bytes_per_task=self.scratch_bytes,
        )

    @property
    def scratch_bytes(self) -> int:
        """The most memory that `fill` takes besides its output, for any number of bags."""
        return SCRATCH_BYTES + self.bytes_before_kernels

    @abstractmethod
    def describe(self) -> Description:
        """Return the description of the embedding for reports and plots."""

    def feature_names(self, coordinates: Sequence[str]) -> list[str]:
        """Name each column of `embed`, of points whose coordinates have these names."""
        kind = type(self).__name__.removesuffix("Spec").lower()
        return [f"{kind}{j}" for j in range(self.n_features)]

    def embed(self, bags: Bags, out: NDArray[Any], outside: Integers | None = None) -> int:
        """Write the embedding of each bag into ``out``; return the points outside the box.

        Parameters
        ----------
        bags : Bags
        out : float32 or float64, shape (n_bags, n_features)
        outside : int64, shape (n_bags,), optional
            Array of zeros to which the points of each bag outside the box are written.

        Raises
        ------
        DataError
            Bags of another dimension.
        BagError
            With out_of_box="error" a bag with a point outside, with "drop" a bag none of whose
            points is inside.
        """
        check_dims(bags, self.n_dims)
        if outside is None:
            outside = np.zeros(len(bags), dtype=np.int64)
        if len(bags):
            fill_once(self, bags, out, outside)
            refuse_outside(outside, out, self.out_of_box, self.box)
        return int(outside.sum())

    @abstractmethod
    def fill(self, bags: Bags, out: NDArray[Any], outside: Integers) -> None:
        """Write embeddings (NaN where "drop" left no point) and each bag's points outside."""

    def run_kernel(
        self, kernel: Callable[..., None], bags: Bags, *arguments: object, paired: bool = False
    ) -> None:
        """Call a kernel that takes bags point by point, in double, over ranges of them.

        With ``paired`` it takes points `by_precision`, and is compiled once for both dtypes.
        """
        drop = self.out_of_box == "drop"
        inputs = kernel_arguments(bags, self.groups, self.box, drop, np.dtype(np.float64))
        edges = weighted_edges(bags.offsets, self.seconds_per_point)
        # points of one dtype: to ask for it per point takes moments 1.8 times as long
        points = inputs[0] if paired else bags.points
        embed_by(kernel, edges, points, *inputs[1:], *arguments)

    def with_margin(self) -> Self:
        """Return the embedding that takes points outside the box as they are, where it can."""
        return self

    def without_margin(self) -> Self:
        """Return the embedding that embeds points inside the box alike, and has no margin."""
        return self

    def are_outside(self, points: NDArray[Any], margin: float = 0.0) -> NDArray[np.bool_]:
        """Return which points, shape (n, n_dims), lie outside the box.

        ``margin`` widens the box on each side, by this multiple of its length.
        """
        unit = self.box.to_unit(points)
        return np.asarray(((unit < -margin) | (unit > 1 + margin)).any(axis=1))

    def count_outside(self, bags: Bags, margin: float = 0.0) -> Integers:
        """Return how many points of each bag lie outside the box, see `are_outside`."""
        counts = np.zeros(len(bags), np.int64)
        step = max(1, NUMBERS_AT_ONCE // self.n_dims)
        for start in range(0, bags.n_points, step):
            block = bags.points[start : start + step]
            rows = start + np.flatnonzero(self.are_outside(block, margin))
            np.add.at(counts, np.searchsorted(bags.offsets, rows, "right") - 1, 1)
        return counts

    @property
    def is_uncertain(self) -> bool:
        """Whether embeddings have `deviations`, by the points that a bag has."""
        return False

    def deviations(self, n_points: Integers) -> Floats:
        """Return the standard deviations of embeddings of bags of so many points, shape (n, s)."""
        return np.zeros((len(n_points), self.n_features))

    def points_embedded(self, bags: Bags, outside: Integers | None = None) -> Integers:
        """Return how many points of each bag count; ``outside`` are those outside, if known."""
        if self.out_of_box != "drop":
            return bags.sizes
        return bags.sizes - (self.count_outside(bags) if outside is None else outside)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able description, equal for equal specs alone."""
        return {**super().to_dict(), "box": self.box.bounds}

    @classmethod
    @override
    def from_dict(cls, values: Mapping[str, Any], arrays: Arrays = NO_ARRAYS) -> Self:
        # ParameterError for other fields than the spec's
        values = {**values, **{name: arrays.get(name) for name in cls.array_names}}
        omitted = dict(cls.OMITTED)
        if (omitted.keys() - cls.ALONE) & values.keys():  # fields that came together
            omitted = {name: omitted[name] for name in cls.ALONE}
        values = {**omitted, **values}
        if set(values) != {field.name for field in fields(cls)}:
            raise ParameterError(f"the fields {sorted(values)} are not those of a {cls.__name__}")
        return cls(**values)


@dataclass(frozen=True, kw_only=True)
class MarginalSpec(EmbeddingSpec):
    """An `EmbeddingSpec` that may embed each set of ``marginals`` coordinates by itself.

    Attributes
    ----------
    marginals : int or None
        None: all coordinates together.
    """

    marginals: Marginals = None

    @override
    def check_together(self) -> None:
        check_marginals(self.marginals, self.n_dims)

    @property
    def group_size(self) -> int:
        """Coordinates that are embedded together."""
        return self.marginals or self.n_dims

    @property
    def is_joint(self) -> bool:
        """Whether all coordinates are embedded together."""
        return self.group_size == self.n_dims


@dataclass(frozen=True, kw_only=True)
class UnboundedSpec(EmbeddingSpec):
    """An `EmbeddingSpec` that is defined for points outside the box, too.

    Attributes
    ----------
    margin : float
        How far outside the box, in its lengths, points are taken as they are; points farther
        outside are moved to there. 0: all points outside are moved to the edge of the box.
    """

    margin: Annotated[float, Real(ge=0)] = 0.0
    OMITTED: ClassVar = {"margin": 0.0}
    ALONE: ClassVar = frozenset({"margin"})

    @override
    def with_margin(self) -> Self:
        return replace(self, margin=MARGIN) if self.out_of_box == "clip" else self

    @override
    def without_margin(self) -> Self:
        return replace(self, margin=0.0) if self.margin else self


def check_marginals(marginals: int | None, n_dims: int) -> None:
    """Raise ParameterError for more coordinates than points have."""
    (Integer(1, n_dims) | None_).check("marginals", marginals)


Spec = TypeVar("Spec", bound=EmbeddingSpec)


@component
class Embedding(TransformerMixin, BaseEstimator, ABC, Generic[Spec]):
    """Base class of embeddings, with the parameters `box`, `out_of_box` and `dtype`.

    Attributes
    ----------
    spec_ : EmbeddingSpec
        The fitted embedding, with everything that was decided at `fit`.
    n_features_in_ : int
        Coordinates of a point.

    See Also
    --------
    EmbeddingSpec : Base class of fitted embeddings.
    bagbasis.ProjectionEmbedding : Projection coefficients of a density.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis.embeddings import EMBEDDINGS
    >>> embedding = EMBEDDINGS['moments'](covariance=False).fit(X)
    >>> embedding.transform(X).shape
    (80, 2)
    """

    out_of_box: OutOfBox = "clip"
    box: Annotated[BoxLike | None, BOX] = None
    dtype: Precision = "float32"
    spec_: Spec = field(init=False)
    spec_kind: ClassVar[type[EmbeddingSpec]]
    """Class of the spec."""
    kind_name: ClassVar[str]
    """Name under which the embedding is registered."""
    nesting: ClassVar[int] = 0
    """Level of the embedding: it may contain embeddings of lower levels."""

    @abstractmethod
    def decide(self, sample: ChoiceSample, out_of_box: str, box: Box) -> Spec:
        """Return the spec for points in a box; reads ``sample()`` only for what data decide."""

    def resolve(self, n_dims: int, box: Box, sample: ChoiceSample) -> Spec:
        """Return the spec for points in R^n_dims, in ``box`` unless the parameters have one.

        Raises
        ------
        ParameterError
            A parameter that cannot be used.
        """
        check_parameters(self)
        if self.box is not None:
            return self.decide(sample, self.out_of_box, Box.of(self.box, n_dims))
        return self.decide(sample, self.out_of_box, box).with_margin()

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn that X are bags."""
        return of_bags(super().__sklearn_tags__())

    def fit(self, X: BagStore | BagsInMemory, y: object = None) -> Self:
        """Decide dimension, box and all open choices. X: Bags, list of arrays, or BagStore."""
        self._names: Names = X.coordinate_names if isinstance(X, BagStore) else None
        if isinstance(X, BagStore):
            source, box = LabelledBags(X), X.box
            self.spec_ = self.resolve(X.n_dims, box, ChoiceSample(source))
        else:
            bags = as_bags(X)
            if len(bags) == 0:
                raise DataError("no bags to fit")
            self._names = bags.coordinate_names
            source, box = LabelledBags(bags), box_of_bags(bags)
            self.spec_ = self.resolve(bags.n_dims, box, ChoiceSample.whole(bags))
        if self.box is None:
            warn_of_wide_bag(source, box)
        return self

    def transform(self, X: BagStore | BagsInMemory) -> NDArray[Any]:
        """Embeddings, shape (n_bags, s), of Bags or a list of arrays.

        No fit is needed where the parameters decide everything: with a ``box``, and nothing that
        is chosen from bags. For a BagStore there is `bagbasis.features`.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Not fitted, and the box or something else has to be chosen from bags.
        """
        if isinstance(X, BagStore):
            raise DataError(
                f"{X.url}: a store's features are lazy; use bagbasis.features(store, …)"
            )
        bags = self._in_order(as_bags(X))
        spec = getattr(self, "spec_", None)
        if spec is None:
            check_parameters(self)
            name = type(self).__name__
            if self.box is None:
                raise _unfitted(name)
            sample = _NoSample(LabelledBags(bags), name=name)
            spec = self.resolve(bags.n_dims, Box.unit(bags.n_dims), sample)
        out = np.empty((len(bags), spec.n_features), dtype=self.dtype)
        spec.embed(bags, out)
        return out

    @property
    def coordinate_names(self) -> list[str] | None:
        """Names of the coordinates of the bags fitted; None where they had none."""
        names = getattr(self, "_names", None)
        return None if names is None else list(names)

    def _in_order(self, bags: Bags) -> Bags:
        """Return bags with their coordinates in the order of those fitted."""
        return bags.in_order_of(self.coordinate_names, "these bags", FITTED_ON)

    @checked(input_features=ListOf(Text) | None_)
    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> NDArray[Any]:
        """Return a name per column of `transform`; ``input_features`` names the coordinates.

        Raises
        ------
        DataError
            Another number of names than coordinates.
        """
        check_is_fitted(self)
        n = self.spec_.n_dims
        names = [f"x{j}" for j in range(n)] if input_features is None else list(input_features)
        if len(names) != n:
            raise DataError(f"input_features has {len(names)} names, points have {n} coordinates")
        return np.array(self.spec_.feature_names(list(map(str, names))), dtype=object)

    @classmethod
    def from_params(cls, params: dict[str, Any]) -> Self:
        """Return the embedding with the parameters that a saved model has."""
        return cls(**params)

    @property
    def n_features_in_(self) -> int:
        """Coordinates of a point, after `fit`."""
        spec: Spec | None = getattr(self, "spec_", None)
        if spec is None:
            raise AttributeError(f"{type(self).__name__} has n_features_in_ after fit")
        return spec.n_dims

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` was called."""
        return hasattr(self, "spec_")


InnerEmbedding = Annotated[Embedding[Any], Instance("Embedding", "ProjectionEmbedding()")] | None
"""The embedding that another one contains; None: `ProjectionEmbedding()`."""
