"""A dask-gateway server whose clusters run bags: `dask-gateway-server --config THIS_FILE`.

Clusters are jobs of SLURM, run as the user who asked; change the backend, the authenticator and the
limits to yours. Only the proxy listens beyond this machine, and only with TLS. What bagbasis needs
is `workers_of_one_thread`: workers of one thread whose kernels use all their cores.
"""

from dask_gateway_server.options import Float, Integer, Options

c = get_config()  # noqa: F821 - traitlets gives it


def workers_of_one_thread(options):
    """Return options of a worker that runs one task at a time, on all its cores."""
    return {
        "worker_cores": options.worker_cores,
        "worker_threads": 1,
        "worker_memory": int(options.worker_memory * 2**30),
        "environment": {
            "BAGBASIS_WORKER_CORES": str(options.worker_cores),
            # Dask's pages ask for no password: every account of the nodes could read them
            "DASK_DISTRIBUTED__SCHEDULER__HTTP__ROUTES": "[]",
            "DASK_DISTRIBUTED__WORKER__HTTP__ROUTES": "[]",
        },
    }


c.Backend.cluster_options = Options(
    Integer("worker_cores", default=8, min=1, max=64, label="cores of a worker"),
    Float("worker_memory", default=16, min=1, max=256, label="memory of a worker, GiB"),
    handler=workers_of_one_thread,
)
c.ClusterConfig.scheduler_cmd = ["dask", "scheduler"]
c.ClusterConfig.worker_cmd = ["dask", "worker"]
c.ClusterConfig.idle_timeout = 1800  # seconds; ends what a laptop left behind

c.DaskGateway.backend_class = "dask_gateway_server.backends.jobqueue.slurm.SlurmBackend"
c.DaskGateway.authenticator_class = "dask_gateway_server.auth.JupyterHubAuthenticator"
c.DaskGateway.address = "127.0.0.1:8001"
c.Proxy.address = ":443"
c.Proxy.tls_cert = "/etc/bagbasis/gateway.crt"  # of a public authority, as of any web server
c.Proxy.tls_key = "/etc/bagbasis/gateway.key"
