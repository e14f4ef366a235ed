"""The papers' experiments, one module each, and what runs them (`bags experiment NAME`)."""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)
