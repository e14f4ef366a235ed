"""The ``model`` section of a config, and the estimator it stands for."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from .config import Section
from .embedding_config import (
    EmbeddingSection,
    ResponseSection,
    build,
    default_embedding,
    named_embedding,
)

NotNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Alphas = Annotated[list[NotNegative], Field(min_length=1)]


class FourierSection(Section):
    """Parameters of `bagbasis.RandomFourierFeatures`."""

    n_features: int = Field(
        default=2048, ge=2, multiple_of=2, description="D, half sines half cosines"
    )
    scale: Positive | Literal["median"] = Field(default="median", description="width of the kernel")
    scale_multiplier: Positive = Field(default=1.0, description="of the median")
    orthogonal: bool = Field(default=False, description="orthogonal frequencies: less variance")
    seed: int = Field(default=0, ge=0, description="of the frequencies")


class ModelSection(Section):
    """Parameters of `bagbasis.DoubleBasisRegressor`, `bagbasis.DoubleBasisClassifier` and
    `bagbasis.TripleBasisRegressor`."""

    task: Literal["regression", "classification", "densities"] = Field(
        default="regression", description="what is predicted: numbers, classes or densities"
    )
    embedding: EmbeddingSection = Field(
        default_factory=default_embedding, description="first basis: from a bag to a vector"
    )
    random_features: FourierSection = Field(
        default=FourierSection(), description="second basis: random features of that vector"
    )
    response_embedding: ResponseSection | None = Field(
        default=None, description="third basis, of the response densities, with task: densities"
    )
    alpha: Literal["gcv", "validation", "projected"] | NotNegative | Alphas = Field(
        default="gcv", description="ridge penalty, or how it is chosen"
    )
    alphas: Alphas | None = Field(
        default=None, description="penalties to choose from; null: 17 of them"
    )
    validation_fraction: float = Field(
        default=0.1, gt=0, lt=1, description="of the bags, when alpha is chosen by validation"
    )
    precision: Literal["float32", "float64"] = Field(
        default="float32", description="of the blocks of features; sums are float64 either way"
    )

    def with_embedding(self, name: str | None) -> ModelSection:
        """The same with another embedding and its defaults; None changes nothing."""
        if name is None:
            return self
        return self.model_copy(update={"embedding": named_embedding(name)})

    def check_target(self, target: str | list[str] | None) -> None:
        """Raise ConfigError for a target beside task: densities."""
        from bagbasis.errors import ConfigError

        if self.task == "densities" and target is not None:
            raise ConfigError(
                "key 'target' is not used with task: densities; its labels are responses"
            )

    def estimator(self) -> Any:
        """The estimator, not fitted."""
        from bagbasis import (
            DoubleBasisClassifier,
            DoubleBasisRegressor,
            RandomFourierFeatures,
            TripleBasisRegressor,
        )

        kinds: dict[str, Any] = {
            "regression": DoubleBasisRegressor,
            "classification": DoubleBasisClassifier,
            "densities": TripleBasisRegressor,
        }
        third = self.response_embedding
        more = {"response_embedding": third and build(third)} if self.task == "densities" else {}
        return kinds[self.task](
            embedding=build(self.embedding),
            random_features=RandomFourierFeatures(**self.random_features.model_dump()),
            alpha=self.alpha,
            alphas=self.alphas,
            validation_fraction=self.validation_fraction,
            precision=self.precision,
            **more,
        )

    @model_validator(mode="after")
    def _third_basis_is_used(self) -> ModelSection:
        if self.response_embedding is not None and self.task != "densities":
            raise ValueError("response_embedding is used with task: densities alone")
        return self
