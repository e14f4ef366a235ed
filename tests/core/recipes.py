"""A package of somebody else: the modules of CONTRIBUTING, and what `example_package` adds."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"
OTHERS = Path(__file__).parent / "example_package"
MODULES = {
    "an embedding": "wavelets/centre.py",
    "a statistic": "wavelets/mean_gap.py",
    "a format": "wavelets/molecules.py",
    "a solver": "wavelets/eigen.py",
    "a job": "jobs/count.py",
}
"""What each recipe adds, and the module that its first block of code becomes."""


def blocks_of(what: str) -> list[str]:
    """Return the blocks of Python of a recipe."""
    _, _, rest = CONTRIBUTING.read_text().partition(f"### How to add {what}\n")
    section = re.split(r"^##", rest, maxsplit=1, flags=re.MULTILINE)[0]
    return re.findall(r"```python\n(.*?)```", section, re.DOTALL)


def entry_points() -> str:
    """Return the entry points that CONTRIBUTING names, as an installed package has them."""
    _, _, section = CONTRIBUTING.read_text().partition("## Plugins: components of other packages\n")
    text = re.search(r"```toml\n(.*?)```", section, re.DOTALL)[1]
    return re.sub(r'\[project\.entry-points\."(.*?)"\]', r"[\1]", text).replace('"', "")


def write_package(folder: Path) -> None:
    """Write the package, with the metadata of an installed one; nothing is installed."""
    shutil.copytree(OTHERS, folder, dirs_exist_ok=True)
    (folder / "jobs").mkdir()
    for what, module in MODULES.items():
        (folder / module).write_text(blocks_of(what)[0])
    listed = folder / "wavelets-1.0.dist-info" / "entry_points.txt"
    group = "[bagbasis.embeddings]\n"  # which both have: its lines stand together
    wrong, rest = listed.read_text().removeprefix(group).split("\n\n", 1)
    listed.write_text(f"{group}{wrong}\n{entry_points().removeprefix(group)}\n{rest}")


if __name__ == "__main__":
    write_package(Path(sys.argv[1]))
