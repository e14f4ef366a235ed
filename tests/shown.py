"""How the library shows a number with its error: tests look for these words in what it says.

Tests take these from here, so that one file knows in which module of the library they are.
"""

from bagbasis.core.digits import rounded, with_error

__all__ = ["rounded", "with_error"]
