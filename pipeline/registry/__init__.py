"""Versions of models, the champion among them, and the way back.

The room imports tuning and the rooms below it.
"""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)

__all__ = [
    "ModelRecord",
    "Registry",
    "log_model",
]
