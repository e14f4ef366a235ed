"""Answers to large bodies: parsed into arrays, and predicted, in a process beside the server.

`LargeBodies` is the server's side. ``python -m`` of this module is the process: it reads requests
from stdin and writes answers to stdout, each a line of JSON with the size of the bytes behind it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow

    from bagbasis import Bags

PIECE = 2**18  # bytes that are handed over at once
NICENESS = 10  # small requests, which the server answers itself, go first


class LargeBodies:
    """One process that answers one large body at a time, in the order of their arrival.

    It is started with the server: its imports take some seconds. Whoever is cancelled ends the
    process, and with it the work; another one is started at once.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._is_over = False

    async def start(self) -> asyncio.subprocess.Process:
        """Start the process, if none is there."""
        if self._process is None or self._process.returncode is not None:
            # -P: it imports no script of the folder that the server runs in
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", __name__),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for the server, which ends it
            )
        return self._process

    def end(self) -> None:
        """Kill the process, whatever it does; no other one is started."""
        self._is_over = True
        self._kill()

    def _kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
        self._process = None

    async def answer(self, name: str, url: str, body: bytearray) -> tuple[int, bytes]:
        """Return status and JSON of the answer of a model at a URL; takes the body's bytes away.

        Raises
        ------
        ConnectionError
            The process died: of too little memory, or it was killed.
        """
        async with self._turn:
            process = await self.start()
            try:
                return await _ask(process, name, url, body)
            except (asyncio.IncompleteReadError, ConnectionError) as error:
                self._kill()
                raise ConnectionError("the process for large bodies died") from error
            except BaseException:
                self._kill()
                if not self._is_over:
                    await self.start()
                raise


async def _ask(
    process: asyncio.subprocess.Process, name: str, url: str, body: bytearray
) -> tuple[int, bytes]:
    to, back = process.stdin, process.stdout
    assert to is not None
    assert back is not None
    to.write(json.dumps({"name": name, "url": url, "size": len(body)}).encode() + b"\n")
    for start in range(0, len(body), PIECE):
        to.write(bytes(memoryview(body)[start : start + PIECE]))
        await to.drain()
    body.clear()  # the process has it now
    head = json.loads(await back.readuntil(b"\n"))
    return int(head["status"]), await back.readexactly(head["size"])


def parsed(body: bytes | bytearray) -> tuple[Bags, bool, list[str] | None]:
    """Return the bags of a body, whether it is one bag, and its columns, without Python's numbers.

    Raises
    ------
    ValueError
        The body is not JSON, or holds something else than bags of numbers; `BagbasisError` for
        bags that cannot be used.
    """
    import pyarrow
    import pyarrow.json

    from bagbasis import as_bags

    from .requests import EXPECTED, check_n_bags

    points = pyarrow.list_(pyarrow.list_(pyarrow.float64()))
    fields = {
        "bag": points,
        "bags": pyarrow.list_(points),
        "columns": pyarrow.list_(pyarrow.string()),
    }
    encoding = json.detect_encoding(bytes(body[:4]))
    if encoding != "utf-8":
        body = bytes(body).decode(encoding).encode()
    try:
        table = pyarrow.json.read_json(
            pyarrow.py_buffer(body),
            pyarrow.json.ReadOptions(use_threads=False, block_size=len(body) + 1),
            pyarrow.json.ParseOptions(
                explicit_schema=pyarrow.schema([*fields.items()]),
                newlines_in_values=True,
                unexpected_field_behavior="error",
            ),
        )
    except pyarrow.ArrowInvalid as error:
        raise ValueError(
            f"the body is not bags of numbers ({error}); expected {EXPECTED}"
        ) from error
    del body
    rows = {key: table[key].combine_chunks() for key in fields}
    there = [key for key in ("bag", "bags") if rows[key].null_count == 0]
    if table.num_rows != 1 or len(there) != 1:
        raise ValueError(f"the body is not one object with a bag or bags; expected {EXPECTED}")
    names = rows["columns"][0].as_py()
    lists = rows[there[0]].values
    del table, rows
    if there == ["bags"]:
        check_n_bags(len(lists))
        bags = [_array(lists[i].values, f"bag {i}") for i in range(len(lists))]
    else:
        bags = [_array(lists, "bag 0")]
    return as_bags(bags), there == ["bag"], names


def _array(points: pyarrow.ListArray, where: str) -> NDArray[np.float64]:
    """Return an Arrow list of points as an array; ValueError for points of different lengths."""
    if points is None or points.null_count:
        raise ValueError(f"{where} holds null; expected numbers")
    lengths = np.unique(np.diff(points.offsets.to_numpy()))
    if len(lengths) > 1:
        raise ValueError(
            f"{where} is not an array: its points have {lengths[0]} to {lengths[-1]} coordinates"
        )
    values = points.flatten()
    if values.null_count:
        raise ValueError(f"{where} holds null; expected numbers")
    n_dims = int(lengths[0]) if len(lengths) else 1
    array: NDArray[np.float64] = values.to_numpy(zero_copy_only=False)
    return array.reshape(len(points), n_dims)


def serve_bodies(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until the server is gone."""
    from bagbasis.core.errors import BagbasisError

    from ..model_place import open_model
    from .requests import Served, response

    served: Served | None = None
    while line := requests.readline():
        head = json.loads(line)
        body = bytearray(head["size"])
        if requests.readinto(body) < head["size"]:  # type: ignore[attr-defined]
            return
        try:
            if served is None or served.name != head["name"]:
                served = Served(head["name"], open_model(head["url"]), head["url"])
            bags, is_single, names = parsed(body)
            body = bytearray()  # its bytes are as many as the bags
            status, said = 200, response(served, bags, is_single, names)
        except (BagbasisError, ValueError, MemoryError) as error:
            status, said = 422, {"detail": str(error) or type(error).__name__}
        content = json.dumps(said, allow_nan=False).encode()
        answers.write(json.dumps({"status": status, "size": len(content)}).encode() + b"\n")
        answers.write(content)
        answers.flush()
        del body, said, content


def main() -> None:
    """Serve bodies from stdin to stdout; what is printed otherwise goes to stderr."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.nice(NICENESS)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    # what is freed goes back to the system at once
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    import pyarrow.json  # noqa: F401  # now, not while a client waits

    serve_bodies(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
