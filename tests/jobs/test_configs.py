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
    ProjectionEmbedding,
    RandomFourierFeatures,
    TripleBasisRegressor,
)
from bagbasis.core.config_errors import key_sections
from bagbasis.execution.clusters.profiles import Profile, load_profile
from bagbasis.jobs.completions import KEYS_FILE
from bagbasis.jobs.configs.config import ClusterConfig
from bagbasis.jobs.configs.model_sections import ModelSection
from bagbasis.jobs.configs.printed import config_text, keys_text
from bagbasis.jobs.configs.sections import build_features, section_of_features
from tests.jobs.running import CONFIGS, JOBS, done, import_job, load_config, refused


def config_of(job):
    """The Config of a job."""
    return import_job(job).Config


def rows_of(job):
    """Every key of a job's config, and what --help says of it."""
    return [row for rows in key_sections(config_of(job)).values() for row in rows]


def test_one_file_a_job():
    """Every job has its YAML, and every YAML its job."""
    assert {path.stem for path in CONFIGS.glob("*.yaml")} == set(JOBS)


@pytest.mark.parametrize("job", JOBS)
def test_file_is_that_of_the_job(job, tmp_path, monkeypatch):
    """Written by ``python -m bagbasis.jobs.configs.printed configs``; bags config JOB prints it
    from any folder, comments and all."""
    text = (CONFIGS / f"{job}.yaml").read_text()
    monkeypatch.chdir(tmp_path)
    assert done("config", job) == text == config_text(job)


@pytest.mark.parametrize("job", JOBS)
def test_every_key_has_a_help_text(job):
    """What --help prints about a key is never empty."""
    for key, text in rows_of(job):
        assert not text.startswith(" ("), key


def test_keys_that_shells_complete():
    """Written by the same command."""
    assert (CONFIGS / KEYS_FILE).read_text() == keys_text()


@pytest.mark.parametrize("job", JOBS)
def test_file_has_the_defaults(job):
    """Loaded, the file gives what the job does without it; required keys have an example."""
    kind, path = config_of(job), CONFIGS / f"{job}.yaml"
    values = yaml.safe_load(path.read_text())
    assert set(values) == set(kind.model_fields)
    required = {name for name, first in kind.model_fields.items() if first.is_required()}
    assert None not in [values[name] for name in required]
    alone = kind.model_validate({name: values[name] for name in required})
    assert load_config(kind, path).model_dump() == alone.model_dump()


def test_the_default_is_that_of_python():
    """`bags fit`, `tune` and `retrain` make the estimators that people make without parameters."""
    tasks = {
        "regression": DoubleBasisRegressor,
        "classification": DoubleBasisClassifier,
        "densities": TripleBasisRegressor,
    }
    for task, kind in tasks.items():
        made = ModelSection(task=task).estimator()
        assert type(made) is kind
        value, default = made.get_params(deep=False), kind().get_params(deep=False)
        if task == "densities":  # a section stands for the projection that None stands for
            assert value.pop("embedding").get_params() == ProjectionEmbedding().get_params()
            assert default.pop("embedding") is None
        assert value == default
    for job in ("fit", "tune", "retrain"):
        field = config_of(job).model_fields["model"]
        made = field.get_default(call_default_factory=True).estimator()
        assert made.get_params(deep=False) == DoubleBasisRegressor().get_params(deep=False)


@pytest.mark.parametrize(
    ("values", "embedding", "second"),
    [
        ({"embedding": "projection"}, "ProjectionEmbedding", None),
        ({"embedding": {"n_per_dim": 4}}, "ProjectionEmbedding", None),
        ({"embedding": {"name": "auto", "n_per_dim": 4}}, "ProjectionEmbedding", None),
        ({"random_features": {"n_features": 64}}, "auto", "RandomFourierFeatures"),
        (
            {"embedding": "js", "random_features": "fourier"},
            "HDDEmbedding",
            "RandomFourierFeatures",
        ),
    ],
)
def test_what_is_given_is_taken(values, embedding, second):
    made = ModelSection.model_validate(values).estimator()
    assert made.embedding == embedding or type(made.embedding).__name__ == embedding
    assert (None if second is None else type(made.random_features).__name__) == second


def test_config_of_no_job():
    """A job that is not there is refused, and those there are are named."""
    assert "(did you mean 'fit'?); there are generate" in refused(2, "config", "fitt")


def test_keys_of_each_embedding_have_a_heading():
    """The help of a job does not list one key five times without a word."""
    sections = key_sections(config_of("fit"))
    assert "model.embedding with name: moments" in sections
    for rows in sections.values():
        assert len({key for key, _ in rows}) == len(rows)
    assert "model.random_features with name: nystroem:" in done("fit", "--help-all")


def test_cluster_option_where_the_config_has_it():
    """--cluster exists for the jobs that can run on one."""
    with_cluster = {job for job in JOBS if issubclass(config_of(job), ClusterConfig)}
    assert with_cluster == {job for job in JOBS if JOBS[job].cluster}


def test_model_section_mirrors_the_estimators():
    """Keys and defaults of the model section are parameters and defaults of the estimators."""
    nested = {"embedding", "random_features"}
    fourier = ModelSection(random_features="fourier")
    nystroem = ModelSection(random_features={"name": "nystroem"})
    learned = ModelSection(random_features="learned")
    pairs = [
        (fourier.random_features, RandomFourierFeatures, set(), ("name",)),
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


def test_random_features_are_left_to_the_fit_or_named():
    """Auto has no keys: a key means the default kind; each kind has its section."""
    for case in ("auto", {"name": "auto"}):
        assert ModelSection(random_features=case).estimator().random_features is None
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
    """Each builds the estimator that has it, and is refused with other tasks."""
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
