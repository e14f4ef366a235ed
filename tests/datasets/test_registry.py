"""What holds for every dataset in the registry."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from bagbasis import Box, ParameterError
from bagbasis.datasets import DATASETS, Dataset, Dirichlet, make_dataset, register_dataset
from bagbasis.jobs.experiments import data  # noqa: F401 (registers the experiments' datasets)

EVERY = [
    make_dataset("density_mapping", n_points=(3, 12), n_response_points=5),
    make_dataset("digits"),
    make_dataset("digits", split="train", seed=3),
    make_dataset("dirichlet", n_points=7),
    make_dataset("dirichlet", n_points=(1, 9), n_categories=5),
    make_dataset("gmm_components", n_points=(3, 12)),
    make_dataset("gmm_components", n_points=10, variant="004"),
    make_dataset("nbody", n_particles=16, n_cubes=2, box_size=32, n_steps=3),
    make_dataset("synthetic_mapping", n_points=5, mapping_seed=2),
    make_dataset("synthetic_mapping", n_points=[1, 4]),
]
RANDOM = [dataset for dataset in EVERY if dataset.name not in ("digits", "nbody")]


@pytest.fixture(params=EVERY, ids=repr)
def dataset(request: pytest.FixtureRequest) -> Dataset:
    """Return each dataset of the table."""
    return request.param


def test_every_registered_dataset_is_covered() -> None:
    """A dataset added to the registry must be added to this file's table."""
    assert {dataset.name for dataset in EVERY} == set(DATASETS)


def test_a_dataset_of_ones_own_can_be_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A registered class is made by its name; a name in use is refused."""
    monkeypatch.setattr(DATASETS, "_known", dict(DATASETS))

    @register_dataset
    class Own(Dirichlet):
        name = "own"

    assert register_dataset(Own) is Own
    assert make_dataset("own", n_points=3) == Own(n_points=3)
    Own.name = "digits"
    with pytest.raises(ParameterError, match="two datasets are called 'digits'"):
        register_dataset(Own)


def test_block_has_declared_shape(dataset: Dataset) -> None:
    """Points and targets have the dtype, the dimension and the columns the spec declares."""
    bags, targets = dataset.block(1)
    assert bags.points.dtype == np.float32
    assert bags.n_dims == dataset.n_dims
    assert targets.dtype == np.float64
    assert targets.shape == (len(bags), len(dataset.target_names))
    assert bags.offsets[-1] == len(bags.points)
    assert dataset.block_bags == len(dataset.block(0)[0])
    assert set(dataset.class_names) <= set(dataset.target_names)


def test_points_lie_in_the_box(dataset: Dataset) -> None:
    """All points lie in the declared box: nothing would be clipped when they are projected."""
    unit = Box.of(dataset.box, dataset.n_dims).to_unit(dataset.block(0)[0].points)
    assert unit.min() >= 0
    assert unit.max() <= 1
    assert np.ptp(unit, axis=0).min() > 0.5


def test_block_depends_on_seed_and_index_alone(dataset: Dataset) -> None:
    """A pickled copy, asked for blocks in another order, makes the same ones."""
    first = dataset.block(0)
    copy = pickle.loads(pickle.dumps(dataset))
    copy.block(1)
    again = copy.block(0)
    np.testing.assert_array_equal(first[0].points, again[0].points)
    np.testing.assert_array_equal(first[1], again[1])


@pytest.mark.parametrize("dataset", RANDOM, ids=repr)
def test_blocks_and_seeds_differ(dataset: Dataset) -> None:
    """Another block, or another seed, holds other densities and other points."""
    other = make_dataset(dataset.name, **{**dataset.params, "seed": dataset.seed + 1})
    points, targets = dataset.block(0)[0].points, dataset.block(0)[1]
    for bags, values in (dataset.block(1), other.block(0)):
        assert not np.isin(bags.points[:50], points).all(axis=1).any()
        assert not targets.size or (values != targets).mean() > 0.5


def test_params_rebuild_the_dataset(dataset: Dataset) -> None:
    """What a store remembers as its source is JSON, and gives the same dataset back."""
    params = json.loads(json.dumps(dataset.params))
    assert params == dataset.params
    assert make_dataset(dataset.name, **params) == dataset


@pytest.mark.parametrize("name", ["dirichlet", "gmm_components", "synthetic_mapping"])
def test_ragged_sizes_are_uniform(name: str) -> None:
    """A pair of sizes makes bags of every size in it, both ends included, equally often."""
    dataset = make_dataset(name, n_points=(2, 6))
    sizes = np.concatenate([dataset.block(i)[0].sizes for i in range(10)])
    counts = np.bincount(sizes, minlength=8)
    assert counts[2:7].sum() == len(sizes)
    assert np.abs(counts[2:7] - len(sizes) / 5).max() < 5 * np.sqrt(len(sizes) * 0.2 * 0.8)


def test_blocks_of_large_bags_hold_fewer_bags() -> None:
    """A block stays small in memory however many points a bag has."""
    dataset = make_dataset("gmm_components", n_points=100_000)
    bags, targets = dataset.block(3)
    assert len(bags) == len(targets) == dataset.block_bags == 10
    assert make_dataset("gmm_components", n_points=10**8).block_bags == 1


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("gmm", {}, "name is 'gmm'; expected one of .*'gmm_components'"),
        ("dirichlet", {"n_point": 5}, "no parameter 'n_point'.*'n_points'"),
        ("dirichlet", {"n_points": (5, 4)}, "n_points is 4; expected an integer from 5 to"),
        ("dirichlet", {"n_points": (1, 2, 3)}, "n_points is .*or a pair"),
        ("dirichlet", {"n_points": 2**28}, "n_points is .*from 1 to 134217728"),
        ("dirichlet", {"seed": 2**32}, "seed is 4294967296; expected an integer from 0 to"),
        ("gmm_components", {"variant": 4}, "variant is 4 .*mean '004', in YAML with the quotes"),
        ("digits", {"split": "trian"}, "split is 'trian' .*'train'.*'all', 'train', 'test'"),
    ],
)
def test_wrong_parameters_are_named(name: str, params: dict, message: str) -> None:
    """A wrong name or value is one line that names it."""
    with pytest.raises(ParameterError, match=message):
        make_dataset(name, **params)
