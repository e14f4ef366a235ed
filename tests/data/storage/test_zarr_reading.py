"""Files that others made: whatever codecs they name, nothing but ours decodes them."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zarr
from zarr.codecs import GzipCodec

from bagbasis import (
    BagStore,
    DoubleBasisRegressor,
    ModelError,
    MomentsEmbedding,
    StoreError,
    load_model,
)
from bagbasis.data.storage.zarr_reading import array_of, open_group

ALLOW = "NUMCODECS_ALLOW_UNSAFE_PICKLE_DECODE"


class Evil:
    """Makes a file when it is unpickled."""

    def __init__(self, mark):
        self.mark = str(mark)

    def __reduce__(self):
        return Path.touch, (Path(self.mark),)


@pytest.fixture
def model(tmp_path):
    bags = [np.full((3, 1), i / 9) for i in range(10)]
    model = DoubleBasisRegressor(MomentsEmbedding(), alpha=1.0).fit(bags, np.arange(10.0))
    model.save(tmp_path / "m.zarr")
    return tmp_path / "m.zarr"


def of_format_2(shape):
    """An array whose bytes Zarr would unpickle."""
    return {
        "zarr_format": 2, "shape": shape, "chunks": shape, "dtype": "|O", "fill_value": "",
        "order": "C", "filters": [{"id": "vlen-utf8"}, {"id": "pickle"}], "compressor": None,
    }  # fmt: skip


@pytest.mark.long
def test_a_models_consolidated_metadata(model, tmp_path):
    """It names an array of format 2 that `pickle` decodes: the array's own metadata are read."""
    mark, root = tmp_path / "ran", model / "zarr.json"
    coef = load_model(model).coef_
    metadata = json.loads(root.read_text())
    metadata["consolidated_metadata"] = {
        "kind": "inline", "must_understand": False,
        "metadata": {"coef": of_format_2(list(coef.shape))},
    }  # fmt: skip
    root.write_text(json.dumps(metadata))
    (model / "coef" / "0.0").write_bytes(pickle.dumps(Evil(mark)))
    code = "import sys; from bagbasis import load_model; print(load_model(sys.argv[1]).coef_.shape)"
    ran = subprocess.run(
        [sys.executable, "-c", code, model],
        capture_output=True, text=True, env={ALLOW: "1", "PATH": ""},
    )  # fmt: skip
    assert not mark.exists()
    assert ran.stdout == f"{coef.shape}\n", ran.stderr


def test_a_stores_array_of_format_2(tmp_path):
    """Where the array's own metadata are of format 2, there is no array."""
    store = BagStore.create(tmp_path / "s.zarr", 1)
    store.append([np.full((3, 1), 0.5)])
    points = tmp_path / "s.zarr" / "points"
    (points / "zarr.json").unlink()
    (points / ".zarray").write_text(json.dumps(of_format_2([3, 1])))
    (points / "0.0").write_bytes(pickle.dumps(Evil(tmp_path / "ran")))
    with pytest.raises(StoreError, match="array 'points' cannot be opened"):
        BagStore.open(store.url).read(0, 1)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("sharded", [False, True])
def test_a_codec_that_we_do_not_write(tmp_path, sharded):
    """Zarr decodes gzip; a group's array with it is refused, within shards, too."""
    group = zarr.create_group(tmp_path / "g.zarr")
    cut = {"chunks": (2,), "shards": (4,)} if sharded else {}
    group.create_array("x", data=np.arange(4.0), compressors=[GzipCodec()], **cut)
    with pytest.raises(ValueError, match="'x' has a codec that is not from bagbasis: GzipCodec"):
        array_of(open_group(tmp_path / "g.zarr"), "x")


def test_a_model_with_such_a_codec(model):
    """Named as damage, by every call that opens it."""
    path = model / "coef" / "zarr.json"
    metadata = json.loads(path.read_text())
    metadata["codecs"][1] = {"name": "gzip", "configuration": {"level": 1}}
    path.write_text(json.dumps(metadata))
    with pytest.raises(ModelError, match=r"damaged model .*not from bagbasis"):
        load_model(model)
