"""Models that follow a growing store at the cost of its new bags."""

from .gates import DriftGate
from .retrain import Outcome, retrain
from .spec import Retraining
from .state import Round
from .window import Window

__all__ = ["DriftGate", "Outcome", "Retraining", "Round", "Window", "retrain"]
