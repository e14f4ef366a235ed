"""``python -m bagbasis.jobs`` is ``bags``."""

import sys

if not sys.flags.safe_path:
    del sys.path[0]  # -m put the working folder there, whose scripts may be called as our imports

from .cli import main

main()
