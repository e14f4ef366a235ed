"""deploy's manifests against published schemas, and the profile against a stand-in for the API.

No test runs Kubernetes.
"""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import dask_kubernetes.operator
import jsonschema
import kubernetes_validate
import pytest
import yaml

from bagbasis import ClusterError, ConfigError, connect
from bagbasis.execution.clusters.kubernetes import manifest_of
from bagbasis.execution.clusters.profiles import load_profile
from tests.clusters.problem import ROOT, assert_same, fitted
from tests.passes import current_client

pytestmark = pytest.mark.kubernetes

MANIFESTS = sorted((ROOT / "deploy/kubernetes").glob("*.yaml"))
OBJECTS = [
    pytest.param(document, id=f"{path.stem}-{document['kind']}")
    for path in MANIFESTS
    for document in yaml.safe_load_all(path.read_text())
]
CRD = "deployment/helm/dask-kubernetes-operator/crds/daskcluster.yaml"


def strict(schema):
    """A schema that allows no key it does not name, as the API drops or refuses those."""
    if isinstance(schema, list):
        return [strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: strict(value) for key, value in schema.items()}
    names = schema.get("properties")
    if isinstance(names, dict) and "additionalProperties" not in schema:
        result["additionalProperties"] = False
    return result


def cluster_schema():
    folder = Path(dask_kubernetes.operator.__file__).parent
    crd = yaml.safe_load((folder / CRD).read_text())
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"] |= {"metadata": {}, "apiVersion": {}, "kind": {}}
    return strict(schema)


def validate(manifest):
    if manifest["kind"] == "DaskCluster":
        jsonschema.validate(manifest, cluster_schema())
        for part in ("scheduler", "worker"):
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": part}}
            validate({**pod, "spec": manifest["spec"][part]["spec"]})
        return
    kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)


def pods(manifest):
    """Every pod's spec in a manifest."""
    if isinstance(manifest, dict):
        if "containers" in manifest:
            yield manifest
        for value in manifest.values():
            yield from pods(value)


@pytest.mark.parametrize("manifest", OBJECTS)
def test_manifest(manifest):
    """Each object is what the schemas say, and a misspelt key in it would not be."""
    validate(manifest)
    for pod in pods(manifest):
        pod["containers"][0]["imagee"] = "x"
        with pytest.raises((jsonschema.ValidationError, kubernetes_validate.ValidationError)):
            validate(manifest)
        del pod["containers"][0]["imagee"]


def test_pods_are_confined():
    """Nobody is root, writes to the image, or has more than it asks for; all of it is limited."""
    values = [pod for item in OBJECTS for pod in pods(item.values[0])]
    assert len(values) == 4
    for pod in values:
        assert pod["securityContext"]["runAsNonRoot"] is True
        for container in pod["containers"]:
            confined = container["securityContext"]
            assert confined["allowPrivilegeEscalation"] is False
            assert confined["readOnlyRootFilesystem"] is True
            assert confined["capabilities"] == {"drop": ["ALL"]}
            assert set(container["resources"]["limits"]) >= {"cpu", "memory"}


def test_nothing_listens_without_tls():
    """Scheduler and workers are given certificates; what else they serve is on loopback."""
    spec = yaml.safe_load((ROOT / "deploy/kubernetes/cluster.yaml").read_text())["spec"]
    for part in ("scheduler", "worker"):
        args = " ".join(spec[part]["spec"]["containers"][0]["args"])
        assert "--tls-ca-file=" in args
        assert "--dashboard-address=127.0.0.1:" in args
    assert "--protocol=tls" in " ".join(spec["scheduler"]["spec"]["containers"][0]["args"])


def test_manifest_of_a_profile(tmp_path):
    """Name, namespace and number of workers of the profile reach every place that has them."""
    text = (ROOT / "configs/profiles/kubernetes.yaml").read_text()
    changes = {"name": "mine", "namespace": "ours", "n_workers": 7}
    path = tmp_path / "p.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(text) | changes))
    manifest = manifest_of(load_profile(str(path)))
    validate(manifest)
    assert manifest["metadata"] == {"name": "mine", "namespace": "ours"}
    assert manifest["spec"]["worker"]["replicas"] == 7
    worker = manifest["spec"]["worker"]["spec"]["containers"][0]
    env = {item["name"]: item["value"] for item in worker["env"]}
    assert env["DASK_SCHEDULER_ADDRESS"] == "tls://mine-scheduler.ours.svc:8786"
    assert env["BAGBASIS_WORKER_CORES"] == "8"
    selector = manifest["spec"]["scheduler"]["service"]["selector"]
    assert selector["dask.org/cluster-name"] == "mine"


@contextmanager
def stand_in(status=201):
    """Answers like Kubernetes' API to the making and deleting of objects; yields what was asked."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self, code, body):
            text = json.dumps(body).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def do_GET(self):
            self.answer(200, {"major": "1", "minor": "35", "gitVersion": "v1.35.0"})

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append(("POST", self.path.split("?")[0], body))
            message = {"kind": "Status", "message": 'daskclusters "bagbasis" already exists'}
            self.answer(status, body if status == 201 else message)

        def do_DELETE(self):
            asked.append(("DELETE", self.path.split("?")[0], None))
            self.answer(200, {"kind": "Status", "status": "Success"})

        def log_message(self, *args):
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def profile(tmp_path, monkeypatch, cluster, made):
    """Writes the repository's profile for a cluster that is there, and where the API is."""

    def write(api, **keys):
        config = tmp_path / "kubeconfig"
        parts = {"cluster": {"server": api}}
        config.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "it",
                    "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
                    "clusters": [{"name": "it", **parts}],
                    "users": [{"name": "it", "user": {"token": "x"}}],
                }
            )
        )
        monkeypatch.setenv("KUBECONFIG", str(config))
        values = yaml.safe_load((ROOT / "configs/profiles/kubernetes.yaml").read_text())
        values |= {
            "cluster_spec": str(ROOT / "deploy/kubernetes/cluster.yaml"),
            "address": cluster,
            "tls_ca_file": str(made["ours"] / "ca.crt"),
            "tls_cert": str(made["ours"] / "client.crt"),
            "tls_key": str(made["ours"] / "client.key"),
            "min_workers": 2,
            "timeout": 60,
            **keys,
        }
        path = tmp_path / "kubernetes.yaml"
        path.write_text(yaml.safe_dump(values))
        return str(path)

    return write


def test_same_model_with_a_stand_in_for_the_api(profile, url, expected):
    """The DaskCluster is made, the fit runs on its scheduler, and it is deleted at the end."""
    objects = "/apis/kubernetes.dask.org/v1/namespaces/bagbasis/daskclusters"
    with stand_in() as (api, asked):
        with connect(profile(api), store=url):
            assert_same(fitted(url), expected)
            ((verb, path, body),) = asked
            assert (verb, path) == ("POST", objects)
            validate(body)
        assert asked[1:] == [("DELETE", f"{objects}/bagbasis", None)]
    assert current_client() is None


def test_refusals(profile):
    """No API, a name that is taken, a manifest of something else: one line each."""
    with pytest.raises(ClusterError, match="Kubernetes does not answer"):
        connect(profile("http://127.0.0.1:1"))
    taken = r"makes no DaskCluster 'bagbasis' in 'bagbasis': .*already exists"
    with stand_in(409) as (api, asked), pytest.raises(ClusterError, match=taken):
        connect(profile(api))
    assert len(asked) == 1
    other = str(ROOT / "deploy/kubernetes/retrain-once.yaml")
    with pytest.raises(ConfigError, match=r"retrain-once\.yaml: expected .* kind DaskCluster"):
        connect(profile("http://127.0.0.1:1", cluster_spec=other))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: DaskCluster", "'metadata'"),
        ("{kind: DaskCluster, metadata: []}", "list"),
        ("kind: 2024-13-45", "month"),
        ("kind: [", "line 1"),
    ],
)
def test_a_manifest_that_can_not_be_used(profile, tmp_path, text, message):
    """One line that names the file and what is wrong with it."""
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=rf"cluster_spec {path} .*{message}"):
        connect(profile("http://127.0.0.1:1", cluster_spec=str(path)))
