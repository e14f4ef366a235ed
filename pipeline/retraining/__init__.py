"""Models that follow a growing store at the cost of its new bags.

The room imports registry and the rooms below it.
"""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)

__all__ = [
    "DriftGate",
    "Outcome",
    "Retraining",
    "Round",
    "RoundResult",
    "Window",
    "retrain",
]
