"""Bags that look like groups: the jobs that judge models say so, unless the holdout knows them."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import BagStore
from tests.jobs.pages import Page
from tests.jobs.running import done, settings

TOLD = "120 bags have 30 values of 'day'"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    rng = np.random.default_rng(0)
    days = [f"2026-01-{1 + i // 4:02}" for i in range(120)]
    made = BagStore.create(
        tmp_path_factory.mktemp("days") / "s.zarr",
        2,
        target_names=["y", "day"],
        class_names={"day": sorted(set(days))},
    )
    points = [rng.random((8, 2)) for _ in days]
    return made.append(points, targets={"y": [bag[:, 0].mean() for bag in points], "day": days})


@pytest.mark.long
@pytest.mark.parametrize("holdout", ["0.3", "{fraction: 0.3, groups: day}"])
def test_fit_tune_and_evaluate_say_so(store, tmp_path, holdout):
    is_told = holdout == "0.3"
    urls = settings(data_url=store.url, model_url=tmp_path / "m.zarr")
    arguments = settings(target="y", holdout=holdout, model__embedding="moments", overwrite="true")
    few = settings(model__random_features__n_features=32)
    of_fit = settings(report=tmp_path / "fit.json")
    printed = {"fit": done("fit", *urls, *arguments, *few, *of_fit)}
    out = settings(out_dir=tmp_path / "evaluate")
    printed["evaluate"] = done("evaluate", *urls, *out)
    out = settings(
        out_dir=tmp_path / "tune",
        search__embedding="[moments]",
        search__random_features__scale_multiplier="[1]",
        model__validation_fraction=0.3,
    )
    printed["tune"] = done("tune", *urls, *arguments, *few, *out)
    for job, text in printed.items():
        assert (TOLD in " ".join(text.split())) == is_told, job
    for job in ("evaluate", "tune"):
        texts = Page(tmp_path / job / "report.html").texts
        assert any(TOLD in text for text in texts) == is_told, job
