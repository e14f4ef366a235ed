"""``python -m bagbasis.jobs`` is ``bags``."""

from .cli import main

main()
