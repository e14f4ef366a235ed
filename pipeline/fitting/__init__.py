"""A fit as a value: a problem is posed and planned, its bags become sums, the sums are solved.

The room imports outcomes and the rooms below it.
"""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)

__all__ = [
    "Checkpoints",
]
