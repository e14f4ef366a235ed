"""Config files and their keys, which are derived from the library's tables of parameters."""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)
