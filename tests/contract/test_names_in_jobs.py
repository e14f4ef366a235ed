"""Jobs and networks compare names of coordinates wherever two sets of bags meet."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from bagbasis import BagbasisError, BagStore, DoubleBasisRegressor, MomentsEmbedding
from bagbasis.neural.examples import blocks_of
from bagbasis.neural.tan import named_points
from tests.contract.test_coordinate_names import FRAMES, RENAMED, TURNED, Y, read_only, stored
from tests.jobs.running import bags, cli, settings


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("names")


def model(folder):
    """A model in a file that was fitted on the bags in their first order."""
    place = folder / "m.zarr"
    if not place.exists():
        model = DoubleBasisRegressor(MomentsEmbedding(), alpha=1.0)
        model.fit(read_only(FRAMES, folder)).save(place)
    return place


def predicted(frames, folder):
    options = {"data_url": read_only(frames, folder).url, "model_url": model(folder)}
    options |= {"output_url": folder / "p.csv", "overwrite": "true"}
    run("predict", options)
    return pd.read_csv(folder / "p.csv")["y"].to_numpy()


def run(job, options):
    """Run a job in this process; a refusal is an error of ours again."""
    result = bags(*job.split(), *settings(**options))
    if result.exit_code:
        raise BagbasisError(result.stderr)
    return result


def report(job, folder, **options):
    run(job, {**options, "report": folder / "r.json"})
    return json.loads((folder / "r.json").read_text())


def evaluated(frames, folder):
    options = {"data_url": read_only(frames, folder).url, "model_url": model(folder)}
    run("evaluate", {**options, "out_dir": folder / "out", "n_pictured": 1})
    result = json.loads((folder / "out" / "report.json").read_text())
    return [value for value in result["targets"]["y"].values() if isinstance(value, float)]


def drifted(frames, folder):
    """Two jobs with a file between them."""
    detector = {"detector_url": folder / "d.npz", "overwrite": "true"}
    small = {"n_permutations": 19, "n_frequencies": 8}
    run("drift fit", {"data_url": read_only(FRAMES, folder).url, **detector, **small})
    arguments = {"data_url": read_only(frames, folder).url, "detector_url": folder / "d.npz"}
    return report("drift test", folder, **arguments)["p_value"]


def compared(frames, folder):
    arguments = {
        "a_url": stored(FRAMES, folder / "a").url,
        "b_url": read_only(frames, folder).url,
    }
    small = {"n_permutations": 19, "embedding": "moments", "statistic": "mmd_u"}
    run("test two-sample", {**arguments, **small, "out_dir": folder / "out"})
    return json.loads((folder / "out" / "report.json").read_text())["statistic"]


def merged(frames, folder):
    first = read_only(FRAMES, folder)
    second = stored(frames, folder / "s", ids=np.arange(len(Y)) + len(Y))
    stores = f"[{first.url}, {second.url}]"
    run("merge", {"stores": stores, "url": folder / "m", "overwrite": "true"})
    return BagStore.open(folder / "m").read().points


def ingested(frames, folder):
    """The same columns, of a table in another order: they are chosen by name."""
    table = {"url": folder / "i.zarr", "id_column": "id", "coordinates": "[u, v, w]"}
    for part, mode in ((FRAMES, "create"), (frames, "append")):
        rows = [frame.assign(id=f"{mode}{i:02d}") for i, frame in enumerate(part)]
        pd.concat(rows).to_parquet(folder / f"{mode}.parquet")
        more = {"overwrite": "true"} if mode == "create" else {"mode": "append"}
        run("ingest", {"points": folder / f"{mode}.parquet", **table, **more})
    return BagStore.open(folder / "i.zarr").read().points


JOBS = {
    "predict": predicted,
    "evaluate": evaluated,
    "drift test": drifted,
    "test two-sample": compared,
    "merge": merged,
}
# jobs of which no two sets of named coordinates meet
ALONE = {
    "attach": "a run", "cancel": "a run", "drive": "a run", "runs": "runs", "submit": "a job",
    "compact": "one store", "relabel": "labels", "remove": "ids", "verify": "one store",
    "info": "one store or model", "completion": "no bags", "config": "no bags",
    "demo": "its own bags", "doctor": "no bags", "experiment": "its own bags",
    "generate": "its own bags", "warm-up": "no bags", "models add": "a model",
    "models list": "models", "models promote": "a model", "models rollback": "a model",
    "fit": "one store", "tune": "one store", "test independence": "one store",
    "drift fit": "one store; see drift test",
}  # fmt: skip
# tested where their own problems are at hand
ELSEWHERE = {
    "retrain": "tests/operations/retraining/test_coordinate_names.py",
    "serve": "tests/jobs/test_serve_columns.py",
    "test fit": "one sample, and a distribution without names",
    "ingest": "test_ingest_appends_by_name",
}


def jobs_of(group, before=()):
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if hasattr(command, "list_commands"):
            yield from jobs_of(command, (*before, name))
        else:
            yield " ".join((*before, name))


def test_the_table_has_every_job():
    assert {*jobs_of(cli)} == JOBS.keys() | ALONE.keys() | ELSEWHERE.keys()


@pytest.mark.long
@pytest.mark.parametrize("job", JOBS)
def test_jobs_compare_names(job, folder):
    straight, turned = (np.asarray(JOBS[job](frames, folder)) for frames in (FRAMES, TURNED))
    np.testing.assert_allclose(turned, straight, rtol=1e-6, atol=1e-9)
    with pytest.raises(BagbasisError, match=r"'u' is missing.* 'uu' is extra"):
        JOBS[job](RENAMED, folder)


@pytest.mark.long
def test_ingest_appends_by_name(tmp_path):
    """Columns are chosen by name: another order is the same, and another name is not there."""
    np.testing.assert_array_equal(ingested(TURNED, tmp_path), ingested(FRAMES, tmp_path))
    with pytest.raises(BagbasisError, match=r"no column 'u' \(did you mean 'uu'"):
        ingested(RENAMED, tmp_path)


def test_networks_compare_names():
    """Every estimator of `bagbasis.neural` reads bags and points by these two functions."""
    names = list(FRAMES[0].columns)
    for frames in (FRAMES, TURNED):
        bags_read = np.concatenate([block.points for block in blocks_of(frames, 3, names)])
        np.testing.assert_array_equal(bags_read, pd.concat(FRAMES).to_numpy())
        np.testing.assert_array_equal(named_points(frames[0], 3, names), FRAMES[0].to_numpy())
    for call in (
        lambda: next(blocks_of(RENAMED, 3, names)),
        lambda: named_points(RENAMED[0], 3, names),
    ):
        with pytest.raises(BagbasisError, match=r"'u' is missing.* 'uu' is extra"):
            call()
