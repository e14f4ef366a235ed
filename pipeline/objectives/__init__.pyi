from .derivatives import (
    DerivativeNorms as DerivativeNorms,
    derivative_norms as derivative_norms,
)
from .registration import (
    Registration as Registration,
    register_images as register_images,
)
from .selection import (
    Selection as Selection,
    select_coordinates as select_coordinates,
)
from .subspaces import (
    IndependentSubspaces as IndependentSubspaces,
)
