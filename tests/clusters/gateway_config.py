"""deploy's gateway server on loopback, with processes of this machine instead of SLURM."""

import os

load_subconfig(os.environ["BAGBASIS_GATEWAY_CONFIG"])  # noqa: F821 - traitlets gives both
c = get_config()  # noqa: F821

address = os.environ["BAGBASIS_GATEWAY_ADDRESS"]
c.DaskGateway.backend_class = "dask_gateway_server.backends.local.UnsafeLocalBackend"
c.DaskGateway.authenticator_class = "dask_gateway_server.auth.SimpleAuthenticator"
c.SimpleAuthenticator.password = os.environ["BAGBASIS_GATEWAY_PASSWORD"]
c.DaskGateway.address = "127.0.0.1:0"
c.Proxy.address = address
c.ClusterConfig.worker_cmd = ["dask", "worker", "--host", "127.0.0.1"]
c.Proxy.tls_cert = ""
c.Proxy.tls_key = ""
