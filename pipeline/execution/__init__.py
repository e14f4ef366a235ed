"""Work on a cluster or in this process: lanes, passes over bags, merging, progress.

The room imports labelled and the rooms below it, and Dask.
"""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)

__all__ = [
    "Progress",
    "Report",
]
