"""Clusters of a dask-gateway server."""

from __future__ import annotations

from typing import Any

import aiohttp
from dask_gateway import GatewayCluster
from dask_gateway.client import GatewayClusterError, GatewayServerError

from ...core.errors import ClusterError, ConfigError
from .profiles import GatewayProfile


def open_gateway(profile: GatewayProfile) -> GatewayCluster:
    """Start a cluster on the server and request its workers; it ends when it is closed.

    The user's password, if any, comes from Dask's own configuration
    (``DASK_GATEWAY__AUTH__KWARGS__PASSWORD``).

    Raises
    ------
    ConfigError
        If the server does not offer an option or does not accept its value.
    ClusterError
        If the server does not answer, does not know the user, or starts no cluster.
    """
    where = f"the gateway {profile.address}"
    try:
        cluster = _Cluster(
            address=profile.address,
            proxy_address=profile.proxy_address,
            auth=profile.auth,
            **profile.options,
        )
    except aiohttp.ClientResponseError as error:
        reason = "does not know the user" if error.status in (401, 403) else error.message
        raise ClusterError(f"{where} {reason} (HTTP {error.status})") from error
    except (OSError, aiohttp.ClientError, TimeoutError) as error:
        raise ClusterError(f"{where} does not answer ({error})") from error
    except (GatewayClusterError, GatewayServerError) as error:
        raise ClusterError(f"{where} starts no cluster: {error}") from error
    except (TypeError, ValueError) as error:
        raise ConfigError(f"key 'options': {where} says {error}") from error
    try:
        cluster.scale(profile.n_workers)
    except BaseException:
        cluster.close()
        raise
    return cluster


class _Cluster(GatewayCluster):
    """A cluster whose connection to the server is closed once.

    dask-gateway would close the connection again in ``__del__`` and raise, because the event loop
    has ended.
    """

    def __init__(self, **options: object) -> None:
        try:
            super().__init__(**options)
        except BaseException:
            self._disconnect()
            raise

    def close(self, shutdown: bool | None = None) -> None:
        """End the cluster."""
        super().close(shutdown)
        self._disconnect()

    def _disconnect(self) -> None:
        # `_loop_runner` is dask-gateway's own; without it `__del__` has nothing left to close. It
        # is asked for, so that a release without it only brings the old warning back.
        gateway: Any = getattr(self, "gateway", None)
        if hasattr(gateway, "_loop_runner"):
            if gateway._loop_runner.is_started():
                gateway.close()
            del gateway._loop_runner
