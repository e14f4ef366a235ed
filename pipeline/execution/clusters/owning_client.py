"""A client that owns its cluster and closes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from distributed import Client
from distributed.security import Security


class StartedCluster(Protocol):
    """A cluster that was started for a client."""

    security: Security

    def close(self) -> object:
        """End the cluster."""


class OwningClient(Client):
    """A client that calls ``end`` when it is closed."""

    def __init__(self, address: object, end: Callable[[], object], **options: object) -> None:
        self._end: Callable[[], object] | None = end
        super().__init__(address, **options)

    def close(self, *args: object, **options: object) -> object:
        """Close the connection, then the cluster."""
        try:
            return super().close(*args, **options)
        finally:
            end, self._end = self._end, None
            if end is not None:
                end()


def owning(cluster: StartedCluster, end: Callable[[], object] | None = None) -> Client:
    """Return a client that closes its cluster, by ``end`` or the cluster's own ``close``."""
    end = end or cluster.close
    try:
        return OwningClient(cluster, end, security=cluster.security)
    except BaseException:
        end()
        raise
