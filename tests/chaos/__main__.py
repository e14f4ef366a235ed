"""``make chaos``: kill jobs, flip bits, fail networks and clients, and count what was lost.

``python -m tests.chaos --minutes 5``; ``--seed S --only CAMPAIGN --trial N`` repeats one trial.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
import zlib
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from tests.chaos import clients, disks, flips, kills, networks, objects, runs, writers
from tests.chaos.accounting import Campaign, Fault, Tally
from tests.chaos.jobs import warm
from tests.memory import memory_folder

CAMPAIGNS: tuple[Campaign, ...] = (
    *kills.CAMPAIGNS,
    *objects.CAMPAIGNS,
    *runs.CAMPAIGNS,
    *writers.CAMPAIGNS,
    *disks.CAMPAIGNS,
    *networks.CAMPAIGNS,
    *flips.CAMPAIGNS,
    *clients.CAMPAIGNS,
)

COLUMNS = ("campaign", "trials", "kills", "lost", "wrong", "stuck", "junk bytes", "seconds")
MEMORY_BYTES = 2**30  # that have to be free where files are in memory
LINE_SECONDS = 30.0  # between two lines of progress where none can be overwritten
KINDS = ("lost", "wrong", "stuck")


def main() -> int:
    options = _options()
    campaigns = [
        campaign for campaign in CAMPAIGNS if not options.only or campaign.name in options.only
    ]
    tallies = {campaign.name: Tally() for campaign in campaigns}
    missing = {campaign.name: campaign.missing() for campaign in campaigns}
    print(f"seed {options.seed}", flush=True)
    begun: set[str] = set()
    root = Path(tempfile.mkdtemp(prefix="bagbasis-chaos-", dir=memory_folder(MEMORY_BYTES)))
    warm(root / "warm")
    deadline = time.monotonic() + 60 * (options.minutes + 60 * options.hours)
    ready = [campaign for campaign in campaigns if missing[campaign.name] is None]
    rng = np.random.default_rng(options.seed)
    order = {
        campaign.name: place
        for campaign, place in zip(ready, rng.permutation(len(ready)), strict=True)
    }
    shown = 0.0
    try:
        while ready and time.monotonic() < deadline:
            # time is shared alike: whoever has had the least goes on
            campaign = min(ready, key=lambda item: (tallies[item.name].seconds, order[item.name]))
            shown = _show(tallies, campaign.name, deadline, shown)
            if not _step(campaign, tallies[campaign.name], begun, root, options):
                ready.remove(campaign)
    except KeyboardInterrupt:
        print("\ninterrupted")
    finally:
        _table(tallies, missing)
        for campaign in campaigns:
            if campaign.name in begun:
                campaign.end()
    is_bad = any(tally.is_bad for tally in tallies.values())
    if is_bad:
        print(f"what is left of failed trials is in {root}")
    else:
        shutil.rmtree(root, ignore_errors=True)
    return int(is_bad)


def _step(
    item: Campaign, tally: Tally, begun: set[str], root: Path, options: argparse.Namespace
) -> bool:
    """Do one trial, and before the first what it begins with; False when there is no other."""
    number = tally.trials if options.trial is None else options.trial
    started = time.monotonic()
    folder = root / item.name
    try:
        if item.name not in begun:
            begun.add(item.name)
            folder.mkdir()
            item.begin(folder)
        seeds = np.random.SeedSequence([options.seed, zlib.crc32(item.name.encode()), number])
        tally.trials += 1
        item.trial(np.random.default_rng(seeds), folder, tally)
    except Fault as fault:
        tally.faults[fault.kind] += 1
        again = f"--seed {options.seed} --only {item.name} --trial {number}"
        print(f"\n{item.name}: {fault.kind}: {fault}\n  repeat: python -m tests.chaos {again}")
        if not tally.trials:  # nothing to begin with
            return False
        shutil.copytree(folder, root / f"{item.name}-{number}", symlinks=True, dirs_exist_ok=True)
    finally:
        tally.seconds += time.monotonic() - started
    return options.trial is None


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--hours", type=float, default=0.0)
    parser.add_argument("--minutes", type=float, help="5, if there are no hours")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(3)))
    names = [item.name for item in CAMPAIGNS]
    parser.add_argument("--only", action="append", choices=names, metavar="CAMPAIGN")
    parser.add_argument("--trial", type=int, help="this one alone")
    options = parser.parse_args()
    if options.minutes is None:
        options.minutes = 0.0 if options.hours else 5.0
    return options


def _show(tallies: dict[str, Tally], name: str, deadline: float, shown: float) -> float:
    """One line that moves, or one each half a minute; when that was."""
    now, is_moving = time.monotonic(), sys.stdout.isatty()
    if now - shown < (0 if is_moving else LINE_SECONDS):
        return shown
    kills = sum(tally.kills for tally in tallies.values())
    faults = sum(tally.faults.total() for tally in tallies.values())
    line = f"{max(0.0, deadline - now) / 60:5.1f} min left, {kills} kills, {faults} faults: {name}"
    print(f"{line:<78}", end="\r" if is_moving else "\n", flush=True)
    return now


def _table(tallies: dict[str, Tally], missing: dict[str, str | None]) -> None:
    table = Table()
    for column in COLUMNS:
        table.add_column(column, justify="left" if column == "campaign" else "right")
    rows = [(name, tally) for name, tally in tallies.items() if missing[name] is None]
    total = Tally()
    for _, tally in rows:
        total.trials += tally.trials
        total.kills += tally.kills
        total.junk += tally.junk
        total.seconds += tally.seconds
        total.faults += tally.faults
    for name, tally in [*rows, ("all", total)]:
        counts = (tally.trials, tally.kills, *(tally.faults[kind] for kind in KINDS), tally.junk)
        table.add_row(name, *(f"{count:,}" for count in counts), f"{tally.seconds:.0f}")
    Console(width=100).print(table)
    for name, tally in rows:
        if tally.met:
            print(f"{name} met {', '.join(f'{kind} {n}' for kind, n in tally.met.most_common())}")
    for name, reason in missing.items():
        if reason is not None:
            print(f"{name}: not run: {reason}")


if __name__ == "__main__":
    sys.exit(main())
