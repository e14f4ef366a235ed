"""What a shell completes: keys of ``--set``, jobs, datasets, cluster profiles, and the scripts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem, get_completion_class

from .job import JOBS

if TYPE_CHECKING:
    from .job import Job

SHELLS = ("bash", "zsh", "fish")
# In the package's configs: a job and a key per line. The Config of a job has the same keys, but
# imports the library, which takes seconds.
KEYS_FILE = "keys.txt"
Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def script(shell: str) -> str:
    """Return the script of a shell that completes the words of ``bags``."""
    kind = get_completion_class(shell)
    assert kind is not None
    made = kind.__new__(kind)  # its __init__ is the base's; for bash the version of the shell is
    kind.__init__(made, None, {}, "bags", "_BAGS_COMPLETE")  # type: ignore[arg-type]  # of the program
    return made.source_template % made.source_vars()


def complete_words(name: str, job: Job) -> Complete:
    """Return what completes the arguments of a job: datasets by their names, files else."""

    def complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
        if job.shortcut == "dataset":
            from bagbasis.datasets import DATASETS

            return _starting(incomplete, [*DATASETS])
        return [CompletionItem(incomplete, type="file")]

    return complete


def complete_jobs(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the name of a job."""
    return _starting(incomplete, [*JOBS])


def complete_keys(
    context: click.Context, _: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the dotted keys of the command's job, before the equals sign."""
    name = context.command_path.partition(" ")[2].replace(" ", "-")
    if name not in JOBS:
        name = str(context.params.get("job") or "")
    if name not in JOBS or "=" in incomplete:
        return []
    from importlib import resources

    lines = (resources.files("bagbasis.configs") / KEYS_FILE).read_text(encoding="utf-8")
    keys = [key for job, key in map(str.split, lines.splitlines()) if job == name]
    return _starting(incomplete, [f"{key}=" for key in keys])


def complete_clusters(
    _: click.Context, __: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the names of the profiles that the package contains."""
    from importlib import resources

    folder = resources.files("bagbasis.configs") / "profiles"
    names = (
        [entry.name.removesuffix(".yaml") for entry in folder.iterdir()] if folder.is_dir() else []
    )
    return _starting(incomplete, ["none", "local", *sorted(n for n in names if "." not in n)])


def _starting(incomplete: str, names: list[str]) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
