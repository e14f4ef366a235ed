"""``python -m jobs`` is ``bags``."""

from .cli import main

main()
