"""Config files and their keys, which are derived from the library's tables of parameters.

The room imports the library.
"""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)
