"""The folders that runs are in: a given one, the environment's, or those submitted to before."""

from __future__ import annotations

import hashlib
import logging
import os
from functools import partial
from operator import itemgetter

from bagbasis.core.credentials import has_credentials
from bagbasis.core.errors import BagbasisError, RunError
from bagbasis.data.storage.files import PRIVATE, read_json, write_json

from ..state import state_folder

ROOT_VARIABLE = "BAGBASIS_RUNS"
REMEMBERED = "roots"  # below the account's folder of states: a file per root

logger = logging.getLogger(__name__)


def root_of(root: str | os.PathLike[str] | None) -> str | None:
    """Return the root given, else the environment's; None for neither."""
    return os.fspath(root) if root is not None else os.environ.get(ROOT_VARIABLE) or None


def roots_of(root: str | os.PathLike[str] | None) -> list[str]:
    """Return the root given, else the environment's, else all that were submitted to."""
    place = root_of(root)
    return [place] if place is not None else _remembered()


def remember(root: str) -> None:
    """Keep a root for `roots_of`; a submission does not fail where that is not possible."""
    name = hashlib.sha256(root.encode()).hexdigest()[:16]
    try:
        if not has_credentials(root):
            file = state_folder() / REMEMBERED / f"{name}.json"
            write_json(str(file), {"root": root}, mode=PRIVATE)
    except (BagbasisError, RuntimeError) as error:  # RuntimeError: an account without a home
        logger.warning("bags runs needs --root %s: it cannot be remembered (%s)", root, error)


def _remembered() -> list[str]:
    try:
        files = sorted((state_folder() / REMEMBERED).glob("*.json"))
    except RuntimeError:
        return []
    read = partial(read_json, parse=itemgetter("root"), kind=RunError, damaged="no root")
    return [root for file in files if (root := read(str(file))) is not None]
