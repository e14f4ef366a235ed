"""The bytes of table files on any filesystem, as DuckDB reads them."""

from __future__ import annotations

import io
import os
from datetime import UTC, datetime
from threading import Lock, get_ident
from typing import IO
from urllib.parse import unquote

import fsspec
from fsspec.spec import AbstractFileSystem
from fsspec.utils import read_block

from ...data.storage.urls import filesystem


class DuckFiles(AbstractFileSystem):
    """Table files on any filesystem, under the paths that DuckDB uses for them.

    A piece of a CSV file is read as a file of its rows; the first piece begins with the header.
    """

    protocol = "table"
    cachable = False  # fsspec would keep every instance

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[str, bytes] = {}
        """The pieces that were read, by path."""

    @staticmethod
    def url_of(path: str) -> str:
        """Return the URL of the file that a path stands for."""
        return unquote(path.rsplit("/", 1)[1])

    def glob(self, path: str, **_: object) -> list[str]:
        """Return the path itself, which is never a pattern."""
        return [path]

    def info(self, path: str, **_: object) -> dict[str, object]:
        """Return the properties of a file that DuckDB asks for."""
        fs, inside = filesystem(self.url_of(path))
        text = self.texts.get(path)
        return {
            "name": path,
            "size": fs.size(inside) if text is None else len(text),
            "type": "file",
        }

    def modified(self, path: str) -> datetime:
        """Return a constant time, because DuckDB keeps nothing of a file after a query."""
        return datetime.fromtimestamp(0, UTC)

    def open(self, path: str, mode: str = "rb", **_: object) -> SharedFile:
        """Open a file for reading."""
        file = fsspec.open(self.url_of(path), "rb").open()
        piece = path.split("/")[2]
        if not piece:
            return SharedFile(file)
        with file:
            start, stop = map(int, piece.split("-"))
            self.texts[path] = read_block(file, start, stop - start, delimiter=b"\n")
        return SharedFile(io.BytesIO(self.texts[path]))


class SharedFile:
    """A file that DuckDB's threads read concurrently: each thread has its own position.

    DuckDB calls ``seek`` and then ``read`` without a lock; between the two another thread may
    do the same.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._lock = Lock()
        self._positions: dict[int, int] = {}  # by thread

    def seek(self, position: int, whence: int = os.SEEK_SET) -> int:
        """Set the position of this thread, from the start of the file or from its end."""
        with self._lock:
            self._positions[get_ident()] = self._file.seek(position, whence)
            return self._positions[get_ident()]

    def tell(self) -> int:
        """Return the position of this thread."""
        return self._positions.get(get_ident(), 0)

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes from the position of this thread."""
        with self._lock:
            self._file.seek(self.tell())
            data = self._file.read(size)
            self._positions[get_ident()] = self._file.tell()
            return data

    def close(self) -> None:
        """Close the file."""
        self._file.close()
