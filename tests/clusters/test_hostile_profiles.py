"""What a profile says goes into batch scripts: as one word or one line, or it is refused."""

from __future__ import annotations

import os
import subprocess

import pytest
import yaml

from bagbasis import ConfigError
from bagbasis.execution.clusters.profiles import load_profile, shell_word

SLURM = {
    "cluster": "slurm", "n_workers": 1, "cores_per_worker": 1, "memory_limit": "1GiB",
    "walltime": "01:00:00",
}  # fmt: skip
HOSTILE = [
    "a b",
    "a;touch x",
    "a\ntouch x",
    "$(touch x)",
    "`touch x`",
    "a'b",
    'a"b',
    "a|b",
    "a>b",
    "",
]


def profile(tmp_path, **values):
    path = tmp_path / "p.yaml"
    path.write_text(yaml.safe_dump(SLURM | values))
    return load_profile(str(path))


@pytest.mark.parametrize("key", ["queue", "account", "interface", "job_directory"])
@pytest.mark.parametrize("value", HOSTILE)
def test_words(tmp_path, key, value):
    """A partition, an account, an interface and the folder of logs are one word."""
    with pytest.raises(ConfigError, match=f"{key}.*batch script"):
        profile(tmp_path, **{key: value})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("directives", ["--qos=short\ntouch x"]),
        ("directives", ["--qos=short", "--comment=a\rb"]),
        ("python", "/a\nb"),
        ("spill_directory", "/a\x1bb"),
    ],
)
def test_lines(tmp_path, key, value):
    """A directive with a line break would be a command of the job."""
    with pytest.raises(ConfigError, match="batch script"):
        profile(tmp_path, **{key: value})


def test_what_people_write(tmp_path):
    """Names with dots, lists of partitions, homes and variables are taken."""
    values = {
        "queue": "short,long", "account": "grp-1.a_b", "interface": "ib0:1",
        "job_directory": "~/jobs/ü", "directives": ["--exclude=node[7-9]", '--comment="a b"'],
        "spill_directory": "/scratch/$USER/my data", "python": "/opt/my env/bin/python",
        "prologue": ["module load python\nexport A=1"],
    }  # fmt: skip
    read = profile(tmp_path, **values)
    assert read.queue == "short,long"
    assert read.directives == tuple(values["directives"])


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("/a b/c", "/a b/c"),
        ("/a;touch x", "/a;touch x"),
        ("/$(touch x)", "/$(touch x)"),
        ("/`touch x`", "/`touch x`"),
        ("/a\"b'c\\d", "/a\"b'c\\d"),
        ("/${A:-$(touch x)}", "/${A:-$(touch x)}"),
        ("/a$", "/a$"),
        ("/x/$A/${A}", "/x/one two/one two"),
        ("~/my data", "/home/me/my data"),
        ("/*?[a]{b,c}~", "/*?[a]{b,c}~"),
    ],
)
def test_words_of_the_shell(path, word, tmp_path):
    """A path is one word, in which variables alone are replaced; nothing else runs."""
    script = f"printf '%s|' {shell_word(path)}"
    environment = {**os.environ, "A": "one two", "HOME": "/home/me"}
    run = subprocess.run(
        ["bash", "-c", script], env=environment, cwd=tmp_path, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert run.stdout == f"{word}|"
    assert not list(tmp_path.iterdir())
