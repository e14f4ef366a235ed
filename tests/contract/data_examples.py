"""A valid call of every public callable that makes or describes data, as `examples` has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bagbasis import bags, bases, clusters, datasets, densities
from bagbasis.bags import Bags, Box, Responses
from bagbasis.store import BagStore, merge_stores
from tests.contract.world import N, World

Call = tuple[Callable[..., Any], dict[str, Any]]
Example = Callable[[World], Call]


def _append_nothing(store: BagStore, source: object) -> None:
    with store.appending(source):
        pass


def _matched(w: World) -> densities.ExponentialFamilyDensity:
    return densities.ExponentialFamilyDensity(4, 1.0, 0.1).fit(w.arrays[0])


def _block(kind: type[datasets.Dataset]) -> Callable[..., Any]:
    return lambda **values: kind(**values).block(0)


DATA_EXAMPLES: dict[str, Example] = {
    "bags.Bags": lambda w: (Bags, {"points": w.bags.points, "offsets": w.bags.offsets}),
    "bags.Bags.from_list": lambda w: (Bags.from_list, {"arrays": w.arrays}),
    "bags.Bags.from_awkward": lambda w: (Bags.from_awkward, {"array": w.bags.to_awkward()}),
    "bags.Bags.from_arrow": lambda w: (Bags.from_arrow, {"data": w.bags}),
    "bags.Bags.from_frame": lambda w: (
        Bags.from_frame,
        {"frame": w.bags.to_pandas(), "id_column": "bag", "coordinates": ["x0", "x1"]},
    ),
    "bags.Bags.to_arrow": lambda w: (w.bags.to_arrow, {}),
    "bags.Bags.to_awkward": lambda w: (w.bags.to_awkward, {}),
    "bags.Bags.to_column": lambda w: (w.bags.to_column, {}),
    "bags.Bags.to_pandas": lambda w: (w.bags.to_pandas, {}),
    "bags.Bags.to_xarray": lambda w: (w.bags.to_xarray, {}),
    "bags.Box": lambda w: (Box, {"lo": (0.0,), "hi": (1.0,)}),
    "bags.Box.around": lambda w: (Box.around, {"lo": [0.0, 0.0], "hi": [1.0, 2.0]}),
    "bags.Box.from_unit": lambda w: (Box.unit(2).from_unit, {"points": w.arrays[0]}),
    "bags.Box.of": lambda w: (Box.of, {"box": None, "n_dims": 2}),
    "bags.Box.sample_size": lambda w: (Box.sample_size, {"n_dims": 2}),
    "bags.Box.to_unit": lambda w: (Box.unit(2).to_unit, {"points": w.arrays[0]}),
    "bags.Box.unit": lambda w: (Box.unit, {"n_dims": 2}),
    "bags.Responses": lambda w: (
        Responses,
        {"points": w.responses.points, "offsets": w.responses.offsets},
    ),
    "bags.Responses.none": lambda w: (Responses.none, {"n_bags": 2, "n_dims": 1}),
    "bags.Responses.to_arrow": lambda w: (w.responses.to_arrow, {}),
    "bags.Responses.to_column": lambda w: (w.responses.to_column, {}),
    "bags.Responses.to_pandas": lambda w: (w.responses.to_pandas, {}),
    "bags.Responses.to_xarray": lambda w: (w.responses.to_xarray, {}),
    "bags.as_bags": lambda w: (bags.as_bags, {"data": w.arrays}),
    "bags.as_responses": lambda w: (bags.as_responses, {"data": w.answers, "n_bags": N}),
    "store.BagStore.create": lambda w: (BagStore.create, {"url": w.new(), "n_dims": 2}),
    "store.BagStore.open": lambda w: (BagStore.open, {"url": w.url}),
    "store.BagStore.append": lambda w: (
        w.growing.append,
        {"bags": w.arrays, "targets": {"y": w.y, "c": w.classes}, "ids": w.new_ids()},
    ),
    "store.BagStore.remove": lambda w: (w.growing.remove, {"ids": []}),
    "store.BagStore.relabel": lambda w: (
        w.growing.relabel,
        {"target": w.growing.target_names[0], "labels": {0: 1.0}},
    ),
    "store.BagStore.compact": lambda w: (w.growing.compact, {}),
    "store.BagStore.to_arrow": lambda w: (w.store.to_arrow, {}),
    "store.BagStore.to_pandas": lambda w: (w.store.to_pandas, {}),
    "store.BagStore.to_xarray": lambda w: (w.store.to_xarray, {}),
    "store.BagStore.from_xarray": lambda w: (
        BagStore.from_xarray,
        {"dataset": w.store.to_xarray(), "url": w.new()},
    ),
    "store.merge_stores": lambda w: (merge_stores, {"stores": [w.store], "url": w.new()}),
    "store.BagStore.present": lambda w: (w.store.present, {}),
    "store.BagStore.appending": lambda w: (
        lambda source=None: _append_nothing(w.growing, source),
        {},
    ),
    "store.BagStore.read": lambda w: (w.store.read, {}),
    "store.BagStore.responses": lambda w: (w.store.responses, {}),
    "store.BagStore.offsets": lambda w: (w.store.offsets, {}),
    "store.BagStore.response_offsets": lambda w: (w.store.response_offsets, {}),
    "store.BagStore.targets": lambda w: (w.store.targets, {}),
    "store.BagStore.target_columns": lambda w: (w.store.target_columns, {}),
    "store.BagStore.ids": lambda w: (w.store.ids, {}),
    "store.BagStore.refresh": lambda w: (w.store.refresh, {}),
    "store.BagStore.verify": lambda w: (w.store.verify, {}),
    "bases.evaluate_basis": lambda w: (
        bases.evaluate_basis,
        {"basis": "cosine", "n_functions": 3, "x": [0.1, 0.5]},
    ),
    "bases.index_set": lambda w: (bases.index_set, {"n_dims": 2, "n_per_dim": 3}),
    "clusters.connect": lambda w: (clusters.connect, {}),
    "datasets.DensityMapping": lambda w: (_block(datasets.DensityMapping), {"n_points": 5}),
    "datasets.DensityMapping.block": lambda w: (datasets.DensityMapping().block, {"index": 0}),
    "datasets.DensityMapping.mixtures": lambda w: (
        datasets.DensityMapping().mixtures,
        {"index": 0},
    ),
    "datasets.DensityMapping.response_block": lambda w: (
        datasets.DensityMapping(n_points=5).response_block,
        {"index": 0},
    ),
    "datasets.Digits": lambda w: (_block(datasets.Digits), {}),
    "datasets.Digits.block": lambda w: (datasets.Digits().block, {"index": 0}),
    "datasets.Dirichlet": lambda w: (_block(datasets.Dirichlet), {"n_points": 5}),
    "datasets.Dirichlet.block": lambda w: (datasets.Dirichlet(n_points=5).block, {"index": 0}),
    "datasets.Dirichlet.proportions": lambda w: (
        datasets.Dirichlet(n_points=5).proportions,
        {"index": 0},
    ),
    "datasets.GMMComponents": lambda w: (_block(datasets.GMMComponents), {"n_points": 5}),
    "datasets.GMMComponents.block": lambda w: (
        datasets.GMMComponents(n_points=5).block,
        {"index": 0},
    ),
    "datasets.GMMComponents.densities": lambda w: (
        datasets.GMMComponents().densities,
        {"index": 0},
    ),
    "datasets.SyntheticMapping": lambda w: (_block(datasets.SyntheticMapping), {"n_points": 5}),
    "datasets.SyntheticMapping.block": lambda w: (
        datasets.SyntheticMapping(n_points=5).block,
        {"index": 0},
    ),
    "datasets.SyntheticMapping.densities": lambda w: (
        datasets.SyntheticMapping().densities,
        {"index": 0},
    ),
    "datasets.SyntheticMapping.mapping": lambda w: (datasets.SyntheticMapping().mapping, {}),
    "datasets.generate": lambda w: (
        datasets.generate,
        {"dataset": datasets.Digits(), "url": w.new(), "n_bags": 3},
    ),
    "datasets.make_dataset": lambda w: (datasets.make_dataset, {"name": "digits"}),
    "datasets.register_dataset": lambda w: (
        datasets.register_dataset,
        {"cls": datasets.GMMComponents},
    ),
    "densities.Densities": lambda w: (
        densities.Densities,
        {
            "coefficients": w.densities.coefficients,
            "indices": w.densities.indices,
            "basis": "cosine",
            "box": None,
        },
    ),
    "densities.Densities.at": lambda w: (w.densities.at, {"points": w.arrays[0]}),
    "densities.Densities.grid_axes": lambda w: (w.densities.grid_axes, {"n": 3}),
    "densities.Densities.integral": lambda w: (w.densities.integral, {}),
    "densities.Densities.l2_distance": lambda w: (
        w.densities.l2_distance,
        {"other": w.densities},
    ),
    "densities.Densities.marginal": lambda w: (w.densities.marginal, {"dims": [0]}),
    "densities.Densities.on_grid": lambda w: (w.densities.on_grid, {"n": 3}),
    "densities.Densities.sample": lambda w: (w.densities.sample, {"n": 3}),
    "densities.Densities.valid": lambda w: (w.densities.valid, {"grid": 8}),
    "densities.ExponentialFamilyDensity": lambda w: (
        lambda **values: densities.ExponentialFamilyDensity(**values).fit(w.arrays[0]),
        {"n_features": 4, "bandwidth": 1.0, "alpha": 0.1, "n_folds": 2},
    ),
    "densities.ExponentialFamilyDensity.fit": lambda w: (
        densities.ExponentialFamilyDensity(4, 1.0, 0.1).fit,
        {"X": w.arrays[0]},
    ),
    "densities.ExponentialFamilyDensity.log_density": lambda w: (
        _matched(w).log_density,
        {"X": w.arrays[0]},
    ),
    "densities.ExponentialFamilyDensity.sample": lambda w: (
        _matched(w).sample,
        {"n": 2, "n_steps": 2},
    ),
    "densities.ExponentialFamilyDensity.log_density_gradient": lambda w: (
        _matched(w).log_density_gradient,
        {"X": w.arrays[0]},
    ),
    "densities.ExponentialFamilyDensity.score": lambda w: (
        _matched(w).score,
        {"X": w.arrays[0]},
    ),
    "densities.choose_smoothness": lambda w: (
        densities.choose_smoothness,
        {"data": w.arrays, "candidates": [1.0, 2.0]},
    ),
    "densities.estimate_densities": lambda w: (
        densities.estimate_densities,
        {"bags": w.arrays, "smoothness": 2.0},
    ),
    "densities.kde_at": lambda w: (
        densities.kde_at,
        {"bags": w.arrays, "points": w.arrays[0], "bandwidth": 0.2},
    ),
}
