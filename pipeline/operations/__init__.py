"""What runs on a schedule: the registry of models, monitoring and retraining."""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)

__all__ = [
    "CoordinateShift",
    "DriftDetector",
    "DriftGate",
    "DriftPrediction",
    "DriftResult",
    "ModelRecord",
    "Outcome",
    "Registry",
    "Retraining",
    "Round",
    "RoundResult",
    "Window",
    "drift_test",
    "log_model",
    "retrain",
]
