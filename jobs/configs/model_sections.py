"""Sections of models and what a fit takes, made from the library's constructors as `sections`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, model_validator

from bagbasis import DoubleBasisClassifier, DoubleBasisRegressor, TripleBasisRegressor
from bagbasis.core import parameters_of
from bagbasis.core.declarations import joined_parameters
from bagbasis.core.errors import ConfigError
from bagbasis.data.labelled.holdout import Holdout
from bagbasis.models import save_model
from bagbasis.models.fitting.fit_parameters import AUTO

from .config import ClusterConfig, Section, WeightColumn
from .sections import (
    DEFAULT_EMBEDDING,
    EmbeddingSection,
    FeaturesSection,
    ResponseSection,
    automatic_features,
    build,
    build_features,
    build_or_auto,
    embedding_section,
    parameter_of,
    with_parameters,
)
from .types import type_of

if TYPE_CHECKING:
    _Estimator = DoubleBasisRegressor | DoubleBasisClassifier | TripleBasisRegressor

_ESTIMATORS: dict[str, type[Any]] = {  # by task
    "regression": DoubleBasisRegressor,
    "classification": DoubleBasisClassifier,
    "densities": TripleBasisRegressor,
}
PARAMETERS = joined_parameters(_ESTIMATORS.values())
_BASES = ("embedding", "random_features", "response_embedding")  # they have sections of their own


@with_parameters(PARAMETERS, leave_out=_BASES)
class ModelSection(Section):
    """Parameters of the Double-Basis estimators and of `bagbasis.TripleBasisRegressor`."""

    if TYPE_CHECKING:  # what is read here
        head: str = "ridge"

    task: Literal[tuple(_ESTIMATORS)] = Field(  # type: ignore[valid-type]
        default="regression", description="what is predicted: numbers, classes or densities"
    )
    embedding: EmbeddingSection = Field(
        default_factory=lambda: embedding_section(AUTO),
        description="first basis: from a bag to a vector; auto: chosen from the data, with "
        "task: densities a projection",
    )
    random_features: FeaturesSection = Field(
        default_factory=automatic_features,
        description="second basis: features of that vector; auto: landmarks with "
        "embedding: auto, else fourier; false: none",
    )
    response_embedding: ResponseSection | None = Field(
        default=None,
        description="third basis, of the response densities, with task: densities; null: chosen "
        "from the responses",
    )

    @model_validator(mode="before")
    @classmethod
    def _default_of_densities(cls, values: object) -> object:
        """Take a projection, the default of `TripleBasisRegressor`, for densities."""
        if not isinstance(values, Mapping) or values.get("task") != "densities":
            return values
        return {"embedding": DEFAULT_EMBEDDING, **values}

    def with_embedding(self, name: str | None) -> ModelSection:
        """Replace the embedding by another one with its defaults; None changes nothing."""
        if name is None:
            return self
        return self.model_copy(update={"embedding": embedding_section(name)})

    def check_target(self, target: str | list[str] | None) -> None:
        """Raise ConfigError for a target with task: densities."""
        if self.task == "densities" and target is not None:
            raise ConfigError(
                "key 'target' is not used with task: densities; its labels are responses"
            )

    def estimator(self) -> _Estimator:
        """Make the estimator, not fitted."""
        kind: Any = _ESTIMATORS[self.task]
        values = self.model_dump(include={*parameters_of(kind)} - {*_BASES})
        if self.task == "densities":
            third = self.response_embedding
            values["response_embedding"] = third and build(third)
        made: _Estimator = kind(
            embedding=build_or_auto(self.embedding),
            random_features=build_features(self.random_features),
            **values,
        )
        return made

    @model_validator(mode="after")
    def _fits_the_task(self) -> ModelSection:
        for name, parameter in PARAMETERS.items():
            value = getattr(self, name)
            tasks = [task for task, kind in _ESTIMATORS.items() if _takes(kind, name, value)]
            if value != parameter.default and self.task not in tasks:
                shown = f"{name}: {value}" if isinstance(value, str) else name
                raise ValueError(f"{shown} is used with task: {' or '.join(tasks)} alone")
        return self


def _takes(estimator: type, name: str, value: object) -> bool:
    """Return whether an estimator takes a value of a section; sections are checked already."""
    parameter = parameters_of(estimator).get(name)
    if parameter is None or parameter.accepts is None:
        return False
    return isinstance(value, Section) or parameter.accepts.accepts(value)


FRACTION = parameter_of(Holdout, "fraction", "about this fraction is held out")
GROUPS = parameter_of(
    Holdout, "groups", "column of the store, as patient: equal values are kept together"
)


@with_parameters(
    {
        "fraction": FRACTION,
        "groups": GROUPS,
        "time": parameter_of(Holdout, "time", "the column that `after` is compared with"),
    }
)
class HoldoutSection(Section):
    """Whole groups of bags, or those after a time, that a fit keeps out."""

    SHORT: ClassVar[str] = "fraction"
    WITHOUT_SHORT: ClassVar[tuple[str, ...]] = ("after", "time")

    after: date | float | str | None = Field(
        default=None, description="date or number; bags later than it are kept out"
    )


@with_parameters({"overwrite": parameter_of(save_model, "overwrite")})
class FittingConfig(ClusterConfig):
    """Config of a job that fits a model to the bags of a store."""

    if TYPE_CHECKING:
        overwrite: bool = Field(default=...)

    data_url: str = Field(
        examples=["example-output/bags.zarr"], description="the store of labelled bags"
    )
    model_url: str = Field(
        examples=["example-output/model.zarr"], description="where the model goes"
    )
    target: str | list[str] | None = Field(
        examples=["k"], default=None, description="target, or list of them; null: the only one"
    )
    holdout: type_of(FRACTION.accepts) | HoldoutSection = Field(  # type: ignore[valid-type]
        default=FRACTION.default,
        description="fraction of the bags kept out, for evaluate; or {fraction, groups}, or "
        "{after, time}",
    )
    sample_weight: WeightColumn = None

    @property
    def kept_out(self) -> Holdout:
        """What ``holdout`` says; ConfigError for what does not go together."""
        from bagbasis.core.errors import ParameterError

        holdout = self.holdout
        try:
            return Holdout.of(holdout if isinstance(holdout, float) else holdout.model_dump())
        except ParameterError as error:
            raise ConfigError(f"key 'holdout': {error}") from error
