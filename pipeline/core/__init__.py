"""Declared parameters, their constraints and their checks, and the registries of components."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
