"""What runs on a schedule: the registry of models, monitoring and retraining."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
