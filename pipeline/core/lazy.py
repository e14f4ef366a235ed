"""Public names of packages that need an extra: imported when they are first used."""

from __future__ import annotations

from collections.abc import Callable

import lazy_loader

from .errors import needing_extra


def attach_with_extra(
    extra: str, package: str, file: str
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package's stub.

    A name that cannot be imported says which extra it needs.
    """
    load, list_names, names = lazy_loader.attach_stub(package, file)

    def load_or_tell(name: str) -> object:
        with needing_extra(extra, name):
            return load(name)

    return load_or_tell, list_names, names
