"""Credentials in URLs and options: how they are recognized, refused and cut out of texts.

A URL is read as a person may have typed it, not as RFC 3986 reads it: a password that holds "/",
"?", "#" or "@" is still a password. Where both readings are possible, the text counts as a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import unquote

NO_CREDENTIALS = (
    "holds credentials, which would end up in records, models and logs; leave them out, and give "
    'them in the environment or in fsspec\'s configuration (~/.config/fsspec). A "@" of a path is '
    'written "%40"'
)
CUT = "…"

# "https://", and "https:/", which pathlib makes of it
_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{1,30}):/+")
# between the URLs of a chain, such as simplecache::s3://…
_LINK = re.compile(r"::(?=[A-Za-z][\w+.-]*:/|/)")
# "://" that was percent-encoded, once or again: a URL as a parameter of another
_ENCODED_SCHEME = re.compile(r"%(?:25)*3A(?:/|%(?:25)*2F){2}|:(?:%(?:25)*2F){2}", re.IGNORECASE)
_COLON = re.compile(r":|%(?:25)*3A", re.IGNORECASE)
_ENCODED_AT = re.compile(r"%(?:25)*40", re.IGNORECASE)
_PARAMETER = re.compile(r"[?&#;](?P<name>[^?&#;=\s/]{1,80})=(?!$|&[\w.-]+=)")
# the quotes and the marks that end a URL in a sentence
_MARKED = re.compile(r":/|[?&#;%]")  # a URL with a secret has one of these
_END = re.compile(r"(?:['\"`][)\]},;:.>]{0,20}|[,;:)\]}>.]{1,20})$")
# "password=…" in a connection string, and 'secret': '…' in the repr of a dict or in JSON
_SETTING = re.compile(
    r"(?<![\w?&#;=.-])(?P<name>[A-Za-z_][\w-]{0,79})=(?P<value>'[^']*'|\"[^\"]*\"|[^\s=]\S*)"
)
_ITEM = re.compile(
    r"(?P<key>(?P<q>\\?['\"])(?P<name>[\w.-]{1,80})(?P=q)\s*:\s*)"
    r"(?P<value>\\\"[^\"\\]+\\\"|b?\\?'(?:[^'\\]|\\.)+'|b?\\?\"(?:[^\"\\]|\\.)+\")"
)
# ('password', '…'), as lists of headers have it
_PAIR = re.compile(
    r"(?P<key>\(b?(?P<q>['\"])(?P<name>[\w.-]{1,80})(?P=q),\s*)"
    r"(?P<value>b?'(?:[^'\\]|\\.)+'|b?\"(?:[^\"\\]|\\.)+\")(?=,?\))"
)
# "Authorization: Bearer …" and "password: …", up to the end of a quotation or a line
_HEADER = re.compile(
    r"(?<![\w?&#;=./-])(?P<name>[A-Za-z_][\w-]{0,79}):\s{1,9}(?P<value>[^\s'\"][^'\"<>()\n]*)"
)
_OPTION = re.compile(r"(?<![\w-])--(?P<name>[A-Za-z][\w-]{0,79})(?:=|\s{1,9})(?P<value>[^\s-]\S*)")
_BEARER = re.compile(r"\bBearer\s{1,9}(?=\S{0,200}\d|\S{20})[\w.~+/=-]{8,}")
_PRIVATE_KEY = re.compile(
    r"(?P<begin>-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----)(?P<body>[^-]+)", re.IGNORECASE
)
_VARIABLE = re.compile(r"(?:\w+\s+)?['\"]?\$(?:$|[({A-Za-z_])")  # its value stands elsewhere
_IS_CUT = re.compile(rf"(?:\w+\s+)?{CUT}(?:$|[;,.\s])")
_WORD = re.compile(r"[a-z]+[.,;:!?]*(?:\s|$)|\S*[:=](?:\s|$)|\S*/\S")  # of a sentence, or a path

# Schemes whose URLs name a user, a container or a repository before the "@", without a password.
_USERS = frozenset((
    "abfs", "abfss", "adl", "az", "azure", "file", "ftp", "ftps", "git", "github", "gitlab",
    "hdfs", "hf", "local", "memory", "nfs", "reference", "rsync", "scp", "sftp", "smb", "ssh",
    "svn", "tar", "tcp", "tls", "ucx", "wasb", "wasbs", "webhdfs", "zip",
))  # fmt: skip
# Schemes that have a ":" before the "@" of a revision: github://owner:repository@main
_REVISIONS = frozenset(("git", "github"))
_ARN = re.compile(r"arn:aws[a-z-]*:", re.IGNORECASE)  # s3://arn:aws:s3:…:accesspoint/…

# Parts of names, in lower case without other characters than letters and digits.
_STRONG = (
    "secret", "password", "passwd", "passphrase", "credential", "privatekey", "accesskey",
    "accountkey", "apikey", "sharedkey", "sastoken", "sharedaccess", "authtoken", "accesstoken",
    "bearer", "clientassertion", "authorization",
)  # fmt: skip
_CONTAINED = (*_STRONG, "passw", "signature", "oauth", "authorization", "sessionid", "sessid")
_ENDS = (
    "token", "key", "keyid", "sig", "jwt", "sas", "pwd", "pass", "auth", "creds", "cred", "hmac",
    "session", "cookie", "otp", "authcode",
)  # fmt: skip
_WHOLE = frozenset((
    "k", "pw", "psw", "pat", "sid", "pin", "code", "assertion", "sign", "authentication",
    "authkeys",
))  # fmt: skip
_HARMLESS = re.compile(
    r"(?:page|next|nextpage|continuation|sync|cursor|marker)token$"
    r"|(?:sort|primary|foreign|partition|group|order|row|column|join|object|cache|public|index|"
    r"idempotency|routing|config|has|is|tls)key$"
    r"|signatureversion$|(?:by|com|over|under|tres|high|low|band|first|second)pass$|compass$"
)
_KINDS = frozenset(
    ("auth", kind) for kind in ("basic", "kerberos", "jupyterhub", "anon")
)  # no secrets
_NOT_CODE = frozenset(("k", "code", "sign", "pin"))  # too short to count as options of a config
_ANY_CONTAINED = re.compile("|".join(_CONTAINED))
_MARKS = re.compile(r"[^a-z0-9]")


def is_secret_name(name: str) -> bool:
    """Whether a parameter of a URL has the name of a password, a key, a token or a signature."""
    bare = _bare(unquote(unquote(name)))
    if not bare or _HARMLESS.search(bare):
        return False
    return bare in _WHOLE or bare.endswith(_ENDS) or _ANY_CONTAINED.search(bare) is not None


def is_secret_option(name: str) -> bool:
    """Whether an option (of a config, of a filesystem) has the name of a secret."""
    return is_secret_name(name) and _bare(name) not in _NOT_CODE


def without_credentials(text: str) -> str:
    """Return a text with "…" for the passwords, keys and signatures in it."""
    text = re.sub(r"\S+", lambda match: _cut_word(match[0]), text)
    text = _PAIR.sub(_cut_item, _ITEM.sub(_cut_item, text))
    text = _OPTION.sub(_cut_option, _HEADER.sub(_cut_header, text))
    text = _PRIVATE_KEY.sub(rf"\g<begin>{CUT}", _BEARER.sub(f"Bearer {CUT}", text))
    return _SETTING.sub(_cut_setting, text)


def cut_url(url: str) -> str:
    """Return a URL with "…" for the credentials in it; blanks belong to the URL."""
    match = _SCHEME.search(url)
    return _cut(url) if match is not None or "::" in url else without_credentials(url)


def has_credentials(value: object) -> bool:
    """Whether a text, or one within a mapping or a list, is a URL or a text with credentials.

    The keys of mappings are looked at, too, and so are values under the name of a secret.
    """
    if isinstance(value, Mapping):
        return any(
            has_credentials(str(key))
            or has_credentials(item)
            or (
                is_secret_option(str(key))
                and isinstance(item, (str, bytes))
                and bool(item)
                and (_bare(str(key)), item) not in _KINDS
            )
            for key, item in value.items()
        )
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return any(has_credentials(item) for item in value)
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if value is None or isinstance(value, (bool, int, float)):
        return False
    text = str(value)
    is_url = _SCHEME.match(text.lstrip()) is not None or _LINK.search(text) is not None
    return (is_url and _cut(text) != text) or without_credentials(text) != text


def _bare(name: str) -> str:
    return _MARKS.sub("", name.lower())


def _cut_word(word: str) -> str:
    """Cut credentials of one word of a text, and keep the marks that end it."""
    if not _MARKED.search(word):
        return word
    end = _END.search(word)
    body, rest = (word, "") if end is None else (word[: end.start()], word[end.start() :])
    return _cut(body) + rest


def _cut(url: str) -> str:
    """Cut the credentials of a URL, or of several in a chain."""
    for match in _SCHEME.finditer(url):
        first, rest = url[: match.end()], url[match.end() :]
        if _has_user(match["scheme"], rest):
            if _cut_parameters(first) != first:
                return _cut_parameters(first)
            host = rest.rpartition("@")[2]
            # which "@" ends the password is not known if there are more places of secrets
            is_known = (
                "@" in rest and not _ENCODED_AT.search(host) and _cut_parameters(rest) == rest
            )
            return f"{first}{CUT}@{host}" if is_known else f"{first}{CUT}"
    encoded = _ENCODED_SCHEME.search(url)
    if encoded is not None:
        plain = _decoded(url)
        if any(_has_user(m["scheme"], plain[m.end() :]) for m in [*_SCHEME.finditer(plain)][1:]):
            return url[: encoded.start()] + CUT
        start = _SCHEME.match(plain)  # the URL itself is encoded
        if start and not _SCHEME.match(url) and _has_user(start["scheme"], plain[start.end() :]):
            return CUT
    return _cut_parameters(url)


def _has_user(scheme: str, rest: str) -> bool:
    """Whether a password, or the token of a web page, comes before an "@"."""
    scheme = scheme.lower().removeprefix("icechunk+")
    rest = _LINK.split(rest, maxsplit=1)[0]
    if _ARN.match(rest):
        return False
    authority = re.split(r"[/?#\\]", rest, maxsplit=1)[0]
    colon = _COLON.search(authority)
    if scheme in _REVISIONS:
        return colon is not None and authority.count(":") > 1 and "@" in rest
    if colon is not None and "@" in rest[colon.end() :]:
        return True
    if colon is not None and _ENCODED_AT.search(rest, colon.end()):
        return not authority[colon.end() :].isdigit()  # else a port
    if scheme in _USERS:
        return False
    if "@" in authority or _ENCODED_AT.search(authority):
        return True
    # a token with "/": web pages lie at hosts with a dot, but for those of this machine
    path = re.split(r"[?#]", rest, maxsplit=1)[0]
    is_web = scheme in ("http", "https", "webdav", "davs", "dav")
    return is_web and "@" in path and "." not in authority and authority != "localhost"


def _cut_parameters(url: str) -> str:
    """Cut a URL behind the first parameter with the name of a secret, up to its end."""
    for match in _PARAMETER.finditer(url):
        if is_secret_name(match["name"]):
            return f"{url[: match.end()]}{CUT}"
    if "%" in url and re.search(r"%(?:25)*(?:3D|3F|26|3B|23)", url, re.IGNORECASE):
        for match in _PARAMETER.finditer(_decoded(url)):
            if is_secret_name(match["name"]):
                return f"{url[: url.index('%')]}{CUT}"
    return url


def _decoded(url: str) -> str:
    """Return a URL without percent-encoding, however often it was encoded."""
    for _ in range(8):
        plain = unquote(url)
        if plain == url:
            break
        url = plain
    return url


def _is_strong(name: str) -> bool:
    bare = _bare(name)
    return bare in ("pwd", "pass", "passw", "token") or any(part in bare for part in _STRONG)


def _is_header(name: str) -> bool:
    """Whether a header, an item or an option has the name of a secret."""
    bare = _bare(name)
    if _is_strong(name) or bare in ("cookie", "setcookie"):
        return True
    return bare.endswith("token") and not _HARMLESS.search(bare)


def _cut_header(match: re.Match[str]) -> str:
    """Cut what follows "Authorization:" or "Cookie:", or one word that is none of a sentence."""
    name, value = match["name"], match["value"]
    if not _is_header(name) or _VARIABLE.match(value) or _IS_CUT.match(value):
        return match[0]
    if _bare(name).endswith(("authorization", "cookie")):
        return f"{name}: {CUT}"
    word = value.split(maxsplit=1)[0]
    return match[0] if _WORD.match(value) else f"{name}: {CUT}{value[len(word) :]}"


def _cut_option(match: re.Match[str]) -> str:
    value = match["value"]
    if not _is_header(match["name"]) or value.startswith(CUT) or _VARIABLE.match(value):
        return match[0]
    return f"{match[0].removesuffix(value)}{CUT}"


def _cut_item(match: re.Match[str]) -> str:
    is_cut = _is_header(match["name"]) and match["value"].strip("b'\"\\") != CUT
    if is_cut:
        return f"{match['key']}'{CUT}'"
    value = match["value"]
    if "\\" not in value:
        return match[0]
    within = _ITEM.sub(_cut_item, value[1:-1])  # JSON as a text of JSON
    return f"{match['key']}{value[0]}{within}{value[-1]}"


def _cut_setting(match: re.Match[str]) -> str:
    end = _END.search(match["value"])
    rest = "" if end is None else end[0]
    if not _is_strong(match["name"]) or match["value"].removesuffix(rest) in ("", CUT, "None"):
        return match[0]
    return f"{match['name']}={CUT}{rest}"


def secret_places(config: Mapping[str, object], prefix: str = "") -> Iterator[str]:
    """Yield the dotted keys of a config whose value, or whose own name, holds credentials."""
    for key, value in config.items():
        name = f"{prefix}{key}"
        if has_credentials(str(key)):
            yield cut_url(name)
        elif isinstance(value, Mapping):
            yield from secret_places(value, f"{name}.")
        elif has_credentials({str(key): value}):
            yield name
