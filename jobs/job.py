"""The jobs of ``bags``: what each of them does, and what the command line has to know of it.

A new job is its module below ``commands``, with a ``Config`` and ``run``, and its entry here. The
table imports no job, so that ``bags --help`` answers at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Job:
    """What the command line knows of a job without importing it.

    Attributes
    ----------
    help : str
        First line of its help.
    heading : str
        Section of ``bags --help``; of a job of a group (``bags test NAME``) the group is listed.
    module : str
        Module below ``commands``; default: the job's name.
    cluster : bool
        Whether ``--cluster`` says where it runs.
    page : bool
        Whether it writes a page next to its report.
    draws : bool
        Whether it draws pictures.
    tends_store : bool
        Whether it looks after a store, and starts no other process.
    shortcut : str
        Key that an argument which is not a YAML file stands for; "" for none.
    more : tuple of str
        Keys that further arguments stand for, in their order.
    output : str
        Key that ``-o`` stands for; "" for none.
    scaled : bool
        Whether ``--scale`` says how large it is.
    self_contained : bool
        Whether it runs without a config.
    checkpoints : bool
        Whether a run that is resumed goes on from the checkpoints of its config.
    """

    help: str
    heading: str
    module: str = ""
    cluster: bool = False
    page: bool = False
    draws: bool = False
    tends_store: bool = False
    shortcut: str = ""
    more: tuple[str, ...] = ()
    output: str = ""
    scaled: bool = False
    self_contained: bool = False
    checkpoints: bool = False


BAGS, _MODELS, _TESTS = "Bags", "Models", "Tests, experiments, help"
COMMAND_GROUPS = ("test", "drift")
"""First words of jobs that are called with two: ``bags test fit`` is "test-fit"."""

JOBS: Mapping[str, Job] = {
    "generate": Job(
        "Write bags of a built-in dataset into a store.",
        BAGS,
        cluster=True,
        shortcut="dataset",
        output="url",
    ),
    "ingest": Job(
        "Turn long tables (Parquet, CSV) or an .npz file into a store.", BAGS, cluster=True
    ),
    "info": Job(
        "Say what is in a store or a model.", BAGS, "stores.info", tends_store=True, shortcut="url"
    ),
    "verify": Job(
        "Check every invariant of a store.",
        BAGS,
        "stores.verify",
        tends_store=True,
        shortcut="url",
    ),
    "remove": Job("Remove bags of a store by their ids.", BAGS, "stores.remove", tends_store=True),
    "relabel": Job("Give bags of a store other labels.", BAGS, "stores.relabel", tends_store=True),
    "merge": Job(
        "Write the bags of several stores into a new one.", BAGS, "stores.merge", tends_store=True
    ),
    "compact": Job(
        "Delete the points of removed bags from the disk.",
        BAGS,
        "stores.compact",
        tends_store=True,
        shortcut="url",
    ),
    "fit": Job(
        "Fit a Double-Basis model to the bags of a store.",
        _MODELS,
        checkpoints=True,
        shortcut="data_url",
        output="model_url",
        cluster=True,
        page=True,
        draws=True,
    ),
    "evaluate": Job(
        "Measure a model on labelled bags; write pictures and a report.",
        _MODELS,
        shortcut="model_url",
        more=("data_url",),
        output="out_dir",
        cluster=True,
        page=True,
        draws=True,
    ),
    "predict": Job(
        "Write a model's predictions, with the bags' ids.",
        _MODELS,
        cluster=True,
        shortcut="model_url",
        more=("data_url",),
        output="output_url",
    ),
    "tune": Job(
        "Choose embedding, kernel width and penalty; fit the best.",
        _MODELS,
        shortcut="data_url",
        output="model_url",
        cluster=True,
        page=True,
        draws=True,
    ),
    "retrain": Job(
        "Learn from new bags; promote the model if it is no worse.",
        _MODELS,
        checkpoints=True,
        cluster=True,
        draws=True,
    ),
    "test-two-sample": Job(
        "Test whether two samples of bags have the same distribution.",
        _TESTS,
        "hypotheses.two_sample",
        cluster=True,
        page=True,
        draws=True,
    ),
    "test-independence": Job(
        "Test whether bags depend on a target.",
        _TESTS,
        "hypotheses.independence",
        cluster=True,
        page=True,
        draws=True,
    ),
    "test-fit": Job(
        "Test whether targets (residuals) follow a distribution.",
        _TESTS,
        "hypotheses.fit",
        page=True,
        draws=True,
    ),
    "drift-fit": Job(
        "Keep a reference that later data are compared with.", _TESTS, "drift.fit", cluster=True
    ),
    "drift-test": Job(
        "Test whether new data are still like a reference.",
        _TESTS,
        "drift.test",
        cluster=True,
        page=True,
    ),
    "demo": Job(
        "Run the main job on real and on generated data.",
        _TESTS,
        cluster=True,
        page=True,
        draws=True,
        self_contained=True,
    ),
    "experiment": Job(
        "Run an experiment of the papers again.",
        _TESTS,
        cluster=True,
        draws=True,
        shortcut="name",
        scaled=True,
    ),
}


def called(job: str) -> str:
    """Return the words by which a job is called: "test fit" for "test-fit"."""
    group, _, rest = job.partition("-")
    return f"{group} {rest}" if rest and group in COMMAND_GROUPS else job


def job_of(words: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return the job that words on the command line begin with, and the words after it."""
    n_words = 2 if len(words) > 1 and words[0] in COMMAND_GROUPS else 1
    return "-".join(words[:n_words]), tuple(words[n_words:])


OTHER_COMMANDS = {
    "Models": ("models", "serve"),
    "Runs in the background": ("submit", "runs", "attach", "cancel"),
    _TESTS: ("config", "doctor", "completion", "warm-up"),
}
"""Commands that are not jobs, by their section of ``bags --help``."""


def headings() -> dict[str, tuple[str, ...]]:
    """Return the commands of each section of ``bags --help``."""
    listed: dict[str, list[str]] = {heading: [] for heading in (BAGS, *OTHER_COMMANDS)}
    for name, job in JOBS.items():
        group, _, rest = called(name).partition(" ")
        shown = group if rest else name
        if shown not in listed[job.heading]:
            listed[job.heading].append(shown)
    return {
        heading: (*names, *OTHER_COMMANDS.get(heading, ())) for heading, names in listed.items()
    }
