from .retrain_line import (
    Outcome as Outcome,
    RoundResult as RoundResult,
    retrain as retrain,
)
from .settings import (
    DriftGate as DriftGate,
    Retraining as Retraining,
    Window as Window,
)
from .state import (
    Round as Round,
)
