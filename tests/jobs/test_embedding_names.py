"""An embedding's name instead of its section, in a config and with --set."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from bagbasis import ConfigError, HDDEmbedding, ProjectionEmbedding
from bagbasis.embeddings import EMBEDDINGS
from bagbasis.jobs.commands import fit
from bagbasis.jobs.configs.sections import NAMED, build, section_of
from tests.jobs.running import CONFIGS, load_config


def fit_config(*overrides):
    """configs/fit.yaml with overrides."""
    return load_config(fit.Config, CONFIGS / "fit.yaml", overrides)


@pytest.mark.parametrize("name", sorted(NAMED))
def test_every_name_builds_its_embedding(name):
    """Each registered embedding and each HDD distance can be given by its name alone."""
    embedding = fit_config(f"model.embedding={name}").model.estimator().embedding
    kind = NAMED[name]["name"]
    assert type(embedding) is EMBEDDINGS[kind]
    expected = EMBEDDINGS[kind](**{k: v for k, v in NAMED[name].items() if k != "name"})
    assert embedding.get_params() == expected.get_params()


def test_name_replaces_the_whole_section():
    """embedding=js leaves nothing of the projection section that the file holds."""
    config = fit_config("embedding=js", "model.embedding.max_norm=3")
    model = config.model.with_embedding(config.embedding).estimator()
    assert isinstance(model.embedding, HDDEmbedding)
    assert model.embedding.distance == "js"
    assert model.embedding.max_norm is None
    assert isinstance(config.model.estimator().embedding, ProjectionEmbedding)


def test_transformers_of_points():
    """Names or sections, one or several; others are refused by their key."""
    section = "{name: point_transformer, embedding: js, transformer: %s}"
    steps = "[StandardScaler, {name: PCA, whiten: true}, {name: FunctionTransformer, func: cbrt}]"
    for value, expected in (
        ("StandardScaler", StandardScaler()),
        (steps, make_pipeline(StandardScaler(), PCA(whiten=True), FunctionTransformer(np.cbrt))),
        (
            "[{name: ColumnTransformer, columns: [3, 0]}, StandardScaler]",
            make_pipeline(ColumnTransformer([("kept", "passthrough", [3, 0])]), StandardScaler()),
        ),
    ):
        made = fit_config(f"model.embedding={section % value}").model.estimator().embedding
        assert repr(made.transformer) == repr(expected)
        assert repr(build(section_of(made))) == repr(made)
    columns = ["ColumnTransformer"]
    columns += [f"{{name: ColumnTransformer, columns: {numbers}}}" for numbers in ("[]", "[-1]")]
    others = ("MinMaxScaler", "{name: PCA, n_components: 0}", "[]", "{name: PCA, copy: 1}")
    for wrong in (*others, *columns):
        with pytest.raises(ConfigError, match=r"model\.embedding.*transformer"):
            fit_config(f"model.embedding={section % wrong}")
    with pytest.raises(ConfigError, match=r"model\.embedding.*n_lambdas"):
        fit_config(
            "model.embedding={name: point_transformer, embedding: {name: hdd, n_lambdas: a}}"
        )
