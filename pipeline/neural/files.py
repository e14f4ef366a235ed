"""Networks and states of training as files: arrays in .npz, all else as JSON; never pickle."""

from __future__ import annotations

import json
import os
from io import BytesIO
from typing import Any
from zipfile import BadZipFile

import jax
import jax.numpy as jnp
import numpy as np

from ..core.errors import DataError, StoreError
from ..core.saved import Format, newer_error
from ..data.storage.files import read_bytes, writing

HEADER = "header"  # the array that holds the JSON text
_FORMAT = Format("network", key="format")
_STATE = "state.npz"


def write_network_file(path: str | os.PathLike[str], arrays: list[np.ndarray], header: Any) -> None:
    """Write arrays and a header as one file, atomically."""
    text = json.dumps(_FORMAT.stamp(header), allow_nan=True).encode()
    named = {f"leaf{i}": np.asarray(array) for i, array in enumerate(arrays)}
    with writing(path) as partial, partial.open("wb") as file:
        np.savez(file, **{HEADER: np.frombuffer(text, np.uint8)}, **named)  # type: ignore[arg-type]


def read_network_file(path: str | os.PathLike[str]) -> tuple[list[np.ndarray], dict[str, Any]]:
    """Return what `write_network_file` wrote; nothing in the file is run.

    Raises
    ------
    StoreError
        There is no such file, or bagbasis did not write it.
    """
    content = read_bytes(path)
    if content is None:
        raise StoreError(f"{path}: there is no such file")
    return _parsed(content, path)


def _parsed(
    content: bytes, path: str | os.PathLike[str]
) -> tuple[list[np.ndarray], dict[str, Any]]:
    """Return the arrays and the header of a file's content; the path is for errors."""
    try:
        with np.load(BytesIO(content), allow_pickle=False) as archive:
            header = json.loads(archive[HEADER].tobytes().decode())
            arrays = [archive[f"leaf{i}"] for i in range(len(archive.files) - 1)]
        return arrays, _FORMAT.strip(header)
    except (OSError, ValueError, KeyError, TypeError, BadZipFile, RecursionError) as error:
        newer = newer_error(error, {})
        raise StoreError(f"{path}: {newer or f'is not a saved network ({error})'}") from (
            newer or error
        )


def leaves_of(tree: Any) -> list[np.ndarray]:
    """Return the arrays and numbers of a pytree, in its order."""
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def with_leaves(tree: Any, leaves: list[np.ndarray], what: str) -> Any:
    """Return a pytree like ``tree`` with other arrays and numbers.

    Raises
    ------
    StoreError
        They do not fit.
    """
    old, shape = jax.tree.flatten(tree)
    if [np.shape(a) for a in old] != [a.shape for a in leaves]:
        raise StoreError(f"{what}: its arrays are of another network")
    new = [
        jnp.asarray(leaf) if isinstance(like, (jax.Array, np.ndarray)) else type(like)(leaf)
        for like, leaf in zip(old, leaves, strict=True)
    ]
    return jax.tree.unflatten(shape, new)


def write_leaves(
    folder: str, state: Any, history: list[tuple[int, float]], fingerprint: str
) -> None:
    """Write a state of training."""
    header = {"fingerprint": fingerprint, "history": history}
    write_network_file(f"{folder}/{_STATE}", leaves_of(state), header)


def read_leaves(folder: str, like: Any, fingerprint: str) -> tuple[Any, list[Any]] | None:
    """Return the state in a folder with its history, or None if the folder has none.

    Raises
    ------
    DataError
        It is of another estimator, or of other data.
    """
    path = f"{folder}/{_STATE}"
    content = read_bytes(path)
    if content is None:
        return None
    leaves, header = _parsed(content, path)
    if header.get("fingerprint") != fingerprint:
        raise DataError(
            f"{path}: is the checkpoint of another training (other parameters or data); remove it, "
            "or take another folder"
        )
    return with_leaves(like, leaves, path), header["history"]
