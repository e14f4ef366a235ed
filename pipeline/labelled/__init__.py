"""Ranges of bags with labels: what something learns from, is judged on or leaves out.

The room imports store and the rooms below it.
"""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)
