"""A valid call of every public callable that makes or describes data, as `examples` has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import bagbasis
from bagbasis import Bags, BagStore, Box, Responses, datasets, densities, embeddings, merge_stores
from tests.contract.world import N, World

Call = tuple[Callable[..., Any], dict[str, Any]]
Example = Callable[[World], Call]


def _append_nothing(store: BagStore, source: object) -> None:
    with store.appending(source):
        pass


def _matched(w: World) -> densities.ExponentialFamilyDensity:
    return densities.ExponentialFamilyDensity(4, bandwidth=1.0, alpha=0.1).fit(w.arrays[0])


def _block(kind: type[datasets.Dataset]) -> Callable[..., Any]:
    return lambda **values: kind(**values).block(0)


DATA_EXAMPLES: dict[str, Example] = {
    "Bags": lambda w: (Bags, {"points": w.bags.points, "offsets": w.bags.offsets}),
    "Bags.from_list": lambda w: (Bags.from_list, {"arrays": w.arrays}),
    "Bags.from_awkward": lambda w: (Bags.from_awkward, {"array": w.bags.to_awkward()}),
    "Bags.from_arrow": lambda w: (Bags.from_arrow, {"data": w.bags}),
    "Bags.from_frame": lambda w: (
        Bags.from_frame,
        {"frame": w.bags.to_pandas(), "id_column": "bag", "coordinates": ["x0", "x1"]},
    ),
    "Bags.named": lambda w: (w.bags.named, {"names": ["u", "v"]}),
    "Bags.with_ids": lambda w: (w.bags.with_ids, {"ids": [f"b{i}" for i in range(len(w.bags))]}),
    "Responses.named": lambda w: (w.responses.named, {"names": ["u"] * w.responses.n_dims}),
    "Responses.with_ids": lambda w: (w.responses.with_ids, {"ids": range(len(w.responses))}),
    "Bags.to_arrow": lambda w: (w.bags.to_arrow, {}),
    "Bags.to_awkward": lambda w: (w.bags.to_awkward, {}),
    "Bags.to_column": lambda w: (w.bags.to_column, {}),
    "Bags.to_pandas": lambda w: (w.bags.to_pandas, {}),
    "Bags.to_xarray": lambda w: (w.bags.to_xarray, {}),
    "Box": lambda w: (Box, {"lo": (0.0,), "hi": (1.0,)}),
    "Box.around": lambda w: (Box.around, {"lo": [0.0, 0.0], "hi": [1.0, 2.0]}),
    "Box.from_unit": lambda w: (Box.unit(2).from_unit, {"points": w.arrays[0]}),
    "Box.of": lambda w: (Box.of, {"box": None, "n_dims": 2}),
    "Box.sample_size": lambda w: (Box.sample_size, {"n_dims": 2}),
    "Box.to_unit": lambda w: (Box.unit(2).to_unit, {"points": w.arrays[0]}),
    "Box.unit": lambda w: (Box.unit, {"n_dims": 2}),
    "Responses": lambda w: (
        Responses,
        {"points": w.responses.points, "offsets": w.responses.offsets},
    ),
    "Responses.none": lambda w: (Responses.none, {"n_bags": 2, "n_dims": 1}),
    "Responses.to_arrow": lambda w: (w.responses.to_arrow, {}),
    "Responses.to_column": lambda w: (w.responses.to_column, {}),
    "Responses.to_pandas": lambda w: (w.responses.to_pandas, {}),
    "Responses.to_xarray": lambda w: (w.responses.to_xarray, {}),
    "as_bags": lambda w: (bagbasis.as_bags, {"data": w.arrays}),
    "as_responses": lambda w: (bagbasis.as_responses, {"data": w.answers, "n_bags": N}),
    "BagStore.create": lambda w: (BagStore.create, {"url": w.new(), "n_dims": 2}),
    "BagStore.open": lambda w: (BagStore.open, {"url": w.url}),
    "BagStore.append": lambda w: (
        w.growing.append,
        {"bags": w.arrays, "targets": {"y": w.y, "c": w.classes}, "ids": w.new_ids()},
    ),
    "BagStore.remove": lambda w: (w.growing.remove, {"ids": []}),
    "BagStore.relabel": lambda w: (
        w.growing.relabel,
        {"target": w.growing.target_names[0], "labels": {0: 1.0}},
    ),
    "BagStore.compact": lambda w: (w.growing.compact, {}),
    "BagStore.to_arrow": lambda w: (w.store.to_arrow, {}),
    "BagStore.to_pandas": lambda w: (w.store.to_pandas, {}),
    "BagStore.to_xarray": lambda w: (w.store.to_xarray, {}),
    "BagStore.from_xarray": lambda w: (
        BagStore.from_xarray,
        {"dataset": w.store.to_xarray(), "url": w.new()},
    ),
    "merge_stores": lambda w: (merge_stores, {"stores": [w.store], "url": w.new()}),
    "BagStore.present": lambda w: (w.store.present, {}),
    "BagStore.appending": lambda w: (
        lambda source=None: _append_nothing(w.growing, source),
        {},
    ),
    "BagStore.read": lambda w: (w.store.read, {}),
    "BagStore.responses": lambda w: (w.store.responses, {}),
    "BagStore.offsets": lambda w: (w.store.offsets, {}),
    "BagStore.response_offsets": lambda w: (w.store.response_offsets, {}),
    "BagStore.targets": lambda w: (w.store.targets, {}),
    "BagStore.target_columns": lambda w: (w.store.target_columns, {}),
    "BagStore.ids": lambda w: (w.store.ids, {}),
    "BagStore.refresh": lambda w: (w.store.refresh, {}),
    "BagStore.verify": lambda w: (w.store.verify, {}),
    "evaluate_basis": lambda w: (
        embeddings.evaluate_basis,
        {"basis": "cosine", "n_functions": 3, "x": [0.1, 0.5]},
    ),
    "index_set": lambda w: (embeddings.index_set, {"n_dims": 2, "n_per_dim": 3}),
    "connect": lambda w: (bagbasis.connect, {}),
    "DensityMapping": lambda w: (_block(datasets.DensityMapping), {"n_points": 5}),
    "DensityMapping.block": lambda w: (datasets.DensityMapping().block, {"index": 0}),
    "DensityMapping.mixtures": lambda w: (
        datasets.DensityMapping().mixtures,
        {"index": 0},
    ),
    "DensityMapping.response_block": lambda w: (
        datasets.DensityMapping(n_points=5).response_block,
        {"index": 0},
    ),
    "Digits": lambda w: (_block(datasets.Digits), {}),
    "Digits.block": lambda w: (datasets.Digits().block, {"index": 0}),
    "Dirichlet": lambda w: (_block(datasets.Dirichlet), {"n_points": 5}),
    "Dirichlet.block": lambda w: (datasets.Dirichlet(n_points=5).block, {"index": 0}),
    "Dirichlet.proportions": lambda w: (
        datasets.Dirichlet(n_points=5).proportions,
        {"index": 0},
    ),
    "GMMComponents": lambda w: (_block(datasets.GMMComponents), {"n_points": 5}),
    "GMMComponents.block": lambda w: (
        datasets.GMMComponents(n_points=5).block,
        {"index": 0},
    ),
    "GMMComponents.densities": lambda w: (
        datasets.GMMComponents().densities,
        {"index": 0},
    ),
    "SyntheticMapping": lambda w: (_block(datasets.SyntheticMapping), {"n_points": 5}),
    "SyntheticMapping.block": lambda w: (
        datasets.SyntheticMapping(n_points=5).block,
        {"index": 0},
    ),
    "SyntheticMapping.densities": lambda w: (
        datasets.SyntheticMapping().densities,
        {"index": 0},
    ),
    "SyntheticMapping.mapping": lambda w: (datasets.SyntheticMapping().mapping, {}),
    "generate": lambda w: (
        datasets.generate,
        {"dataset": datasets.Digits(), "url": w.new(), "n_bags": 3},
    ),
    "make_dataset": lambda w: (datasets.make_dataset, {"name": "digits"}),
    "register_dataset": lambda w: (
        datasets.register_dataset,
        {"cls": datasets.GMMComponents},
    ),
    "Densities": lambda w: (
        densities.Densities,
        {
            "coefficients": w.densities.coefficients,
            "indices": w.densities.indices,
            "basis": "cosine",
            "box": None,
        },
    ),
    "Densities.at": lambda w: (w.densities.at, {"points": w.arrays[0]}),
    "Densities.grid_axes": lambda w: (w.densities.grid_axes, {"n": 3}),
    "Densities.integral": lambda w: (w.densities.integral, {}),
    "Densities.l2_distance": lambda w: (
        w.densities.l2_distance,
        {"other": w.densities},
    ),
    "Densities.marginal": lambda w: (w.densities.marginal, {"dims": [0]}),
    "Densities.on_grid": lambda w: (w.densities.on_grid, {"n": 3}),
    "Densities.plot": lambda w: (w.densities.plot, {}),
    "Densities.sample": lambda w: (w.densities.sample, {"n": 3}),
    "Densities.valid": lambda w: (w.densities.valid, {"grid": 8}),
    "ExponentialFamilyDensity": lambda w: (
        lambda **values: densities.ExponentialFamilyDensity(**values).fit(w.arrays[0]),
        {"n_features": 4, "bandwidth": 1.0, "alpha": 0.1, "n_folds": 2},
    ),
    "ExponentialFamilyDensity.fit": lambda w: (
        densities.ExponentialFamilyDensity(4, bandwidth=1.0, alpha=0.1).fit,
        {"X": w.arrays[0]},
    ),
    "ExponentialFamilyDensity.log_density": lambda w: (
        _matched(w).log_density,
        {"X": w.arrays[0]},
    ),
    "ExponentialFamilyDensity.sample": lambda w: (
        _matched(w).sample,
        {"n": 2, "n_steps": 2},
    ),
    "ExponentialFamilyDensity.log_density_gradient": lambda w: (
        _matched(w).log_density_gradient,
        {"X": w.arrays[0]},
    ),
    "ExponentialFamilyDensity.score": lambda w: (
        _matched(w).score,
        {"X": w.arrays[0]},
    ),
    "choose_smoothness": lambda w: (
        densities.choose_smoothness,
        {"data": w.arrays, "candidates": [1.0, 2.0]},
    ),
    "estimate_densities": lambda w: (
        densities.estimate_densities,
        {"bags": w.arrays, "smoothness": 2.0},
    ),
    "kde_at": lambda w: (
        densities.kde_at,
        {"bags": w.arrays, "points": w.arrays[0], "bandwidth": 0.2},
    ),
}
