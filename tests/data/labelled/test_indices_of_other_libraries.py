"""Indices of xarray and Dask are ids, and names along a dimension are names of coordinates."""

import dask.dataframe as dd
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bagbasis import Bags, BagStore, DataError, DoubleBasisRegressor, MomentsEmbedding, as_bags
from bagbasis.hypotheses import independence_test

N = 24
IDS = [f"p{i:02}" for i in range(N)]
CENTRES = np.arange(N) * 1.0
ROWS = pd.DataFrame(
    {
        "id": np.repeat(IDS, 5),
        "a": np.repeat(CENTRES, 5) + np.tile([0, 0.1, 0, 0, 0], N),
        "b": np.tile([0, 1, 2.0, 5, 9], N),
    }
)
SHUFFLED = np.random.default_rng(0).permutation(N)


def in_other_order(kind: str):
    """Return the bags' labels with their ids, in another order than the bags'."""
    labels = pd.Series(CENTRES, pd.Index(IDS, name="id"), name="y").iloc[SHUFFLED]
    if kind == "array":
        return xr.DataArray(labels)
    if kind == "matrix":
        return xr.DataArray(labels.to_frame(), dims=("id", "label"))
    labels = dd.from_pandas(labels, npartitions=2, sort=False)
    return labels if kind == "dask" else labels.to_frame()


@pytest.mark.parametrize("kind", ["array", "matrix", "dask", "dask frame"])
def test_labels_follow_their_ids(kind, tmp_path):
    bags = Bags.from_frame(ROWS, id_column="id")
    labels = in_other_order(kind)
    fitted = DoubleBasisRegressor(MomentsEmbedding(), alpha=1e-3).fit(bags, labels)
    assert np.corrcoef(np.ravel(fitted.predict(bags)), CENTRES)[0, 1] > 0.95
    store = BagStore.create(tmp_path / "s.zarr", n_dims=2, target_names=["y"])
    store.append(bags, labels if kind in ("matrix", "dask frame") else {"y": labels})
    np.testing.assert_array_equal(store.targets()[:, 0], CENTRES)


def test_groups_weights_and_variables_of_a_test_follow_their_ids():
    bags = Bags.from_frame(ROWS, id_column="id")
    expected = independence_test(bags, CENTRES, n_permutations=19).statistic
    assert independence_test(bags, in_other_order("array"), n_permutations=19).statistic == expected
    model = DoubleBasisRegressor(MomentsEmbedding(), alpha=1e-3)
    weights = CENTRES + 1
    of_ids = xr.DataArray(weights[SHUFFLED], dims="id", coords={"id": np.array(IDS)[SHUFFLED]})
    np.testing.assert_array_equal(
        model.fit(bags, CENTRES, sample_weight=of_ids).predict(bags),
        model.fit(bags, CENTRES, sample_weight=weights).predict(bags),
    )


def test_names_along_a_dimension_are_names_of_coordinates():
    def bag(i: int, names: str) -> xr.DataArray:
        points = {"a": [i, 1.0], "b": [9.0, 5.0]}
        values = np.column_stack([points[name] for name in names])
        return xr.DataArray(values, dims=("time", "channel"), coords={"channel": list(names)})

    bags = as_bags([bag(0, "ab"), bag(1, "ba")])
    assert bags.coordinate_names == ["a", "b"]
    np.testing.assert_array_equal(bags[1], [[1, 9], [1, 5]])


@pytest.mark.parametrize("made_by", [jnp.asarray, xr.DataArray])
def test_a_matrix_of_any_library_is_no_list_of_bags(made_by):
    with pytest.raises(DataError, match=r"got one array of shape \(4, 3\)"):
        as_bags(made_by(np.ones((4, 3), np.float32)))
    assert len(as_bags(made_by(np.ones((4, 3, 1), np.float32)))) == 4
