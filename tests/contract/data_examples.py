"""A valid call of every public callable that makes or describes data, as `examples` has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import bagbasis
from bagbasis import Bags, BagStore, Box, Responses, datasets, densities, embeddings
from tests.contract.world import N, World

Call = tuple[Callable[..., Any], dict[str, Any]]
Example = Callable[[World], Call]
Given = Callable[[World], dict[str, Any]] | dict[str, Any]


def calls(
    prefix: str, of: Callable[[World], Any], /, *bare: str, **inputs: Given
) -> dict[str, Example]:
    """The examples of functions of a module, or methods of an object, each with its arguments.

    Arguments are a dictionary, or a function of the world that returns it; ``bare`` names those
    without. The object is made anew for each call, unless the world keeps it.
    """

    def example(name: str, arguments: Given) -> Example:
        return lambda w: (
            getattr(of(w), name),
            arguments(w) if callable(arguments) else {**arguments},
        )

    return {
        f"{prefix}{name}": example(name, arguments)
        for name, arguments in {**{name: {} for name in bare}, **inputs}.items()
    }


def _append_nothing(store: BagStore, source: object) -> None:
    with store.appending(source):
        pass


def _matched(w: World) -> densities.ExponentialFamilyDensity:
    return densities.ExponentialFamilyDensity(4, bandwidth=1.0, alpha=0.1).fit(w.arrays[0])


FEW = {"n_points": 5}
OF_POINTS = (
    datasets.DensityMapping, datasets.Dirichlet, datasets.GMMComponents, datasets.SyntheticMapping,
)  # fmt: skip
READ = (
    "to_arrow", "to_pandas", "to_xarray", "present", "read", "responses", "offsets",
    "response_offsets", "targets", "target_columns", "ids", "refresh", "verify",
)  # fmt: skip

DATA_EXAMPLES: dict[str, Example] = {
    "Bags": lambda w: (Bags, {"points": w.bags.points, "offsets": w.bags.offsets}),
    **calls(
        "Bags.",
        lambda w: w.bags,
        "to_arrow", "to_awkward", "to_column", "to_pandas", "to_xarray",
        from_list=lambda w: {"arrays": w.arrays},
        from_awkward=lambda w: {"array": w.bags.to_awkward()},
        from_arrow=lambda w: {"data": w.bags},
        from_frame=lambda w: {
            "frame": w.bags.to_pandas(), "id_column": "bag", "coordinates": ["x0", "x1"],
        },
        named={"names": ["u", "v"]},
        with_ids=lambda w: {"ids": [f"b{i}" for i in range(len(w.bags))]},
    ),
    "Box": lambda w: (Box, {"lo": (0.0,), "hi": (1.0,)}),
    **calls(
        "Box.",
        lambda w: Box.unit(2),
        around={"lo": [0.0, 0.0], "hi": [1.0, 2.0]},
        of={"box": None, "n_dims": 2},
        **dict.fromkeys(("sample_size", "unit"), lambda w: {"n_dims": 2}),
        **dict.fromkeys(("from_unit", "to_unit"), lambda w: {"points": w.arrays[0]}),
    ),
    "Responses": lambda w: (
        Responses, {"points": w.responses.points, "offsets": w.responses.offsets},
    ),
    **calls(
        "Responses.",
        lambda w: w.responses,
        "to_arrow", "to_column", "to_pandas", "to_xarray",
        named=lambda w: {"names": ["u"] * w.responses.n_dims},
        with_ids=lambda w: {"ids": range(len(w.responses))},
        none={"n_bags": 2, "n_dims": 1},
    ),
    **calls(
        "",
        lambda w: bagbasis,
        as_bags=lambda w: {"data": w.arrays},
        as_responses=lambda w: {"data": w.answers, "n_bags": N},
        connect={},
        merge_stores=lambda w: {"stores": [w.store], "url": w.new()},
    ),
    **calls(
        "BagStore.",
        lambda w: BagStore,
        create=lambda w: {"url": w.new(), "n_dims": 2},
        open=lambda w: {"url": w.url},
        from_xarray=lambda w: {"dataset": w.store.to_xarray(), "url": w.new()},
    ),
    **calls(
        "BagStore.",
        lambda w: w.growing,
        append=lambda w: {
            "bags": w.arrays, "targets": {"y": w.y, "c": w.classes}, "ids": w.new_ids(),
        },
        remove={"ids": []},
        relabel=lambda w: {"target": w.growing.target_names[0], "labels": {0: 1.0}},
        compact={},
    ),
    "BagStore.appending": lambda w: (lambda source=None: _append_nothing(w.growing, source), {}),
    **calls("BagStore.", lambda w: w.store, *READ),
    **calls(
        "",
        lambda w: embeddings,
        evaluate_basis={"basis": "cosine", "n_functions": 3, "x": [0.1, 0.5]},
        index_set={"n_dims": 2, "n_per_dim": 3},
    ),
    **{
        kind.__name__: lambda w, kind=kind: (
            lambda **values: kind(**values).block(0), FEW if kind in OF_POINTS else {},
        )
        for kind in (*OF_POINTS, datasets.Digits)
    },
    **{
        key: example
        for kind, methods in {
            datasets.DensityMapping: ("block", "mixtures", "response_block"),
            datasets.Dirichlet: ("block", "proportions"),
            datasets.GMMComponents: ("block", "densities"),
            datasets.SyntheticMapping: ("block", "densities"),
        }.items()
        for key, example in calls(
            f"{kind.__name__}.",
            lambda w, kind=kind: kind(**FEW),
            **dict.fromkeys(methods, lambda w: {"index": 0}),
        ).items()
    },
    **calls("Digits.", lambda w: datasets.Digits(), block={"index": 0}),
    **calls("SyntheticMapping.", lambda w: datasets.SyntheticMapping(), mapping={}),
    **calls(
        "",
        lambda w: datasets,
        generate=lambda w: {"dataset": datasets.Digits(), "url": w.new(), "n_bags": 3},
        make_dataset={"name": "digits"},
        register_dataset={"cls": datasets.GMMComponents},
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
    **calls(
        "Densities.",
        lambda w: w.densities,
        at=lambda w: {"points": w.arrays[0]},
        integral={},
        l2_distance=lambda w: {"other": w.densities},
        marginal={"dims": [0]},
        plot={},
        valid={"grid": 8},
        **dict.fromkeys(("grid_axes", "on_grid", "sample"), lambda w: {"n": 3}),
    ),
    "ExponentialFamilyDensity": lambda w: (
        lambda **values: densities.ExponentialFamilyDensity(**values).fit(w.arrays[0]),
        {"n_features": 4, "bandwidth": 1.0, "alpha": 0.1, "n_folds": 2},
    ),
    **calls(
        "ExponentialFamilyDensity.",
        _matched,
        sample={"n": 2, "n_steps": 2},
        **dict.fromkeys(
            ("fit", "log_density", "log_density_gradient", "score"),
            lambda w: {"X": w.arrays[0]},
        ),
    ),
    **calls(
        "",
        lambda w: densities,
        choose_smoothness=lambda w: {"data": w.arrays, "candidates": [1.0, 2.0]},
        estimate_densities=lambda w: {"bags": w.arrays, "smoothness": 2.0},
        kde_at=lambda w: {"bags": w.arrays, "points": w.arrays[0], "bandwidth": 0.2},
    ),
}  # fmt: skip
