"""Ragged sets of points in memory: bags, responses, their boxes and ids.

The room imports storage.
"""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)

__all__ = [
    "Bags",
    "Box",
    "Responses",
    "as_bags",
    "as_responses",
]
