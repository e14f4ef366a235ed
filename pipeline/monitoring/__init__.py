"""Whether new bags, or rows, are still like those that a model learnt from.

The room imports objectives and the rooms below it.
"""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)

__all__ = [
    "CoordinateShift",
    "DriftDetector",
    "DriftPrediction",
    "DriftResult",
    "drift_test",
]
