"""What specs share whose kernels take bags point by point from a box."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, fields, replace
from typing import Any, ClassVar, Self

import numba
import numpy as np
from numpy.typing import NDArray

from ..bags import Bags, Box
from ..bases.projection import PARTS_A_THREAD, equal_parts, scaling
from ..errors import ParameterError
from ..threads import KERNELS
from .transform import check_dims, check_outside

Ragged = tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]
"""Points, offsets, and ranges of bags for the threads."""
Scaling = tuple[NDArray[np.float64], NDArray[np.float64]]
"""lo and 1 / width of the box."""


class BoxedSpec(ABC):
    """`embed`, `to_dict` and `from_dict` of a frozen dataclass with the fields box, out_of_box.

    Its other fields are parameters of `configured`, the class that people configure, but for
    the tuples in ``decided``, which that class computes.
    """

    box: Box
    out_of_box: str
    decided: ClassVar[tuple[str, ...]] = ()

    @classmethod
    @abstractmethod
    def configured(cls) -> Any:
        """The embedding whose `resolve` gives this spec."""

    @property
    def n_dims(self) -> int:
        return self.box.n_dims

    def embed(self, bags: Bags, out: NDArray[Any]) -> int:
        """The embedding of each bag into ``out``; returns the points outside the box.

        Raises
        ------
        DataError
            Bags of another dimension.
        BagError
            With out_of_box="error" a bag with a point outside, with "drop" a bag none of whose
            points is inside.
        """
        check_dims(bags, self.n_dims)
        outside = np.zeros(len(bags), dtype=np.int64)
        if len(bags) == 0:
            return 0
        parts = equal_parts(bags.offsets, PARTS_A_THREAD * numba.get_num_threads())
        to_unit = scaling(self.box, bags.points.dtype, np.dtype(np.float64))
        with KERNELS:
            self._run((bags.points, bags.offsets, parts), to_unit, out, outside)
        check_outside(outside, out, self.out_of_box, self.box)
        return int(outside.sum())

    @abstractmethod
    def _run(
        self,
        bags: Ragged,
        scaling: Scaling,
        out: NDArray[Any],
        outside: NDArray[np.int64],
    ) -> None:
        """Call the kernel."""

    def to_dict(self) -> dict[str, Any]:
        """A JSON-able description."""
        values: dict[str, Any] = asdict(self)  # type: ignore[call-overload]
        return {**values, **{n: list(values[n]) for n in self.decided}, "box": self.box.bounds}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """The inverse of `to_dict`.

        Raises
        ------
        ParameterError
            Other fields, or values that the configured class refuses.
        """
        if set(values) != {field.name for field in fields(cls)}:  # type: ignore[arg-type]
            raise ParameterError(f"the fields {sorted(values)} are not those of a {cls.__name__}")
        box = Box.of(values["box"], len(values["box"]))
        params = {name: value for name, value in values.items() if name not in cls.decided}
        spec: Self = cls.configured()(**params).resolve(box.n_dims, box, list)
        spec = replace(spec, **{name: tuple(values[name]) for name in cls.decided})  # type: ignore[type-var]
        if spec.to_dict() != values:
            raise ParameterError(f"the values {values} are not those of a {cls.__name__}")
        return spec
