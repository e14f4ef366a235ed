"""Random URLs with a secret somewhere in them, and a search for the secret in texts."""

from __future__ import annotations

import html
import string
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import quote, unquote

import numpy as np

PIECE = 6  # characters of a secret that nothing may show
BASE64 = string.ascii_letters + string.digits + "+/="
TYPED = string.ascii_letters + string.digits + "!$()*+,-./:<>@[]^_`{|}~\\'\"%?#&;="
USERS = ("AKIAIOSFODNN7EXAMPLE", "me", "first.last", "me@example.org", "svc-account", "u_1", "")
HOSTS = ("host", "example.org", "bucket", "127.0.0.1:9000", "minio:9000", "[::1]:80", "b.s3.aws")
SCHEMES = ("s3", "https", "http", "ftp", "sftp", "gs", "icechunk+s3", "abfs", "postgresql", "tcp")
WEB = ("http", "https")
NAMES = (
    "token", "access_token", "key", "api-key", "api_key", "apikey", "x-api-key", "access-key",
    "private_key", "secret", "client_secret", "pwd", "password", "passwd", "auth", "authorization",
    "jwt", "sas", "sig", "X-Amz-Signature", "X-Amz-Credential", "X-Amz-Security-Token",
    "AWSAccessKeyId", "X-Goog-Signature", "private-token", "refresh_token", "id_token", "pass",
    "subscription-key", "Ocp-Apim-Subscription-Key", "sessionToken", "PHPSESSID", "passphrase",
    "aws_secret_access_key", "oauth_signature", "bearer", "session", "cookie", "hmac", "authKey",
)  # fmt: skip
OPTIONS = ("secret", "password", "token", "account_key", "sas_token", "client_secret", "api_key")


class Case(NamedTuple):
    """A text with a secret, how it was made, and whether blanks may end a word of it."""

    place: str
    text: str
    secret: str


def cases(n: int, seed: int) -> Iterator[Case]:
    rng = np.random.default_rng(seed)
    makers = [*PLACES.items()]
    for i in range(n):
        place, make = makers[i % len(makers)]
        secret = _secret(rng, TYPED if rng.random() < 0.5 else BASE64)
        yield Case(place, make(rng, secret), secret)


def leaks(secret: str, text: str) -> str | None:
    """Return the first piece of a secret that a text shows, escaped or not."""
    texts = {text, unquote(text), html.unescape(text), text.replace("\\", "")}
    forms = {secret, secret.replace("\\", ""), quote(secret, safe=""), unquote(secret)}
    for form in forms:
        # each piece has one of these within it, of which few are in a text by chance
        within = [form[i : i + PIECE // 2] for i in range(0, len(form), PIECE - PIECE // 2 + 1)]
        if len(form) > PIECE and not any(part in item for part in within for item in texts):
            continue
        for i in range(max(1, len(form) - PIECE + 1)):
            if any(form[i : i + PIECE] in item for item in texts):
                return form[i : i + PIECE]
    return None


def _secret(rng: np.random.Generator, alphabet: str) -> str:
    n = int(rng.integers(12, 48))
    return "".join(rng.choice([*alphabet], size=n))


def _pick(rng: np.random.Generator, values: tuple[str, ...]) -> str:
    return str(rng.choice(values))


def _password(rng: np.random.Generator, secret: str) -> str:
    user, host = _pick(rng, USERS), _pick(rng, HOSTS)
    return f"{_pick(rng, SCHEMES)}://{user}:{secret}@{host}/folder/data.zarr"


def _token(rng: np.random.Generator, secret: str) -> str:
    # what comes first is a host by its dot, and a port is one by its colon
    secret = secret.replace(".", "x").replace("?", "x").replace("#", "x")
    return f"{_pick(rng, WEB)}://{secret}@{_pick(rng, HOSTS)}/data.csv"


def _encoded_password(rng: np.random.Generator, secret: str) -> str:
    return _password(rng, quote(secret, safe=""))


def _encoded_marks(rng: np.random.Generator, secret: str) -> str:
    return _password(rng, quote(secret, safe="")).replace("@", "%40", 1)


def _parameter(mark: str) -> Callable[[np.random.Generator, str], str]:
    def make(rng: np.random.Generator, secret: str) -> str:
        name, host = _pick(rng, NAMES), _pick(rng, HOSTS)
        name = str(rng.choice([name, name.upper(), quote(name).replace("e", "%65")]))
        begin = f"{_pick(rng, SCHEMES)}://{host}/a/b.parquet"
        if mark == "?":
            return f"{begin}?{name}={secret}"
        if mark == "&":
            return f"{begin}?version=2{mark}{name}={secret}&part=1"
        return f"{begin}{mark}{name}={secret}"

    return make


def _nested(rng: np.random.Generator, secret: str) -> str:
    make = [_password, _token, _parameter("?"), _encoded_password][rng.integers(4)]
    inner = quote(make(rng, secret), safe="")
    inner = quote(inner, safe="") if rng.random() < 0.3 else inner
    return f"https://proxy.example.org/get?url={inner}"


def _chained(rng: np.random.Generator, secret: str) -> str:
    make = [_password, _parameter("?"), _parameter("#")][rng.integers(3)]
    before = _pick(rng, ("simplecache::", "filecache::", "zip://a/b.csv::", "blockcache::"))
    return before + make(rng, secret)


def _mangled(rng: np.random.Generator, secret: str) -> str:
    secret = secret.replace("//", "/").replace("/./", "/")
    return str(PurePosixPath(f"s3://{_pick(rng, USERS)}:{secret}@bucket/data.zarr"))


def _connection(rng: np.random.Generator, secret: str) -> str:
    secret = secret.replace("'", "x").replace('"', "x")
    return f"DefaultEndpointsProtocol=https;AccountName=store;AccountKey={secret}"


PLACES: dict[str, Callable[[np.random.Generator, str], str]] = {
    "password": _password,
    "token": _token,
    "percent-encoded password": _encoded_password,
    "percent-encoded @": _encoded_marks,
    "query": _parameter("?"),
    "later in the query": _parameter("&"),
    "fragment": _parameter("#"),
    "parameter": _parameter(";"),
    "URL in a URL": _nested,
    "chain": _chained,
    "URL that pathlib shortened": _mangled,
    "connection string": _connection,
}
