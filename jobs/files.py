"""The report that a job leaves: JSON with the keys ``job`` and ``config``, and a page."""

from __future__ import annotations

import importlib
import json
import logging
import math
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from bagbasis.core.credentials import without_credentials
from bagbasis.core.errors import BagbasisWarning, ConfigError, StoreError
from bagbasis.data.storage.files import GROUP_FILE, read_bytes, storage_errors, write_json, writing
from bagbasis.data.storage.urls import is_same_place, local_path, normalize_url
from bagbasis.data.storage.zarr_stores import check_no_link

from .job import JOBS

if TYPE_CHECKING:
    from .configs.config import JobConfig
    from .terminal import Terminal


def run_and_report(
    job: ModuleType, name: str, config: JobConfig, console: Terminal
) -> dict[str, Any]:
    """Run a job, write its report and its page where the config says, and return the report.

    Raises
    ------
    StoreError
        Something else than a report is there, before anything is done; or it cannot be written.
    """
    path = config.report_path
    if JOBS[name].draws or (path is not None and JOBS[name].page):
        importlib.import_module(".pictures.evaluation", __package__)  # is there, before any work
    if path is not None:
        _check_other_places(config, path)
        check_report_place(path)
        if JOBS[name].page:
            check_report_place(page_url(path), is_report_page)
    with logged() as warned:
        report: dict[str, Any] = job.run(config, console)
    if path is not None:
        if JOBS[name].page:  # before the report: once that is there, the job counts as done
            from .page import render

            page = render(name, console.parts, plain(config.model_dump()), warned)
            write_page(page_url(path), page)
            console.line(page_url(path))
        write_report(path, with_config(name, config, report))
    return report


def with_config(name: str, config: JobConfig, report: dict[str, Any]) -> dict[str, Any]:
    """Return the report as it is written: after the job's name and its config."""
    return {"job": name, "config": config.model_dump(), **report}


def make_folder_of(url: str) -> None:
    """Make the local folder that a file will be in.

    Raises
    ------
    StoreError, ParameterError
        It cannot be made; or the URL is none.
    """
    path = local_path(normalize_url(url))
    if path is not None:
        with storage_errors(url, "cannot be written"):
            path.parent.mkdir(parents=True, exist_ok=True)


def page_url(report: str | os.PathLike[str]) -> str:
    """Return the URL of a report's page: next to the JSON file."""
    return f"{os.fspath(report).removesuffix('.json')}.html"


def write_page(url: str, page: str) -> None:
    """Write a page, atomically; StoreError where that is not possible."""
    with writing(url) as path:
        path.write_text(page, encoding="utf-8")


@contextmanager
def logged() -> Iterator[list[str]]:
    """Yield a list that collects the library's warnings in this process, and log each of them."""
    texts: list[str] = []

    def log(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if issubclass(category, BagbasisWarning):
            logger.warning("%s", message)
        else:
            others(message, category, filename, lineno, file, line)

    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: texts.append(  # type: ignore[method-assign]
        without_credentials(record.getMessage())
    )
    handler.addFilter(lambda record: not getattr(record, "is_progress", False))
    logger = logging.getLogger("bagbasis")
    logger.addHandler(handler)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", BagbasisWarning)  # also what was shown before
            others = warnings.showwarning
            warnings.showwarning = log
            yield texts
    finally:
        logger.removeHandler(handler)


def is_report_page(content: bytes) -> bool:
    """Return whether a file was made from the template ``page.html``."""
    return b'name="generator" content="bagbasis report"' in content[:1024]


def is_report(content: bytes) -> bool:
    """Return whether a job wrote the file."""
    try:
        values = json.loads(content)
    except (ValueError, RecursionError):
        return False
    return isinstance(values, dict) and {"job", "config"} <= values.keys()


def check_report_place(
    url: str | os.PathLike[str], is_ours: Callable[[bytes], bool] = is_report
) -> None:
    """Raise StoreError unless the place is free or holds an older report."""
    url = normalize_url(url)
    with storage_errors(url, "cannot be written"):  # a name that is too long, a closed folder
        check_no_link(url)
        path = local_path(url)
        if path is not None and (path.parent / GROUP_FILE).is_file():
            raise StoreError(
                f"{path.parent}: is a store or a model; give another folder for reports"
            )
        if path is None or path.is_file() or not path.exists():
            content = read_bytes(url)
            if not content or is_ours(content):
                return
    raise StoreError(f"{url}: exists and is not a report of a job; move it, or give another place")


def _check_other_places(config: JobConfig, path: str) -> None:
    """Raise ConfigError if the report would replace what the job reads or writes."""
    report = normalize_url(path)
    for key in type(config).model_fields:
        value = getattr(config, key)
        is_place = key == "picture" or key.endswith("url")
        if is_place and isinstance(value, str) and is_same_place(normalize_url(value), report):
            raise ConfigError(f"keys 'report' and {key!r} are both {value!r}; give two places")


def write_report(path: str | os.PathLike[str], report: Mapping[str, Any]) -> None:
    """Write a report as JSON; NaN and infinity become null, numpy's types plain numbers.

    Raises
    ------
    StoreError
        The place cannot be written.
    """
    write_json(path, plain(report), indent=2)


def plain(values: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a mapping in types that JSON knows; any other object becomes its text."""
    return {str(key): _plain(value) for key, value in values.items()}


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return plain(value)
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return str(value)
