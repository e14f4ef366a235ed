"""Sections of models and what a fit takes, made from the library's constructors as `sections`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from bagbasis import DoubleBasisRegressor, TripleBasisRegressor
from bagbasis.core import parameters_of
from bagbasis.core.errors import ConfigError

from .config import ClusterConfig, Section
from .sections import (
    AUTO,
    DEFAULT,
    EmbeddingSection,
    FeaturesSection,
    ResponseSection,
    automatic_features,
    build,
    build_features,
    build_or_auto,
    named_embedding,
    with_parameters,
)
from .types import type_of

if TYPE_CHECKING:
    from bagbasis import DoubleBasisClassifier
    from bagbasis.data.labelled.holdout import Holdout

    Estimator = DoubleBasisRegressor | DoubleBasisClassifier | TripleBasisRegressor

# Parameters that a model section takes over as they are.
RIDGE = ("alphas", "validation_fraction", "precision", "solver", "rank", "uncertainty")
BASELINES = {"linear": ("regression", "classification"), "own": ("densities",)}  # and their tasks
ESTIMATORS = {
    "regression": "DoubleBasisRegressor",
    "classification": "DoubleBasisClassifier",
    "densities": "TripleBasisRegressor",
}

_ALPHA = parameters_of(TripleBasisRegressor)["alpha"]  # which has all ways to choose it


@with_parameters(DoubleBasisRegressor, only=RIDGE)
class ModelSection(Section):
    """Parameters of the Double-Basis estimators and of `bagbasis.TripleBasisRegressor`."""

    task: Literal[tuple(ESTIMATORS)] = Field(  # type: ignore[valid-type]
        default="regression", description="what is predicted: numbers, classes or densities"
    )
    embedding: EmbeddingSection = Field(
        default_factory=lambda: named_embedding(AUTO),
        description="first basis: from a bag to a vector; auto: chosen from the data, with "
        "task: densities a projection",
    )
    random_features: FeaturesSection = Field(
        default_factory=automatic_features,
        description="second basis: features of that vector; auto: landmarks beside "
        "embedding: auto, else fourier; false: none",
    )
    response_embedding: ResponseSection | None = Field(
        default=None,
        description="third basis, of the response densities, with task: densities; null: chosen "
        "from the responses",
    )
    alpha: type_of(_ALPHA.accepts) = Field(  # type: ignore[valid-type]
        default=_ALPHA.default, description="ridge penalty, or how it is chosen"
    )

    baseline: Literal[tuple(BASELINES)] | None = Field(  # type: ignore[valid-type]
        default=None,
        description="linear: a ridge on the embedding beside the random features, with task: "
        "regression or classification; own: an affine copy of the bag's coefficients, with task: "
        "densities",
    )
    class_weight: Literal["balanced"] | None = Field(
        default=None, description="balanced: classes weigh alike in all, with task: classification"
    )

    head: Literal["ridge", "trees", "stack"] = Field(
        default="ridge",
        description="ridge; trees: scikit-learn's on moments, extremes and short embeddings; "
        "stack: both and a ridge on means, weighed by predictions out of fold; not with task: "
        "densities",
    )

    @model_validator(mode="before")
    @classmethod
    def _default_of_densities(cls, values: object) -> object:
        """Take a projection, the default of `TripleBasisRegressor`, for densities."""
        if not isinstance(values, Mapping) or values.get("task") != "densities":
            return values
        return {"embedding": DEFAULT, **values}

    def with_embedding(self, name: str | None) -> ModelSection:
        """Replace the embedding by another one with its defaults; None changes nothing."""
        if name is None:
            return self
        return self.model_copy(update={"embedding": named_embedding(name)})

    def check_target(self, target: str | list[str] | None) -> None:
        """Raise ConfigError for a target beside task: densities."""
        if self.task == "densities" and target is not None:
            raise ConfigError(
                "key 'target' is not used with task: densities; its labels are responses"
            )

    def estimator(self) -> Estimator:
        """Make the estimator, not fitted."""
        import bagbasis

        second, third = self.random_features, self.response_embedding
        more: dict[str, Any]
        more = {"response_embedding": third and build(third)} if self.task == "densities" else {}
        if self.task != "densities":
            more["head"] = self.head
        for name in ("baseline", "class_weight"):
            if getattr(self, name) is not None:
                more[name] = getattr(self, name)
        return getattr(bagbasis, ESTIMATORS[self.task])(
            embedding=build_or_auto(self.embedding),
            random_features=build_features(second),
            **self.model_dump(include={"alpha", *RIDGE}),
            **more,
        )

    @model_validator(mode="after")
    def _third_basis_is_used(self) -> ModelSection:
        if self.response_embedding is not None and self.task != "densities":
            raise ValueError("response_embedding is used with task: densities alone")
        if self.class_weight is not None and self.task != "classification":
            raise ValueError("class_weight is used with task: classification alone")
        if self.head != "ridge" and self.task == "densities":
            raise ValueError(f"head: {self.head} is of numbers and classes: leave it out")
        if self.baseline is not None and self.task not in BASELINES[self.baseline]:
            tasks = " or ".join(BASELINES[self.baseline])
            raise ValueError(f"baseline: {self.baseline} is used with task: {tasks} alone")
        return self


class HoldoutSection(Section):
    """Whole groups of bags, or those after a time, that a fit keeps out."""

    fraction: float = Field(default=0.0, ge=0, lt=1, description="about this share of the bags")
    groups: str | None = Field(
        default=None, description="column of the store, as patient: equal values are kept together"
    )
    after: date | float | str | None = Field(
        default=None, description="date or number; bags later than it are kept out"
    )
    time: str | None = Field(default=None, description="the column that is compared with it")


class FittingConfig(ClusterConfig):
    """Config of a job that fits a model to the bags of a store."""

    data_url: str = Field(
        examples=["example-output/bags.zarr"], description="the store of labelled bags"
    )
    model_url: str = Field(
        examples=["example-output/model.zarr"], description="where the model goes"
    )
    target: str | list[str] | None = Field(
        examples=["k"], default=None, description="target, or list of them; null: the only one"
    )
    holdout: Annotated[float, Field(ge=0, lt=1)] | HoldoutSection = Field(
        default=0.0,
        description="fraction of the bags kept out, for evaluate; or {fraction, groups}, or "
        "{after, time}",
    )
    sample_weight: str | None = Field(
        default=None, description="column of the store: how much each bag counts; null: all 1"
    )
    overwrite: bool = Field(default=False, description="replace a model that is there")

    @property
    def kept_out(self) -> Holdout:
        """What ``holdout`` says; ConfigError for what does not go together."""
        from bagbasis.core.errors import ParameterError
        from bagbasis.data.labelled.holdout import Holdout

        given = self.holdout
        try:
            return Holdout.of(given if isinstance(given, float) else given.model_dump())
        except ParameterError as error:
            raise ConfigError(f"key 'holdout': {error}") from error
