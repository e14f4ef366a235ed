"""Pages next to reports in Chromium, on loopback: nothing runs, is fetched or overflows."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from bagbasis import BagStore
from tests.jobs.running import done, settings

pytestmark = pytest.mark.browser

EVIL = "<img src=/stolen onerror=parent.hacked=1><script>parent.hacked=1</script>"
WIDTHS = (400, 1280)
FRAMES = """<body>{}<script>
window.onload = () => {{
  const found = [...document.querySelectorAll("iframe")].map(frame => {{
    const page = frame.contentDocument, root = page.documentElement;
    const count = what => page.querySelectorAll(what).length;
    return {{
      width: root.scrollWidth, scripts: count("script, img"), dots: count("circle title"),
      letters: Math.min(...[...page.querySelectorAll("svg text")].map(
        text => text.getBoundingClientRect().height)),
      text: page.body.innerText,
    }};
  }});
  document.body.textContent = JSON.stringify([window.hacked === undefined, found]);
}};
</script></body>"""


class Server(ThreadingHTTPServer):
    """Serves a folder on loopback, and remembers what was asked for."""

    def __init__(self, folder):
        self.asked = []
        asked = self.asked

        class Handler(SimpleHTTPRequestHandler):
            def log_message(self, *_):
                asked.append(self.path)

        super().__init__(("127.0.0.1", 0), partial(Handler, directory=folder))


@pytest.fixture
def folder(tmp_path):
    """Reports of bags, targets and classes whose names are attacks."""
    rng = np.random.default_rng(0)
    classes = [f"{EVIL}{side}" for side in "ab"]
    store = BagStore.create(
        tmp_path / "s.zarr", 2, target_names=[f"y{EVIL}", "c"], class_names={"c": classes}
    )
    bags = [rng.random((9, 2)) for _ in range(150)]
    y = [bag[:, 0].mean() for bag in bags]
    ids = [f"{EVIL}{i}" for i in range(150)]
    labels = [classes[int(item > 0.5)] for item in y]
    store.append(bags, targets={f"y{EVIL}": y, "c": labels}, ids=ids)
    (tmp_path / "www").mkdir()
    for task, target in (("regression", f"y{EVIL}"), ("classification", "c")):
        urls = settings(data_url=tmp_path / "s.zarr", model_url=tmp_path / f"{task}.zarr")
        where = settings(report=tmp_path / "www" / f"{task}.json", target=json.dumps(target))
        small = settings(model__task=task, model__random_features__n_features=32, holdout=0.4)
        done("fit", *urls, *where, *small)
    return tmp_path / "www"


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_pages_in_a_browser(folder, tmp_path, task):
    """On a phone and on a screen: text of the names, no element of theirs; readable letters."""
    frame = '<iframe src="{}.html" width="{}" height="900" style="border:0"></iframe>'
    frames = "".join(frame.format(task, width) for width in WIDTHS)
    (folder / "frames.html").write_text(FRAMES.format(frames))
    server = Server(folder)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    chromium = shutil.which("chromium")
    assert chromium is not None, "make test-clusters installs it"
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    mine = f"--user-data-dir={tmp_path / 'profile'}"
    url = f"http://127.0.0.1:{server.server_port}/frames.html"
    run = subprocess.run(
        [chromium, *options, mine, "--dump-dom", url],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    server.shutdown()
    server.server_close()
    assert "CONSOLE" not in run.stderr, run.stderr  # errors of scripts, refusals of the policy
    assert set(server.asked) - {"/favicon.ico"} == {"/frames.html", f"/{task}.html"}
    text = re.search(r"<body>(.*)</body>", run.stdout, re.DOTALL).group(1)
    unescaped = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    is_unharmed, result = json.loads(unescaped)
    assert is_unharmed
    for width, page in zip(WIDTHS, result, strict=True):
        assert page["width"] <= width
        assert page["scripts"] == 0
        assert EVIL in page["text"]
        assert "What to worry about" in page["text"]
        assert page["letters"] >= 8  # pixels
    n_held_out = json.loads((folder / f"{task}.json").read_text())["n_bags_held_out"]
    pictures_of_bags = (
        result[0]["dots"] // n_held_out
    )  # the truth with predictions, and with errors
    assert pictures_of_bags == {"regression": 2, "classification": 0}[task]
