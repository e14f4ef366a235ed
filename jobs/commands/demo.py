"""``bags demo``: the main job on real digits, then on generated mixtures."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from bagbasis.datasets import Digits, GMMComponents

from ..cluster import running_on
from ..configs.config import ClusterConfig, DirectoryConfig, Section
from ..configs.model_sections import ModelSection
from ..configs.sections import EmbeddingName, parameter_of, with_parameters
from ..configs.sequence_section import RidgeSection
from ..terminal import Terminal
from . import evaluate, fit, generate

MARKER = ".bagbasis-demo"  # its presence says that the directory's content may be replaced
_DEMOS = ("digits", "mixture")
MIN_ACCURACY = 0.97
MAX_RMSE = 1.65


class Classifier(ModelSection):
    """A model section that fits classes."""

    task: Literal["classification"] = Field(
        default="classification", description="what is predicted: classes"
    )


class Regressor(ModelSection):
    """A model section that fits numbers."""

    task: Literal["regression"] = Field(
        default="regression", description="what is predicted: numbers"
    )


def _digits_model() -> Classifier:
    """Return the default: 8 pixels a side know no frequency of 8 and more."""
    return Classifier.model_validate(
        {
            "embedding": {"name": "projection", "max_norm": 6.0},
            "random_features": {"name": "fourier", "n_features": 3000},
        }
    )


def _mixture_model() -> Regressor:
    """Return the default: 10^2 coefficients."""
    return Regressor.model_validate(
        {
            "embedding": {"name": "projection"},
            "random_features": {"name": "fourier", "n_features": 5000},
        }
    )


@with_parameters(Digits, only={"seed"})
class DigitsData(Section):
    """Keys for the handwritten digits."""

    if TYPE_CHECKING:
        seed: int = Field(default=...)


class DigitsSection(DigitsData):
    """The part on handwritten digits."""

    model: Classifier = Field(default_factory=_digits_model, description="what is fitted")


@with_parameters(
    {
        "n_points": parameter_of(GMMComponents, "n_points"),
        "variant": parameter_of(GMMComponents, "variant"),
        "seed": parameter_of(
            GMMComponents, "seed", "Seed for drawing the bags; bags to predict have seed + 1"
        ),
    }
)
class MixtureData(Section):
    """Keys for the mixtures."""

    if TYPE_CHECKING:
        n_points: int | list[int] = Field(default=...)
        variant: str = Field(default=...)
        seed: int = Field(default=...)


class MixtureSection(MixtureData):
    """The part on counting mixture components."""

    n_train: int = Field(default=28_000, ge=10, description="bags that are fitted")
    n_test: int = Field(default=2_000, ge=1, description="bags that are predicted")
    model: Regressor = Field(default_factory=_mixture_model, description="what is fitted")


class Config(ClusterConfig, DirectoryConfig):
    """Keys of ``configs/demo.yaml``."""

    out_dir: str = Field(
        default="demo-output", description="directory for everything the demo writes"
    )
    digits: DigitsSection = Field(
        default_factory=DigitsSection, description="the part on real input"
    )
    mixture: MixtureSection = Field(
        default_factory=MixtureSection, description="the part on generated input"
    )
    embedding: EmbeddingName | None = Field(
        default=None,
        description="a name, instead of both models' embeddings; null: as their sections say",
    )


def run(config: Config, console: Terminal) -> dict[str, Any]:
    """Run both parts, one after the other; returns the report."""
    begun = time.perf_counter()
    out_dir = start_over(Path(config.out_dir))
    digits = config.digits.model.with_embedding(config.embedding)
    mixture = config.mixture.model.with_embedding(config.embedding)
    with running_on(config.cluster):
        report: dict[str, Any] = {
            "digits": _digits(config.digits, digits, out_dir / "digits", console),
            "mixture": _mixture(config.mixture, mixture, out_dir / "mixture", console),
        }
    report["seconds"] = time.perf_counter() - begun
    _summary(report, console)
    return report


def start_over(out_dir: Path) -> Path:
    """Make the directory, or delete what an earlier demo left in it.

    Raises
    ------
    ConfigError
        It holds files, and no demo made it.
    """
    from bagbasis.core.errors import ConfigError
    from bagbasis.data.storage.files import storage_errors

    marker = out_dir / MARKER
    with storage_errors(out_dir, "cannot be written"):
        if out_dir.exists() and not marker.exists() and any(out_dir.iterdir()):
            raise ConfigError(
                f"key 'out_dir': {out_dir} holds other files; choose another directory"
            )
        out_dir.mkdir(parents=True, exist_ok=True)
        marker.touch()
        for part in _DEMOS:
            shutil.rmtree(out_dir / part, ignore_errors=True)
        for name in ("report.json", "report.html"):
            (out_dir / name).unlink(missing_ok=True)
    return out_dir


def _digits(
    config: DigitsSection, model: ModelSection, where: Path, console: Terminal
) -> dict[str, Any]:
    console.heading("Handwritten digits: 1,797 images as bags of 64 points (x, y, intensity)")
    data = [
        _data(where, split, "digits", {"split": split, "seed": config.seed})
        for split in ("train", "test")
    ]
    axes = {"coordinate_names": ["x", "y", "intensity"], "downwards": True}
    return _part(data, model, where, axes, console)


def _mixture(
    config: MixtureSection, model: ModelSection, where: Path, console: Terminal
) -> dict[str, Any]:
    sizes = config.n_points if isinstance(config.n_points, list) else [config.n_points]
    n_points = " to ".join(map(str, sizes))
    console.heading(
        f"Mixture counting: how many Gaussians were {n_points} points in the plane drawn from?"
    )
    params = {"n_points": config.n_points, "variant": config.variant}
    seeds = ({"seed": config.seed}, {"seed": config.seed + 1})
    data = [
        _data(where, "train", "gmm_components", params | seeds[0], config.n_train),
        _data(where, "test", "gmm_components", params | seeds[1], config.n_test),
    ]
    return _part(data, model, where, {}, console)


def _data(
    where: Path, split: str, dataset: str, params: dict[str, Any], n_bags: int | None = None
) -> generate.Config:
    url = str(where / f"{split}.zarr")
    return generate.Config(dataset=dataset, params=params, url=url, n_bags=n_bags)


def _part(
    data: list[generate.Config],
    model: ModelSection,
    where: Path,
    axes: dict[str, Any],
    console: Terminal,
) -> dict[str, Any]:
    """Generate two stores, fit on the first, evaluate on the second.

    The page begins with the evaluation: the fit's own estimate is not asked for as well.
    """
    quiet, n_parts = console.without_tables(), len(console.parts)
    made = [generate.run(config, quiet) for config in data]
    seconds = sum(store_report["seconds"] for store_report in made)
    counts = f"{made[0]['n_bags']:,} bags to fit, {made[1]['n_bags']:,} to test"
    console.line(f"  {counts} ({seconds:.1f} s)")
    model_url = str(where / "model.zarr")
    fitted = fit.run(
        fit.Config(data_url=data[0].url, model_url=model_url, model=RidgeSection.of(model)), quiet
    )
    second = model.random_features
    made_of = f"{second.n_features:,}" if second else "no random"
    console.line(
        f"  fitted {made_of} features, penalty {fitted['alpha']:.3g} "
        f"({fitted['seconds_in_all']:.1f} s)"
    )
    evaluated = evaluate.run(
        evaluate.Config(
            data_url=data[1].url,
            model_url=model_url,
            out_dir=str(where),
            **axes,
        ),
        quiet,
    )
    console.line(f"  evaluated ({evaluated['seconds']:.1f} s)")
    of_fit, *of_evaluation = console.parts[n_parts:]
    console.parts[n_parts:] = [*of_evaluation, replace(of_fit, answer="", next="")]
    return {"generate": made, "fit": fitted, "evaluate": evaluated}


def _summary(report: dict[str, Any], console: Terminal) -> None:
    digits = report["digits"]["evaluate"]["targets"]["digit"]
    mixture = report["mixture"]["evaluate"]["targets"]["n_components"]
    rows = [
        ["digits", digits["n"], "accuracy", digits["accuracy"], f"at least {MIN_ACCURACY}"],
        ["mixture", mixture["n"], "RMSE", mixture["rmse"], f"at most {MAX_RMSE}"],
        ["mixture", mixture["n"], "RMSE, best constant", mixture["constant_rmse"], ""],
    ]
    console.line("")
    for verdict in [shown.answer for shown in console.parts if shown.answer]:
        console.line(verdict)
    console.table(
        f"The demo took {report['seconds']:.0f} s",
        ["part", "test bags", "measure", "value", "expected at full size"],
        rows,
    )
    for part in _DEMOS:
        for path in report[part]["evaluate"]["pictures"]:
            console.line(path)
    console.line("All of it on one page, for a browser:")
