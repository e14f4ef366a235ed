"""The papers' experiments, one module each, and what runs them (`bags experiment NAME`)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .kit.experiment import Experiment

__all__ = ["EXPERIMENTS", "experiment_type"]

EXPERIMENTS = {
    "rectify-2lpt": "rectify_2lpt:Rectify2LPT",
    "rectify-residuals": "rectify_residuals:RectifyResiduals",
    "js-gram": "js_gram:JSGram",
    "gmm-components": "gmm_components:ComponentCounting",
    "synthetic-mapping": "synthetic_mapping:SyntheticMapping",
    "gmm-order": "gmm_order:GMMOrder",
    "dirichlet": "dirichlet:DirichletParameters",
    "images": "images:ImageClasses",
    "marginals": "marginals:Marginals",
    "rff-error": "rff_error:FeatureError",
    "fastmmd": "fastmmd:FastMMD",
    "kernel-choice": "bandwidth_criteria:KernelChoice",
    "independence": "dependence_power:Independence",
    "goodness-of-fit": "fit_power:GoodnessOfFit",
    "levels": "levels:Levels",
    "traps": "traps:Traps",
    "scaling": "scaling:Scaling",
    "peers": "peers:Peers",
    "embeddings": "embeddings:Embeddings",
    "anomalies": "anomalies:Anomalies",
    "learned-spectrum": "learned_spectrum:LearnedSpectrum",
    "active-search": "active_search:ActiveSearch",
    "halo-mass": "halo_mass:HaloMass",
    "radiation": "radiation:Radiation",
    "scenes": "scenes:Scenes",
}


def experiment_type(name: str) -> type[Experiment[Any]]:
    """Return the class of a name in `EXPERIMENTS`; its module is imported now and not before."""
    module, _, kind = EXPERIMENTS[name].partition(":")
    found: type[Experiment[Any]] = getattr(import_module(f".{module}", __package__), kind)
    return found
