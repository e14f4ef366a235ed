"""URLs, files written whole, locks, and writers of Zarr and Icechunk. Knows nothing of bags.

The room imports core.
"""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)
