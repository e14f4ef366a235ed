"""Long lists that people read as a line, and that reports have in full."""

import json
import logging

import numpy as np

from bagbasis import BagStore, Box
from bagbasis.execution import worker_threads
from bagbasis.jobs import files, warm_up
from bagbasis.jobs.commands.stores.info import with_short_classes
from bagbasis.jobs.pictures.bag_dots import bag_chart
from tests.jobs.running import done, settings


def test_many_classes_are_counted(tmp_path):
    """`bags info` shows the first names; its report has all of them."""
    names = [f"day {i:03}" for i in range(364)]
    store = BagStore.create(
        tmp_path / "s.zarr", 1, target_names=["day"], class_names={"day": names}
    )
    store.append([np.full((2, 1), 0.5)] * 364, {"day": names})
    shown = done("info", store.url, *settings(report=tmp_path / "r.json"))
    assert "day 200" not in shown
    assert "364 classes: day 000" in " ".join(shown.split())
    assert json.loads((tmp_path / "r.json").read_text())["classes"]["day"] == names
    few = {"classes": {"kind": ["a", "b"]}}
    assert with_short_classes(few) == few


def test_ingest_counts_many_classes(tmp_path):
    """It shows the first names; its report has all of them."""
    names = [f"day {i:03}" for i in range(364)]
    rows = [f"{i},{i / 364},{name}" for i, name in enumerate(names)]
    (tmp_path / "points.csv").write_text("\n".join(["bag,x,day", *rows]))
    messages = {
        "points": f"[{tmp_path}/points.csv]",
        "url": tmp_path / "s.zarr",
        "id_column": "bag",
    }
    columns = {"coordinates": "[x]", "targets": "[day]", "report": tmp_path / "r.json"}
    shown = " ".join(done("ingest", *settings(**messages, **columns)).split())
    assert "364 classes: day 000" in shown
    assert "day 200" not in shown
    assert json.loads((tmp_path / "r.json").read_text())["classes"]["day"] == names


def test_points_of_a_bag_are_drawn_by_the_names_of_their_coordinates():
    """Those that a store knows; else by number."""
    points = np.random.default_rng(0).random((5, 3))
    for names, axes in ((["temp", "wind", "rain"], ("temp", "wind")), (None, None)):
        chart = bag_chart("a bag", points, Box.unit(3), "", names)
        assert (chart.x_label, chart.y_label) == (axes or ("coordinate 0", "coordinate 1"))
    assert bag_chart("a bag", points[:, :1], Box.unit(1), "", ["temp"]).x_label == "temp"


def test_warm_up_compiles_what_is_used_first(monkeypatch):
    """Every embedding, for both precisions, and the estimators: a step each, with its time."""
    steps = [("js, float32", lambda: None), ("classes", lambda: None)]
    names = [name for name, _ in warm_up.warming_steps()]
    assert {"projection, float32", "hdd, float64", "densities", "two-sample test"} <= {*names}
    monkeypatch.setattr(warm_up, "warming_steps", lambda: iter(steps))
    assert "classes: 0.0 s" in done("warm-up")


def test_what_is_said_of_the_moment_is_no_worry_of_a_report():
    """That kernels are compiled once is logged; among the warnings it would alarm each newcomer."""
    with files.logged() as result:
        worker_threads.log_unless_heard(worker_threads.COMPILING)
        logging.getLogger("bagbasis.data.store").warning("a box is narrow")
    assert result == ["a box is narrow"]
