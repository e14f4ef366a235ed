"""What `bags fit` fits: a ridge on features of bags, or with ``kind: sequence`` a network.

The network's keys are the parameters of `bagbasis.neural.SequenceRegressor`, which needs an extra;
a config is checked without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag

from bagbasis.core.errors import ConfigError
from bagbasis.neural.declared import SequenceParameters

from .config import Section
from .model_sections import ModelSection
from .sections import with_parameters

if TYPE_CHECKING:
    from bagbasis.neural import SequenceClassifier, SequenceRegressor

_RIDGE: Literal["ridge"] = "ridge"
SEQUENCE: Literal["sequence"] = "sequence"
NETWORKS = {"regression": "SequenceRegressor", "classification": "SequenceClassifier"}  # by task


class RidgeSection(ModelSection):
    """A Double-Basis or Triple-Basis estimator."""

    kind: Literal["ridge"] = Field(
        default=_RIDGE,
        description="ridge: on features of bags as sets; sequence: a recurrent network of bags "
        "whose points are in order",
    )

    @classmethod
    def of(cls, section: ModelSection) -> RidgeSection:
        """Return the same section with its kind."""
        return cls(**{name: getattr(section, name) for name in type(section).model_fields})


@with_parameters(SequenceParameters, leave_out=("checkpoints",))
class SequenceSection(Section):
    """Parameters of `bagbasis.neural.SequenceRegressor` and `SequenceClassifier`."""

    kind: Literal["sequence"] = Field(
        default=SEQUENCE, description="a recurrent network of bags whose points are in order"
    )
    task: Literal[tuple(NETWORKS)] = Field(  # type: ignore[valid-type]
        default="regression", description="what is predicted: numbers or classes"
    )

    def check_target(self, target: str | list[str] | None) -> None:
        """Raise ConfigError for several targets with task: classification."""
        if self.task == "classification" and isinstance(target, list):
            raise ConfigError("key 'target' is a list; with task: classification name one target")

    def estimator(self, checkpoints: str | None) -> SequenceRegressor | SequenceClassifier:
        """Make the estimator, not fitted; an error names the extra where it is missing."""
        from bagbasis import neural

        values = self.model_dump(exclude={"kind", "task"})
        made: SequenceRegressor | SequenceClassifier
        made = getattr(neural, NETWORKS[self.task])(**values, checkpoints=checkpoints)
        return made


def _kind_of(value: object) -> object:
    if isinstance(value, Mapping):
        return value.get("kind", _RIDGE)
    return getattr(value, "kind", _RIDGE)


def _ridge_alone(value: object) -> object:
    """Leave out ``kind: ridge``, which a section copied from a config of `bags fit` has."""
    if not isinstance(value, Mapping) or "kind" not in value:
        return value
    if value["kind"] == SEQUENCE:
        raise ValueError(
            "kind: sequence is for bags fit; this job makes ridge models alone (kind: "
            "ridge, or no kind), so fit a network with bags fit and compare both with bags evaluate"
        )
    return {key: item for key, item in value.items() if (key, item) != ("kind", _RIDGE)}


if TYPE_CHECKING:
    FitSection = RidgeSection | SequenceSection
    RidgeAlone = ModelSection
else:
    RidgeAlone = Annotated[ModelSection, BeforeValidator(_ridge_alone)]
    FitSection: Any = Annotated[
        Annotated[RidgeSection, Tag(_RIDGE)] | Annotated[SequenceSection, Tag(SEQUENCE)],
        Discriminator(_kind_of),
    ]
