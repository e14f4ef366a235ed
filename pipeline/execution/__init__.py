"""Computing on a cluster or in this process: threads, passes over bags, merging, progress."""

from ..core.moved import moved_name


def __getattr__(name: str) -> object:
    """Return what a former public name of this package stands for."""
    return moved_name("execution", name)
