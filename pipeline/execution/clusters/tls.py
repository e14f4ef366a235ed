"""Secure connections: certificates, failed handshakes, and closed HTTP ports."""

from __future__ import annotations

import socket
import ssl
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import dask
from distributed.comm import get_address_host_port
from distributed.security import Security

from ...core.credentials import NO_CREDENTIALS, cut_url, has_credentials
from ...core.errors import ClusterError, ConfigError
from ...data.storage.urls import normalize_url
from .profiles import AddressProfile, JobQueueProfile, KubernetesProfile, is_loopback

LOOPBACK_HTTP = "127.0.0.1:0"
# Dask's HTTP servers have no passwords and cannot be switched off; without routes they answer 404.
_ROUTES = ("distributed.scheduler.http.routes", "distributed.worker.http.routes")
NO_HTTP: dict[str, list[str]] = {key: [] for key in _ROUTES}


def closed_http(dashboard: bool) -> AbstractContextManager[object]:
    """Within the block, start schedulers and workers without pages on their HTTP ports.

    With ``dashboard`` they serve all pages of Dask, which every account of the machine can read.
    """
    return nullcontext() if dashboard else dask.config.set(NO_HTTP)


def check_address(address: str, insecure: bool) -> None:
    """Refuse an address to which code and data would travel unencrypted.

    Raises
    ------
    ConfigError
        If the text is not a scheduler's address, or holds credentials, or the address is neither
        TLS nor loopback and ``insecure`` is False.
    """
    if has_credentials(address):  # Dask's errors repeat parts of the address
        raise ConfigError(f"{cut_url(address)}: the address {NO_CREDENTIALS}")
    try:
        host, _ = get_address_host_port(address)
    except ValueError as error:
        raise ConfigError(f"{address!r} is not the address of a scheduler: {error}") from error
    if not (insecure or address.startswith(("tls://", "wss://")) or is_loopback(host)):
        raise ConfigError(
            f"{address} is not encrypted: on its network anybody could read the data, and run code "
            "as you; give the scheduler certificates (deploy/README.md) and a tls:// address, or "
            "write insecure: true in a tcp profile"
        )


def security_of(profile: AddressProfile | JobQueueProfile | KubernetesProfile) -> Security | None:
    """Return Dask's security settings for the TLS files of a profile; None without files.

    Raises
    ------
    ConfigError
        If a file does not exist, or holds no certificate or key.
    """
    if profile.tls_ca_file is None or profile.tls_cert is None or profile.tls_key is None:
        return None
    files = {name: _file(profile, name) for name in ("tls_ca_file", "tls_cert", "tls_key")}
    cert, key = files["tls_cert"], files["tls_key"]
    security = Security(
        tls_ca_file=files["tls_ca_file"],
        tls_client_cert=cert,
        tls_client_key=key,
        tls_scheduler_cert=cert,
        tls_scheduler_key=key,
        tls_worker_cert=cert,
        tls_worker_key=key,
        require_encryption=True,
    )
    _context(security)
    return security


def check_handshake(address: str, security: Security, timeout: float) -> None:
    """Try the TLS handshake with a tls:// address once. No answer is not an error here.

    Dask itself tries until its timeout, and then reports only the timeout.

    Raises
    ------
    ConfigError
        If there are no certificates to present.
    ClusterError
        If one side does not trust the certificate of the other, or the scheduler does not use TLS.
    """
    if security.get_tls_config_for_role("client")["ca_file"] is None:
        raise ConfigError(
            f"{address} needs certificates; name them in a tcp profile "
            "(tls_ca_file, tls_cert, tls_key)"
        )
    context = _context(security)
    host, port = get_address_host_port(address)
    try:
        plain = socket.create_connection((host, port), timeout=timeout)
    except OSError:
        return
    with plain:
        try:
            with context.wrap_socket(plain) as encrypted:
                encrypted.recv(1)  # TLS 1.3: our certificate is refused after the handshake
        except ssl.SSLError as error:
            reason = _reason(error, security)
            raise ClusterError(f"{address} cannot be used: {reason}") from error
        except OSError:
            return


def _file(profile: AddressProfile | JobQueueProfile | KubernetesProfile, name: str) -> str:
    path = Path(normalize_url(getattr(profile, name)))
    if not path.is_file():
        raise ConfigError(f"{name}: no file {path}")
    return str(path)


def _context(security: Security) -> ssl.SSLContext:
    try:
        context = security.get_connection_args("client")["ssl_context"]
    except OSError as error:
        config = security.get_tls_config_for_role("client")
        files = ", ".join(str(config[name]) for name in ("ca_file", "cert", "key"))
        raise ConfigError(
            f"no certificates and key that belong together: {files} ({error})"
        ) from error
    assert isinstance(context, ssl.SSLContext)
    return context


def _reason(error: ssl.SSLError, security: Security) -> str:
    files = security.get_tls_config_for_role("client")
    ours = f"our certificate {files['cert']}"
    if isinstance(error, ssl.SSLCertVerificationError):
        if "expired" in error.verify_message:
            return "the certificate of the scheduler, or of its authority, has expired"
        return (
            f"the scheduler's certificate is not from the authority {files['ca_file']} "
            f"({error.verify_message})"
        )
    reason = error.reason or str(error)
    if "CERTIFICATE_EXPIRED" in reason:
        return f"{ours} has expired"
    if "UNKNOWN_CA" in reason or "CERTIFICATE_REQUIRED" in reason or "BAD_CERT" in reason:
        return f"the scheduler does not accept {ours} ({reason})"
    if "WRONG_VERSION" in reason or "EOF" in reason:
        return "it speaks no TLS; its address is tcp://..."
    return reason
