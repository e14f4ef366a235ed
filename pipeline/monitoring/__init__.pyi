from .coordinates import (
    CoordinateShift as CoordinateShift,
)
from .drift import (
    DriftResult as DriftResult,
    drift_test as drift_test,
)
