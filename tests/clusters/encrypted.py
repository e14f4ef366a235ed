"""Clusters with the certificates of deploy/tls."""

from __future__ import annotations

import socket
import subprocess
import sys

from tests.clusters.problem import ROOT, process

DASK = (sys.executable, "-m", "dask")


def certificates(folder, *days):
    """What the one command makes."""
    command = [str(ROOT / "deploy/tls/make-certificates"), str(folder), *days]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def options(folder, role):
    files = {"ca-file": "ca.crt", "cert": f"{role}.crt", "key": f"{role}.key"}
    return [part for name, file in files.items() for part in (f"--tls-{name}", str(folder / file))]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def scheduler(folder, port, log):
    return process(
        *DASK,
        "scheduler",
        *("--protocol", "tls", "--host", f"tls://127.0.0.1:{port}"),
        *("--dashboard-address", "127.0.0.1:0"),
        *options(folder, "scheduler"),
        log=log,
    )


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def profile(tmp_path, address, folder, **keys):
    values = {
        "cluster": "tcp",
        "address": address,
        "tls_ca_file": folder / "ca.crt",
        "tls_cert": folder / "client.crt",
        "tls_key": folder / "client.key",
        "min_workers": 2,
        "timeout": 60,
        **keys,
    }
    path = tmp_path / "tls.yaml"
    path.write_text("".join(f"{key}: {value}\n" for key, value in values.items()))
    return str(path)
