"""`Densities`: the outcome of a model that learns densities, the third basis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ..bags import BagStore, Responses
from ..bags.inputs import BagsLike, LabelsLike, with_responses
from ..bags.labelled import LabelledBags, take_range
from ..bags.labels import ResponseBags
from ..bags.plan import Range
from ..embeddings import Embedding, ProjectionEmbedding, ProjectionSpec
from ..embeddings.base import ChoiceSample
from ..errors import DataError, ParameterError
from ..execution import lane
from ..sklearn_bases import fresh
from .linear_columns import OWN
from .outcome_base import Outcome, Prediction, Rows, Target


@dataclass(frozen=True)
class Densities(Outcome):
    """Projection coefficients of response bags, the third basis (004, §3.4)."""

    spec: ProjectionSpec

    key: ClassVar[str] = "response"
    kind: ClassVar[str] = "densities"
    baseline: ClassVar[str] = OWN
    judged_penalties: ClassVar[tuple[str, ...]] = ("validation", "projected")
    keeps_mean: ClassVar[bool] = True
    names: ClassVar[tuple[str, ...]] = ()
    measure: ClassVar[str] = "mean squared L2 distance of densities"

    @property
    def n_targets(self) -> int:
        """The number of coefficients, r."""
        return self.spec.n_features

    @classmethod
    def label(cls, X: BagsLike | LabelledBags, labels: LabelsLike, target: Target) -> LabelledBags:
        """See `Outcome.label`."""
        if target is not None:
            raise ParameterError(
                f"target is {target!r}; a TripleBasisRegressor learns responses: leave it out"
            )
        return with_responses(X, labels)

    @classmethod
    def from_labels(
        cls,
        X: BagsLike | LabelledBags,
        labels: LabelsLike,
        target: Target,
        bags: Range | None,
        response_embedding: Embedding | None,
    ) -> tuple[LabelledBags, Self]:
        """See `Outcome.from_labels`."""
        pairs = take_range(cls.label(X, labels, target), bags)
        return pairs, cls(resolve_response(response_embedding, pairs))

    def call(self, j: int) -> str:
        """See `Outcome.call`."""
        return f"coefficient {tuple(self.spec.indices[j].tolist())} of the responses"

    def take_labels(self, store: BagStore) -> LabelledBags:
        """See `Outcome.take_labels`."""
        if store.response_dims != self.spec.n_dims:
            raise DataError(
                f"{store.url}: responses have dimension {store.response_dims}, the model predicts "
                f"densities in {self.spec.n_dims}"
            )
        return LabelledBags(store, ResponseBags())

    def encode(self, labels: Responses) -> tuple[Rows, int]:
        """See `Outcome.encode`."""
        out = np.empty((len(labels), self.n_targets))
        return out, self.spec.embed(labels.present, out)

    def columns(self, prediction: Prediction) -> dict[str, NDArray[Any]]:
        """See `Outcome.columns`."""
        names = ["a_" + "_".join(map(str, alpha)) for alpha in self.spec.indices.tolist()]
        return dict(zip(names, prediction.values.T, strict=True))

    def units(self) -> Rows:
        """See `Outcome.units`: 1/r for each of r coefficients.

        The average error in these units is the sum of the squared errors, which is by Parseval a
        squared L2 distance.
        """
        return np.full(self.n_targets, 1.0 / self.n_targets)

    def report_outside(self, n_responses_outside: int) -> dict[str, int]:
        """See `Outcome.report_outside`."""
        return {"n_response_points_outside_box": n_responses_outside}

    def to_dict(self) -> dict[str, Any]:
        """See `Outcome.to_dict`."""
        return {self.key: self.spec.to_dict()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], names: tuple[str, ...], k: int) -> Self:
        """See `Outcome.from_dict`."""
        spec = ProjectionSpec.from_dict(values[cls.key])
        if spec.n_features != k:
            raise ValueError(f"{k} rows of coefficients do not fit the response basis")
        return cls(spec)


def resolve_response(third: Embedding | None, pairs: LabelledBags) -> ProjectionSpec:
    """Return the third basis for these responses.

    Raises
    ------
    ParameterError
        An embedding whose vectors are not the coefficients of a density.
    """
    embedding = fresh("response_embedding", third, Embedding, ProjectionEmbedding)
    if not isinstance(embedding, ProjectionEmbedding) or not (
        embedding.marginals is None and embedding.bandwidth is None
    ):
        raise ParameterError(
            "response_embedding has to be a ProjectionEmbedding without marginals and bandwidth: "
            "its coefficients are those of a density"
        )
    with lane():
        return embedding.resolve(
            pairs.response_dims,
            pairs.response_box,
            ChoiceSample(pairs, responses=True),
        )
