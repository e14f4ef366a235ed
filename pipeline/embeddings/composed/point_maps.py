"""Maps of points in steps: elementwise functions, and fitted transformers of scikit-learn.

A step is plain numbers, so that it travels and is saved without pickle. Every fitted step is
computed from the mean and the scatter of the points, which are sums that merge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.pipeline import Pipeline, make_pipeline

from ...core import Boolean, Constraint, Fraction, Integer, ListOf, None_, OneOf
from ...core.arrays import Floats
from ...core.errors import BagError, ParameterError, shown
from ...core.saved import Saved
from ...core.sklearn_bases import BaseEstimator
from ...data.bags.bags import Bags
from .row_moments import RowMoments, count_axes, principal_axes, signed

if TYPE_CHECKING:
    from sklearn.compose import ColumnTransformer
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

EPS = float(np.finfo(np.float64).eps)
_MIN_DEVIATION = 1e-7  # relative to the largest: whitening would amplify rounding errors below it
# By the names that saved models and configs have of them.
_FUNCTIONS: dict[str, Any] = {
    kind.__name__: kind for kind in (np.log, np.log1p, np.log10, np.sqrt, np.cbrt, np.arcsinh)
}
SCALER, COMPONENTS, FUNCTION, COLUMNS = (
    "StandardScaler",
    "PCA",
    "FunctionTransformer",
    "ColumnTransformer",
)
# Their modules, which are loaded by what uses them: they load a tenth of a second of others.
_MODULES = {
    SCALER: "sklearn.preprocessing",
    COMPONENTS: "sklearn.decomposition",
    FUNCTION: "sklearn.preprocessing",
    COLUMNS: "sklearn.compose",
}
# Their parameters that change the result: which solver finds the axes does not.
PARAMS: dict[str, dict[str, Constraint[Any]]] = {
    SCALER: {"with_mean": Boolean, "with_std": Boolean},
    COMPONENTS: {"n_components": Integer(1) | Fraction | None_, "whiten": Boolean},
    FUNCTION: {"func": OneOf(*_FUNCTIONS) | None_},
    COLUMNS: {"columns": ListOf(Integer(0), 1)},
}
SUPPORTED = (
    "StandardScaler, PCA, FunctionTransformer of numpy's "
    f"{', '.join(_FUNCTIONS)}, a ColumnTransformer that passes columns through, or a Pipeline of "
    "these"
)


@dataclass(frozen=True)
class PointStep(Saved):
    """x → axes · (f(x[columns]) − center) / scale; parts that are None are left out.

    Attributes
    ----------
    columns : tuple of int or None
        Coordinates that are kept, in this order.
    function : str or None
        f, one of `_FUNCTIONS`.
    axes : tuple of tuples of float, or None
        A row per coordinate of the result.
    center : tuple of float or None
        One number per coordinate.
    scale : tuple of float or None
        One number per coordinate of the result.
    """

    function: str | None = None
    axes: tuple[tuple[float, ...], ...] | None = None
    center: tuple[float, ...] | None = None
    scale: tuple[float, ...] | None = None
    columns: tuple[int, ...] | None = None
    OMITTED: ClassVar = ("function", "axes", "center", "scale", "columns")

    def __call__(self, points: Floats) -> Floats:
        """Map points, shape (n, d)."""
        argument = points  # not changed
        if self.columns is not None:
            points = points[:, self.columns]
        if self.function is not None:
            with np.errstate(invalid="ignore", divide="ignore"):  # refused by who asks
                points = _FUNCTIONS[self.function](points)
        if self.center is not None:
            own = None if points is argument else points
            points = np.subtract(points, self.center, out=own)
        if self.axes is not None:
            points = points @ np.array(self.axes).T
        if self.scale is not None:
            own = None if points is argument else points
            points = np.divide(points, self.scale, out=own)
        return points

    def n_outputs(self, n_inputs: int) -> int:
        """Return the number of output coordinates, given that of the input.

        Raises
        ------
        ParameterError
            If the lengths of the fields do not match.
        """
        if self.columns is not None:
            missing = [column for column in self.columns if not 0 <= column < n_inputs]
            if missing or not self.columns:
                raise ParameterError(
                    f"the columns {shown(list(self.columns))} are kept of points with {n_inputs} "
                    f"coordinates; give columns from 0 to {n_inputs - 1}"
                )
            n_inputs = len(self.columns)
        n = n_inputs if self.axes is None else len(self.axes)
        rows = [self.center, *(self.axes or ())]
        is_fitting = all(row is None or len(row) == n_inputs for row in rows)
        if not is_fitting or (self.scale is not None and len(self.scale) != n) or not n:
            raise ParameterError(f"a step of the transformation is not one of {n_inputs} columns")
        return n

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the step of a description by `to_dict`; ParameterError if it is invalid."""
        known = {field.name for field in fields(cls)}
        if not isinstance(values, Mapping) or not set(values) <= known:
            raise ParameterError(f"a step of the transformation is {shown(values)}")
        if values.get("function") not in (None, *_FUNCTIONS):
            raise ParameterError(f"a step's function is {shown(values['function'])}")
        center, axes, scale = (values.get(name) for name in ("center", "axes", "scale"))
        columns = values.get("columns")
        return cls(
            values.get("function"),
            None if axes is None else tuple(tuple(map(float, row)) for row in axes),
            None if center is None else tuple(map(float, center)),
            None if scale is None else tuple(map(float, scale)),
            None if columns is None else tuple(map(int, columns)),
        )


@dataclass(frozen=True)
class PointMap:
    """Map from bags to bags that applies steps one after the other."""

    steps: tuple[PointStep, ...] = ()

    def n_outputs(self, n_inputs: int) -> int:
        """Return the coordinates of a mapped point; ParameterError for steps that do not fit."""
        for step in self.steps:
            n_inputs = step.n_outputs(n_inputs)
        return n_inputs

    def __call__(self, bags: Bags) -> Bags:
        """Return bags of the mapped points, in the type that these have.

        Raises
        ------
        BagError
            If a mapped point is not finite, such as the logarithm of a negative number.
        """
        points = np.asarray(bags.points, np.float64)
        for step in self.steps:
            points = step(points)
        with np.errstate(over="ignore"):  # what is infinite is refused
            points = points.astype(bags.points.dtype, copy=False)
        finite = np.isfinite(points)
        if not finite.all():
            row = int(np.flatnonzero(~finite.all(axis=1))[0])
            bag = int(np.searchsorted(bags.offsets, row, "right")) - 1
            values = bags.points[row].tolist()
            raise BagError(bag, f"its point {shown(values)} is transformed to no finite numbers")
        return Bags.trusted(np.ascontiguousarray(points), bags.offsets)


_Measure = Callable[[tuple[PointStep, ...], bool], RowMoments]
"""Takes a pass: the moments of all points after some steps, and whether axes are made of them."""


def fit_steps(transformer: object, measure: _Measure) -> tuple[PointStep, ...]:
    """Fit scikit-learn's transformer, from the moments of the points alone.

    Parameters
    ----------
    transformer : a scikit-learn transformer
        See `SUPPORTED`; not changed.
    measure : callable
        Called at most once per transformer: steps that scale and rotate need no pass after others
        that do.

    Raises
    ------
    ParameterError
        If the transformer or one of its parameters is not supported.
    """
    steps: list[PointStep] = []
    moments: RowMoments | None = None
    flat = flatten(transformer)
    rotates = any(kind == COMPONENTS for kind, _ in flat)
    for kind, inner in flat:
        if kind == FUNCTION:
            step, moments = PointStep(_name_of(inner)), None
        elif kind == COLUMNS:
            step = PointStep(columns=_columns_of(inner))
            moments = None if moments is None else _moments_after(step, moments)
        else:
            moments = measure(tuple(steps), rotates) if moments is None else moments
            step = (_scaling if kind == SCALER else _components)(inner, moments)
            moments = _moments_after(step, moments)
        steps.append(step)
    return tuple(steps)


def flatten(transformer: object) -> list[tuple[str, Any]]:
    """Return the steps of pipelines, none of which is a pipeline, after their classes' names.

    Raises
    ------
    ParameterError
        For others than the supported transformers.
    """
    if isinstance(transformer, Pipeline):
        inner = [step for _, step in transformer.steps if step not in (None, "passthrough")]
        return [pair for step in inner for pair in flatten(step)]
    name = type(transformer).__name__
    if name not in PARAMS or type(transformer) is not _class_of(name):
        raise ParameterError(
            f"transformer is {shown(transformer)}, which cannot be fitted in one pass and saved "
            f"without pickle; expected {SUPPORTED}"
        )
    return [(name, transformer)]


def _class_of(name: str) -> Any:  # noqa: ANN401 - a class of scikit-learn
    return getattr(import_module(_MODULES[name]), name)


def transformer_to_list(transformer: object) -> list[dict[str, Any]]:
    """Return name and parameters of each step, as a saved model has them."""
    written = []
    for name, step in flatten(transformer):
        params = {key: value for key, value in step.get_params().items() if key in PARAMS[name]}
        if name == FUNCTION:
            params = {"func": _name_of(step)}
        if name == COLUMNS:
            params = {"columns": list(_columns_of(step))}
        written.append({"name": name, **params})
    return written


def checked_steps(steps: object) -> list[dict[str, Any]] | None:
    """Return steps as `transformer_to_list` does; a name, or one step, stands for a list of it.

    Raises
    ------
    ParameterError
        Not the name of a transformer, or a parameter that it does not have or take.
    """
    if steps is None:
        return None
    return [_checked_step(step) for step in (steps if isinstance(steps, list) else [steps])]


def _checked_step(step: object) -> dict[str, Any]:
    written = dict(step) if isinstance(step, Mapping) else {"name": step}
    name = OneOf(*PARAMS).check("transformer", written.pop("name", None))
    known = PARAMS[name]
    values = {} if name == COLUMNS else _class_of(name)().get_params()
    for key in dict.fromkeys([*written, *known]):
        OneOf(*known).check(f"a parameter of transformer {name}", key)
        values[key] = known[key].check(key, (values | written).get(key))
    return {"name": name, **{key: values[key] for key in known}}


def transformer_of(values: Sequence[Mapping[str, Any]]) -> BaseEstimator:
    """Return a transformer, or a pipeline of several: the inverse of `transformer_to_list`."""
    made: list[BaseEstimator] = []
    for written in values:
        params = dict(written)
        name = params.pop("name")
        if params.get("func") is not None:
            params["func"] = _FUNCTIONS[params["func"]]
        made.append(keeping(**params) if name == COLUMNS else _class_of(name)(**params))
    return made[0] if len(made) == 1 else make_pipeline(*made)


def keeping(columns: Sequence[int]) -> ColumnTransformer:
    """Return the transformer that keeps some columns and leaves the others out."""
    transformer: ColumnTransformer = _class_of(COLUMNS)([("kept", "passthrough", list(columns))])
    return transformer


def _columns_of(transformer: ColumnTransformer) -> tuple[int, ...]:
    """Return the columns that a transformer keeps; ParameterError for one that does more."""
    columns: list[object] = []
    for _, inner, part in transformer.transformers:
        is_list = isinstance(part, (list, tuple, np.ndarray)) and len(part) > 0
        if inner != "passthrough" or not is_list:
            raise ParameterError(
                f"the ColumnTransformer has the part {shown((inner, part))}; expected "
                "('passthrough', a list of column numbers)"
            )
        columns += list(part)
    if transformer.remainder != "drop" or transformer.transformer_weights or not columns:
        raise ParameterError(
            "the ColumnTransformer passes other columns on, or weights them; expected "
            "ColumnTransformer([('kept', 'passthrough', [column numbers])]) and nothing else"
        )
    return tuple(Integer(0).check("a column of the ColumnTransformer", j) for j in columns)


def _name_of(transformer: FunctionTransformer) -> str | None:
    """Return the name of a function that is applied to points; None for none."""
    applied = transformer.func
    for name, function in _FUNCTIONS.items():
        if applied is function and not transformer.kw_args:
            return name
    if applied is None:
        return None
    raise ParameterError(
        f"the FunctionTransformer's func is {shown(applied)}, which cannot be saved without "
        f"pickle; expected one of numpy's {', '.join(_FUNCTIONS)}, without kw_args"
    )


def _scaling(scaler: StandardScaler, moments: RowMoments) -> PointStep:
    with_mean = Boolean.check("with_mean", scaler.with_mean)
    with_std = Boolean.check("with_std", scaler.with_std)
    n, mean = moments.n, moments.mean
    variances = moments.squares / n
    # scikit-learn's bound for what is rounding of a constant
    rounding = n * EPS * variances + (n * EPS * mean) ** 2
    scale = np.where(variances <= rounding, 1.0, np.sqrt(variances))
    return PointStep(
        center=tuple(mean.tolist()) if with_mean else None,
        scale=tuple(scale.tolist()) if with_std else None,
    )


def _components(pca: PCA, moments: RowMoments) -> PointStep:
    whiten, n, asked = Boolean.check("whiten", pca.whiten), moments.n, pca.n_components
    most = min(n, len(moments.mean))
    values, axes = principal_axes(moments.scatter)
    variances = values / max(1, n - 1)
    if isinstance(asked, float):
        asked = count_axes(variances, Fraction.check("n_components", asked))
    n_axes = Integer(1, most).check("n_components", most if asked is None else asked)
    deviations = np.sqrt(variances[:n_axes])
    alike = deviations <= _MIN_DEVIATION * deviations[0]  # no division by rounding
    return PointStep(
        center=tuple(moments.mean.tolist()),
        axes=tuple(map(tuple, signed(axes[:n_axes]).tolist())),
        scale=tuple(np.where(alike, 1.0, deviations).tolist()) if whiten else None,
    )


def _moments_after(step: PointStep, moments: RowMoments) -> RowMoments:
    """Return the moments of points after an affine step."""
    mean, scatter = step(moments.mean[None])[0], moments.scatter
    if step.columns is not None:
        columns = list(step.columns)
        scatter = scatter[columns] if scatter.ndim == 1 else scatter[np.ix_(columns, columns)]
    if step.axes is not None:
        axes = np.array(step.axes)
        scatter = axes @ scatter @ axes.T
    if step.scale is not None:
        scale = np.array(step.scale)
        scatter = scatter / (scale**2 if scatter.ndim == 1 else np.outer(scale, scale))
    return RowMoments(moments.n, mean, scatter)
