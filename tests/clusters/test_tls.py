"""A real scheduler and workers with the certificates of deploy/tls, and who is refused."""

from __future__ import annotations

import shutil
import socket
import ssl

import pytest

from bagbasis import ClusterError, ConfigError, ParameterError, connect
from tests.clusters.encrypted import certificates, free_port, listens, profile, scheduler
from tests.clusters.problem import assert_same, fitted
from tests.execution.gated import until
from tests.passes import current_client

pytestmark = pytest.mark.tls


def test_same_model(cluster, made, tmp_path, url, expected):
    """Encrypted from end to end, it makes the model one process makes."""
    with connect(profile(tmp_path, cluster, made["ours"]), store=url) as client:
        assert all(worker.startswith("tls://") for worker in client.nthreads())
        assert_same(fitted(url), expected)
    assert current_client() is None


def test_without_a_certificate(cluster, made, tmp_path):
    """Nobody gets in without certificates: not with TLS, and not without."""
    with pytest.raises(ConfigError, match=r"needs certificates; name them in a tcp profile"):
        connect(cluster)
    plain = tmp_path / "plain.yaml"
    plain.write_text(f"cluster: tcp\naddress: {cluster.replace('tls', 'tcp')}\ntimeout: 2\n")
    with pytest.raises(ClusterError, match=r"no scheduler answers at tcp://.* within 2 s"):
        connect(str(plain))
    context = ssl.create_default_context(cafile=str(made["ours"] / "ca.crt"))
    context.check_hostname = False
    host, port = cluster.removeprefix("tls://").split(":")
    with (
        socket.create_connection((host, int(port)), timeout=30) as plain,
        context.wrap_socket(plain) as encrypted,
        pytest.raises(ssl.SSLError, match=r"(?i)certificate.required"),
    ):
        encrypted.recv(1)


def test_certificates_of_another_authority(cluster, made, tmp_path):
    """One line says whose certificate is not trusted, at once."""
    message = r"scheduler's certificate is not from the authority .*other/ca\.crt"
    with pytest.raises(ClusterError, match=message):
        connect(profile(tmp_path, cluster, made["other"]))
    files = {"tls_ca_file": made["ours"] / "ca.crt"}
    with pytest.raises(ClusterError, match=r"does not accept our certificate .*other/client\.crt"):
        connect(profile(tmp_path, cluster, made["other"], **files))


def test_expired_certificates(cluster, made, tmp_path):
    """One line says whose certificate has expired: ours, or the scheduler's."""
    with pytest.raises(ClusterError, match=r"our certificate .*expired/client\.crt has expired"):
        connect(profile(tmp_path, cluster, made["expired"]))
    port = free_port()
    with scheduler(made["expired"], port, tmp_path / "log"):
        until(lambda: listens(port))
        with pytest.raises(ClusterError, match=r"the certificate of the scheduler.*has expired"):
            connect(profile(tmp_path, f"tls://127.0.0.1:{port}", made["ours"]))
    assert current_client() is None


def test_wrong_files(cluster, made, tmp_path):
    """Files that are missing, or that do not belong together, are named."""
    ours, other = made["ours"], made["other"]
    with pytest.raises(ConfigError, match=r"tls_key: no file .*nowhere\.key"):
        connect(profile(tmp_path, cluster, ours, tls_key=ours / "nowhere.key"))
    with pytest.raises(ConfigError, match=r"no certificates and key that belong together"):
        connect(profile(tmp_path, cluster, ours, tls_key=other / "client.key"))
    with pytest.raises(ParameterError, match=r"no such account has a home here"):
        connect(profile(tmp_path, cluster, ours, tls_key="~no-such-account/client.key"))


def test_renewed_certificates(cluster, made, tmp_path):
    """Certificates that the command renews are accepted by a cluster that runs."""
    renewed = shutil.copytree(made["ours"], tmp_path / "renewed")
    certificates(renewed, "30")
    assert (renewed / "client.crt").read_bytes() != (made["ours"] / "client.crt").read_bytes()
    with connect(profile(tmp_path, cluster, renewed)) as client:
        assert len(client.nthreads()) == 2
