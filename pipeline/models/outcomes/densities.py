"""`DensityOutcome`: the outcome of a model that learns densities, the third basis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ...core.errors import DataError, ParameterError
from ...core.sklearn_bases import fresh
from ...data.bags.bags import Bags
from ...data.bags.responses import Responses
from ...data.labelled.inputs import BagsLike, LabelsLike, with_responses
from ...data.labelled.labelled import LabelledBags, take_range
from ...data.labelled.labels import ResponseBags
from ...data.store.plan import Range
from ...data.store.sampling import RunSample
from ...data.store.store import BagStore
from ...embeddings.base import ChoiceSample, Embedding
from ...embeddings.bases.smoothness import MAX_CHOSEN_FUNCTIONS, choose_index_set, largest_set
from ...embeddings.projection import ProjectionEmbedding, ProjectionSpec
from ...execution.worker_threads import kernel_threads
from ..ridge.linear_columns import OWN
from .base import Outcome, Prediction, Target
from .details import (
    DensityDetails,
    Found,
    Judged,
    Rows,
    project_bags,
    sampling_noise,
    weighted_sum,
)

if TYPE_CHECKING:
    from ..errors import Errors

_NAMES = "response_coordinates"  # the key of the names of the coordinates of responses

RESPONSE_BASIS, BALL = "cosine", "ball"  # of the third basis that is chosen
MIN_PER_DIM = 10  # functions per dimension, as far as 1,024 in all allow
RESPONSE_SAMPLE = RunSample(32, 8)  # 256 responses have scores that hardly vary
_MAX_WORK = 2.0**31  # points times functions, some seconds
# When the basis is chosen, the noise of so many responses counts in full; of n more, the fraction
# _FEW_RESPONSES / n, as a regression averages over responses. With 300, errors on five maps of
# densities are about the same from .5 to .25.
_FEW_RESPONSES, _MIN_NOISE = 100, 1 / 3


@dataclass(frozen=True)
class DensityOutcome(Outcome):
    """Projection coefficients of response bags, the third basis (Oliva 2018, §3.4)."""

    spec: ProjectionSpec
    response_names: tuple[str, ...] | None = None

    key: ClassVar[str] = "response"
    kind: ClassVar[str] = "densities"
    single: ClassVar[bool] = False
    baseline: ClassVar[str] = OWN
    judged_penalties: ClassVar[tuple[str, ...]] = ("validation", "projected")
    keeps_mean: ClassVar[bool] = True
    has_folded_penalties: ClassVar[bool] = False  # GCV errs as little, in a fifth of the solves
    names: ClassVar[tuple[str, ...]] = ()
    measure: ClassVar[str] = "mean squared L2 distance of densities"

    @property
    def n_targets(self) -> int:
        """The number of coefficients, r."""
        return self.spec.n_features

    @classmethod
    @override
    def label(cls, X: BagsLike | LabelledBags, labels: LabelsLike, target: Target) -> LabelledBags:
        if target is not None:
            raise ParameterError(
                f"target is {target!r}; a TripleBasisRegressor learns responses: leave it out"
            )
        return with_responses(X, labels)

    @classmethod
    @override
    def from_labels(
        cls,
        X: BagsLike | LabelledBags,
        labels: LabelsLike,
        target: Target,
        bags: Range | None,
        response_embedding: Embedding | None,
    ) -> tuple[LabelledBags, Self]:
        pairs = take_range(cls.label(X, labels, target), bags)
        names = pairs.response_names
        spec = resolve_response(response_embedding, pairs)
        return pairs, cls(spec, None if names is None else tuple(names))

    @override
    def call(self, j: int) -> str:
        return f"coefficient {tuple(self.spec.indices[j].tolist())} of the responses"

    @override
    def take_labels(self, store: BagStore) -> LabelledBags:
        if store.response_dims != self.spec.n_dims:
            raise DataError(
                f"{store.url}: responses have dimension {store.response_dims}, the model predicts "
                f"densities in {self.spec.n_dims}"
            )
        return LabelledBags(store, ResponseBags())

    @override
    def encode(self, labels: Responses) -> tuple[Rows, int]:
        out = np.empty((len(labels), self.n_targets))
        return out, self.spec.embed(self._present(labels), out)

    def _present(self, labels: Responses) -> Bags:
        """Return the responses that are not empty, with the coordinates of those fitted."""
        reference = "the model was fitted on"
        return labels.in_order_of(
            self.response_names, what="responses", reference=reference
        ).present

    @override
    def columns(self, prediction: Prediction) -> dict[str, NDArray[Any]]:
        names = ["a_" + "_".join(map(str, alpha)) for alpha in self.spec.indices.tolist()]
        return dict(zip(names, prediction.values.T, strict=True))

    @override
    def label_again(self, bags: Bags | BagStore, labels: LabelsLike) -> LabelledBags:
        return with_responses(bags, labels)

    @override
    def scored(self, losses: Rows) -> Rows:
        # by Parseval the sum is a squared L2 distance
        distances: Rows = losses.sum(axis=-1, keepdims=True)
        return distances

    @property
    @override
    def scored_names(self) -> tuple[str, ...]:
        return ("densities",)

    @override
    def references(self, targets: Rows, weights: Rows, mean_targets: Rows | None) -> Rows:
        # squared distances to the average density of the bags fitted
        distances: Rows = ((targets - _known(mean_targets)) ** 2).sum(axis=1, keepdims=True)
        return distances

    @override
    def sum_references(self, errors: Errors) -> Rows:
        assert isinstance(errors.details, DensityDetails)
        return np.array([errors.details.average])

    @override
    def details(self, judged: Judged) -> Found:
        batch, targets, w, own = judged.batch, judged.targets, judged.weights, np.nan
        if judged.box == self.spec.box:
            coefficients = np.empty_like(targets)
            project_bags(self.spec, batch.bags, coefficients)
            own = float(weighted_sum((coefficients - targets) ** 2, w).sum())
        gaps = targets - _known(judged.mean_targets)
        of_average = (gaps**2).sum(axis=1, keepdims=True)
        of_model = ((judged.scores - targets) ** 2).sum(axis=1, keepdims=True)
        average = float(weighted_sum(gaps**2, w).sum())
        noise = sampling_noise(self.spec, self._present(batch.labels), targets, w)
        return Found(DensityDetails(average, own, noise), of_average, of_model)

    @override
    def units(self) -> Rows:
        # 1/r for each of r coefficients.  The average error in these units is the sum of the
        # squared errors, which is by Parseval a squared L2 distance
        return np.full(self.n_targets, 1.0 / self.n_targets)

    @override
    def report_outside(self, n_responses_outside: int) -> dict[str, int]:
        return {"n_response_points_outside_box": n_responses_outside}

    @override
    def to_dict(self) -> dict[str, Any]:
        names = {} if self.response_names is None else {_NAMES: list(self.response_names)}
        return {self.key: self.spec.to_dict(), **names}

    @classmethod
    @override
    def from_dict(cls, values: Mapping[str, Any], names: tuple[str, ...], k: int) -> Self:
        spec = ProjectionSpec.from_dict(values[cls.key])
        if spec.n_features != k:
            raise ValueError(f"{k} rows of coefficients do not fit the response basis")
        known = values.get(_NAMES)
        return cls(spec, None if known is None else tuple(map(str, known)))


def _known(mean_targets: Rows | None) -> Rows:
    """Return the mean of the encoded labels fitted, which models of densities keep."""
    assert mean_targets is not None
    return mean_targets


def resolve_response(third: Embedding | None, pairs: LabelledBags) -> ProjectionSpec:
    """Return the third basis for these responses; None chooses it by their leave-one-out score.

    Raises
    ------
    ParameterError
        If the vectors of an embedding are not the coefficients of a density.
    """
    if third is None:
        return _choose_response(pairs)
    embedding = fresh("response_embedding", third, Embedding, ProjectionEmbedding)
    if not isinstance(embedding, ProjectionEmbedding) or not (
        embedding.marginals is None and embedding.bandwidth is None
    ):
        raise ParameterError(
            "response_embedding has to be a ProjectionEmbedding without marginals and bandwidth: "
            "its coefficients are those of a density"
        )
    with kernel_threads():
        return embedding.resolve(
            pairs.response_dims,
            pairs.response_box,
            ChoiceSample(pairs, responses=True),
        )


def _choose_response(pairs: LabelledBags) -> ProjectionSpec:
    """Return the ball with the least leave-one-out score and at least ten functions per dimension.

    With more than 100 responses, only a part of their noise counts in the score, at least a third.
    The minimum is for many responses of a few points, of which a regression resolves more still.
    """
    n_dims, box = pairs.response_dims, pairs.response_box
    sample = ChoiceSample(pairs, RESPONSE_SAMPLE, responses=True)
    _, least = largest_set(n_dims, BALL, RESPONSE_BASIS, MAX_CHOSEN_FUNCTIONS, MIN_PER_DIM)
    assert least is not None
    noise = min(1.0, max(_MIN_NOISE, _FEW_RESPONSES / pairs.n_bags))
    chosen: float | None = None
    try:
        with kernel_threads():
            _, chosen = choose_index_set(
                sample(),
                BALL,
                RESPONSE_BASIS,
                np.arange(n_dims)[None],
                box,
                max_work=_MAX_WORK,
                noise=noise,
            )
    except DataError:  # no response has two points
        pass
    return ProjectionSpec(
        RESPONSE_BASIS, n_per_dim=None, max_norm=max(chosen or 0.0, least), box=box
    )
