"""Active search for patterns over regions, from observations at points (Sutherland 2016, ch. 7)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
