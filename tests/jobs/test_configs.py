"""The YAML files in configs/ hold every key of their job, explained, and nothing else."""

from __future__ import annotations

import inspect

import pytest
import yaml

from bagbasis import (
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    LearnedFourierFeatures,
    NystroemFeatures,
    RandomFourierFeatures,
    TripleBasisRegressor,
)
from bagbasis.core.config_errors import key_sections
from bagbasis.datasets import make_dataset
from bagbasis.execution.clusters.profiles import Profile, load_profile
from bagbasis.jobs.cli import ON_CLUSTER
from bagbasis.jobs.configs.config import ClusterConfig, load_config
from bagbasis.jobs.configs.model_sections import ModelSection
from bagbasis.jobs.configs.sections import build_features, section_of_features
from bagbasis.jobs.shell import JOBS, import_job
from tests.jobs.running import CONFIGS, done, refused


def config_of(job):
    """The Config of a job."""
    return import_job(job).Config


def rows_of(job):
    """Every key of a job's config, and what --help says of it."""
    return [row for rows in key_sections(config_of(job)).values() for row in rows]


def keys_of(values, prefix=""):
    """Dotted keys of nested mappings."""
    keys = set()
    for key, value in values.items():
        nested = isinstance(value, dict) and key not in ("params", "parameters", "labels")
        keys |= keys_of(value, f"{prefix}{key}.") if nested else {prefix + key}
    return keys


def test_one_file_a_job():
    """Every job has its YAML, and every YAML its job."""
    assert {path.stem for path in CONFIGS.glob("*.yaml")} == set(JOBS)


@pytest.mark.parametrize("job", JOBS)
def test_file_is_valid_and_has_every_key(job):
    """The file passes validation and shows each key the job knows; those of the embedding, the
    random features, the holdout or the network that it does not use stand in a comment of
    fit.yaml."""
    path = CONFIGS / f"{job}.yaml"
    load_config(config_of(job), path)
    known = {key for key, _ in rows_of(job)}
    shown = keys_of(yaml.safe_load(path.read_text()))
    assert shown <= known | {key.rpartition(".")[0] for key in known}  # a section may be null
    alternatives = (CONFIGS / "fit.yaml").read_text()
    for key in known - shown:
        section, _, name = key.rpartition(".")
        nested = section.endswith(("embedding", "random_features")) or section == "holdout"
        assert nested or (job == "fit" and section == "model"), key
        assert f"    # {name}: " in alternatives, key


@pytest.mark.parametrize("job", JOBS)
def test_config_is_printed(job, tmp_path, monkeypatch):
    """From any folder, bags config JOB prints the file of that job, comments and all."""
    monkeypatch.chdir(tmp_path)
    assert done("config", job) == (CONFIGS / f"{job}.yaml").read_text()


def test_config_of_no_job():
    """A job that is not there is refused, and those there are are named."""
    assert "(did you mean 'fit'?); there are generate" in refused(2, "config", "fitt")


@pytest.mark.parametrize("job", JOBS)
def test_every_key_is_explained(job):
    """Each line with a value has a comment; demo's model sections are those of fit."""
    for line in (CONFIGS / f"{job}.yaml").read_text().splitlines():
        key, _, value = line.partition(":")
        deep = job == "demo" and key.startswith("    ")
        if value.strip() and not key.strip().startswith("#") and not deep:
            assert "#" in value, f"configs/{job}.yaml: {line}"


@pytest.mark.parametrize("job", JOBS)
def test_every_key_has_a_help_text(job):
    """What --help prints about a key is never empty."""
    for key, text in rows_of(job):
        assert not text.startswith(" ("), key


def test_keys_of_each_embedding_have_a_heading():
    """The help of a job does not list one key five times without a word."""
    sections = key_sections(config_of("fit"))
    assert "model.embedding with name: moments" in sections
    for rows in sections.values():
        assert len({key for key, _ in rows}) == len(rows)
    assert "model.random_features with name: nystroem:" in done("fit", "--help")


def test_generate_has_parameters_of_its_dataset():
    """The parameters in configs/generate.yaml make the dataset they are for."""
    config = load_config(config_of("generate"), CONFIGS / "generate.yaml")
    assert set(config.params) == set(make_dataset(config.dataset, **config.params).params)


def test_cluster_option_where_the_config_has_it():
    """--cluster exists for the jobs that can run on one."""
    with_cluster = {job for job in JOBS if issubclass(config_of(job), ClusterConfig)}
    assert with_cluster == set(ON_CLUSTER)


def test_model_section_mirrors_the_estimators():
    """Keys and defaults of the model section are parameters and defaults of the estimators."""
    nested = {"embedding", "random_features"}
    nystroem = ModelSection(random_features={"name": "nystroem"})
    learned = ModelSection(random_features="learned")
    pairs = [
        (ModelSection().random_features, RandomFourierFeatures, set(), ("name",)),
        (nystroem.random_features, NystroemFeatures, set(), ("name",)),
        (learned.random_features, LearnedFourierFeatures, set(), ("name",)),
        (ModelSection(), DoubleBasisRegressor, nested, ("response_embedding", "class_weight")),
        (ModelSection(), DoubleBasisClassifier, nested, ("response_embedding",)),
        (ModelSection(task="densities"), TripleBasisRegressor, nested, ("class_weight", "head")),
    ]
    for section, estimator, nested, other in pairs:
        parameters = inspect.signature(estimator).parameters
        fields = {k: v for k, v in section.model_dump().items() if k not in ("task", *other)}
        assert set(fields) == set(parameters)
        for key in set(parameters) - nested:
            assert fields[key] == parameters[key].default, key


def test_default_model_section_builds_default_estimators():
    """The section without a key is the estimator without an argument."""
    model = ModelSection().estimator()
    assert isinstance(model, DoubleBasisRegressor)
    assert model.embedding.get_params() == type(model.embedding)().get_params()
    assert model.random_features.get_params() == RandomFourierFeatures().get_params()
    assert isinstance(ModelSection(task="classification").estimator(), DoubleBasisClassifier)
    assert isinstance(ModelSection(task="densities").estimator(), TripleBasisRegressor)


def test_random_features_are_left_to_the_fit_or_named():
    """Auto has no keys: one beside it means the default kind; each kind has its section."""
    for given in ("auto", {"name": "auto"}):
        assert ModelSection(random_features=given).estimator().random_features is None
    made = ModelSection(random_features={"name": "auto", "n_features": 64}).estimator()
    assert made.random_features.get_params() == RandomFourierFeatures(n_features=64).get_params()
    for made in (
        False,
        RandomFourierFeatures(n_features=8),
        NystroemFeatures(n_features=5),
        LearnedFourierFeatures(n_features=6),
    ):
        again = build_features(section_of_features(made))
        assert repr(again) == repr(made)
    with pytest.raises(ValueError, match="'sines' is neither false nor one of auto, fourier"):
        ModelSection(random_features="sines")


def test_baselines_have_their_tasks():
    """Each builds the estimator that has it, and is refused beside other tasks."""
    for baseline, tasks in (("linear", {"regression", "classification"}), ("own", {"densities"})):
        for task in tasks:
            assert ModelSection(task=task, baseline=baseline).estimator().baseline == baseline
        for other in {"regression", "classification", "densities"} - tasks:
            with pytest.raises(ValueError, match=f"baseline: {baseline} is used with task: "):
                ModelSection(task=other, baseline=baseline)


@pytest.mark.parametrize("name", ["local", "tcp"])
def test_profiles_are_valid(name, monkeypatch):
    """Each cluster profile loads, by its file and by its name."""
    monkeypatch.chdir(CONFIGS.parent)
    profile = load_profile(str(CONFIGS / "profiles" / f"{name}.yaml"))
    assert isinstance(profile, Profile)
    assert profile.cluster == name
    assert load_profile(name) == profile
