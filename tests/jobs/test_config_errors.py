"""A wrong key or value is one line on stderr that names it, and exit code 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from bagbasis import ConfigError
from bagbasis.jobs.commands import fit, retrain, tune
from bagbasis.jobs.configs.config import ReportConfig, parse_override, read_yaml
from tests.jobs.running import CONFIGS, load_config, refused, settings

FIT = CONFIGS / "fit.yaml"


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"modell__alpha": 1}, ["unknown key 'modell'", "did you mean 'model'?", "data_url"]),
        ({"model__alhpa": 1}, ["unknown key 'model.alhpa'", "did you mean 'alpha'?", "precision"]),
        ({"alpha": 1}, ["unknown key 'alpha'", "did you mean 'model.alpha'?"]),
        (
            {"n_per_dim": 4},
            ["unknown key 'n_per_dim'", "did you mean 'model.embedding.n_per_dim'?"],
        ),
        ({"model__overwrite": "true"}, ["'model.overwrite'", "did you mean 'overwrite'?"]),
        (
            {"model__embedding__bassis": "cosine"},
            ["unknown key 'model.embedding.bassis'", "did you mean 'basis'?", "marginals"],
        ),
        ({"model__seed": 1}, ["unknown key 'model.seed'", "did you mean 'model.embedding.seed'?"]),
        ({"labels": "y"}, ["did you mean 'target'?"]),
        ({"model__alpha": "gvc"}, ["'model.alpha' is 'gvc'", "'validation'", "mean 'gcv'?"]),
        ({"model__alpha": -1}, ["'model.alpha' is -1", "a number >= 0"]),
        ({"model__alpha": ".nan"}, ["'model.alpha' is nan"]),
        ({"model__precision": "float16"}, ["'float32' or 'float64'", "did you mean 'float"]),
        ({"model__random_features__n_features": 63}, ["is 63", ">= 2 and divisible by 2"]),
        ({"model__random_features__n_features": "'64'"}, ["'64'", "an integer"]),
        ({"model__random_features__n_features": 64.0}, ["64.0", "an integer"]),
        ({"model__random_features__orthogonal": 1}, ["is 1", "true or false"]),
        ({"model": 3}, ["'model' is 3", "'key: value' lines"]),
        ({"holdout": 1}, ["'holdout' is 1", "a number >= 0 and < 1"]),
        ({"holdout": "{group: y}"}, ["'holdout.group'", "did you mean 'groups'?"]),
        ({"data_url": ""}, ["'data_url' is None", "a string"]),
        ({"cluster": "''"}, ["'cluster' is ''; expected a string that is not empty"]),
        ({"model__embedding__name": "projecton"}, ["'model.embedding.name'", "'projection'"]),
        ({"model__embedding__n_per_dim": 2.5}, ["'model.embedding.n_per_dim' is 2.5"]),
        # errors are about the keys of the embedding that is named
        ({"model__embedding": "{name: moments, basis: cosine}"}, ["key 'model.embedding.basis'"]),
        ({"model__embedding": "{name: hdd, distanse: tv}"}, ["did you mean 'distance'?"]),
        ({"model__embedding": "{name: hdd, distance: tw}"}, ["'model.embedding.distance' is 'tw'"]),
        ({"model__alpha__x": 1}, ["'model.alpha' is 'auto' and has no keys"]),
    ],
)
def test_wrong_override_names_the_key(overrides, message):
    """What --set gets wrong is named, with what would be right."""
    line = refused(2, "fit", FIT, *settings(**overrides))
    for part in [*message, "fit: --set"]:
        assert part in line


@pytest.mark.parametrize(
    ("command", "override", "range_of"),
    [
        ("drift-fit", {"level": 1.5}, "a number > 0 and < 1"),
        ("drift-fit", {"n_frequencies": 0}, "an integer >= 1 and <= 4,096"),
        ("drift-test", {"level": 0}, "a number > 0 and < 1 or null"),
        ("test-two-sample", {"n_permutations": 10**7}, "an integer >= 1 and <= 1,000,000"),
        ("test-two-sample", {"kernel": "cauchy"}, "'matern'"),
        ("test-independence", {"seed": 2**64}, "an integer >= 0 and <= 2^64 - 1"),
        ("test-fit", {"bandwidth": -1.0}, "a number >= 1e-30"),
        ("generate", {"n_bags": 0}, "an integer >= 1"),
    ],
)
def test_keys_of_functions_have_their_ranges(command, override, range_of):
    """A command refuses what the function would refuse, before any data are read."""
    path = CONFIGS / f"{command}.yaml"
    words = (command,) if command == "generate" else command.split("-", 1)
    line = refused(2, *words, path, *settings(**override))
    assert f"key '{next(iter(override))}' is " in line
    assert range_of in line


@pytest.mark.parametrize("override", ["alpha", "=1", "model..alpha=1", ".a=1", "a.=1"])
def test_override_without_key_and_value(override):
    """--set takes key=value and says so."""
    line = refused(2, "fit", FIT, "--set", override)
    assert f"--set {override!r}" in line
    assert "key=value" in line


def test_override_that_is_no_yaml():
    """A value with an open bracket is refused with its key."""
    assert "--set target: '[a': not valid YAML: line 1" in refused(2, "fit", "--set", "target=[a")


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("data_url: [x\n", ["not valid YAML", "line 2"]),
        ("- a\n- b\n", ["expected 'key: value' lines, found list"]),
        ("data_url: a\ndata_url: b\n", ["key 'data_url' is given twice", "line 2"]),
        ("data_url: a\nmodel_url: b\nmodel: {alpha: 1, alpha: 2}\n", ["'alpha' is given twice"]),
        ("data_url: a\nmodel_url: b\nmodel: {1: a, 1: b}\n", ["key 1 is given twice"]),
        ("data_url: a\n", ["missing key 'model_url'", "where the model goes", "--set model_url="]),
        ("data_url: a\nmodel_url: b\nholdou: 0.1\n", ["unknown key 'holdou'", "mean 'holdout'?"]),
        ("data_url: 5\nmodel_url: b\n", ["key 'data_url' is 5; expected a string"]),
        ("data_url: a\nmodel_url: b\ntarget: no\n", ["'target' is False", "only in quotes, 'no'"]),
        ("target: " + "1" * 5000, ["not valid YAML", "digits"]),
        ("target: 2024-13-45\n", ["not valid YAML", "month"]),
        ("holdout: [" + "'many', " * 10_000 + "]", ["'holdout' is ['many',", "...", "a number"]),
        ("? " + "k" * 1023 + "\n: 1\n", ["unknown key 'kkkk", " … ", "checkpoint_seconds"]),
        ("1: 2\n", ["should be strings"]),
    ],
)
def test_wrong_file_names_file_and_key(tmp_path, text, message):
    """What a file gets wrong is named with the file."""
    path = tmp_path / "wrong.yaml"
    path.write_text(text)
    line = refused(2, "fit", path)
    for part in [*message, str(path)]:
        assert part in line
    assert len(line) <= len("bags: ") + 1000


def test_a_table_is_no_config(tmp_path):
    path = tmp_path / "points.tsv"
    path.write_text("id\tx\n1\t2\n")
    for command in (["drift", "fit"], ["ingest"]):
        line = refused(2, *command, path)
        assert str(path) in line
        assert line.endswith("such as --set points=[FILE.csv] of bags ingest")


def test_all_missing_keys_are_told_at_once():
    """With the command that prints a config."""
    line = refused(2, "evaluate")
    for key in ("out_dir", "data_url", "model_url"):
        assert f"'{key}' (" in line
        assert f"--set {key}=..." in line
    assert line.endswith("an example: bags config evaluate > evaluate.yaml")
    assert "missing keys 'data_url' (" in refused(2, "test", "fit", "--set", "out_dir=o")


def test_a_section_replaces_its_short_form(tmp_path):
    """A number, as of a holdout, gives way to keys; a name does not: which section would it be."""
    path = tmp_path / "fit.yaml"
    path.write_text("data_url: a\nmodel_url: b\nholdout: 0.1\nembedding: moments\n")
    assert load_config(fit.Config, path, ["holdout.fraction=0.2"]).holdout.fraction == 0.2
    line = refused(2, "fit", path, "--set", "holdout.fracton=0.2")
    assert "unknown key 'holdout.fracton' (did you mean 'fraction'?)" in line
    line = refused(2, "fit", path, "--set", "embedding.degree=2")
    assert "'embedding' is 'moments' and has no keys; give --set embedding=VALUE" in line


def test_a_number_is_the_fraction_of_its_section(tmp_path):
    """Neither is lost where --set gives the other one; a time is used without a fraction."""
    path = tmp_path / "fit.yaml"
    path.write_text("data_url: a\nmodel_url: b\nholdout: 0.4\n")
    holdout = load_config(fit.Config, path, ["holdout.groups=patient"]).kept_out
    assert (holdout.fraction, holdout.groups) == (0.4, "patient")
    path.write_text("data_url: a\nregistry_url: b\nout_dir: c\nholdout: 0.4\n")
    rounds = load_config(retrain.Config, path, ["holdout.groups=patient"]).holdout
    assert (rounds.fraction, rounds.groups) == (0.4, "patient")
    path.write_text("data_url: a\nmodel_url: b\nholdout: 0.4\n")
    holdout = load_config(fit.Config, path, ["holdout.after=2026-01-10"]).kept_out
    assert (holdout.fraction, holdout.after) == (0.0, "2026-01-10")
    path.write_text("data_url: a\nmodel_url: b\nholdout: {fraction: 0.2, groups: patient}\n")
    line = refused(2, "fit", path, "--set", "holdout=0.3")
    assert "'groups' in 'holdout', which 0.3 would delete; give --set holdout.fraction=0.3" in line
    words = ["holdout.fraction=0.3", "holdout.groups=null"]
    assert load_config(fit.Config, path, words).kept_out.groups is None
    path.write_text("data_url: a\nmodel_url: b\nholdout: {fraction: 0.2}\n")
    assert load_config(fit.Config, path, ["holdout=0.3"]).holdout == 0.3


def test_a_comment_in_an_override_is_refused():
    """It would cut the value off; quoted and without a blank it is a part of the value."""
    line = refused(2, "fit", "--set", "target=k #1")
    assert "' #' begins a comment" in line
    assert "--set \"target='k #1'\"" in line
    assert parse_override("target='k #1'")[1] == "k #1"
    assert parse_override("target=k#1 ")[1] == "k#1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<<: {data_url: a}\n", r"line 1.*the key << \(merge\) is not accepted"),
        ("data_url: &a [x]\nmodel_url: *a\n", r"line 2.*aliases \(\*name\) are not accepted"),
        ("target: " + "[" * 3000, "line 1.*nested more than 30 deep"),
    ],
)
def test_yaml_that_is_more_than_values_is_refused(tmp_path, text, message):
    path = tmp_path / "wrong.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_yaml(path)


def test_written_yaml_is_read_as_it_was(tmp_path):
    """Texts stay texts, whatever number YAML 1.1 or this reader takes them for."""
    texts = ["1e5", "-2E3", "1e-3", "012", "0x10", "1_000", "no", "1:30", "2026-01-10", "5", "~"]
    texts.append("Größe")
    values = {"texts": texts, "numbers": [1e5, 1e-7, 3, 1e30], **dict.fromkeys(texts, 1)}
    (tmp_path / "best.yaml").write_text(tune.yaml_text(values))
    assert read_yaml(tmp_path / "best.yaml") == values
    assert "Größe" in (tmp_path / "best.yaml").read_text("utf-8")


def test_missing_or_unreadable_file(tmp_path):
    """A config that is not there, or is not text, is refused by name."""
    assert "nope.yaml: cannot be read (No such file" in refused(2, "fit", tmp_path / "nope.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    assert "binary.yaml: not valid YAML" in refused(2, "fit", tmp_path / "binary.yaml")


def test_wrong_dataset_and_parameters(tmp_path):
    """The name of a dataset and the keys and values of its parameters are checked."""
    url = settings(url=tmp_path / "a.zarr", n_bags=5)
    line = refused(2, "generate", "gmm_component", *url)
    assert "'dataset' is 'gmm_component'" in line
    assert "did you mean 'gmm_components'?" in line
    line = refused(2, "generate", "digits", *url, *settings(params__splt="train"))
    assert "unknown key 'params.splt' (did you mean 'split'?)" in line
    line = refused(2, "generate", "digits", *url, *settings(params__split="trian"))
    assert "split is 'trian'" in line
    assert refused(2, "generate", "digits", *url, *settings(n_bags=5000)).count("n_bags") == 1
    assert not (tmp_path / "a.zarr").exists()


@pytest.mark.long
def test_wrong_parameter_found_while_fitting(regression, tmp_path):
    """A value that only the library can judge is a wrong config too."""
    urls = settings(data_url=regression / "bags.zarr", model_url=tmp_path / "m.zarr")
    line = refused(2, "fit", *urls, *settings(model__embedding__basis="cosin"))
    assert "basis" in line
    assert "legendre" in line
    line = refused(2, "fit", *urls, *settings(model__embedding__marginals=7))
    assert "marginals" in line
    line = refused(2, "fit", *urls, *settings(model__alpha="[1]", model__alphas="[1, 2]"))
    assert "alphas" in line
    assert not (tmp_path / "m.zarr").exists()


def test_yaml_numbers_are_what_people_mean():
    """1e-3 is a number, 001 a string, and other values stay what YAML says."""
    values = {"1e-3": 0.001, "-2E5": -2e5, "001": "001", "10": 10, "-3": -3, "0": 0, "0.5": 0.5}
    values |= {"true": True, "": None, "null": None, "[1, a]": [1, "a"], "a=b": "a=b"}
    for text, value in values.items():
        parsed = parse_override(f"key={text}")[1]
        assert parsed == value
        assert type(parsed) is type(value)


def test_empty_file_is_an_empty_config(tmp_path):
    """A file with comments alone has no keys."""
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    assert read_yaml(tmp_path / "empty.yaml") == {}


def test_overrides_win_over_arguments_and_file(tmp_path):
    """--set beats the positional argument, which beats the file."""
    path = Path(tmp_path / "a.yaml")
    path.write_text("report: file.json\n")
    assert load_config(ReportConfig, path).report == "file.json"
    value = {"report": "given.json"}
    assert load_config(ReportConfig, path, (), value).report == "given.json"
    assert load_config(ReportConfig, path, ["report=set.json"], value).report == "set.json"


def test_a_missing_key_of_a_table_names_the_columns_there_are(tmp_path):
    """Which of them is the id, is what the user has to say."""
    (tmp_path / "t.csv").write_text("patient,pulse\n1,2\n")
    line = refused(2, "ingest", *settings(points=tmp_path / "t.csv", url=tmp_path / "s.zarr"))
    assert "missing key 'id_column'" in line
    assert line.endswith("there are the columns ['patient', 'pulse']")
