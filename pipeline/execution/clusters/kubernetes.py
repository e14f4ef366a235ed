"""Clusters made by dask-kubernetes' operator, with encrypted connections.

``KubeCluster`` itself speaks plain TCP only. So the DaskCluster object is created here, the
operator makes its pods, and the client connects to the scheduler with the profile's certificates.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import kr8s
import yaml
from kr8s.objects import new_class

from ...core.errors import ClusterError, ConfigError
from ...data.storage.files import check_regular, storage_errors
from ...data.storage.urls import normalize_url
from .profiles import KubernetesProfile

PORT = 8786
ADDRESS_VARIABLE = "DASK_SCHEDULER_ADDRESS"

_DaskCluster = new_class("DaskCluster", "kubernetes.dask.org/v1")


@dataclass(frozen=True)
class OperatorCluster:
    """A DaskCluster object in Kubernetes, and the address of its scheduler."""

    resource: Any
    address: str

    def close(self) -> None:
        """Delete the object; the operator deletes its pods and services."""
        self.resource.delete()


def open_kubernetes(profile: KubernetesProfile) -> OperatorCluster:
    """Create the DaskCluster of a profile.

    Raises
    ------
    ConfigError
        If the manifest cannot be read, or does not describe a DaskCluster.
    ClusterError
        If Kubernetes does not answer, or refuses the object (no operator, no permission, name
        taken).
    """
    manifest = manifest_of(profile)
    name = str(manifest["metadata"]["name"])
    try:
        resource = _DaskCluster(manifest, namespace=profile.namespace)
        resource.create()
    except (kr8s.APITimeoutError, kr8s.ConnectionClosedError, httpx.TransportError) as error:
        raise ClusterError(f"Kubernetes does not answer ({error})") from error
    except (kr8s.ServerError, httpx.HTTPStatusError, ValueError) as error:
        raise ClusterError(
            f"Kubernetes makes no DaskCluster {name!r} in {profile.namespace!r}: {error}"
        ) from error
    return OperatorCluster(resource, profile.address or _service(name, profile.namespace))


def manifest_of(profile: KubernetesProfile) -> dict[str, Any]:
    """Return the DaskCluster object of a profile: its file, with its name and workers.

    Raises
    ------
    ConfigError
        If the file does not exist, or has no DaskCluster with the keys of the one in
        ``deploy/kubernetes``.
    """
    path = Path(normalize_url(profile.cluster_spec))
    check_regular(path, ConfigError)
    with storage_errors(f"cluster_spec {path}", "cannot be read", kind=ConfigError):
        content = path.read_bytes()
    try:
        manifest = yaml.safe_load(content)
    except (yaml.YAMLError, ValueError) as error:  # ValueError: an impossible date
        raise ConfigError(f"cluster_spec {path} cannot be read ({error})") from error
    if not isinstance(manifest, dict) or manifest.get("kind") != "DaskCluster":
        raise ConfigError(f"cluster_spec {path}: expected one object of kind DaskCluster")
    try:
        return _adapted(manifest, profile)
    except (AttributeError, KeyError, TypeError) as error:
        raise ConfigError(
            f"cluster_spec {path} lacks what deploy/kubernetes/cluster.yaml has ({error})"
        ) from error


def _adapted(manifest: dict[str, Any], profile: KubernetesProfile) -> dict[str, Any]:
    """Return the object with the profile's name and workers.

    By default the operator connects workers to the scheduler by tcp://…; the environment variable
    has the tls://… address.
    """
    manifest["metadata"]["namespace"] = profile.namespace
    if profile.name is not None:
        manifest["metadata"]["name"] = profile.name
    if profile.n_workers is not None:
        manifest["spec"]["worker"]["replicas"] = profile.n_workers
    name = str(manifest["metadata"]["name"])
    scheduler = {"name": ADDRESS_VARIABLE, "value": _service(name, profile.namespace)}
    for container in manifest["spec"]["worker"]["spec"]["containers"]:
        others = [item for item in container.get("env", []) if item["name"] != ADDRESS_VARIABLE]
        container["env"] = [*others, scheduler]
    service = manifest["spec"]["scheduler"]["service"]
    service["selector"]["dask.org/cluster-name"] = name
    return manifest


def _service(name: str, namespace: str) -> str:
    return f"tls://{name}-scheduler.{namespace}.svc:{PORT}"
