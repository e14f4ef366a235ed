"""``bags tune``: its report, picture and config, its refusals, and going on after a kill."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import numpy as np
import pytest
import yaml

from bagbasis import BagStore, ConfigError, DoubleBasisRegressor, ModelError, load_model
from bagbasis.embeddings import EMBEDDINGS
from bagbasis.jobs.commands import tune
from bagbasis.jobs.configs.search_sections import default_search, embeddings_of, labels_of
from bagbasis.jobs.configs.sections import embedding_section
from bagbasis.jobs.pictures.model_part import compare_judged
from bagbasis.jobs.terminal import Terminal
from bagbasis.models import judge_fit
from tests.data.store.processes import running
from tests.execution.gated import until
from tests.jobs.pages import Page
from tests.jobs.running import CONFIGS, assert_picture, done, load_config, refused, settings
from tests.shown import rounded, with_error

SMALL = settings(
    model__random_features__n_features=64,
    search__embedding="{n_per_dim: [3, 6]}",
    search__random_features__scale_multiplier="[0.5, 1]",
    search__first_bags=100,
    model__validation_fraction=0.3,
)


def urls(data, out):
    return settings(data_url=data / "bags.zarr", model_url=out / "model.zarr", out_dir=out / "tune")


@pytest.fixture(scope="module")
def few(regression, tmp_path_factory):
    """A folder with a third of the bags."""
    folder, store = tmp_path_factory.mktemp("few"), BagStore.open(regression / "bags.zarr")
    names = store.target_names
    made = BagStore.create(folder / "bags.zarr", 2, target_names=names, box=store.box)
    made.append(store.read(0, 100), store.targets(0, 100))
    return folder


@pytest.fixture(scope="module")
def tuned(regression, tmp_path_factory):
    """What a search of four candidates printed, and the folder in which it left its files."""
    folder = tmp_path_factory.mktemp("tuned")
    arguments = [*SMALL, *settings(holdout=0.3), *urls(regression, folder)]
    return done("tune", "-v", *arguments), folder


@pytest.mark.long
def test_tune_leaves_model_report_picture_and_config(tuned, regression, tmp_path):
    """The table has the winner, the report every path, and bags fit makes the same model of
    best.yaml."""
    printed, folder = tuned
    out = folder / "tune"
    assert {path.name for path in out.iterdir()} == {
        "report.html",
        "report.json",
        "state.json",
        "best.yaml",
        "tune.png",
    }
    assert_picture(out / "tune.png")
    report = json.loads((out / "report.json").read_text())
    assert [rung["n_kept"] for rung in report["rungs"]] == [2, 1]
    names = [candidate["name"] for candidate in report["candidates"]]
    assert names == [f"projection, n_per_dim {n}; σ × {m}" for n in (3, 6) for m in ("0.5", "1")]
    for name in names:
        assert name in printed
    last = report["rungs"][-1]["candidates"]
    assert report["winner"]["name"] == last[0]["name"]
    assert last[0]["error"] == min(last[0]["errors"]) <= last[1]["error"]
    assert not (regression / "bags.zarr.cache").exists()
    page = Page(out / "report.html")
    page.assert_self_contained()
    assert {"4 candidates", "winner", "Over the penalty, on the most bags that each has seen"} <= {
        *page.texts
    }
    assert page.texts[page.texts.index("winner") - 1] == report["winner"]["name"]
    spread = last[0]["error"] * (2 / last[0]["n_held_out"]) ** 0.5
    assert with_error(last[0]["error"], spread) in page.texts
    done("fit", out / "best.yaml", *settings(model_url=tmp_path / "again.zarr"))
    winner, fitted = load_model(folder / "model.zarr"), load_model(tmp_path / "again.zarr")
    assert winner.features_ == fitted.features_
    np.testing.assert_array_equal(winner.coef_, fitted.coef_)
    assert report["winner"]["features"] == json.loads(json.dumps(winner.features_.to_dict()))


@pytest.mark.long
def test_classes_and_whole_embeddings(classification, tmp_path):
    """Several embeddings by name compete for a classifier; the file in configs/ is where to
    start."""
    search = settings(
        search__embedding="[moments, {name: projection, max_norm: [2, 4]}]",
        search__random_features__scale_multiplier="[1]",
        model__task="classification",
        model__random_features__n_features=64,
        target="null",
        holdout=0.1,
    )
    done("tune", CONFIGS / "tune.yaml", *search, *urls(classification, tmp_path))
    report = json.loads((tmp_path / "tune" / "report.json").read_text())
    names = [candidate["name"] for candidate in report["candidates"]]
    assert names == [
        "moments; σ × 1",
        "projection, max_norm 2; σ × 1",
        "projection, max_norm 4; σ × 1",
    ]
    best = yaml.safe_load((tmp_path / "tune" / "best.yaml").read_text())
    assert best["model"]["task"] == "classification"
    assert best["model"]["embedding"]["max_norm"] == 4
    assert best["holdout"] == 0.1
    assert load_model(tmp_path / "model.zarr").holdout_ == 0.1


@pytest.mark.long
def test_auto_joins_and_says_by_how_much_it_leads(few, tmp_path):
    """Candidates of every kind and unions of them, leads in standard errors; best.yaml fits."""
    auto = settings(search__embedding="auto", search__random_features__scale_multiplier="[1]")
    printed = done("tune", *SMALL, *auto, *urls(few, tmp_path))
    report = json.loads((tmp_path / "tune" / "report.json").read_text())
    names = [candidate["name"] for candidate in report["candidates"]]
    assert {"moments, covariance True; σ × 1", "moments, covariance False; linear"} < set(names)
    assert any(" × " in name.partition(";")[0] for name in names)
    assert {lead["name"] for lead in report["leads"]} < set(names)
    texts = Page(tmp_path / "tune" / "report.html").texts
    [worry] = [text for text in texts if "not clearly better than" in text]
    assert re.search(r"than \d+ others, .* first: less than", worry), "one is named, others counted"
    named, others = report["leads"][: tune.N_SHOWN], report["leads"][tune.N_SHOWN :]
    assert f"{len(others)} more are further behind" in printed
    assert others
    for lead in named:
        assert f"{lead['name']} " in printed
        assert f"{abs(lead['gap']) / lead['standard_error']:.1f} standard errors" in printed
    best = tmp_path / "tune" / "best.yaml"
    done("fit", best, *settings(model_url=tmp_path / "again.zarr"))
    again = load_model(tmp_path / "again.zarr")
    assert again.features_ == load_model(tmp_path / "model.zarr").features_


@pytest.mark.long
def test_it_ends_with_the_winner_beside_what_it_has_to_beat(tuned, regression):
    """On the bags that no choice has seen: in the terminal, the report and on the page."""
    printed, folder = tuned
    judged = json.loads((folder / "tune" / "report.json").read_text())["judged"]
    model, store = load_model(folder / "model.zarr"), BagStore.open(regression / "bags.zarr")
    assert judged == judge_fit(model, store, forest=True)
    page = Page(folder / "tune" / "report.html")
    for name, key in [
        ("the model", "error"),
        ("a random forest on moments, minima and maxima", "forest_error"),
        ("ridge regression on the bags' means", "means_error"),
        ("the best constant", "constant_error"),
    ]:
        assert name in printed
        spread = judged["standard_error"]
        message = (
            with_error(judged[key], spread) if key == "error" else rounded(judged[key], spread)
        )
        assert page.texts[page.texts.index(name) + 1] == message
        assert message in printed
    assert judged["measure"] in printed


@pytest.mark.long
def test_without_settings_it_begins_with_what_a_fit_chooses(few, tmp_path):
    """The candidates that were compared, the choice and the head stand on the page, once."""
    printed = done("tune", *urls(few, tmp_path), *settings(holdout=0.3))
    report = json.loads((tmp_path / "tune" / "report.json").read_text())["fit"]
    fitted = DoubleBasisRegressor().fit(
        BagStore.open(few / "bags.zarr"), target="n_components", holdout=0.3
    )
    choice = fitted.report_["choice"]
    assert report["choice"]["chosen"] == choice["chosen"]
    message = f"Chosen from {len(choice['tried'])} candidates: {choice['chosen']}"
    texts = Page(tmp_path / "tune" / "report.html").texts
    assert message in printed
    assert any(message in text for text in texts)
    assert texts[texts.index("head") + 1].startswith(f"{report['head']['head']}; errors over ")
    assert not {"winner", "1 candidates", "1 candidate"} & set(texts)
    assert any(text.startswith("The embedding was chosen from") for text in texts)
    assert "Next:" in texts


@pytest.mark.parametrize("better", [False, True])
def test_the_page_says_first_which_rival_is_better(better):
    judged = {
        "n": 90,
        "measure": "RMSE",
        "error": 0.5,
        "forest_error": 0.4 if better else 0.6,
        "means_error": 0.7,
    }
    result = compare_judged({**judged, "constant_error": 1.0})
    text = "The model is no better than a random forest on moments, minima and maxima (0.5 against"
    assert [item.startswith(text) for item in result] == [True] * better


def tune_alone(_, *args):
    done("tune", *args)


@pytest.mark.long
def test_sigkill_in_the_middle_goes_on(regression, tmp_path):
    """A killed tune, run again, takes no score twice and finds what an undisturbed one finds."""
    many = settings(
        search__embedding="{n_per_dim: [2, 4, 6, 8, 10, 12]}",
        search__random_features__scale_multiplier="[0.5, 1, 2]",
    )
    here, there = tmp_path / "killed", tmp_path / "whole"
    arguments = [*SMALL, *many, *urls(regression, here)]
    with running(tune_alone, *arguments) as (process, _):
        state = here / "tune" / "state.json"
        until(state.exists)
        process.kill()
        process.join()
    assert process.exitcode == -signal.SIGKILL
    assert not (here / "model.zarr").exists()
    before = json.loads(state.read_text())["scores"]
    done("tune", *arguments)
    after = json.loads(state.read_text())["scores"]
    assert 0 < len(before) < len(after)
    assert {key: after[key] for key in before} == before
    done("tune", *SMALL, *many, *urls(regression, there))
    reports = [json.loads((w / "tune" / "report.json").read_text()) for w in (here, there)]
    assert reports[0]["winner"]["name"] == reports[1]["winner"]["name"]
    for first, other in zip(*(report["rungs"] for report in reports), strict=True):
        for a, b in zip(first["candidates"], other["candidates"], strict=True):
            assert a["name"] == b["name"]
            np.testing.assert_allclose(a["errors"], b["errors"], rtol=1e-4)
    models = [load_model(where / "model.zarr") for where in (here, there)]
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, rtol=1e-4, atol=1e-6)
    assert not (regression / "bags.zarr.cache").exists()


@pytest.mark.parametrize(
    ("values", "parts"),
    [
        (
            {"search__embedding": "{floor: [0.02]}"},
            ["unknown key 'search.embedding.floor'", "the projection embedding has basis"],
        ),
        (
            {"search__embedding__n_per_dim": "[4, 1.5]"},
            ["'search.embedding.n_per_dim' holds 1.5; expected an integer"],
        ),
        ({"search__embedding": "[]"}, ["'search.embedding' is empty"]),
        (
            {"search__embedding": "[projection, jss]"},
            ["'search.embedding[1]' is 'jss'", "did you mean 'js'?"],
        ),
        ({"search__embedding": "[3]"}, ["'search.embedding[0]' is 3; expected an embedding"]),
        ({"search__first_bags": "301"}, ["first_bags is 301; there are 300 bags"]),
        ({"target": "weight"}, ["no target 'weight'"]),
    ],
)
def test_bad_config_is_one_line(regression, tmp_path, values, parts):
    """The line names the dotted key; no model, no cache, nothing is left."""
    code = 1 if "target" in values else 2
    arguments = [*SMALL[:2], *urls(regression, tmp_path), *SMALL[4:], *settings(**values)]
    line = refused(code, "tune", *arguments)
    for part in parts:
        assert part in line
    assert not (tmp_path / "model.zarr").exists()
    assert not (regression / "bags.zarr.cache").exists()


@pytest.mark.long
def test_cut_off_between_model_and_report(regression, tmp_path, monkeypatch):
    """A submitted tune that was cut off when its model was saved goes on, with that model in its
    way; another one is refused."""

    def cut_off(*args):
        raise KeyboardInterrupt

    value = [*SMALL, *urls(regression, tmp_path)][1::2]
    config = load_config(tune.Config, None, tuple(value), {})

    def tuned_by(run):
        console = Terminal().without_tables()
        console.run = run
        return tune.run(config, console)

    with monkeypatch.context() as patch:
        patch.setattr(tune, "write_best", cut_off)
        with pytest.raises(KeyboardInterrupt):
            tuned_by("a")
    with pytest.raises(ModelError, match="exists already"):
        tuned_by("b")
    assert tuned_by("a")["fit"] == load_model(tmp_path / "model.zarr").report_


@pytest.mark.long
def test_killed_between_model_and_report(regression, tmp_path, monkeypatch):
    """The same tune goes on and finishes; another one, and one that is done, is refused."""
    command = ["tune", *SMALL, *urls(regression, tmp_path)]
    with monkeypatch.context() as patch:
        patch.setattr("bagbasis.jobs.commands.tune.write_best", lambda *_: 1 / 0)
        refused(1, *command)
    assert "exists already" in refused(1, *command, *settings(search__eta=4))
    done(*command)
    values = json.loads((tmp_path / "tune" / "report.json").read_text())["fit"]
    assert values == json.loads(json.dumps(load_model(tmp_path / "model.zarr").report_))
    assert "exists already" in refused(1, *command)


def test_lists_are_alternatives_but_for_parameters_that_are_lists():
    """Scalars are fixed, lists are tried in all combinations, and box is a list by itself."""
    base = embedding_section("projection")
    box = [[0, 2], [0, 3]]
    value = {"n_per_dim": [4, "auto"], "basis": ["cosine", "legendre"], "box": box, "marginals": 1}
    result = embeddings_of(value, base)
    assert [(item.n_per_dim, item.basis) for item in result] == [
        (4, "cosine"),
        (4, "legendre"),
        ("auto", "cosine"),
        ("auto", "legendre"),
    ]
    assert all((item.box, item.marginals) == (box, 1) for item in result)
    assert labels_of(result)[1] == "projection, basis legendre, n_per_dim 4"


def test_named_sections_start_from_their_own_defaults():
    """A section in a list that has a name takes nothing from the model's; one without, all."""
    base = embeddings_of([{"name": "projection", "max_norm": 5}], embedding_section("moments"))[0]
    named, unnamed = embeddings_of([{"name": "js", "floor": [0.1]}, {"basis": "legendre"}], base)
    assert (named.distance, named.floor) == ("js", 0.1)
    assert (unnamed.max_norm, unnamed.basis) == (5, "legendre")
    assert labels_of([named, unnamed]) == ["js", "projection"]
    with pytest.raises(ConfigError, match=r"'search\.embedding\[0\]\.name' is \['js'\]"):
        embeddings_of([{"name": ["js"]}], base)


@pytest.mark.parametrize("method", ["fast", ["fast"]])
def test_the_method_that_hdd_once_had_is_read(method):
    """In a search as in a model: left out where it is the one that stays, else refused."""
    base, arguments = embedding_section("js"), {"method": method, "floor": [0.1]}
    for search in (arguments, [{"name": "js", **arguments}]):
        assert [section.floor for section in embeddings_of(search, base)] == [0.1]
    with pytest.raises(ConfigError, match="embedding': this version does not have method='direct'"):
        embeddings_of({"method": "direct"}, base)


@pytest.mark.parametrize("name", sorted(EMBEDDINGS))
def test_every_embedding_has_a_default_search(name):
    """Values that its section accepts, its own among them."""
    base = embedding_section(name)
    result = embeddings_of(None, base)
    assert base in result
    assert len(result) == max([1, *map(len, default_search(base).values())])
    assert len(set(labels_of(result))) == len(result)


def test_default_search_goes_around_what_is_set():
    """A number is taken with 0.7 and 1.4 times it, whole numbers stay whole."""
    assert default_search(embeddings_of({"max_norm": 6.0}, embedding_section("projection"))[0]) == {
        "max_norm": [4.2, 6.0, 8.4]
    }
    assert default_search(embedding_section("projection")) == {"n_per_dim": [7, 10, 14]}
    assert default_search(embedding_section("js")) == {"bandwidth": ["auto", 0.02, 0.03, 0.05]}
    pca = {"name": "coefficient_pca", "embedding": "tv", "n_components": [0.9]}
    (share,) = embeddings_of([pca], embedding_section("js"))
    assert default_search(share) == {}
    result = embeddings_of([{**pca, "n_components": [8, 16]}], share)
    of_tv = "coefficient_pca of tv, n_components"
    assert labels_of(result) == [f"{of_tv} 8", f"{of_tv} 16"]


@pytest.mark.long
def test_best_at_the_edge_is_said(regression, tmp_path):
    """When the smallest or largest σ wins, people are told to look further."""
    wide = settings(search__random_features__scale_multiplier="[0.001, 1000]")
    printed = done("tune", *SMALL, *wide, *urls(regression, tmp_path))
    assert "tried: a" in printed
    printed = done(
        "tune",
        *SMALL,
        *settings(search__random_features__scale_multiplier="[0.001, 1, 1000]", overwrite="true"),
        *urls(regression, tmp_path),
    )
    assert "σ × 1;" in printed
    assert "tried: a" not in printed
    assert Path(tmp_path / "tune" / "tune.png").exists()
