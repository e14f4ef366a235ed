"""Ridge regression from sums or rows: Cholesky, spectrum, conjugate gradients, penalties.

The room imports statistics and the rooms below it.
"""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)
