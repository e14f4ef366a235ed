"""The table of experiments, by the name that ``bags experiment`` takes."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .kit.experiment import Experiment

EXPERIMENTS = {
    "rectify-2lpt": "densities.rectify_2lpt:Rectify2LPT",
    "rectify-residuals": "densities.rectify_2lpt:RectifyResiduals",
    "js-gram": "kernels.js_gram:JSGram",
    "gmm-components": "regression.gmm_components:ComponentCounting",
    "synthetic-mapping": "densities.synthetic_mapping:SyntheticMappings",
    "gmm-order": "regression.over_sizes:GMMOrder",
    "dirichlet": "regression.over_sizes:DirichletParameters",
    "images": "regression.images:ImageClasses",
    "marginals": "regression.marginals:MarginalGeometries",
    "rff-error": "kernels.rff_error:FeatureError",
    "fastmmd": "hypotheses.fastmmd:FastMMD",
    "kernel-choice": "hypotheses.kernel_choice:KernelChoice",
    "independence": "hypotheses.power_over_sizes:Independence",
    "goodness-of-fit": "hypotheses.power_over_sizes:GoodnessOfFit",
    "two-samples-at-many-scales": "hypotheses.two_samples_at_many_scales:TwoSamplesAtManyScales",
    "levels": "hypotheses.levels:Levels",
    "traps": "hypotheses.traps:Traps",
    "scaling": "speed.scaling:Scaling",
    "peers": "speed.peers:Peers",
    "embeddings": "regression.embeddings:Embeddings",
    "real-bags": "regression.real_bags:RealBags",
    "tasks-with-floors": "regression.tasks_with_floors:TasksWithFloors",
    "interval-coverage": "regression.interval_coverage:IntervalCoverage",
    "anomalies": "regression.anomalies:Anomalies",
    "learned-spectrum": "regression.learned_spectrum:LearnedSpectrum",
    "active-search": "search.active_search:ActiveSearch",
    "halo-mass": "regression.halo_mass:HaloMass",
    "radiation": "regression.radiation:Radiation",
    "scenes": "regression.marginals:Scenes",
    "dependence-objectives": "hypotheses.dependence_objectives:DependenceObjectives",
    "score-matching": "densities.score_matching:ScoreMatching",
    "recurrent": "networks.recurrent:RecurrentNetworks",
    "transformation-networks": "networks.transformation_networks:TransformationNetworks",
    "bag-densities": "networks.bag_densities:BagDensities",
}


def experiment_type(name: str) -> type[Experiment]:
    """Return the class of a name in `EXPERIMENTS`; its module is imported now and not before."""
    module, _, kind = EXPERIMENTS[name].partition(":")
    return getattr(import_module(f".{module}", __package__), kind)
