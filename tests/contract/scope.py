"""Which callables people call: the others are for our own rooms, or results."""

from __future__ import annotations

from typing import Any

# What is not called by people: the arguments come from rooms of ours, which have checked them.
# Those of singlecell take AnnData objects: its own tests refuse what cannot be used. Every valid
# call of neural compiles for seconds: tests/neural/test_parameters.py refuses the same junk.
OUR_ROOMS = ("execution", "neural", "parameters", "singlecell", "sklearn_bases")
OUR_NAMES = """
    store.BagStore bags.Box.around bags.Box.count_outside bags.Box.sample_size bags.Responses.of
    bags.concatenate bases.evaluate_series bases.norms bases.project datasets.Dataset
    embeddings.Embedding embeddings.EmbeddingSpec embeddings.HDDSpec.densities
    evaluation.evaluate_together evaluation.judge_fit evaluation.judge_intervals
    random_features.FeatureSpec random_features.FourierSpec.begin
    random_features.FourierSpec.transform random_features.NystroemSpec
    random_features.RandomFeatures fitting.FeatureMap random_features.LearnedSpec
    statistics.RidgeStatistics retraining.Outcome
    embeddings.EmbeddingUnion.get_params embeddings.name_parts tuning.Search.auto
    search.RegionClassifier
"""
# by the class that has a method first: what a subclass makes of it is called by the same rooms
OUR_METHODS = {
    "bags.Ragged": "trusted",
    "store.Snapshot": "array check_ends damage read_array",
    "embeddings.Embedding": "decide from_params resolve",
    "embeddings.EmbeddingSpec": "are_outside arguments arrays check_together count_outside "
    "describe deviations embed feature_names fill from_dict points_embedded run_kernel to_dict",
    "embeddings.ExtremesSpec": "directions",
    "embeddings.HDDSpec": "embed_estimates",
    "embeddings.MeanMapSpec": "frequencies",
    "embeddings.SlicedWassersteinSpec": "directions",
    "hypotheses.DependenceStatistic": "measure of_sums pair_map",
    "hypotheses.FitStatistic": "measure",
    "hypotheses.LocationStatistic": "draw features place",
    "hypotheses.MeanOfEstimates": "estimates",
    "hypotheses.ManyScales": "choose_scales draw unit_sums",
    "hypotheses.Statistic": "check check_groups",
    "hypotheses.TwoSampleStatistic": "learn_on measure",
    "ingest.TableIngest": "run",  # its arguments are for the job and for frames
    "random_features.FourierSpec": "array_names arrays cost_in frequencies "
    "frequency_bytes from_dict to_dict",
    "random_features.RandomFeatures": "for_comparison resolve resolve_scale",
    "fitting.Checkpoints": "discard keeper steps",
    "retraining.Retraining": "labelled",
    "retraining.Window": "start",
    "base.BaseEstimator": "set_params",  # scikit-learn's, which takes any parameters
    "search.Field": "check_place condition draw gain",
    "search.PatternSearch": "chances",
    "search.RegionClassifier": "chances check_field expected_rewards salience",
}
RESULTS = """
    densities.Smoothness densities.Width embeddings.Description embeddings.SeriesShape
    evaluation.Errors evaluation.Importance
    hypotheses.HypothesisResult monitoring.CoordinateShift monitoring.DriftResult
    monitoring.DriftPrediction
    registry.ModelRecord models.PredictedBlock
    objectives.DerivativeNorms objectives.Registration objectives.Selection
    retraining.Round retraining.RoundResult runs.RunState runs.Status
    tuning.Candidate tuning.Lead tuning.Rung tuning.Score tuning.Tuning
"""

# Values that a parameter takes although its annotation, which is that of the attribute, has none.
OPEN = {
    "densities.Densities.box": ("None",),
    "embeddings.PointTransformerSpec.steps": ("empty list",),  # nothing is transformed
    "random_features.FourierSpec.blocks": ("empty list",),  # one kernel
}
# Values that work, but take longer than a test may; and a function of the caller's that is wrong.
SKIPPED = {
    "datasets.generate.n_bags": ("10**9",),
    "models.DoubleBasisRegressor.random_features": ("None",),
    "models.DoubleBasisClassifier.random_features": ("None",),
    "models.TripleBasisRegressor.random_features": ("None",),
    "retraining.retrain.computing": ("class",),
}


def is_for_our_rooms(name: str, owner: Any, method: str = "") -> bool:
    """Whether a public callable, or a method of it, is called by our rooms alone, or a result."""
    if (
        name.partition(".")[0] in OUR_ROOMS
        or name in RESULTS.split()
        or f"{name}.{method}" in OUR_NAMES.split()
    ):
        return True
    if name in OUR_NAMES.split() and (not method or name != "store.BagStore"):
        return True
    if not method:
        return False
    first = [kind for kind in owner.__mro__ if method in vars(kind)][-1]
    place = f"{first.__module__.split('.')[1]}.{first.__name__}"
    return method in OUR_METHODS.get(place, "").split()
