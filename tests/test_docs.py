"""The programs of docs/your-data.md run as they stand, on files made by the libraries they name;
the links of all pages lead somewhere."""

from __future__ import annotations

import re
import runpy
import tomllib
from dataclasses import asdict
from functools import partial
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import polars as pl
import pytest
from flowio import create_fcs
from PIL import Image

import bagbasis
from bagbasis import DoubleBasisClassifier, DoubleBasisRegressor
from bagbasis.core.yaml_text import parse_yaml
from bagbasis.jobs import shell
from bagbasis.jobs.commands.retrain import CHAMPION_KEPT, EXIT_CODES
from bagbasis.jobs.experiments.data.real.recipe import packaged_file
from bagbasis.models import stacking
from tests.benchmarks import kept
from tests.benchmarks.pairing import Row
from tests.ingest.formats.annotated import write_h5ad

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "your-data.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
N = 160


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Measurements whose spread in each patient tells the age, in every form of the page."""
    where = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 80, N).round(1)
    sizes = rng.integers(20, 41, N)
    patient = np.repeat(np.arange(N), sizes)
    scale = np.repeat(age, sizes)
    long = pd.DataFrame(
        {
            "clinic": "c",
            "patient": patient,
            "age": scale,
            "pulse": (70 + scale / 4 * rng.standard_normal(len(patient))).round(2),
            "pressure": (120 + scale / 2 * rng.standard_normal(len(patient))).clip(30).round(2),
        }
    )
    long.to_parquet(where / "measurements.parquet")
    _write_lists(long, where)
    _write_csv(long, where, rng)
    _write_cells(long, where)
    with h5py.File(where / "galaxies.h5", "w") as file:
        file["Galaxies/halo"], file["Galaxies/mass"] = long["patient"], long["age"]
        file["Galaxies/velocity"] = long[["pulse", "pressure"]]
    _write_samples(long, where)
    for i, spread in enumerate(rng.uniform(5, 60, N)):  # the class is how rough a photo is
        folder = where / "photos" / ("rough" if spread > 30 else "smooth")
        folder.mkdir(parents=True, exist_ok=True)
        pixels = np.clip(rng.normal(128, spread, (12, 12)), 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{i}.png")
    return where


def _write_lists(long, where):
    (where / "visits").mkdir()
    wide = long.groupby("patient").agg(
        {"age": "first", "pulse": lambda x: x.tolist(), "pressure": lambda x: x.tolist()}
    )
    for k in range(3):
        wide.reset_index()[k::3].to_parquet(where / "visits" / f"part-{k}.parquet")


def _write_samples(long, where):
    """A slide, an FCS file and a row of vectors per patient; the time series that aeon ships."""
    (where / "slides" / "h5_files").mkdir(parents=True)
    (where / "samples").mkdir()
    labels, ages, rows = [], [], []
    for patient, cells in long.groupby("patient"):
        points, age = cells[["pulse", "pressure"]].to_numpy(), cells["age"].iloc[0]
        with h5py.File(where / "slides" / "h5_files" / f"s{patient:03}.h5", "w") as file:
            file["features"], file["coords"] = points.astype(np.float32), np.zeros((len(cells), 2))
        with (where / "samples" / f"{patient:03}.fcs").open("wb") as file:
            create_fcs(file, points.ravel().tolist(), ["FITC-A", "PE-A"], ["CD4", "CD8"])
        labels.append([f"s{patient:03}", f"p{patient // 2}", "old" if age > 50 else "young"])
        ages.append([f"{patient:03}.fcs", age])
        rows.append([patient, age, points.tolist()])
    pd.DataFrame(labels, columns=["slide_id", "patient", "label"]).to_csv(
        where / "slides" / "labels.csv", index=False
    )
    pd.DataFrame(ages, columns=["file", "age"]).to_csv(where / "samples" / "ages.csv", index=False)
    frame = pl.DataFrame(rows, schema=["patient", "age", "vectors"], orient="row")
    frame.write_parquet(where / "vectors.parquet")
    for part in ("TRAIN", "TEST"):
        name = f"JapaneseVowels_{part}.ts"
        source = packaged_file("aeon", f"aeon/datasets/data/JapaneseVowels/{name}", "aeon")
        (where / name).write_bytes(source.read_bytes())


def _write_csv(long, where, rng):
    days = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 300, len(long)), "D")
    frame = long.assign(day=days.strftime("%Y-%m-%d"))
    frame.loc[::50, "pulse"] = np.nan
    frame.to_csv(where / "measurements.csv", sep=";", decimal=",", na_rep="n/a", index=False)


def _write_cells(long, where):
    obs = pd.DataFrame({"patient": long["patient"].map("p{:03}".format), "age": long["age"]})
    x = long[["pressure"]].to_numpy(np.float32)
    write_h5ad(where / "cells.h5ad", obs, x, ["CD4"], X_pca=long[["pulse"]].to_numpy())


def test_examples_are_short():
    """Each is a whole program of fewer than 15 lines."""
    assert len(EXAMPLES) == 12
    assert max(len(example.splitlines()) for example in EXAMPLES) < 15


NAMES = (
    *("lists", "polars", "groups", "awkward", "h5ad", "csv", "hdf5", "images"),
    *("slides", "vectors", "fcs"),
)
DEFAULTS = ("lists", "images")  # one of numbers, one of classes; the others are fitted sooner


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_example(name, folder, monkeypatch, capsys):
    """It makes a store of all patients, and a model that has learnt from them.

    Most have an embedding instead of the choice of one: what differs is how the store is made.
    """
    monkeypatch.chdir(folder)
    monkeypatch.setattr(stacking, "N_RANDOMISED", 20)
    Path("example.py").write_text(EXAMPLES[NAMES.index(name)])
    for kind in () if name in DEFAULTS else (DoubleBasisRegressor, DoubleBasisClassifier):
        monkeypatch.setattr(bagbasis, kind.__name__, partial(kind, "moments", head="ridge"))
    names = runpy.run_path("example.py")
    assert names["store"].n_bags == N
    errors = names["evaluate"](names["model"], names["store"])
    assert errors.subset == "holdout"
    [result] = errors.values().values()
    assert result.get("r2", result.get("accuracy", 0) - 0.3) > 0.5
    assert str(errors.values()) in capsys.readouterr().out


@pytest.mark.long
def test_example_of_time_series(folder, monkeypatch, capsys):
    """The share that the page tells."""
    monkeypatch.chdir(folder)
    Path("example.py").write_text(EXAMPLES[-1])
    runpy.run_path("example.py")
    share = float(capsys.readouterr().out.split()[-1])
    assert f"{share:.1%}".replace("%", " %") in PAGE.read_text()


HOW_TO = [page for page in sorted((ROOT / "docs/how-to").glob("*.md")) if page.stem != "index"]


@pytest.mark.long
@pytest.mark.parametrize("page", HOW_TO, ids=lambda page: page.stem)
def test_how_to(page, tmp_path, monkeypatch, capsys):
    """Its programs run as one, and print what stands on the page, up to numbers."""
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    Path("program.py").write_text("\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)))
    runpy.run_path("program.py")
    [printed] = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    number = re.compile(r"-?\d+\.?\d*")
    assert number.sub("#", capsys.readouterr().out).split() == number.sub("#", printed).split()


MADE_PAGES = ("changes.md", "configuration.md", "contributing.md", "deploying.md")
PAGES = [
    page
    for pattern in ("*.md", "docs/*.md", "docs/how-to/*.md", "deploy/*.md", "tests/*/README.md")
    for page in sorted(ROOT.glob(pattern))
    if page.name not in MADE_PAGES  # copies, which `make docs` makes
]

GUIDE = [
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs/how-to").glob("*.md")),
    *sorted((ROOT / "docs/tutorials").glob("*.*")),
    *(ROOT / "CONTRIBUTING.md", ROOT / "deploy/README.md"),
]


@pytest.mark.parametrize(
    "page",
    [page for page in GUIDE if page.name not in MADE_PAGES and page != ROOT / "docs/index.md"],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_pages_say_who_should_read_them(page):
    """The first paragraph below the title does; the landing page is for everybody."""
    _, first, *_ = re.split(r"\n\n|={5,}\n\n", page.read_text())
    assert re.search(r"\b[Ff]or (people|everybody|programmers|contributors)\b", first), first


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    """Relative links of pages that are read without `make docs`, too: files that are there."""
    made = (*MADE_PAGES, "api/", "commands/", "experiments/", "gallery/")
    for link in re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text()):
        is_made = link.removeprefix("../").startswith(made)
        assert (page.parent / link).exists() or is_made, link


MAX_ENTRIES = 120


def test_each_version_has_few_entries_in_the_changelog():
    """So that people read them: what they notice, by sections, and no entry of four lines."""
    _, *versions = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert versions[0].count("\n### ") >= 5
    for version in versions:
        entries = re.findall(r"^- .*(?:\n  .*)*", version, re.MULTILINE)
        assert len(entries) <= MAX_ENTRIES, version.split()[0]
        assert max(entry.count("\n") for entry in entries) < 3


def test_page_of_ratios_has_the_kept_rows():
    """All of them, and no other: `make bench-page` writes both."""
    rows, page = kept.read_rows(), kept.PAGE.read_text()
    shown = page.split(kept.BEGIN)[1].split(kept.END)[0]
    assert shown == kept.tables(rows)
    assert [line for line in shown.splitlines() if line.startswith("### ")] == [
        f"### {kept.heading(suite)}" for suite in dict.fromkeys(row["suite"] for row in rows)
    ]
    for row in rows:
        assert f"| {kept.number(row['ours'])} | {kept.number(row['other'])} | " in shown


def test_rows_that_are_measured_again_replace_those_of_their_suite(tmp_path, monkeypatch):
    """The page follows, in the order of the suites, and the rest of it stays."""
    monkeypatch.setattr(kept, "KEPT", tmp_path / "bench.jsonl")
    monkeypatch.setattr(kept, "PAGE", tmp_path / "performance.md")
    kept.PAGE.write_text(f"before\n{kept.BEGIN}{kept.END}after\n")
    row = asdict(Row("fit | peer", 2.0, 1.0, 2.1, 1.9, 2.2, "≤ 1.15", is_of_first=True))
    kept.keep("floor", ["peers", "floor"], [row])
    kept.keep("peers", ["peers", "floor"], [row | {"is_of_first": False, "ratio": 0.5}])
    kept.keep("floor", ["peers", "floor"], [row | {"ratio": 1.3}, row | {"low": 2.1, "high": 2.1}])
    assert [item["suite"] for item in kept.read_rows()] == ["peers", "floor", "floor"]
    text = kept.PAGE.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "| fit \\| peer | 2 | 1 | 0.5 × (1.9 to 2.2) | ≤ 1.15 |\n" in text
    assert "| 1.3 (1.9 to 2.2) | ≤ 1.15 **missed** |\n" in text
    assert "| fit \\| peer | 2 | 1 | 2.1 | ≤ 1.15 **missed** |" in text
    assert "| 2.1 (1.9 to 2.2) |" not in text


@pytest.mark.parametrize(
    ("target", "is_of_first", "missed"),
    [
        ("≤ 1.15", True, True),
        ("≤ 1.3", True, False),
        ("≥ 4 ×", False, True),
        ("> 1 ×", False, False),
        ("10 s", True, True),
        ("≤ 20 s", True, False),
        ("10 is linear", False, False),
        ("≤ 1.15, withdrawn", True, False),
        ("", False, False),
    ],
)
def test_rows_that_miss_their_aim(target, is_of_first, missed):
    """The aim of the ratio, or of the seconds of the first."""
    row = asdict(Row("fit", 17.0, 14.0, 1.2, 1.1, 1.3, target, is_of_first=is_of_first))
    assert kept.is_missed(row) == missed


def test_exit_codes_of_retrain_are_the_real_ones():
    """The table lists each; programs of orchestrators compile, and name none for another one."""
    table = re.findall(r"^\| (\d+) \|", (ROOT / "deploy/README.md").read_text(), re.MULTILINE)
    assert {*map(int, table)} == {*EXIT_CODES, shell.INTERRUPTED}
    programs = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs/orchestrators.md").read_text(), re.DOTALL
    )
    assert len(programs) == 3
    for program in programs:
        compile(program, "orchestrators.md", "exec")
        names, codes = re.search(r"^([A-Z_, ]+) = ([\d, ]+)$", program, re.MULTILINE).groups()
        for name, code in zip(names.split(", "), codes.split(", "), strict=True):
            assert int(code) == (CHAMPION_KEPT if name == "CHAMPION_KEPT" else getattr(shell, name))


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_modules_that_pages_name_are_there(page):
    """A walk through the code leads past no module that has moved."""
    named = re.findall(r"`([a-z_/]+\.py)`", (ROOT / page).read_text())
    assert named
    for name in named:
        places = [ROOT / name, ROOT / "pipeline" / name, ROOT / "jobs" / name]
        assert any(place.exists() for place in places), name


def test_the_version_is_told_once_and_the_same():
    """In the package, its metadata and its citation."""
    cited = parse_yaml((ROOT / "CITATION.cff").read_bytes(), "CITATION.cff")["version"]
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert settings["project"]["dynamic"] == ["version"]
    assert settings["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "bagbasis.__version__"}
    assert cited == bagbasis.__version__
    tags = {
        tag
        for file in (ROOT / "deploy").rglob("*")
        if file.is_file()
        for tag in re.findall(r"bagbasis:([0-9][\w.]*)", file.read_text())
    }
    assert tags == {cited}
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == cited
