from .coordinates import (
    CoordinateShift as CoordinateShift,
)
from .detector import (
    DriftDetector as DriftDetector,
    DriftPrediction as DriftPrediction,
)
from .drift import (
    DriftResult as DriftResult,
    drift_test as drift_test,
)
