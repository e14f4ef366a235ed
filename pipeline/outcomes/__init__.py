"""What a model learns: numbers, classes or densities, with their labels and losses.

The room imports solvers and the rooms below it.
"""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)
