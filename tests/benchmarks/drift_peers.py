"""Two samples by the default call, against hyppo's and alibi-detect's: time and power in a row.

alibi-detect's pins (numpy < 2, numba < 0.60) and ours exclude each other. So it gets a virtual
environment of its own, ``.venv/alibi``, which is made when it is first needed, and answers from a
process there. Where that cannot be made, a line on standard error says why, and its rows are left
out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from bagbasis.hypotheses import two_sample_test
from bagbasis.jobs.experiments.hypotheses.two_samples_at_many_scales import mixtures
from bagbasis.jobs.experiments.timing import Rounds, in_turn

from .data import OUTPUT
from .pairing import Row

FOLDER = Path(__file__).parents[2] / ".venv" / "alibi"
PACKAGES = (
    "alibi-detect==0.13.0",
    "tensorflow-cpu==2.18.*",  # of its backends that of least weight
    "tf-keras==2.18.*",
    "tensorflow_probability==0.25.*",
)
N_SETS = 20  # data sets: a standard error of .11 at most; MMDDrift takes seconds of each
LEVEL = 0.05
MEANS = "means that differ"  # of which one kernel with the right width is enough

# What answers in the other environment: a line with a data set's number gives a p-value.
ANSWERS = """
import json, sys
import numpy as np
from alibi_detect.cd import MMDDrift
X, Y = np.load(sys.argv[1]), np.load(sys.argv[2])
for line in sys.stdin:
    i = int(line)
    found = MMDDrift(X[i], backend="tensorflow").predict(Y[i])
    print("p", float(found["data"]["p_val"]), flush=True)
"""


def drift_peers() -> Iterator[Row]:
    """Each test as it is called without options, on the same data sets, in turn."""
    for title, draw in PROBLEMS.items():
        rng = np.random.default_rng(0)
        pairs = [draw(rng) for _ in range(N_SETS)]
        X, Y = (np.array(list(of)) for of in zip(*pairs, strict=True))
        with alibi(X, Y) as of_alibi:
            peers = {"hyppo's MMD": partial(_of_hyppo, X, Y), "alibi-detect's MMDDrift": of_alibi}
            yield from _rows(f"{title}, N = {X.shape[1]} + {Y.shape[1]}, d = {X.shape[2]}", X, Y,
                             {name: peer for name, peer in peers.items() if peer})  # fmt: skip


def _of_hyppo(X: np.ndarray, Y: np.ndarray, i: int) -> float:
    """Return the p-value of its default, which is a chi-square approximation of many rows."""
    ksample: Any = import_module("hyppo.ksample")
    return float(ksample.MMD().test(X[i], Y[i]).pvalue)


def _rows(
    title: str, X: np.ndarray, Y: np.ndarray, peers: dict[str, Callable[[int], float]]
) -> Iterator[Row]:
    tests: dict[str, Callable[[int], float]] = {
        "ours": lambda i: two_sample_test(X[i], Y[i]).p_value, **peers
    }  # fmt: skip
    for test in tests.values():
        test(0)  # once, not timed
    seconds: dict[str, list[float]] = {name: [] for name in tests}
    rejected = dict.fromkeys(tests, 0)
    for i in range(N_SETS):
        rounds = in_turn({name: partial(test, i) for name, test in tests.items()}, 1)
        for name in tests:
            seconds[name] += rounds.seconds[name]
            rejected[name] += rounds.last[name] <= LEVEL
    for name in peers:
        result = Rounds(seconds, {}).compared("ours", name)
        numbers = (result[key] for key in ("ours", "peer", "ratio", "low", "high"))
        shares = f"rejects {rejected['ours'] / N_SETS:.2f}, theirs {rejected[name] / N_SETS:.2f}"
        target = "≥ 1 ×, withdrawn" if "hyppo" in name and MEANS in title else ""
        yield Row(f"two_sample_test(a, b) / {name}, {title}; {shares}", *numbers, target)


def _shifted(rng: np.random.Generator, n: int = 250, n_dims: int = 16) -> tuple[Any, Any]:
    """Normal points, of which the others' mean is a quarter of a deviation off in one coordinate
    of four."""
    shift = 0.25 * (np.arange(n_dims) % 4 == 0)
    return rng.standard_normal((n, n_dims)), shift + rng.standard_normal((n, n_dims))


PROBLEMS: dict[str, Callable[[np.random.Generator], tuple[Any, Any]]] = {
    "four Gaussians, one twice as wide": partial(mixtures, n=500, deviation=2.0),
    MEANS: _shifted,
    "no difference": lambda rng: mixtures(rng, 500, 1.0),
}


@contextmanager
def alibi(X: np.ndarray, Y: np.ndarray) -> Iterator[Callable[[int], float] | None]:
    """Give what asks MMDDrift for the p-value of a data set; None where it is not to be had."""
    python = _python()
    if python is None:
        yield None
        return
    OUTPUT.mkdir(exist_ok=True)
    files = [OUTPUT / f"drift-{name}.npy" for name in "ab"]
    for file, values in zip(files, (X, Y), strict=True):
        np.save(file, values)
    item = {name: "1" for name in ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS",
                                  "TF_NUM_INTEROP_THREADS")}  # fmt: skip
    environment = os.environ | item | {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    command = [python, "-c", ANSWERS, *files]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, env=environment,
    ) as process:  # fmt: skip
        yield partial(_ask, process)
        assert process.stdin is not None
        process.stdin.close()


def _ask(process: subprocess.Popen[str], i: int) -> float:
    assert process.stdin is not None
    assert process.stdout is not None
    print(i, file=process.stdin, flush=True)
    for line in process.stdout:
        if line.startswith("p "):
            return float(line[2:])
    raise RuntimeError("alibi-detect's process ended without an answer")


def _python() -> Path | None:
    """Return the interpreter of alibi-detect's environment, made where it is missing."""
    python, made = FOLDER / "bin" / "python", FOLDER / "packages.json"
    if made.exists() and json.loads(made.read_text()) == list(PACKAGES):
        return python
    print(f"making {FOLDER} of {', '.join(PACKAGES)}", file=sys.stderr)
    try:
        venv.create(FOLDER, clear=True, with_pip=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, *PACKAGES], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"no rows of alibi-detect: {error}", file=sys.stderr)
        return None
    made.write_text(json.dumps(PACKAGES))
    return python
