"""``bags serve``: the champion of a registry, for clients that speak HTTP."""

from __future__ import annotations

import os
import secrets
import socket
import ssl
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bagbasis.core.errors import ConfigError, ParameterError, RunError, StoreError
from bagbasis.data.storage.files import PRIVATE, check_regular, staged, storage_errors
from bagbasis.data.storage.urls import local_path, normalize_url
from bagbasis.execution.clusters.profiles import is_loopback
from bagbasis.operations import Registry

from ...state import state_folder

if TYPE_CHECKING:
    import uvicorn
    from fastapi import FastAPI

MIN_TOKEN_LENGTH = 16  # characters: a shorter token can be guessed
MAX_TOKEN_BYTES = 4096  # size of the token's file
GRACE_SECONDS = 15  # time for answering requests after the server is asked to stop


def serve_registry(
    url: str,
    host: str,
    port: int,
    token_file: str | None,
    tls: tuple[str | None, str | None],
    tell: Callable[[Mapping[str, Any]], None],
) -> None:
    """Answer until the process is interrupted.

    Parameters
    ----------
    url : str
        URL of the registry.
    host, port
        Where to listen; port 0 is any that is free.
    token_file : str, optional
        Made where it is not; default one in the account's folder of states.
    tls : (certificate, key)
        Two files in PEM; None and None for no TLS, on loopback alone.
    tell : callable
        Called once it listens, with what a client needs to know.

    Raises
    ------
    ConfigError
        Beyond loopback without TLS; a token or a certificate that cannot be used; no FastAPI.
    ModelError
        No champion.
    RunError
        The port is taken.
    """
    try:
        import uvicorn

        from .champion_app import Champion, make_app
    except ImportError as error:
        raise ConfigError(f"serve needs pip install 'bagbasis[serve]' ({error})") from error
    has_tls = None not in tls
    if not has_tls and (tls != (None, None) or not is_loopback(host)):
        raise ConfigError(
            f"host {host}: beyond loopback answers go by TLS; give --certificate and --key"
        )
    path = state_folder() / "serve.token" if token_file is None else _local(token_file)
    token = own_token(path)
    champion = Champion(Registry(url))
    for pem in filter(None, tls):
        check_regular(Path(pem), ConfigError)
    config = server_config(make_app(champion, token), tls)
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"--certificate {tls[0]}, --key {tls[1]}: {error}") from error
    with _listening(host, port) as listener:
        name = f"[{host}]" if ":" in host else host
        where = f"http{'s' if has_tls else ''}://{name}:{listener.getsockname()[1]}"
        tell({"url": where, "model": champion.served.name, "token_file": str(path)})
        uvicorn.Server(config).run(sockets=[listener])


def server_config(app: FastAPI, tls: tuple[str | None, str | None]) -> uvicorn.Config:
    """Return how an app is served: with the limits of connections, and seconds to end."""
    import uvicorn

    from .limits import PromptProtocol

    return uvicorn.Config(
        app,
        ssl_certfile=tls[0],
        ssl_keyfile=tls[1],
        http=PromptProtocol,
        ws="none",  # such a connection would leave the protocol, and its deadlines
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )


def _local(token_file: str) -> Path:
    """Return the path of a file of this machine; ConfigError for a URL of others."""
    try:
        path = local_path(normalize_url(token_file))
    except (ParameterError, StoreError) as error:
        raise ConfigError(f"--token-file {error}") from error
    if path is None:
        raise ConfigError(f"--token-file {token_file}: give the path of a file of this machine")
    return path


def own_token(path: Path) -> str:
    """Return the token in a file that no other account can read; a new one where there is none.

    Loopback is open to every account of the machine: without the token nothing is answered.

    Raises
    ------
    ConfigError
        The file is open to others, is a link, holds no token or cannot be made.
    """
    with storage_errors(str(path), "cannot be used as a token", kind=ConfigError):
        if not path.exists():
            with staged(path) as fresh, suppress(FileExistsError):
                fresh.touch(PRIVATE)
                fresh.write_text(secrets.token_urlsafe(32) + "\n", encoding="ascii")
                os.link(fresh, path)  # whole at once, and never instead of another server's
        # a FIFO would be waited for
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        with open(os.open(path, flags), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise ConfigError(f"{path}: not a regular file; give a file for the token")
            content = file.read(MAX_TOKEN_BYTES + 1)
    if status.st_mode & 0o077 or status.st_uid != os.geteuid():
        raise ConfigError(f"{path}: other accounts can read this token; chmod 600, or another file")
    again = "; delete the file, and the next start makes a new one"
    if not content.isascii():
        raise ConfigError(f"{path}: the token is not ASCII, which headers of HTTP are{again}")
    token = content.decode("ascii").strip()
    if len(token) < MIN_TOKEN_LENGTH or len(content) > MAX_TOKEN_BYTES:
        raise ConfigError(
            f"{path}: expected a token of at least {MIN_TOKEN_LENGTH} characters of ASCII, in a "
            f"file of at most {MAX_TOKEN_BYTES:,} bytes{again}"
        )
    if not token.isprintable() or len(token.split()) > 1:
        raise ConfigError(
            f"{path}: expected one token on one line; clients cannot send blanks, line breaks or "
            f"control characters within it{again}"
        )
    return token


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise RunError(f"{host}:{port} cannot be listened at ({error})") from error
