"""Answers to large bodies: parsed into arrays, and predicted, in processes beside the server.

`LargeBodies` is the server's side. ``python -m`` of this module is a process that has imported all
that answers need, and has the model. It forks a child for each body: a client that goes away ends
its own child and nothing else, and the next child is there at once.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow

    from bagbasis import Bags

    from .requests import Served

PIECE = 2**18  # bytes that are handed over at once
NICENESS = 3  # small requests go first, but on busy cores this gets half of what they get
MOST_TASK = 2**16  # bytes of the name and the URL of a model


class LargeBodies:
    """A process that forks a child for each large body, one at a time in order of arrival.

    It is started with the server: its imports take some seconds. Whoever is cancelled ends the
    child, and with it the work.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def start(self) -> subprocess.Popen[bytes]:
        """Start the process, if none is there."""
        if self._process is None or self._process.poll() is not None:
            self.end()
            self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._control.setblocking(False)
            with theirs:
                # -P: it imports no script of the folder that the server runs in
                self._process = subprocess.Popen[bytes](
                    (sys.executable, "-P", "-m", __name__),
                    stdin=theirs.fileno(),
                    stdout=2,  # what is printed there is no line of the server's
                    start_new_session=True,  # Ctrl-C is for the server, which ends it
                )
        return self._process

    def end(self) -> None:
        """Kill the process and its children, whatever they do."""
        if self._process is not None and self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        if self._control is not None:
            self._control.close()
        self._process = self._control = None

    async def answer(self, name: str, url: str, body: bytearray) -> tuple[int, bytes]:
        """Return status and JSON of the answer of a model at a URL; takes the body's bytes away.

        Raises
        ------
        ConnectionError
            The child died: of too little memory, or it was killed.
        """
        async with self._turn:
            task = json.dumps({"name": name, "url": url, "size": len(body)}).encode()
            try:
                reader, writer = await asyncio.open_connection(sock=self._child(task))
                try:
                    return await _ask(reader, writer, body)
                finally:
                    writer.transport.abort()  # its child dies, if it still works
            except (asyncio.IncompleteReadError, OSError) as error:
                raise ConnectionError("the process for large bodies died") from error

    def _child(self, task: bytes) -> socket.socket:
        """Return a connection to a new child; start the process again if it has died."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._send(task, theirs)
            except (BrokenPipeError, ConnectionError):
                self.end()
                self._send(task, theirs)
        return ours

    def _send(self, task: bytes, client: socket.socket) -> None:
        self.start()
        assert self._control is not None
        socket.send_fds(self._control, [task], [client.fileno()])


async def _ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytearray
) -> tuple[int, bytes]:
    for start in range(0, len(body), PIECE):
        writer.write(bytes(memoryview(body)[start : start + PIECE]))
        await writer.drain()
    body.clear()  # the child has it now
    head = json.loads(await reader.readuntil(b"\n"))
    return int(head["status"]), await reader.readexactly(head["size"])


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

    from .requests import EXPECTED, MOST_BAGS, check_n_bags

    encoding = json.detect_encoding(bytes(body[:4]))
    if encoding != "utf-8":
        body = bytes(body).decode(encoding).encode()
    if not re.match(rb"\s*\{", body):  # Arrow's reader dies of a null
        raise ValueError(f"the body is not an object; expected {EXPECTED}")
    if body.count(b"[[") > MOST_BAGS + 1:  # many bags are not parsed to be refused
        raise ValueError(
            f"the body holds more than {MOST_BAGS:,} lists of lists; send at most {MOST_BAGS:,} "
            "bags at a time"
        )
    point: pyarrow.DataType = pyarrow.list_(pyarrow.float64())
    try:
        try:
            table = _read(body, point)
        except pyarrow.ArrowInvalid as error:
            if "from array to number" not in str(error):
                raise
            point = pyarrow.float64()  # bags in one dimension may be lists of numbers
            table = _read(body, point)
    except pyarrow.ArrowException as error:
        raise ValueError(
            f"the body is not bags of numbers ({error}); expected {EXPECTED}"
        ) from error
    del body
    rows = {key: table[key].combine_chunks() for key in table.column_names}
    there = [key for key in ("bag", "bags") if rows[key].null_count == 0]
    if table.num_rows != 1 or len(there) != 1:
        raise ValueError(f"the body is not one object with a bag or bags; expected {EXPECTED}")
    names = rows["columns"][0].as_py()
    lists = rows[there[0]].values
    del table, rows
    if there == ["bag"]:
        return _bags(lists, np.array([0, len(lists)])), True, names
    check_n_bags(len(lists))
    if lists.null_count:
        at = int(np.argmin(lists.is_valid().to_numpy(zero_copy_only=False)))
        raise ValueError(f"bag {at} holds null; expected numbers")
    return _bags(lists.flatten(), lists.offsets.to_numpy()), False, names


def _read(body: bytes | bytearray, point: pyarrow.DataType) -> pyarrow.Table:
    """Return a body as a table of one row, whose points are of this type."""
    import pyarrow.json

    bag = pyarrow.list_(point)
    names = pyarrow.list_(pyarrow.string())
    fields = [("bag", bag), ("bags", pyarrow.list_(bag)), ("columns", names)]
    return pyarrow.json.read_json(
        pyarrow.py_buffer(body),
        pyarrow.json.ReadOptions(use_threads=False, block_size=len(body) + 1),
        pyarrow.json.ParseOptions(
            explicit_schema=pyarrow.schema(fields),
            newlines_in_values=True,
            unexpected_field_behavior="error",
        ),
    )


def _bags(points: pyarrow.Array, offsets: NDArray[np.integer[Any]]) -> Bags:
    """Return the bags that begin at these points of an Arrow list of points.

    Raises
    ------
    ValueError
        A point is null, or points have different lengths; `DataError` for an empty bag.
    """
    from bagbasis import Bags, as_bags

    def bag_of(point: np.integer[Any] | int) -> int:
        return int(np.searchsorted(offsets, point, side="right")) - 1

    if (np.diff(offsets) == 0).any() or len(offsets) == 1:
        # refused as such a list is everywhere
        as_bags([np.zeros((size, 1)) for size in np.minimum(1, np.diff(offsets))])
    if points.null_count:
        at = np.argmin(points.is_valid().to_numpy(zero_copy_only=False))
        raise ValueError(f"bag {bag_of(at)} holds null; expected numbers")
    if not hasattr(points, "offsets"):  # numbers
        return Bags(points.to_numpy(zero_copy_only=False).reshape(-1, 1), offsets)
    lengths = np.diff(points.offsets.to_numpy())
    n_dims = int(lengths[0])
    if (lengths != n_dims).any():
        bag = bag_of(np.argmax(lengths != n_dims))
        own = lengths[offsets[bag] : offsets[bag + 1]]
        if own.min() < own.max():
            raise ValueError(
                f"bag {bag} is not an array: its points have {own.min()} to {own.max()} coordinates"
            )
        raise ValueError(f"bag {bag} has dimension {own[0]}, bag 0 has {n_dims}")
    values = points.flatten()
    if values.null_count:
        at = np.argmin(values.is_valid().to_numpy(zero_copy_only=False)) // n_dims
        raise ValueError(f"bag {bag_of(at)} holds null; expected numbers")
    array: NDArray[np.float64] = values.to_numpy(zero_copy_only=False)
    return Bags(array.reshape(len(points), n_dims), offsets)


class Forks:
    """Children that answer one body each; a child dies when its client goes away.

    Parameters
    ----------
    control : socket.socket
        Where the server sends tasks, each with the socket of its client.
    """

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._clients: dict[int, tuple[socket.socket, int]] = {}  # and the child's process id
        self._ends: dict[int, tuple[int, int]] = {}  # pipe that ends with a child: its id, client
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)
        self._served: Served | None = None

    def serve(self) -> None:
        """Answer bodies until the server is gone, and kill the children that are left."""
        control = self._control.fileno()
        while True:
            ready = {fd for fd, _ in self._poll.poll()}
            for fd in ready - {control}:
                if fd in self._ends:
                    self._forget(fd)
                elif fd in self._clients:  # it went away
                    os.kill(self._clients[fd][1], signal.SIGKILL)
                    self._poll.unregister(fd)
            if control not in ready:  # the last, as a new client may have the number of an old one
                continue
            task, fds, *_ = socket.recv_fds(self._control, MOST_TASK, 1)
            if not task:
                for _, child in self._clients.values():
                    os.kill(child, signal.SIGKILL)
                return
            self._fork(json.loads(task), socket.socket(fileno=fds[0]))

    def _fork(self, task: dict[str, Any], client: socket.socket) -> None:
        self._load(task)
        end, open_in_child = os.pipe()
        try:
            child = os.fork()
        except OSError:  # no memory: the server sees that nobody answers
            os.close(end)
            os.close(open_in_child)
            client.close()
            return
        if child == 0:
            self._answer(task, client, end)
        os.close(open_in_child)
        self._clients[client.fileno()] = client, child
        self._ends[end] = child, client.fileno()
        self._poll.register(client, 0)  # only that the other side was closed
        self._poll.register(end, 0)

    def _forget(self, end: int) -> None:
        child, fd = self._ends.pop(end)
        os.waitpid(child, 0)
        self._poll.unregister(end)
        os.close(end)
        with suppress(KeyError):
            self._poll.unregister(fd)
        self._clients.pop(fd)[0].close()

    def _load(self, task: dict[str, Any]) -> None:
        """Load the model, and compile its kernels, once for all children."""
        if self._served is None or self._served.name != task["name"]:
            from ..model_place import open_model
            from .requests import Served, warm

            self._served = None
            with suppress(Exception):  # the child says what is wrong
                model = open_model(task["url"])
                self._served = Served(task["name"], model, task["url"], warm(model))
                gc.freeze()  # children share its memory

    def _answer(self, task: dict[str, Any], client: socket.socket, end: int) -> None:
        """In a child: answer, and end the process."""
        status = 1
        try:
            self._control.close()
            os.close(end)
            for fd in self._ends:
                os.close(fd)
            for other, _ in self._clients.values():
                other.close()
            answer_body(self._served, task, client)
            status = 0
        except (ConnectionError, EOFError):
            pass  # the client went away
        finally:
            os._exit(status)


def answer_body(served: Served | None, task: dict[str, Any], client: socket.socket) -> None:
    """Read a body from a socket, and write the answer to it.

    Raises
    ------
    EOFError, ConnectionError
        The client went away.
    """
    from bagbasis.core.errors import BagbasisError

    from ..model_place import open_model
    from .requests import Served, reason_of, response, warm

    body: bytearray | None = bytearray(task["size"])
    view = memoryview(body)  # type: ignore[arg-type]
    while view:
        n = client.recv_into(view)
        if n == 0:
            raise EOFError
        view = view[n:]
    view.release()
    try:
        if served is None:
            model = open_model(task["url"])
            served = Served(task["name"], model, task["url"], warm(model))
        bags, is_single, names = parsed(body)  # type: ignore[arg-type]
        body = None
        status, content = 200, _json(response(served, bags, is_single, names))
    except (BagbasisError, ValueError, RecursionError, MemoryError) as error:
        status, content = 422, _json({"detail": reason_of(error)})
    client.sendall(json.dumps({"status": status, "size": len(content)}).encode() + b"\n")
    client.sendall(content)


def _json(values: dict[str, Any]) -> bytes:
    return json.dumps(values, allow_nan=False).encode()


def main() -> None:
    """Serve the bodies that come by the socket on stdin."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.nice(NICENESS)
    import pyarrow.json

    with suppress(NotImplementedError):
        # four times as fast as the system's allocator, with less memory than Arrow's default
        pyarrow.set_memory_pool(pyarrow.jemalloc_memory_pool())

    from .. import model_place  # now, not while a client waits
    from . import requests

    del pyarrow, model_place, requests
    Forks(socket.socket(fileno=0)).serve()


if __name__ == "__main__":
    main()
