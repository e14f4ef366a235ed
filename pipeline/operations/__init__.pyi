from .monitoring.coordinates import (
    CoordinateShift as CoordinateShift,
)
from .monitoring.detector import (
    DriftDetector as DriftDetector,
    DriftPrediction as DriftPrediction,
)
from .monitoring.drift import (
    DriftResult as DriftResult,
    drift_test as drift_test,
)
from .registry.mlflow_models import (
    log_model as log_model,
)
from .registry.registry import (
    ModelRecord as ModelRecord,
    Registry as Registry,
)
from .retraining.retrain_sequence import (
    RoundResult as RoundResult,
    retrain as retrain,
)
from .retraining.settings import (
    DriftGate as DriftGate,
    Retraining as Retraining,
    Window as Window,
)
from .retraining.state import (
    Round as Round,
)
