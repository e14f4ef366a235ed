"""Answers to large bodies, which are parsed and predicted in processes next to the server.

`LargeBodies` is the server's side. ``python -m`` of this module starts a process that has imported
everything that answers need, and has loaded the model. It forks a child for each body. If a client
goes away, only its own child ends, and the next child starts at once.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .requests import Served

_PIECE_BYTES = 2**18  # bytes of a body that are sent at a time
NICENESS = 3  # on busy cores this process gets half of the time that small requests get
MAX_TASK_BYTES = 2**16  # the name and the URL of a model


class LargeBodies:
    """A process that forks a child for each large body, one at a time in order of arrival.

    The process is started with the server, because its imports take some seconds. If a call of
    `answer` is cancelled, its child ends.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def start(self) -> subprocess.Popen[bytes]:
        """Start the process unless it is running."""
        if self._process is None or self._process.poll() is not None:
            self.end()
            self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._control.setblocking(False)
            with theirs:
                # -P: do not import modules from the server's working directory
                self._process = subprocess.Popen[bytes](
                    (sys.executable, "-P", "-m", __name__),
                    stdin=theirs.fileno(),
                    stdout=2,  # what the process prints must not mix with the server's output
                    start_new_session=True,  # Ctrl-C is for the server, which ends the process
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
        """Return the HTTP status and the JSON of a model's answer; ``body`` is emptied.

        Raises
        ------
        ConnectionError
            If the child died, for example of too little memory.
        """
        async with self._turn:
            task = json.dumps({"name": name, "url": url, "size": len(body)}).encode()
            try:
                reader, writer = await asyncio.open_connection(sock=self.fork_child(task))
                try:
                    return await _ask(reader, writer, body)
                finally:
                    writer.transport.abort()  # ends the child if it is still working
            except (asyncio.IncompleteReadError, OSError) as error:
                raise ConnectionError("the process for large bodies died") from error

    def fork_child(self, task: bytes) -> socket.socket:
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
    for start in range(0, len(body), _PIECE_BYTES):
        writer.write(bytes(memoryview(body)[start : start + _PIECE_BYTES]))
        await writer.drain()
    body.clear()  # the child has it now
    head = json.loads(await reader.readuntil(b"\n"))
    return int(head["status"]), await reader.readexactly(head["size"])


class Forks:
    """Children that answer one body each; a child dies when its client goes away.

    Parameters
    ----------
    control : socket.socket
        Socket on which the server sends tasks, each with the socket of its client.
    """

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        # client's descriptor → its socket and the process id of its child
        self._clients: dict[int, tuple[socket.socket, int]] = {}
        # pipe that closes when a child ends → process id of the child, client's descriptor
        self._ends: dict[int, tuple[int, int]] = {}
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)
        self.served: Served | None = None

    def serve(self) -> None:
        """Answer bodies until the server is gone, then kill the remaining children."""
        control = self._control.fileno()
        while True:
            ready = {fd for fd, _ in self._poll.poll()}
            for fd in ready - {control}:
                if fd in self._ends:
                    self._forget(fd)
                elif fd in self._clients:  # the client went away
                    os.kill(self._clients[fd][1], signal.SIGKILL)
                    self._poll.unregister(fd)
            if control not in ready:  # tested last: a new client may reuse an old descriptor
                continue
            task, fds, *_ = socket.recv_fds(self._control, MAX_TASK_BYTES, 1)
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
        except OSError:  # no memory: the server sees a closed connection
            os.close(end)
            os.close(open_in_child)
            client.close()
            return
        if child == 0:
            self._answer(task, client, end)
        os.close(open_in_child)
        self._clients[client.fileno()] = client, child
        self._ends[end] = child, client.fileno()
        self._poll.register(client, 0)  # report only that the other side closed
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
        if self.served is None or self.served.name != task["name"]:
            from ..model_place import open_model
            from .requests import Served, warm

            self.served = None
            with suppress(Exception):  # the child repeats the error and reports it
                model = open_model(task["url"])
                self.served = Served(task["name"], model, task["url"], warm(model))
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
            answer_body(self.served, task, client)
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
        If the client went away.
    """
    from bagbasis.core.errors import BagbasisError

    from ..model_place import open_model
    from .body_parsing import parsed
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
    """Answer the bodies that arrive on the socket at stdin."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.nice(NICENESS)
    import pyarrow.json

    with suppress(NotImplementedError):
        # four times as fast as the system's allocator, with less memory than Arrow's default
        pyarrow.set_memory_pool(pyarrow.jemalloc_memory_pool())

    from .. import model_place  # now, not while a client waits
    from . import body_parsing, requests

    del pyarrow, model_place, body_parsing, requests
    Forks(socket.socket(fileno=0)).serve()


if __name__ == "__main__":
    main()
