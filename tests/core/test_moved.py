"""Parameters, fields and config keys of versions before 1.0 answer with their names of today."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from bagbasis import HDDEmbedding, ParameterError
from bagbasis.core.moved import MOVED, MOVED_NAMES, RENAMED, today_names, with_new_names
from bagbasis.core.saved import read_saved
from bagbasis.hypotheses import FIT, two_sample_test
from bagbasis.jobs.commands import fit, retrain, tune
from bagbasis.jobs.commands.hypotheses.two_sample import Config
from bagbasis.models import tune as tune_models
from bagbasis.neural import SequenceRegressor
from bagbasis.operations import DriftDetector, DriftGate, DriftResult
from bagbasis.singlecell import BagbasisSamples, divergence_blocks
from tests.jobs.running import load_config

SERIES = np.random.default_rng(0).standard_normal((2, 40, 1))
GIVEN = {"null": "wild_bootstrap", "n_permutations": 9, "statistic": "mmd_u"}
RESULT = {
    "statistic": 0.1, "p_value": 0.5, "effect": 0.0, "n_reference": 3, "n_new": 3,
    "n_left_out_reference": 0, "n_left_out_new": 0, "n_outside": 0, "n_permutations": 9,
    "coordinates": [],
}  # fmt: skip


def test_an_argument_of_before_is_taken_with_a_warning_at_the_caller():
    new = two_sample_test(*SERIES, correlation_length=2.0, **GIVEN)
    with pytest.warns(FutureWarning, match="two_sample_test: memory is now called corr") as caught:
        old = two_sample_test(*SERIES, memory=2.0, **GIVEN)
    assert old.p_value == new.p_value
    assert caught[0].filename == __file__


def test_both_names_of_an_argument_are_refused():
    with pytest.raises(ParameterError, match="correlation_length and memory are two names"):
        two_sample_test(*SERIES, memory=2.0, correlation_length=2.0, **GIVEN)


@pytest.mark.parametrize("name", ["ksd", "ksd_agg"])
def test_a_field_of_before_is_set_and_read(name):
    with pytest.warns(FutureWarning, match="memory is now called correlation_length"):
        statistic = FIT[name](memory=3.0)
    assert statistic == FIT[name](correlation_length=3.0)
    with pytest.warns(FutureWarning, match="memory is now called correlation_length"):
        assert statistic.memory == 3.0


def test_saved_values_of_before_are_read_without_a_warning():
    old = read_saved(DriftResult, {**RESULT, "n_points_a_bag": 7})
    assert old == read_saved(DriftResult, {**RESULT, "points_per_bag": 7})
    assert old.points_per_bag == 7


@pytest.mark.parametrize("key", ["null", "null_law", '"null"'])
def test_a_config_names_the_null_in_each_way(key, tmp_path, recwarn):
    path = tmp_path / "test.yaml"
    path.write_text(f"out_dir: o\na_url: s\n{key}: permutation\n")
    assert load_config(Config, path).null == "permutation"
    warned = [str(warning.message) for warning in recwarn]
    expected = "bags test: null_law is now called null (the old name goes in 1.1)"
    assert warned == ([expected] if key == "null_law" else [])


@pytest.mark.filterwarnings("ignore:bags test")
@pytest.mark.parametrize("override", ["null=normal", "null_law=normal"])
@pytest.mark.parametrize("key", ["null", "null_law"])
def test_an_override_wins_under_each_name(key, override, tmp_path):
    path = tmp_path / "test.yaml"
    path.write_text(f"out_dir: o\na_url: s\n{key}: permutation\n")
    assert load_config(Config, path, [override]).null == "normal"


@pytest.mark.parametrize(
    ("config", "key"),
    [
        (fit.Config, "checkpoint_url"),
        (tune.Config, "cache_url"),
        (retrain.Config, "checkpoint_url"),
    ],
)
def test_configs_of_before_name_checkpoints(config, key, tmp_path):
    path = tmp_path / "job.yaml"
    required = [name for name, first in config.model_fields.items() if first.is_required()]
    path.write_text("".join(f"{name}: a\n" for name in [*required, key]))
    with pytest.warns(FutureWarning, match=f"{key} is now called checkpoints"):
        assert load_config(config, path).checkpoints == "a"


def test_a_key_of_a_section_is_read_by_its_former_name(tmp_path):
    path = tmp_path / "retrain.yaml"
    required = [name for name, first in retrain.Config.model_fields.items() if first.is_required()]
    start = "".join(f"{name}: a\n" for name in required)
    path.write_text(f"{start}drift:\n  least_effect: 0.5\n  n_bags: 60\n")
    warned = "bags retrain: drift.least_effect is now called drift.min_effect"
    with pytest.warns(FutureWarning, match=warned):
        drift = load_config(retrain.Config, path).drift.model_dump()
    assert (drift["min_effect"], drift["n_bags"]) == (0.5, 60)
    override = ["drift.least_effect=0.25"]
    with pytest.warns(FutureWarning, match=warned):
        config = load_config(retrain.Config, path, override)
    assert config.drift.model_dump()["min_effect"] == 0.25
    path.write_text(f"{start}drift: {{least_effect: 1.0, min_effect: 2.0}}\n")
    with pytest.raises(ParameterError, match=r"drift\.min_effect and drift\.least_effect are two"):
        load_config(retrain.Config, path)
    with pytest.warns(FutureWarning, match="DriftGate: least_effect is now called min_effect"):
        gate = DriftGate(least_effect=0.5)
    with pytest.warns(FutureWarning, match="DriftGate: least_effect is now called min_effect"):
        assert gate.least_effect == gate.min_effect == 0.5
    with pytest.warns(FutureWarning, match="DriftGate: alpha is now called level"):
        gate = DriftGate(alpha=0.01)
    with pytest.warns(FutureWarning, match="DriftGate: alpha is now called level"):
        assert gate.alpha == gate.level == 0.01
    path.write_text(start)
    warned = "bags retrain: drift.alpha is now called drift.level"
    for override in ("drift.alpha=0.25", "drift={alpha: 0.25}"):
        with pytest.warns(FutureWarning, match=warned):
            config = load_config(retrain.Config, path, [override])
        assert config.drift.model_dump()["level"] == 0.25
    saved = {"drift": {"least_effect": 0.5}, "data_url": "a"}
    assert today_names("bags retrain", saved) == {"drift": {"min_effect": 0.5}, "data_url": "a"}


def test_names_of_saved_embeddings_that_are_gone():
    """They are left out where this version does the same without them, and are refused else."""
    params = {"distance": "tv", "n_per_dim": 8}
    embedding = HDDEmbedding.from_params({**params, "method": "fast", "n_integration": 9})
    assert embedding.get_params() == HDDEmbedding(**params).get_params()
    spec = embedding.fit(SERIES).spec_
    fields = spec.to_dict()
    assert type(spec).from_dict({**fields, "n_integration": None, "seed": 3}).to_dict() == fields
    refused = "this version does not have method='direct'; leave method out"
    with pytest.raises(ParameterError, match=refused):
        HDDEmbedding.from_params({**params, "method": "direct"})
    with pytest.raises(ParameterError, match=refused):
        type(spec).from_dict({**fields, "n_integration": 9})


def test_detectors_of_before_standardise(tmp_path, recwarn):
    """In the call with a warning, in a saved detector without one."""

    class Earlier(DriftDetector):
        def get_params(self, deep=True):
            params = super().get_params(deep)
            return {**params, "standardise": params.pop("standardize")}

    with pytest.warns(FutureWarning, match="DriftDetector: standardise is now called standardize"):
        detector = DriftDetector(standardise=False)
    with pytest.warns(FutureWarning, match="DriftDetector: alpha is now called level"):
        assert DriftDetector(alpha=0.1).level == 0.1
    assert detector.standardize is False
    earlier = Earlier(standardize=False, n_permutations=9).fit(np.arange(20.0)[:, None])
    earlier.save(tmp_path / "detector")
    recwarn.clear()
    assert DriftDetector.load(tmp_path / "detector").standardize is False
    assert not recwarn.list


def test_two_names_of_before_for_one_of_today_are_refused():
    with pytest.raises(ParameterError, match=r"tune: .* are two names .*; give checkpoints alone"):
        tune_models(None, [], cache_url="a", records="b")


def test_checkpoints_of_networks_and_samples_have_one_name(tmp_path):
    with pytest.warns(FutureWarning, match="SequenceRegressor: checkpoint is now called"):
        assert SequenceRegressor(checkpoint="kept").checkpoints == "kept"
    with pytest.warns(FutureWarning, match="divergence_blocks: checkpoint is now called"):
        divergence_blocks(list(SERIES), k=3, checkpoint=tmp_path)
    assert list(tmp_path.iterdir())
    with pytest.warns(FutureWarning, match="BagbasisSamples: checkpoint is now called"):
        assert BagbasisSamples("donor", checkpoint="kept").checkpoints == "kept"


def test_the_page_has_a_row_for_each_name():
    page = (Path(__file__).parents[2] / "docs/policy.md").read_text()
    for owner, names in RENAMED.items():
        for old, new in names.items():
            assert f"| `{owner}` | `{old}` | `{new}` |" in page
    for old, new in MOVED.items():
        place = f"bagbasis.{new}".rstrip(".")
        assert f"| `bagbasis.{old}` | `{place}` |" in page
    for old, new in MOVED_NAMES.items():
        assert f"| `bagbasis.{old}` | `bagbasis.{new}` |" in page


@pytest.mark.filterwarnings("ignore:.* is now part of:FutureWarning")
@pytest.mark.parametrize("old", MOVED_NAMES)
def test_a_name_that_is_called_otherwise(old):
    """It is what has the new name, with a warning at the caller; other names are unknown."""
    module, _, name = old.rpartition(".")
    place, _, new = MOVED_NAMES[old].rpartition(".")
    former = import_module(f"bagbasis.{module}")
    vars(former).pop(name, None)  # of an earlier test
    with pytest.warns(FutureWarning, match=f"bagbasis.{old} is now bagbasis.{place}.{new}") as seen:
        value = getattr(former, name)
    assert value is getattr(import_module(f"bagbasis.{place}"), new)
    assert [warning.filename for warning in seen] == [__file__]
    with pytest.raises(AttributeError, match="Unknown"):
        former.Unknown  # noqa: B018 - asking for it is what is tested


def test_names_of_others_are_left_alone():
    assert with_new_names("evaluate_basis", {"data": 1}) == {"data": 1}
