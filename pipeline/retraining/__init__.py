"""Models that follow a growing store at the cost of its new bags."""

from .retrain import Outcome, RoundResult, retrain
from .settings import DriftGate, Retraining, Window
from .state import Round

__all__ = ["DriftGate", "Outcome", "Retraining", "Round", "RoundResult", "Window", "retrain"]
