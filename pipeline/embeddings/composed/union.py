"""`EmbeddingUnion`: combine several embeddings, with one kernel or a sum of kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ...core import Instance, ListOf, OneOf, Open, Real, Text, check_parameters, checked
from ...core.arrays import Floats, Integers
from ...core.errors import DataError, ParameterError, shown
from ...data.bags.bags import Bags, take_rows
from ...data.bags.box import Box
from ...data.store.sampling import MEDIAN_ROWS, median_distance, spread_rows
from ...execution.costs import Cost
from ..base import ChoiceSample, Embedding, EmbeddingSpec
from ..description import Description
from ..hdd import HDDEmbedding
from ..kinds import embedding, from_name, from_params, is_below, with_name
from ..moments import MomentsEmbedding
from ..remembering import fill_once, number_once
from ..transforms import NO_ARRAYS, Arrays

JOINS = {"product": " × ", "sum": " + "}  # signs between kernels in a description
PART_BYTES = 8  # bytes per feature of a part, which is computed separately and then copied

UNION_LEVEL = 1  # nesting level of unions, see `embedding`

Named = tuple[str, Embedding[Any]]
Join = Annotated[str, OneOf("product", "sum")]
PerPart = ListOf(Real(gt=0), 1)


@dataclass(frozen=True, kw_only=True)
class UnionSpec(EmbeddingSpec):
    """A fitted union of embeddings; see `EmbeddingUnion` for the fields.

    See Also
    --------
    bagbasis.EmbeddingUnion : Join several embeddings.
    EmbeddingSpec : Base class of fitted embeddings.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import EmbeddingUnion, MomentsEmbedding, SizeEmbedding
    >>> spec = EmbeddingUnion([MomentsEmbedding(), SizeEmbedding()]).fit(X).spec_
    >>> spec.names, spec.n_features
    (('moments', 'size'), 6)
    """

    names: Annotated[tuple[str, ...], ListOf(Text, 1)]
    parts: Annotated[tuple[EmbeddingSpec, ...], ListOf(Instance("EmbeddingSpec"), 1)]
    join: Join
    scales: Annotated[tuple[float, ...], PerPart]
    weights: Annotated[tuple[float, ...], PerPart]

    @override
    def check_together(self) -> None:
        for part in self.parts:
            if (part.box, part.out_of_box) != (self.box, self.out_of_box):
                raise ParameterError("the parts of a union share its box and its out_of_box")
        _check_names(self.names, len(self.parts))
        for name in ("scales", "weights"):
            _one_each(name, getattr(self, name), len(self.parts))

    @property
    def n_features(self) -> int:
        """Length of the embedding."""
        return sum(part.n_features for part in self.parts)

    @property
    @override
    def blocks(self) -> tuple[tuple[int, float], ...]:
        if self.join == "product":
            return ()
        return tuple((part.n_features, w) for part, w in zip(self.parts, self.weights, strict=True))

    @property
    @override
    def seconds_per_point(self) -> float:
        return sum(part.seconds_per_point for part in self.parts)

    @property
    @override
    def cost(self) -> Cost:
        # the features of a part are in memory together with the output
        whole = sum((part.cost for part in self.parts), Cost())
        return whole + Cost(bytes_per_bag=PART_BYTES * self.n_features)

    @override
    def describe(self) -> Description:
        # densities are drawn from the first part with a series
        each = [part.describe() for part in self.parts]
        series = next(
            (description.series for description in each if description.series is not None), None
        )
        return Description(
            JOINS[self.join].join(f"({description.text})" for description in each), series=series
        )

    @override
    def feature_names(self, coordinates: Sequence[str]) -> list[str]:
        return [
            f"{name}:{column}"
            for name, part in zip(self.names, self.parts, strict=True)
            for column in part.feature_names(coordinates)
        ]

    @override
    def with_margin(self) -> Self:
        return replace(self, parts=tuple(part.with_margin() for part in self.parts))

    @override
    def fill(self, bags: Bags, out: NDArray[Any], outside: Integers) -> None:
        # all parts count the same points outside
        start = 0
        for part, scale, weight in zip(self.parts, self.scales, self.weights, strict=True):
            rows = np.empty((len(bags), part.n_features), out.dtype)
            fill_once(part, bags, rows, outside)
            factor = out.dtype.type(np.sqrt(weight) / scale)
            np.multiply(rows, factor, out=out[:, start : start + part.n_features])
            start += part.n_features

    @override
    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "parts": [with_name(part) for part in self.parts]}

    @classmethod
    @override
    def from_dict(cls, values: Mapping[str, Any], arrays: Arrays = NO_ARRAYS) -> Self:
        if "parts" in values:
            values = {
                **values,
                "parts": tuple(from_name(part, nesting=UNION_LEVEL) for part in values["parts"]),
            }
        return super().from_dict(values, arrays)


@embedding("union", UnionSpec, nesting=UNION_LEVEL)
class EmbeddingUnion(Embedding[UnionSpec]):
    """Combine several embeddings of a bag: A(X) = [√w₁ A₁(X) / s₁, √w₂ A₂(X) / s₂, …].

    Each part is divided by a scale s, so that no part dominates. The random features of a union
    approximate one of two kernels, where dᵢ is the distance between two bags in part i:

    - join="product" gives exp(−Σ wᵢ dᵢ² / 2 sᵢ² σ²), one kernel of the joined vector. Two bags are
      similar if they are similar in every part.
    - join="sum" gives Σ wᵢ exp(−dᵢ² / 2 sᵢ² σ²). Each part has its own block of random features
      with wᵢ n / 2 frequencies. Predictions are sums of functions of single parts.

    Parameters
    ----------
    parts : sequence of (name, embedding) or of embeddings
        Unfitted embeddings without their own box. Default names are, for example, "js" and
        "moments", or "js1" and "js2" for two parts of the same kind. Default:
        ``HDDEmbedding("js")`` as "js" and ``MomentsEmbedding()`` as "moments".
    join
        How to combine the kernels of the parts. Without random features, both values give the
        joined vector.
    scales
        Scale s of each part, by which the part is divided. Default: the median distance between
        bags in the part, from up to 1,024 bags of a sample.
    weights
        Weight w of each part; weights are divided by their sum. Default: equal weights.

    Attributes
    ----------
    spec_ : UnionSpec
        The fitted embedding, with all parameters that `fit` chose.

    Notes
    -----
    Use ``union.set_params(js__distance="tv")`` to set parameters of a part. A union is not always
    better: if one part contains all the information, another part adds noise.
    ``bags tune --set search.embedding=auto`` adds parts as long as the error on held-out bags
    decreases.

    See Also
    --------
    SizeEmbedding : The number of points, for a union.
    ExtremesEmbedding : The outermost points, for a union.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import EmbeddingUnion, MomentsEmbedding, SizeEmbedding
    >>> EmbeddingUnion([MomentsEmbedding(), SizeEmbedding()]).fit_transform(X).shape
    (80, 6)
    """

    parts: Annotated[
        Sequence[Named | Embedding[Any]] | None, Open("embeddings, or (name, embedding) pairs")
    ] = field(default=None, kw_only=False)
    join: Join = "product"
    scales: Annotated[Sequence[float], PerPart] | None = None
    weights: Annotated[Sequence[float], PerPart] | None = None

    @checked
    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with ``deep``, also parameters of parts as ``name__parameter``."""
        params: dict[str, Any] = super().get_params(deep=False)
        if deep:
            for name, part in named_parts(self.parts):
                params[name] = part
                params |= {f"{name}__{key}": value for key, value in part.get_params().items()}
        return params

    @override
    def decide(self, sample: ChoiceSample, out_of_box: str, box: Box) -> UnionSpec:
        # the sample is read for the scales, and by parts that need it
        named = _check_parts(self.parts)
        parts = tuple(part.decide(sample, out_of_box, box) for _, part in named)
        weights = np.array(_one_each("weights", self.weights, len(parts)))
        spec = UnionSpec(
            names=tuple(name for name, _ in named),
            parts=parts,
            join=self.join,
            scales=_one_each("scales", self.scales, len(parts)),
            weights=tuple((weights / weights.sum()).tolist()),
            out_of_box=out_of_box,
            box=box,
        )
        if self.scales is not None:
            return spec
        return replace(spec, scales=_median_distances(parts, sample()))

    @classmethod
    @override
    def from_params(cls, params: dict[str, Any]) -> Self:
        # parts are {name, params}, or (name, {name, params})
        parts = params["parts"]
        if parts is not None:
            parts = [
                from_params(part) if isinstance(part, Mapping) else (part[0], from_params(part[1]))
                for part in parts
            ]
        return cls(**{**params, "parts": parts})


def name_parts(embeddings: Sequence[Embedding[Any]]) -> list[Named]:
    """Return embeddings with names such as "js" and "moments"; equal names get a number."""
    names = [e.distance if isinstance(e, HDDEmbedding) else e.kind_name for e in embeddings]
    return [
        (name if names.count(name) == 1 else f"{name}{i + 1}", e)
        for i, (name, e) in enumerate(zip(names, embeddings, strict=True))
    ]


def named_parts(parts: object) -> list[Named]:
    """Return the valid parts with their names; invalid parts are omitted."""
    members = list(parts) if isinstance(parts, (list, tuple)) else []
    if all(is_below(type(member), UNION_LEVEL) for member in members):
        return name_parts(members)
    pairs = [pair for pair in members if isinstance(pair, (list, tuple)) and len(pair) == 2]
    return [
        (n, member) for n, member in pairs if isinstance(n, str) and isinstance(member, Embedding)
    ]


def _check_parts(parts: Sequence[Named | Embedding[Any]] | None) -> list[Named]:
    """Return the parts or the default parts; ParameterError if a part is invalid."""
    if parts is None:
        return [("js", HDDEmbedding("js")), ("moments", MomentsEmbedding())]
    expected = "expected embeddings, or (name, embedding) pairs, as [('js', HDDEmbedding('js'))]"
    if not isinstance(parts, (list, tuple)) or not parts:
        raise ParameterError(f"parts is {shown(parts)}; {expected}")
    if all(is_below(type(part), UNION_LEVEL) for part in parts):
        parts = named_parts(parts)
    for pair in parts:
        is_pair = isinstance(pair, (list, tuple)) and len(pair) == 2
        if not is_pair or not is_below(type(pair[1]), UNION_LEVEL):
            raise ParameterError(f"a part is {shown(pair)}; {expected}; no union is a part")
        name, part = pair
        if part.box is not None or part.out_of_box != "clip":
            raise ParameterError(f"part {shown(name)} has a box or out_of_box: give the union's")
        check_parameters(part)
    return named_parts(parts)


def _check_names(names: Sequence[str], n: int) -> None:
    taken = EmbeddingUnion().get_params(deep=False)
    for name in names:
        if not isinstance(name, str) or not name or "__" in name or name in taken:
            raise ParameterError(
                f"the name of a part is {shown(name)}; expected a string without '__' that is not "
                "a parameter of the union"
            )
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice or len(names) != n or not n:
        raise ParameterError(f"the names of {n} parts are {list(names)}; expected one each")


def _one_each(name: str, values: Sequence[float] | None, n: int) -> tuple[float, ...]:
    """Return a number for each part, 1 for None; ParameterError if the length is wrong."""
    numbers = (1.0,) * n if values is None else tuple(values)
    if len(numbers) != n:
        raise ParameterError(f"{name} is {shown(values)}; expected one number > 0 per part, {n}")
    return numbers


def _median_distances(parts: Sequence[EmbeddingSpec], sample: Iterable[Bags]) -> tuple[float, ...]:
    """Return the median distance of two bags of a sample in each part; 1 without two bags."""
    rows_by_part: list[list[Floats]] = [[] for _ in parts]
    for bags in sample:
        chosen = take_rows(bags, spread_rows(np.arange(len(bags)), MEDIAN_ROWS))
        for part, rows in zip(parts, rows_by_part, strict=True):
            rows.append(np.empty((len(chosen), part.n_features)))
            fill_once(part, chosen, rows[-1], np.empty(len(chosen), np.int64))
    if not rows_by_part[0]:
        raise DataError("no bags to take the median distances of; give scales")
    return tuple(map(_median_of, rows_by_part))


def _median_of(rows: list[Floats]) -> float:
    joined = np.concatenate(rows)
    inside = joined[np.isfinite(joined).all(axis=1)]  # "drop" may have left a bag no point
    chosen = np.ascontiguousarray(spread_rows(inside, MEDIAN_ROWS))
    return number_once(median_distance, chosen) if len(inside) else 1.0
