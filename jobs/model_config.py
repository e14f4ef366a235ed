"""The ``model`` section of a config, and the estimator it stands for."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from .config import Section
from .embedding_config import EmbeddingSection, build, default_embedding

NotNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Alphas = Annotated[list[NotNegative], Field(min_length=1)]


class FourierSection(Section):
    """Parameters of `pipeline.RandomFourierFeatures`."""

    n_features: int = Field(
        default=2048, ge=2, multiple_of=2, description="D, half sines half cosines"
    )
    scale: Positive | Literal["median"] = Field(default="median", description="width of the kernel")
    scale_multiplier: Positive = Field(default=1.0, description="of the median")
    orthogonal: bool = Field(default=False, description="orthogonal frequencies: less variance")
    seed: int = Field(default=0, ge=0, description="of the frequencies")


class ModelSection(Section):
    """Parameters of `pipeline.DoubleBasisRegressor` and `pipeline.DoubleBasisClassifier`."""

    task: Literal["regression", "classification"] = Field(
        default="regression", description="what is predicted: numbers or classes"
    )
    embedding: EmbeddingSection = Field(
        default_factory=default_embedding, description="first basis: from a bag to a vector"
    )
    random_features: FourierSection = Field(
        default=FourierSection(), description="second basis: random features of that vector"
    )
    alpha: Literal["gcv", "validation"] | NotNegative | Alphas = Field(
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

    def estimator(self) -> Any:
        """The estimator, not fitted."""
        from pipeline import (
            DoubleBasisClassifier,
            DoubleBasisRegressor,
            RandomFourierFeatures,
        )

        kinds = {"regression": DoubleBasisRegressor, "classification": DoubleBasisClassifier}
        return kinds[self.task](
            embedding=build(self.embedding),
            random_features=RandomFourierFeatures(**self.random_features.model_dump()),
            alpha=self.alpha,
            alphas=self.alphas,
            validation_fraction=self.validation_fraction,
            precision=self.precision,
        )
