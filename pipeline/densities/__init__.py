"""Densities of bags: series and kernel estimates, their smoothness, the nearest valid density."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
