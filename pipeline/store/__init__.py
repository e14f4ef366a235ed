"""Bags in Zarr: created, appended to, changed, verified, and read in ranges of whole bags.

The room imports bags, storage.
"""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)

__all__ = [
    "BagStore",
    "merge_stores",
]
