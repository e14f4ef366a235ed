"""Makes the pages of the reference: public names, commands, configuration keys.

All of them are derived: the names from each package's ``__all__``, the commands from Click, the
keys from the configurations of the jobs.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import zlib
from collections import defaultdict
from importlib import import_module
from pathlib import Path
from types import ModuleType

import click

import bagbasis
from bagbasis.core.config_errors import key_sections
from bagbasis.jobs.cli import cli
from bagbasis.jobs.configs.printed import config_text
from bagbasis.jobs.job import JOBS, headings
from bagbasis.jobs.shell import import_job

HERE = Path(__file__).parent
PACKAGES = sorted(
    file.parent.name
    for file in Path(bagbasis.__file__).parent.glob("*/__init__.py")
    if "__all__ = " in file.read_text()
    and file.parent.name != "core"  # of which people use no name
)
TOPICS = {
    "data": "Bags and stores",
    "embeddings": "Embeddings and random features",
    "models": "Models",
    "execution": "Clusters",
    "core": "Errors and warnings",
}
"""Headings of the names of `bagbasis` itself, by the package that defines them."""
MOST_USED = [
    *("DoubleBasisRegressor", "DoubleBasisClassifier", "TripleBasisRegressor", "Bags", "BagStore"),
    *("evaluate", "cross_val_score", "tune", "load_model", "connect"),
]
EXCEPTIONS = {"Progress": "execution", "Report": "execution"}
"""Types of functions, which no package of bagbasis defines."""

FOR_COMPONENTS = {
    "datasets": (
        "block_bags mapping mixtures proportions response_block response_box response_dims"
        " target_names"
    ),
    "embeddings": (
        "ALONE are_outside array_names arrays axes begin blocks bytes_before_kernels check_together"
        " completion cost cost_in count_outside decide described deviations digest"
        " embed_estimates exponent feature_names fill frequencies for_comparison"
        " from_dict from_params group_size groups"
        " is_joint is_linear is_uncertain kind_name learns mapped n_inputs n_parts nesting"
        " omitted plain points_embedded resolve resolve_scale run_kernel scratch_bytes"
        " seconds_per_bag seconds_per_point shares smoothness spec_kind to_dict with_margin"
        " without_margin"
    ),
    "hypotheses": (
        "check choose_scales described draw estimates features group_nulls has_widths is_additive"
        " is_in_space kernels learn_on measure memory null_in_pass nulls of_sums over_widths"
        " pair_map place takes_more unit_sums"
    ),
    "search": "check_field expected_rewards salience",
}
"""Members that bagbasis calls on a component, by package. People who write an embedding or a data
set of their own find them on the page of its base class; pages of subclasses leave them out."""
INTERNAL = {
    "data": (
        "OWNER array bag_ids changes check_ends damage in_order in_order_of none object_points of"
        " positions present read_array read_stored sample_size target_columns trusted written"
    ),
    "ingest": "names_in run_counted",
    "models": (
        "array_names as_prediction check_shapes decision_rows folded from_state in_units"
        " interval_rows knowing_bags measure omitted predicted prediction_cost references"
        " require_calibration require_posterior rmse_errors score_rows sets_of state steps store_of"
        " weight"
    ),
    "neural": "arrays decision_rows from_header header longest numbers_per_point",
    "operations": "all_settings cells omitted state_folder",
    "search": "check_place condition gain",
    "singlecell": "DISTANCES_UNS_KEY",
}
"""Members that other packages of bagbasis use, and people do not. No page has them."""
BASES = (
    "Dataset",
    "Embedding",
    "EmbeddingSpec",
    "FeatureSpec",
    "RandomFeatures",
    "RegionClassifier",
)
"""Classes that people derive components from."""


def hidden_members(value: type) -> list[str]:
    """Return the members that the page of a public class leaves out."""
    package = value.__module__.split(".")[1]
    hidden = INTERNAL.get(package, "").split()
    is_base = value.__name__ in BASES
    return hidden if is_base else [*hidden, *FOR_COMPONENTS.get(package, "").split()]


def left_out() -> dict[str, str]:
    """Return what the pages of public classes leave out, by their full names, for the template."""
    classes = {
        f"{module.__name__}.{name}": getattr(module, name)
        for module in modules()
        for name in own_names(module)
    }
    return {
        name: ", ".join(hidden_members(value))
        for name, value in classes.items()
        if inspect.isclass(value) and value.__module__.startswith("bagbasis")
    }


def texts_of_data() -> dict[str, str]:
    """Return the texts below public constants and names of types, by their full names.

    autodoc finds them only in the module that defines the name.
    """
    home = Path(bagbasis.__file__).parent
    texts = {}
    for module in modules():
        package = module.__name__.partition(".")[2]
        names = [name for name in own_names(module) if not _is_defined(getattr(module, name))]
        for file in sorted((home / package).rglob("*.py")) if names else []:
            body = ast.parse(file.read_text()).body
            for node, text in itertools.pairwise(body):
                targets = (
                    node.targets
                    if isinstance(node, ast.Assign)
                    else [getattr(node, "target", None)]
                )
                match targets, text:
                    case [ast.Name(id=name)], ast.Expr(value=ast.Constant(value=str() as said)):
                        if name in names:
                            texts.setdefault(f"{module.__name__}.{name}", said)
    return texts


def _is_defined(value: object) -> bool:
    """Whether a value is a class or a function of bagbasis, which has a docstring."""
    is_ours = getattr(value, "__module__", "").startswith("bagbasis")
    return inspect.isfunction(value) or (inspect.isclass(value) and is_ours)


class TutorialOrder:
    """Sorts the tutorials from the first to read to the most special; others come last."""

    FILES = (
        *("answers", "schools", "tiles", "instances"),
        *("clusters", "patients", "drift", "million"),
    )

    def __init__(self, folder: str) -> None:
        """Take the folder, as sphinx-gallery asks."""

    def __call__(self, name: str) -> tuple[int, str]:
        """Return the place of a file."""
        word = name.removeprefix("plot_").removesuffix(".py")
        return self.FILES.index(word) if word in self.FILES else len(self.FILES), word


def modules() -> list[ModuleType]:
    """Return the modules whose public names have pages."""
    parts = (import_module(f"bagbasis.{package}") for package in PACKAGES)
    return [bagbasis, *(module for module in parts if own_names(module))]


def own_names(module: ModuleType) -> list[str]:
    """Return the public names of a module that `bagbasis` itself does not have."""
    names = [name for name in module.__all__ if module is bagbasis or name not in bagbasis.__all__]
    return sorted(names, key=str.lower)


def public_names() -> dict[str, str]:
    """Return the full name of each public name, by its last part."""
    return {name: f"{module.__name__}.{name}" for module in modules() for name in own_names(module)}


def foreign_names() -> dict[str, str]:
    """Return the full names of other projects' classes and functions, by their last part.

    Words of English, such as ``load``, are left out.
    """
    lines = [
        line
        for file in sorted((HERE / "inventories").glob("*.txt"))
        for line in file.read_text().splitlines()[1:]
    ]
    full = [line.split()[0] for line in lines if not line.split()[1].endswith("method")]
    parts = {name.rpartition(".")[2]: name for name in full}
    return {part: name for part, name in parts.items() if part[0].isupper() or "_" in part}


def _topic(name: str) -> str:
    home = getattr(getattr(bagbasis, name), "__module__", "").split(".")
    return EXCEPTIONS.get(name) or home[1]


def _summary(names: list[str], toctree: bool) -> list[str]:
    options = ["   :toctree: objects"] if toctree else []
    entries = [f"   {name}" for name in names]
    return [".. autosummary::", "   :nosignatures:", *options, "", *entries, ""]


def _heading(text: str, line: str) -> list[str]:
    return [text, line * len(text), ""]


def _grouped(names: list[str], value_of: ModuleType) -> dict[str, list[str]]:
    """Return names by what they are: classes, functions and the rest."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name in names:
        value = getattr(value_of, name)
        is_type = inspect.isclass(value) and value.__module__.startswith("bagbasis")
        groups["Classes" if is_type else "Functions" if callable(value) else "Data"].append(name)
    return {title: groups[title] for title in ("Classes", "Functions", "Data") if groups[title]}


def _module_page(module: ModuleType) -> str:
    """Return the page of a module: its purpose, and tables of its names with their summaries."""
    title = "bagbasis" if module is bagbasis else module.__name__
    lines = [*_heading(title, "="), f".. automodule:: {module.__name__}", ""]
    lines += [f".. currentmodule:: {module.__name__}", ""]
    if module is bagbasis:
        topics: dict[str, list[str]] = defaultdict(list)
        for name in own_names(module):
            topics[_topic(name)].append(name)
        for package, heading in TOPICS.items():
            lines += [*_heading(heading, "-"), *_summary(topics[package], toctree=True)]
        return "\n".join(lines)
    for title, names in _grouped(own_names(module), module).items():
        lines += [*_heading(title, "-"), *_summary(names, toctree=True)]
    package = module.__name__.rpartition(".")[2]
    shared = [name for name in own_names(bagbasis) if _topic(name) == package]
    if shared:
        lines += _heading("Imported from bagbasis itself", "-")
        lines += _summary([f"~bagbasis.{name}" for name in shared], toctree=False)
    return "\n".join(lines)


def _write(file: Path, text: str) -> None:
    if not file.exists() or file.read_text() != text:  # else all is read again
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_text(text)


def write_api() -> None:
    """Write a page for each module; autosummary writes one for each name in its tables."""
    names = [module.__name__ for module in modules()]
    for module in modules():
        _write(HERE / "api" / f"{module.__name__}.rst", _module_page(module))
    lines = [
        *_heading("API reference", "="),
        "For programmers who know what they look for. Each public name of bagbasis has a page with",
        "its parameters, an example, its source, and links to the pages and tutorials that use it.",
        "Names that are not listed here are private and may change at any time (:doc:`/policy`).",
        "",
        *_heading("Most used", "-"),
        ".. currentmodule:: bagbasis",
        "",
        *_summary(
            MOST_USED,
            toctree=False,
        ),
        *_heading("Packages", "-"),
        ".. toctree::",
        "   :maxdepth: 1",
        "",
        *(f"   {name}" for name in names),
        "",
    ]
    _write(HERE / "api" / "index.rst", "\n".join(lines))


def pages_of_names() -> dict[str, str]:
    """Return links to the pages that name a public object, by its full name."""
    copies = ("changes", "index", "deploying", "papers", "configuration", "contributing")
    files = [*sorted(HERE.glob("how-to/*.md")), *sorted(HERE.glob("*.md"))]
    words = {
        file.relative_to(HERE).with_suffix(""): set(re.findall(r"\w+", file.read_text()))
        for file in files
        if file.stem not in copies
    }
    return {
        full: ", ".join([f":doc:`/{page}`" for page in words if name in words[page]][:8])
        for name, full in public_names().items()
        if name[0].isupper() or "_" in name or name == "tune"  # others are words of English
    }


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    def line(cells: tuple[str, ...]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return [line(header), "|" + "---|" * len(header), *map(line, rows), ""]


def _plain(text: str) -> str:
    """Return a help text as Markdown: without marks of a terminal, and with stars as they are."""
    text = " ".join(text.replace("\b", "").split()).replace("*", "\\*").replace("<", "&lt;")
    value = r"((=| (?=[a-z_]+=))[\w.=]*[\w=])?"
    return re.sub(rf"(?<![\w-])--[a-z][\w.-]*{value}", r"`\g<0>`", text)  # else a dash


def _command_page(words: str, command: click.Command) -> str:
    """Return the page of a command: what it does, its options, and the keys of its config."""
    context = click.Context(command, info_name=f"bags {words}")
    lines = ["---", "tocdepth: 2", "---", "", f"# bags {words}", "", _plain(command.help or ""), ""]
    lines += ["```console", "$ " + command.get_usage(context).removeprefix("Usage: "), "```", ""]
    options = [
        (", ".join(f"`{name}`" for name in option.opts), _plain(option.help or ""))
        for option in command.get_params(context)
        if isinstance(option, click.Option)
    ]
    lines += ["## Options", "", *_table(("option", "meaning"), options)]
    if command.name in JOBS:
        job = import_job(command.name)
        lines += ["## Keys", "", "In the YAML file, or with `--set key=value`."]
        lines += [f"[All keys as a file](../configuration.md#{command.name}).", ""]
        for title, rows in key_sections(job.Config).items():
            lines += [f"### {title}", ""] if title else []
            cells = [(f"`{key}`", _plain(text)) for key, text in rows]
            lines += _table(("key", "meaning"), cells)
        if hasattr(job, "EXIT_CODES"):
            codes = [(str(code), _plain(text)) for code, text in job.EXIT_CODES.items()]
            lines += ["## Exit codes", "", *_table(("code", "meaning"), codes)]
    return "\n".join(lines)


def _commands() -> dict[str, click.Command]:
    """Return every command by its words, those of groups one by one."""
    commands = {}
    for name, command in cli.commands.items():
        if command.hidden:
            continue
        if isinstance(command, click.Group):
            commands |= {f"{name} {part}": first for part, first in command.commands.items()}
        else:
            commands[name] = command
    return commands


def write_commands() -> None:
    """Write a page for each command and one that lists them all."""
    commands = _commands()
    lines = [
        "# Commands",
        "",
        "For people who work in a shell: each command of `bags` with its options and the keys of",
        "its configuration. [The command line](../command-line.md) shows how they work together.",
        "",
    ]
    for heading, names in headings().items():
        rows = [
            (
                f"[`bags {words}`]({words.replace(' ', '-')}.md)",
                _plain(command.get_short_help_str(200)),
            )
            for words, command in commands.items()
            if words.split()[0] in names
        ]
        lines += [f"## {heading}", "", *_table(("command", "purpose"), rows)]
    tree = [words.replace(" ", "-") for words in commands]
    lines += ["```{toctree}", ":hidden:", "", *tree, "```", ""]
    _write(HERE / "commands" / "index.md", "\n".join(lines))
    for words, command in commands.items():
        _write(HERE / "commands" / f"{words.replace(' ', '-')}.md", _command_page(words, command))


def write_configuration() -> None:
    """Write the page with the configuration of every job, each key explained."""
    lines = [
        "# Configuration keys",
        "",
        "For people who write a YAML file for `bags`: every key of every job, with its default and",
        "its meaning. `bags config JOB > JOB.yaml` prints the same text, to start from.",
        "",
    ]
    for job in JOBS:
        lines += [f"({job})=", f"## {job}", "", "```yaml", config_text(job).rstrip(), "```", ""]
    _write(HERE / "configuration.md", "\n".join(lines))


def write_inventories(folder: Path) -> dict[str, tuple[str, str]]:
    """Return intersphinx's mapping, from lists of names in this folder, without the network."""
    folder.mkdir(parents=True, exist_ok=True)
    mapping = {}
    for file in sorted((HERE / "inventories").glob("*.txt")):
        url, *names = file.read_text().split("\n")
        header = (
            f"# Sphinx inventory version 2\n# Project: {file.stem}\n# Version: \n"
            "# The remainder of this file is compressed using zlib.\n"
        )
        made = folder / f"{file.stem}.inv"
        made.write_bytes(header.encode() + zlib.compress("\n".join(names).encode()))
        mapping[file.stem] = (url, str(made))
    return mapping
