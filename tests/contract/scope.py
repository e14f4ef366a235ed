"""Which callables people call: the others are for our own rooms, or results."""

# What is not called by people: the arguments come from rooms of ours, which have checked them.
OUR_ROOMS = ("execution", "sklearn_bases")
OUR_NAMES = """
    bags.BagStore bags.Box.around bags.Box.count_outside bags.Box.sample_size bags.Responses.of
    bags.concatenate bases.evaluate_series bases.norms bases.project datasets.Dataset
    embeddings.Embedding embeddings.EmbeddingSpec embeddings.HDDSpec.densities
    evaluation.evaluate_together evaluation.judge_fit
    random_features.FeatureSpec random_features.FourierSpec.transform random_features.NystroemSpec
    random_features.RandomFeatures regression.FeatureMap random_features.LearnedSpec
    random_features.LearnedFourierFeatures.sweeps
    regression.RidgeStatistics retraining.Outcome
    embeddings.EmbeddingUnion.get_params embeddings.name_parts tuning.Search.auto
    search.RegionClassifier
"""
OUR_METHODS = """
    arguments array array_names arrays beside blocks centred_cross centred_gram centred_yy check
    check_ends check_groups check_memory check_parameters check_shapes checked coefficients
    columns_beside cost_in current damage decide decision_rows decision_scores density_values
    describe determination directions discard draw embed embed_coefficients estimates estimator
    feature_names features features_of fill fit_problem frequencies frequency_bytes from_dict
    from_params from_state given_penalties history is_matrix_free keeper keeps_rows labelled
    learn learn_on list load_current measure more_column needed_posterior of_sums pair_map parts
    penalties place predicted probabilities problem read_array resolve resolve_scale rollback
    run score_rows start state steps task to_dict trusted values values_and_deviations weighed
    with_columns are_outside
    chances check_field check_place condition expected_rewards gain salience
"""
RESULTS = """
    densities.Smoothness embeddings.Description embeddings.SeriesShape evaluation.Errors
    evaluation.Importance
    hypotheses.HypothesisResult monitoring.CoordinateShift monitoring.DriftResult
    registry.ModelRecord regression.PredictedBlock
    retraining.Round retraining.RoundResult tuning.Candidate tuning.Lead tuning.Rung tuning.Score
    tuning.Tuning
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
    "regression.DoubleBasisRegressor.random_features": ("None",),
    "regression.DoubleBasisClassifier.random_features": ("None",),
    "regression.TripleBasisRegressor.random_features": ("None",),
    "retraining.retrain.computing": ("class",),
}


def is_for_our_rooms(key: str) -> bool:
    """Whether a public callable is called by our rooms alone, or made by them."""
    room, name, *method = key.split(".")
    owner = f"{room}.{name}"
    if room in OUR_ROOMS or owner in RESULTS.split() or key in OUR_NAMES.split():
        return True
    if method:
        return method[0] in OUR_METHODS.split() or (
            owner in OUR_NAMES.split() and owner != "bags.BagStore"
        )
    return False
