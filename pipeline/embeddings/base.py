"""Base classes of embeddings: the estimator that users configure, and its fitted spec.

An embedding consists of an `Embedding` and an `EmbeddingSpec`, which share one module, and an
entry in `bagbasis.embeddings.EMBEDDINGS`. Parameters are checked when the spec is made. An
estimator, a saved model or a caller may make it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import combinations
from typing import Annotated, Any, ClassVar, Generic, Self, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from typing_extensions import TypeVar, override

from ..core import (
    Instance,
    Integer,
    None_,
    OneOf,
    Open,
    Precision,
    Real,
    TextList,
    check_parameters,
    checked,
    component,
    documented,
    keep_checked,
)
from ..core.arrays import Floats, Integers
from ..core.errors import DataError, ParameterError
from ..core.sklearn_bases import BaseEstimator, TransformerMixin, UnfittedError, of_bags
from ..data.bags.alignment import refuse_other_order
from ..data.bags.bags import Bags, BagsInMemory, as_bags
from ..data.bags.box import BOUNDS, Box
from ..data.bags.coordinates import Names
from ..data.labelled.labelled import Batch, LabelledBags, box_of_bags
from ..data.labelled.wide_bags import warn_of_wide_bag
from ..data.store.sampling import CHOICE_SAMPLE, RunSample
from ..data.store.store import BagStore
from ..execution.costs import Cost
from ..execution.lazy_dask import LazyArray
from ..execution.passes import lazy_features
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
NUMBERS_AT_ONCE = 2048  # coordinates compared with the box at a time: some KiB of memory
SCRATCH_BYTES = 2**17  # index sets, ranges of threads, tables of a kernel

BoxLike = Box | Sequence[Sequence[float]]
"""A `Box`, or one (lo, hi) per dimension."""
# Fraction of a box: with 0, new extremes are lost; with 2, polynomials diverge on heavy tails.
MARGIN = 1.0
BOX = Open("one (lo, hi) per dimension", BOUNDS | None_)
OUT_OF_BOX = OneOf("clip", "drop", "error")
OutOfBox = Annotated[str, OUT_OF_BOX]
Functions = Annotated[int, Integer(1)]
Marginals = Annotated[int, Integer(1)] | None


@dataclass(frozen=True)
class ChoiceSample:
    """A sample of bags from which an embedding chooses its data-dependent parameters.

    No bag is read before the sample is called.

    Attributes
    ----------
    source : LabelledBags
        All bags, for choices that take a pass over the data.
    runs : RunSample
        Runs of bags that a call reads.
    responses : bool
        Whether a call reads the responses of the bags instead of the bags.
    mapped : callable or None
        Function that maps bags to the bags that are embedded; None leaves bags as they are.
    progress : Progress, optional
        Progress reporter for passes over the data.
    """

    source: LabelledBags
    runs: RunSample = CHOICE_SAMPLE
    responses: bool = False
    mapped: Callable[[Bags], Bags] | None = None
    progress: Progress | None = None

    @classmethod
    def whole(cls, bags: Bags) -> ChoiceSample:
        """Return a sample of all bags."""
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
    """Sample for an embedding that is not fitted: reading the sample raises an error."""

    name: str = ""

    @property
    def every_bag(self) -> LabelledBags:
        """Raise UnfittedError.

        Raises
        ------
        UnfittedError
            In every case.
        """
        raise _unfitted(self.name)

    def __call__(self) -> Iterable[Bags]:
        """Raise UnfittedError, as `every_bag` does."""
        raise _unfitted(self.name)


def _rows_of_bags(spec: EmbeddingSpec, dtype: str, bags: Bags) -> NDArray[Any]:
    out = np.empty((len(bags), spec.n_features), dtype=dtype)
    spec.embed(bags, out)
    return out


def _rows_of_batch(spec: EmbeddingSpec, dtype: str, batch: Batch) -> NDArray[Any]:
    return _rows_of_bags(spec, dtype, batch.bags)


def _unfitted(name: str) -> UnfittedError:
    return UnfittedError(
        f"{name} is not fitted, and its parameters leave something to be chosen from bags, such as "
        "the box; call fit first"
    )


@dataclass(frozen=True, kw_only=True)
class EmbeddingSpec(Transform):
    """A fitted embedding of bags: immutable, small, picklable.

    Attributes
    ----------
    out_of_box : {"clip", "drop", "error"}
        How to treat points outside the box.
    box : Box
        Range of each coordinate; a sequence with one (lo, hi) per dimension is accepted, too.

    Raises
    ------
    ParameterError
        If a field has a value that is not allowed.

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
    """Most bytes that NumPy takes before kernels are compiled; see `core.compiling`."""
    ALONE: ClassVar[frozenset[str]] = frozenset()
    """Fields of OMITTED that were added alone; all other fields of OMITTED were added together."""

    def __post_init__(self) -> None:
        """Convert fields to plain values and check them."""
        box = Box.of(self.box, None)
        object.__setattr__(self, "box", box)  # first: the others may depend on its dimension
        keep_checked(self)
        self.check_together()

    def check_together(self) -> None:
        """Check fields that depend on each other or on the number of dimensions."""

    @property
    def n_dims(self) -> int:
        """Number of coordinates of a point."""
        return self.box.n_dims

    @property
    def group_size(self) -> int:
        """Number of coordinates that are embedded together."""
        return self.n_dims

    @property
    def groups(self) -> Integers:
        """Columns of each marginal, shape (n_groups, g)."""
        sets = list(combinations(range(self.n_dims), self.group_size))
        return np.array(sets, dtype=np.int64)

    @property
    def blocks(self) -> tuple[tuple[int, float], ...]:
        """Length and weight of each part that has its own kernel; () for a single kernel."""
        return ()

    @property
    @abstractmethod
    def seconds_per_point(self) -> float:
        """Seconds of one core per point, in order of magnitude."""

    @property
    def seconds_per_bag(self) -> float:
        """Seconds of one core per bag in addition to its points, in order of magnitude."""
        return 0.0

    @property
    def cost(self) -> Cost:
        """Cost of `embed`, including its output in float64."""
        return Cost(
            seconds_per_point=self.seconds_per_point,
            seconds_per_bag=self.seconds_per_bag,
            bytes_per_bag=8 * self.n_features + COUNT_BYTES,
            bytes_per_task=self.scratch_bytes,
        )

    @property
    def scratch_bytes(self) -> int:
        """Largest memory that `fill` takes in addition to its output, for any number of bags."""
        return SCRATCH_BYTES + self.bytes_before_kernels

    @abstractmethod
    def describe(self) -> Description:
        """Return the description of the embedding for reports and plots."""

    def feature_names(self, coordinates: Sequence[str]) -> list[str]:
        """Return a name for each column of `embed`, from the names of the coordinates."""
        kind = type(self).__name__.removesuffix("Spec").lower()
        return [f"{kind}{j}" for j in range(self.n_features)]

    def embed(self, bags: Bags, out: NDArray[Any], outside: Integers | None = None) -> int:
        """Write the embeddings of bags into ``out``; return the number of points outside the box.

        Parameters
        ----------
        bags : Bags
        out : float32 or float64, shape (n_bags, n_features)
        outside : int64, shape (n_bags,), optional
            Array of zeros. The number of points outside the box is written for each bag.

        Raises
        ------
        DataError
            If the bags have another dimension than the embedding.
        BagError
            If out_of_box="error" and a bag has a point outside the box. If out_of_box="drop" and
            a bag has no point inside the box.
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
        """Write the embeddings and the number of points outside the box of each bag.

        The embedding of a bag is NaN if "drop" removes all of its points.
        """

    def run_kernel(
        self, kernel: Callable[..., None], bags: Bags, *arguments: object, paired: bool = False
    ) -> None:
        """Call a kernel over ranges of bags; the kernel reads one point at a time, in float64.

        With ``paired`` the kernel takes points `by_precision` and is compiled once for both dtypes.
        """
        drop = self.out_of_box == "drop"
        inputs = kernel_arguments(bags, self.groups, self.box, drop, np.dtype(np.float64))
        edges = weighted_edges(bags.offsets, self.seconds_per_point)
        # One dtype for all points: a test of the dtype per point makes moments 1.8 times slower.
        points = inputs[0] if paired else bags.points
        embed_by(kernel, edges, points, *inputs[1:], *arguments)

    def with_margin(self) -> Self:
        """Return the embedding with a margin outside the box, if it supports one; else itself."""
        return self

    def without_margin(self) -> Self:
        """Return the embedding without a margin; points inside the box have the same embedding."""
        return self

    def are_outside(self, points: NDArray[Any], margin: float = 0.0) -> NDArray[np.bool_]:
        """Return which points, shape (n, n_dims), lie outside the box.

        ``margin`` widens the box on each side by this multiple of the box length.
        """
        unit = self.box.to_unit(points)
        return np.asarray(((unit < -margin) | (unit > 1 + margin)).any(axis=1))

    def count_outside(self, bags: Bags, margin: float = 0.0) -> Integers:
        """Return the number of points of each bag outside the box; see `are_outside`."""
        counts = np.zeros(len(bags), np.int64)
        step = max(1, NUMBERS_AT_ONCE // self.n_dims)
        for start in range(0, bags.n_points, step):
            block = bags.points[start : start + step]
            rows = start + np.flatnonzero(self.are_outside(block, margin))
            np.add.at(counts, np.searchsorted(bags.offsets, rows, "right") - 1, 1)
        return counts

    @property
    def is_uncertain(self) -> bool:
        """Whether `deviations` gives standard deviations that depend on the size of a bag."""
        return False

    def deviations(self, n_points: Integers) -> Floats:
        """Return standard deviations of the embeddings for bags of these sizes, shape (n, s)."""
        return np.zeros((len(n_points), self.n_features))

    def points_embedded(self, bags: Bags, outside: Integers | None = None) -> Integers:
        """Return the number of points of each bag that are embedded.

        ``outside`` is the number of points outside the box of each bag, if it is known.
        """
        if self.out_of_box != "drop":
            return bags.sizes
        return bags.sizes - (self.count_outside(bags) if outside is None else outside)

    def to_dict(self) -> dict[str, Any]:
        """Return a description for JSON; two descriptions are equal only if the specs are equal."""
        return {**super().to_dict(), "box": self.box.bounds}

    @classmethod
    @override
    def from_dict(cls, values: Mapping[str, Any], arrays: Arrays = NO_ARRAYS) -> Self:
        # raises ParameterError if the fields are not those of the spec
        values = {**values, **{name: arrays.get(name) for name in cls.array_names}}
        omitted = cls.omitted()
        if (omitted.keys() - cls.ALONE) & values.keys():  # fields that were added together
            omitted = {name: omitted[name] for name in cls.ALONE}
        values = {**omitted, **values}
        if set(values) != {field.name for field in fields(cls)}:
            raise ParameterError(f"the fields {sorted(values)} are not those of a {cls.__name__}")
        return cls(**values)


@dataclass(frozen=True, kw_only=True)
class MarginalSpec(EmbeddingSpec):
    """Base class of fitted embeddings that may embed small sets of coordinates separately.

    Attributes
    ----------
    marginals : int or None
        Number of coordinates in each set; None embeds all coordinates together.
    """

    marginals: Marginals = None

    @override
    def check_together(self) -> None:
        check_marginals(self.marginals, self.n_dims)

    @property
    def group_size(self) -> int:
        """Number of coordinates that are embedded together."""
        return self.marginals or self.n_dims

    @property
    def is_joint(self) -> bool:
        """Whether all coordinates are embedded together."""
        return self.group_size == self.n_dims


@dataclass(frozen=True, kw_only=True)
class UnboundedSpec(EmbeddingSpec):
    """Base class of fitted embeddings that are also defined for points outside the box.

    Attributes
    ----------
    margin : float
        Width of the margin around the box, as a multiple of the box length. Points in the margin
        are not moved; points beyond are moved to its edge. With 0, all points outside are moved to
        the edge of the box.
    """

    margin: Annotated[float, Real(ge=0)] = 0.0
    OMITTED: ClassVar[tuple[str, ...]] = ("margin",)
    ALONE: ClassVar = frozenset({"margin"})

    @override
    def with_margin(self) -> Self:
        return replace(self, margin=MARGIN) if self.out_of_box == "clip" else self

    @override
    def without_margin(self) -> Self:
        return replace(self, margin=0.0) if self.margin else self


def check_marginals(marginals: int | None, n_dims: int) -> None:
    """Raise ParameterError if ``marginals`` is larger than the number of coordinates."""
    (Integer(1, n_dims) | None_).check("marginals", marginals)


Spec = TypeVar("Spec", bound=EmbeddingSpec, covariant=True, default=EmbeddingSpec)


@component
class Embedding(TransformerMixin, BaseEstimator, ABC, Generic[Spec]):
    """Base class of embeddings.

    Parameters
    ----------
    out_of_box
        How to treat points outside the box; clipped and dropped points are counted.
    box : sequence of (lo, hi)
        Range of each coordinate, scaled to [0, 1]^d, so that coordinates of different units have
        the same weight. Default: the box of the store. For bags in memory, the default is the unit
        cube if it contains the data, else the range of the data plus 1 % on each side.
    dtype
        Data type of the result of `transform`.

    Attributes
    ----------
    spec_ : EmbeddingSpec
        The fitted embedding, with all parameters that `fit` chose.
    n_features_in_ : int
        Number of coordinates of a point.

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
    smoothness: ClassVar[Mapping[str, Mapping[str, Sequence[float]]]] = {}
    """Parameters for the resolution; a search varies the first of them that is not None.

    Each has the numbers to try next to a word, such as "auto"; a number is varied by factors.
    """

    @abstractmethod
    def decide(self, sample: ChoiceSample, out_of_box: str, box: Box) -> Spec:
        """Return the spec for points in a box; read ``sample()`` only to choose open parameters."""

    def resolve(self, n_dims: int, box: Box, sample: ChoiceSample) -> Spec:
        """Return the spec for points in R^n_dims; the parameter ``box`` has priority over ``box``.

        Raises
        ------
        ParameterError
            If a parameter has a value that is not allowed.
        """
        check_parameters(self)
        if self.box is not None:
            return self.decide(sample, self.out_of_box, Box.of(self.box, n_dims))
        return self.decide(sample, self.out_of_box, box).with_margin()

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags: X consists of bags."""
        return of_bags(super().__sklearn_tags__())

    def fit(self, X: BagStore | BagsInMemory, y: object = None) -> Self:
        """Choose the box and all open parameters from bags.

        Parameters
        ----------
        X : Bags, list of arrays, or BagStore
            Bags of points, all of the same dimension.
        y : object
            Ignored. With an index of pandas, it must be in the order of the ids of the bags,
            because a pipeline passes it on as it is.

        Raises
        ------
        DataError
            If there are no bags, a value cannot be used, or y is in another order.
        """
        self._names: Names = X.coordinate_names if isinstance(X, BagStore) else None
        if isinstance(X, BagStore):
            source, box = LabelledBags(X), X.box
            self.spec_ = self.resolve(X.n_dims, box, ChoiceSample(source))
        else:
            bags = as_bags(X)
            if len(bags) == 0:
                raise DataError("no bags to fit")
            refuse_other_order(y, bags.bag_ids, "y")
            self._names = bags.coordinate_names
            source, box = LabelledBags(bags), box_of_bags(bags)
            self.spec_ = self.resolve(bags.n_dims, box, ChoiceSample.whole(bags))
        if self.box is None:
            warn_of_wide_bag(source, box)
        return self

    @overload
    def transform(self, X: BagStore) -> LazyArray: ...
    @overload
    def transform(self, X: BagsInMemory) -> NDArray[Any]: ...
    def transform(self, X: BagStore | BagsInMemory) -> NDArray[Any] | LazyArray:
        """Return the embeddings of bags, shape (n_bags, s), of ``dtype``.

        The result is a numpy array for bags in memory, and a lazy dask.array, chunked by bags, for
        a BagStore. No fit is needed if ``box`` is given and no other parameter has to be chosen
        from bags.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the embedding is not fitted and the box or another parameter has to be chosen from
            bags.
        """
        if isinstance(X, BagStore):
            source = LabelledBags(X).in_order_of(self.coordinate_names, FITTED_ON)
            spec = self._spec_for(source)
            cost = spec.cost + Cost(bytes_per_bag=spec.n_features * np.dtype(self.dtype).itemsize)
            of_batch = partial(_rows_of_batch, spec, self.dtype)
            return lazy_features(source, of_batch, cost, spec.n_features, self.dtype)
        bags = self._in_order(as_bags(X))
        return _rows_of_bags(self._spec_for(LabelledBags(bags)), self.dtype, bags)

    def _spec_for(self, source: LabelledBags) -> Spec:
        """Return the fitted spec; without a fit, that of the parameters.

        Raises
        ------
        UnfittedError
            If the embedding is not fitted and leaves something to be chosen from bags.
        """
        spec: Spec | None = getattr(self, "spec_", None)
        if spec is None:
            check_parameters(self)
            name = type(self).__name__
            if self.box is None:
                raise _unfitted(name)
            sample = _NoSample(source, name=name)
            spec = self.resolve(source.n_dims, Box.unit(source.n_dims), sample)
        check_dims(source, spec.n_dims)
        return spec

    @property
    def coordinate_names(self) -> list[str] | None:
        """Names of the coordinates of the fitted bags; None if the bags had no names."""
        names = getattr(self, "_names", None)
        return None if names is None else list(names)

    def _in_order(self, bags: Bags) -> Bags:
        """Return bags with their coordinates in the order of the fitted bags."""
        return bags.in_order_of(self.coordinate_names, what="these bags", reference=FITTED_ON)

    @checked
    def get_feature_names_out(self, input_features: TextList | None = None) -> NDArray[Any]:
        """Return a name for each column of `transform`.

        ``input_features`` are the names of the coordinates. Default: those of the fitted bags;
        x0, x1, … if they have no names, or repeated ones.

        Raises
        ------
        DataError
            If the number of names differs from the number of coordinates.
        """
        check_is_fitted(self)
        n = self.spec_.n_dims
        fitted = self.coordinate_names or ()
        default = fitted if len({*fitted}) == n else [f"x{j}" for j in range(n)]
        names = list(default if input_features is None else input_features)
        if len(names) != n:
            raise DataError(f"input_features has {len(names)} names, points have {n} coordinates")
        return np.array(self.spec_.feature_names(list(map(str, names))), dtype=object)

    @classmethod
    def from_params(cls, params: dict[str, Any]) -> Self:
        """Return the embedding with the parameters of a saved model."""
        return cls(**params)

    @property
    def n_features_in_(self) -> int:
        """Number of coordinates of a point, available after `fit`."""
        spec: Spec | None = getattr(self, "spec_", None)
        if spec is None:
            raise AttributeError(f"{type(self).__name__} has n_features_in_ after fit")
        return spec.n_dims

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` was called."""
        return hasattr(self, "spec_")


@documented
class UnboundedEmbedding(Embedding[Spec]):
    """Base class of embeddings that are also defined for points outside the box.

    Parameters
    ----------
    out_of_box
        How to treat points outside the box; clipped and dropped points are counted. "clip" moves
        all points outside a given ``box`` to its edge. If the box is measured from data, points up
        to one box length outside are not moved, and points farther outside are moved to there.
        Give a wide box if no point may be moved.
    """


InnerEmbedding = Annotated[Embedding[Any], Instance("Embedding", "ProjectionEmbedding()")] | None
"""The embedding inside another embedding; None means `ProjectionEmbedding()`."""
