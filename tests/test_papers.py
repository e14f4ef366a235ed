"""The map of docs/papers.md: its names and experiments exist, its numbers are the kept ones."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from bagbasis.jobs.experiments.kit.runner import read_report
from bagbasis.jobs.experiments.registered import EXPERIMENTS
from bagbasis.jobs.experiments.results import RESULTS

PAGE = (Path(__file__).parents[1] / "docs" / "papers.md").read_text()
NUMBER = re.compile(r"−?[\d,]*\.?\d+")

# Words of a result, and where each of its numbers stands: (table, first cells of the row, column).
# Numbers of these words that are sizes are in SIZES.
KEPT = {
    "rff-error": {"1,000: .050": [(0, [1000], "E max error, paired")],
                  "paired .67": [(0, [100], "D · E‖f‖², paired")],
                  "phases .84": [(0, [100], "D · E‖f‖², phase")]},
    "synthetic-mapping": {".94, .87, 1.00": [(0, [n], "2BE / KK") for n in (10**4, 10**5, 10**6)]},
    "gmm-order": {"4.62, AIC 28.6": [(0, [10], "2BE"), (0, [10], "AIC")],
                  "2.06, AIC 2.38": [(0, [1000], "2BE"), (0, [1000], "AIC")]},
    "dirichlet": {"1.34, likelihood 10.43": [(0, [10], "2BE"), (0, [10], "MLE")],
                  ".039, likelihood .036": [(0, [1000], "2BE"), (0, [1000], "MLE")]},
    "rectify-2lpt": {"R² .421, 2LPT .351": [(0, ["3BE"], "R²"), (0, ["2LPT"], "R²")],
                     "R² .233": [(0, ["LSE"], "R²")]},
    "rectify-residuals": {"R² .463, 2LPT .328": [(0, ["the same, 48 symmetries"], "R²"),
                                                 (0, ["2LPT"], "R²")]},
    "gmm-components": {"TV 1.40, L2 1.46": [(0, ["TV"], "RMSE, 16,000"),
                                            (0, ["L2"], "RMSE, 16,000")],
                       "JS 1.40": [(0, ["JS"], "RMSE, 16,000")]},
    "images": {"JS .984, L2 .978": [(0, ["JS"], "accuracy, 1,257"),
                                    (0, ["L2"], "accuracy, 1,257")],
               "JS .984": [(0, ["JS"], "accuracy, 1,257")],
               "histograms .938": [(0, ["Hist JS"], "accuracy, 1,257")]},
    "learned-spectrum": {
        ".0071, best width .0104": [
            (0, ["6.4.1", name], "error / constant's")
            for name in ("learned", "Gaussian, best width")
        ]
    },
    "recurrent": {"SRU .013, GRU 36.7, LSTM 33.2": [(0, [unit, "as they are"], "test MSE")
                                                    for unit in ("SRU", "GRU", "LSTM")],
                  "SRU .194, GRU .027, LSTM .070": [(0, [unit, "of variance 1"], "test MSE")
                                                      for unit in ("SRU", "GRU", "LSTM")],
                  "full .34, multi .67, iid .92": [(1, [part], "here")
                                                   for part in ("full", "multi", "iid")]},
    "transformation-networks": {
        "two parts −2.00 and −8.10, one −3.06 and −8.57": [
            (table, [name], "LAM") for name in ("L 4xadd+re", "none") for table in (0, 1)
        ],
        "TAN .107, forest .079": [(2, [name], "average precision")
                                  for name in ("TAN", "isolation forest")],
    },
    "anomalies": {
        ".87, the better of two peers .08": [
            (0, ["moved", name], "average precision")
            for name in ("leverage", "one-class SVM, our Gram")
        ]
    },
    "bag-densities": {
        "8: −7.0, series −14.0; d = 2: −2.21, series −1.93": [
            (0, [d, name], "mean log density")
            for d in (8, 2) for name in ("BagDensity", "Triple-Basis")
        ]
    },
    "fastmmd": {"768 and 328 times": [(2, [100000], f"exact / {name}")
                                      for name in ("Fourier", "Fastfood")]},
    "js-gram": {"JS .993 (coefficients), .986 (features)": [
                    (0, ["JS", name], "R²") for name in ("coefficients", "random features")],
                "entropies .988": [(0, ["JS", "entropies"], "R²")]},
    "marginals": {"JS .859 of": [(0, ["JS"], "RBF")]},
    "scenes": {".369 of photographs": [(0, ["JS"], "RBF")],
               "means .256": [(0, ["means"], "RBF")]},
    "halo-mass": {".143 dex, power law .158": [(0, ["JS, |v|"], "RMSE, dex"),
                                               (0, ["power law"], "RMSE, dex")]},
    "radiation": {".288, total counts .004": [
        (1, ["Cs-137"], name) for name in ("list mode regression", "total counts")]},
    "kernel-choice": {"t̂ .86, τ̂ .84, MMD .62": [
        (0, ["blobs", name], "share that rejects") for name in ("t̂", "τ̂", "MMD")]},
    "active-search": {"recall .89, random .62": [
        (0, [name], "mean recall") for name in ("expected reward", "random")]},
    "independence": {"NFSIC .96, HSIC .26": [(0, [800], "NFSIC, learnt"), (0, [800], "HSIC")]},
    "goodness-of-fit": {"KSD .96, learnt FSSD .88": [(1, [400], "KSD"),
                                                     (1, [400], "FSSD, learnt")]},
    "real-bags": {
        "ahead on 11": [(1, ["default", "tuned on"], "ahead")],
        "peer on 21 and 26": [
            (1, ["default", "tuned on"], f"within {k} s.e.") for k in (1, 2)
        ],
        "alone: 1 and 2": [
            (1, ["default", "judged on"], f"within {k} s.e.") for k in (1, 2)
        ],
        "rank 2.9 of": [(1, ["default", "tuned on"], "mean rank")],
        "on 23 and 26 of": [(1, ["tune", "tuned on"], f"within {k} s.e.") for k in (1, 2)],
        "on 2 and 3 of": [(1, ["tune", "judged on"], f"within {k} s.e.") for k in (1, 2)],
        "three; mean rank 1.9": [(1, ["tune", "tuned on"], "mean rank")],
    },
    "tasks-with-floors": {
        "at most 1.01 times": [
            (0, [name], "default / best") for name in ("gap of neighbours",)
        ],
        "1.16, 1.02 and 2.16 times": [
            (0, [name], "over floor.default")
            for name in ("share on a ring", "shape of Weibull", "gap of neighbours")
        ],
    },
    "interval-coverage": {
        ".90 of all": [(0, [300, "unequal sizes"], "covered")],
        ".88 to .90 of the smallest": [
            (0, [300, name], "size 1") for name in ("unequal sizes", "both")
        ],
        ".87 to .88 of the noisiest": [
            (0, [300, name], "noise 5") for name in ("both", "unequal noise")
        ],
        ".89 to .91 of all": [
            (0, [30, name], "covered") for name in ("unequal noise", "unequal sizes")
        ],
    },
    "score-matching": {"in .047 (KSD) and .0585 (FSSD)": [
        (1, [1, name], "rejects its own samples") for name in ("ksd", "fssd")]},
    "dependence-objectives": {
        ".98 and 1.00 of": [(0, [n, "no"], "mrmr") for n in (200, 400)],
        ".96 and 1.00 with": [(0, [n, "yes"], "mrmr") for n in (200, 400)],
        ".93 and .99 of": [(0, [n, "no"], "derivative norms") for n in (200, 400)],
        ".42 and .23 with": [(0, [n, "yes"], "derivative norms") for n in (200, 400)],
        "index .009": [(1, [10000], "Amari index, median")],
        "points, .011": [(1, [10000], "largest")],
        ".05 pixels, .11°": [(2, ["kcca", 0.2], "shift, pixels"),
                             (2, ["kcca", 0.2], "angle, degrees")],
        "1.00 of": [(2, ["kcca", 0.2], "within 0.5 pixels and degrees")],
    },
}  # fmt: skip
SIZES = ("d = 8", "1,000: ", "8: ", "d = 2: ")  # of these words, no results
ELSEWHERE = ("10⁴", "(chance .09)", "at .05", "§6.4.1", "1.2 %")  # sizes; the last is of a remark


def rows():
    """Cells of the tables whose columns include an experiment, with the names of the columns."""
    values = []
    for table in re.findall(r"((?:^\|.*\|\n)+)", PAGE, re.MULTILINE):
        lines = [[c.strip() for c in line.strip("|").split(" | ")] for line in table.splitlines()]
        names = [cell.strip("| ") for cell in lines[0]]
        values += [dict(zip(names, [c.strip("| ") for c in line], strict=True))
                  for line in lines[2:]]  # fmt: skip
    return values


ROWS = rows()


def quoted(cell):
    """Words in backticks."""
    return re.findall(r"`([^`]+)`", cell)


@cache
def tables(name):
    """The kept tables of an experiment."""
    return read_report(RESULTS / name)[0]["tables"]


def cell(name, where):
    """The number in a kept table."""
    i, cells, column = where
    table = tables(name)[i]
    [row, *_] = [item for item in table["rows"] if item[: len(cells)] == cells]
    return row[table["columns"].index(column)]


def test_map_is_whole():
    """Every experiment is in it; all rows have the columns that the other tests read."""
    assert len(ROWS) > 40
    assert {name for row in ROWS for name in quoted(row["experiment"])} == set(EXPERIMENTS)


@pytest.mark.parametrize(
    "name", sorted({n for r in ROWS for n in quoted(r.get("public name", ""))})
)
def test_public_names_exist(name):
    """They are names of the package, or of one of its public packages."""
    package, _, of = name.rpartition(".")
    value = getattr(import_module(f"bagbasis.{package}".rstrip(".")), of)
    assert callable(value)


@pytest.mark.parametrize("name", KEPT)
def test_numbers_are_those_kept(name):
    """Each stands in a row of its experiment, and is the kept one, rounded."""
    results = " ".join(r["result"] for r in ROWS if name in quoted(r["experiment"]))
    for words, places in KEPT[name].items():
        assert words in results
        for size in SIZES:
            words = words.replace(size, "")
        numbers = NUMBER.findall(re.sub(r"L2 |2LPT ", "", words))
        assert len(numbers) == len(places), words
        for text, where in zip(numbers, places, strict=True):
            digits = len(text.partition(".")[2])
            value = cell(name, where)
            rounded = float(text.replace(",", "").replace("−", "-"))
            assert abs(value - rounded) <= 0.5001 * 10.0**-digits, (text, value)


def test_no_number_stands_alone():
    """A result with decimals is one that the test above looks up, or is told in ELSEWHERE."""
    for row in ROWS:
        remaining = row.get("result", "")
        for name in quoted(row["experiment"]):
            for words in sorted(KEPT.get(name, ()), key=len, reverse=True):
                remaining = remaining.replace(words, "")
        for words in ELSEWHERE:
            remaining = remaining.replace(words, "")
        assert not re.search(r"\.\d", remaining), row
