"""Clusters: started, connected to and checked, from a profile or at an address.

The room imports execution and the rooms below it, and Dask.
"""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)

__all__ = [
    "connect",
]
