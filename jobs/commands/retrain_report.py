"""The report of a round: JSON, Markdown, a page, and a picture of all rounds so far."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from bagbasis.core.digits import rounded, with_error
from bagbasis.data.storage.files import discard_empty, names_in, read_bytes, writing
from bagbasis.data.storage.urls import normalize_url
from bagbasis.models.verdict import RIVALS, targets_in_words, verdict
from bagbasis.operations import Round

from ..files import write_page, write_report
from ..markdown import markdown_table
from ..page import render
from ..pictures.charts import Chart, Series
from ..pictures.evaluation import save_figure
from ..pictures.model_part import FEW_JUDGED, compare_judged, few_judged
from ..pictures.parts import Part, Table, facts
from ..pictures.rounds import draw_rounds

NAME = "retrain"
GATE_COLORS = {"inputs": "blue", "concept": "orange", "labels": "purple"}
ROUND = re.compile(r"round-\d{6,}")


def write_round(out_dir: str, report: dict[str, Any], rounds: Sequence[Round]) -> str:
    """Write ``retrain.json``, ``.md``, ``.html`` and ``.png`` into the round's folder.

    Returns its URL. Each file is replaced as a whole, so a round may be written twice. What killed
    writers left in the folders of other rounds is deleted when it is a day old.

    Raises
    ------
    StoreError
        The folder cannot be written.
    """
    out_dir, name = out_dir.rstrip("/"), f"round-{report['number']:06d}"
    for other in names_in(out_dir):
        if ROUND.fullmatch(other) and other != name:
            discard_empty(f"{out_dir}/{other}")
    folder = f"{out_dir}/{name}"
    url = f"{normalize_url(folder)}/{NAME}"
    write_report(f"{url}.json", report)
    with writing(f"{url}.md") as path:
        path.write_text(markdown(report), encoding="utf-8")
    write_page(f"{url}.html", render(NAME, [round_part(report, rounds)], {}))
    save_figure(draw_rounds(rounds, report), f"{url}.png")
    return folder


def write_metrics(url: str, report: dict[str, Any], registry_url: str) -> None:
    """Write the numbers of a round for node_exporter's collector of text files.

    After a call without a round the file is written again with the same numbers: its time tells
    that calls end well (``node_textfile_mtime_seconds``).

    Raises
    ------
    StoreError
        The file cannot be written.
    """
    text = metrics(report, registry_url) if "number" in report else read_bytes(url)
    if text:
        with writing(url) as path:
            path.write_bytes(text)


def metrics(report: dict[str, Any], registry_url: str) -> bytes:
    """Return the numbers of a round in Prometheus' text format, without those that are None."""
    gates = (report.get("gates") or {}).get("gates", {})
    judges = {"challenger": report["error"], "champion": report["champion_error"]}
    errors = {name: value for name, value in judges.items() if value is not None}
    rows: list[tuple[str, str, str, dict[str, float]]] = [
        ("round", "Number of the newest round", "", {"": report["number"]}),
        ("duration_seconds", "How long it took", "", {"": report["seconds"]}),
        ("new_bags", "Bags since the round before", "", {"": report["n_new"]}),
        ("fitted_bags", "Bags of its model", "", {"": report["n_bags_fitted"]}),
        ("judged_bags", "Held-out bags that judged", "", {"": report["n_judged"]}),
        (
            "decision",
            "1: what was decided",
            "decision",
            {
                decision: float(decision == report["decision"])
                for decision in ("promoted", "kept", "overtaken")
            },
        ),
        ("error", report["measure"], "model", errors),
        (
            "drift_p_value",
            "Of each gate",
            "gate",
            {g: test["p_value"] for g, test in gates.items()},
        ),
        (
            "drift_wealth",
            "Logarithm to base 10 of the capital of a gate that bets",
            "gate",
            (report.get("gates") or {}).get("wealth", {}),
        ),
        (
            "drift",
            "1: found by the gate",
            "gate",
            {g: test["drifted"] for g, test in gates.items()},
        ),
    ]
    registry = CollectorRegistry()
    for name, text, label, values in rows:
        labels = ["registry", *([label] if label else [])]
        gauge = Gauge(f"bagbasis_retrain_{name}", text, labels, registry=registry)
        for key, value in values.items():
            gauge.labels(registry_url, *([key] if label else [])).set(value)
    return generate_latest(registry)


def round_lines(report: dict[str, Any]) -> list[str]:
    """Return lines on what a person needs to know of a round, or of a call without one."""
    if "number" not in report:
        return [str(report["reason"])]
    lines = [f"Round {report['number']}: {_decision(report)}"]
    if report["corrupt"]:
        lines.append(_corruption(report))
    if report["new_sequence"] and report["number"] > 1:  # the first round decides them in any case
        lines.append(f"All features were decided anew: {report['new_sequence']}")
    elif report["recomputed"] and report["number"] > 1:  # the first round counts all in any case
        lines.append(f"All bags were counted again: {report['recomputed']}")
    if report.get("n_changed"):
        lines.append(f"Bags removed or relabelled since the last round: {report['n_changed']:,}")
    lines += [f"{text[0].upper()}{text[1:]}" for text in report.get("alarms", ())]
    outside = {what: n for what, n in report["n_outside_box"].items() if n}
    lines += [f"Outside the box, of the new bags: {n:,} {what}" for what, n in outside.items()]
    return lines


def markdown(report: dict[str, Any]) -> str:
    """Write the whole report for people."""
    first, *notes = round_lines(report)
    rows = [
        ("time", report["at"]),
        ("challenger", report["model"]),
        ("champion before", report["champion_before"]),
        (f"{report['measure']}, challenger", report["error"]),
        (f"{report['measure']}, champion", report["champion_error"]),
        ("held-out bags that judged", report["n_judged"]),
        ("new bags", report["n_new"]),
        ("of them with a label", report["n_new_labelled"]),
        ("bags of the window", "{:,} to {:,}".format(*report["window"])),
        ("bags that left it", report["n_left"]),
        ("bags fitted", report["n_bags_fitted"]),
        ("penalty", report["alpha"]),
        ("seconds", report["seconds"]),
    ]
    passes = [(purpose, n) for purpose, n in report["bag_passes"].items()]
    parts = [f"# {first}", *notes, markdown_table(("", ""), rows)]
    parts += ["## Bags that went through the bases", markdown_table(("for", "bags"), passes)]
    if report.get("gates"):  # rounds that an earlier version decided have none
        gates = _gates(report["gates"])
        parts += ["## Drift", gates.note, markdown_table(gates.columns, gates.rows)]
    if report["drift"] is not None:
        shifts = _coordinates(report["drift"])
        parts += ["### Where the bags differ", markdown_table(shifts.columns, shifts.rows)]
    if report["check"] is not None:
        check = report["check"]
        parts += [
            "## Running sums against the bags counted again",
            f"Relative differences; rounding stays below {check['bound']:.0e}.",
            markdown_table(("array", "difference"), list(check["differences"].items())),
        ]
    return "\n\n".join([*parts, f"![{NAME}.png]({NAME}.png)"]) + "\n"


def round_part(report: dict[str, Any], rounds: Sequence[Round]) -> Part:
    """Return the part of a page on a round, and on all rounds so far."""
    first, *notes = round_lines(report)
    worries = [f"{note}." for note in notes]
    if report["decision"] != "promoted":
        worries.insert(0, f"The new model was not promoted: {'; '.join(report['reasons'])}.")
    worries += worries_of_round(report)
    error, spread = report["error"], report.get("standard_error")
    before = report["champion_error"]
    gates = {
        f"{report['measure']}, challenger": None if error is None else with_error(error, spread),
        f"{report['measure']}, champion": None if before is None else rounded(before, spread),
        "held-out bags that judged": report["n_judged"],
        "bags fitted": report["n_bags_fitted"],
        "penalty": report["alpha"],
        "seconds": report["seconds"],
    }
    columns = ["round", "began", "decision", "new bags", "with a label", "error", "champion", "p"]
    rows = [
        [
            *(past.number, past.at[:16].replace("T", " "), past.decision, past.n_new),
            past.n_new_labelled,
            *(None if e is None else rounded(e, spread) for e in (past.error, past.champion_error)),
            past.p_value,
        ]
        for past in rounds
    ]
    note = 'p: of the gate "inputs".' if any(past.p_value is not None for past in rounds) else ""
    details = [Table("Rounds", columns, rows, note)]
    if report.get("gates"):  # rounds that an earlier version decided have none
        details.append(_gates(report["gates"]))
    if report["drift"] is not None:
        details.append(_coordinates(report["drift"]))
    header = {
        "data": report["data_url"],
        "registry": report["registry_url"],
        "challenger": report["model"],
        "champion before": report["champion_before"] or "none",
    }
    return Part(
        first,
        header,
        worries,
        [facts(gates)],
        _charts(report, rounds),
        details,
        answer=answer_of_round(report),
        checks=_checks(report),
        next=next_of(report),
    )


def next_of(report: dict[str, Any]) -> str:
    """Return what to do after a round."""
    return f"bags serve {report['registry_url']} answers with the champion"


def worries_of_round(report: dict[str, Any]) -> list[str]:
    """Return warnings if a baseline is better than the new model, or few bags judged."""
    if report["error"] is None:
        return few_judged(report["n_judged"])
    return compare_judged({**report, "n": report["n_judged"]})


def _checks(report: dict[str, Any]) -> list[str]:
    """Return what this round has looked for: the first has no champion and tests no drift."""
    checks = [f"at least {FEW_JUDGED} bags judged", "points outside the box"]
    if report["champion_before"] is not None:
        checks.append("the new model no worse than the champion")
    if report.get("gates"):
        checks.append("drift of the new bags")
    return checks


def answer_of_round(report: dict[str, Any]) -> str:
    """Return what was decided, and the errors it was decided by, in a sentence or two."""
    decided = {"promoted": "The new model was promoted", "kept": "The champion was kept"}
    outcome = decided.get(report["decision"], "Another round was faster, and its model stays")
    if report["error"] is None:
        return f"{outcome}."
    rivals = {
        "the champion before": report["champion_error"],
        **{text: report.get(key) for key, text in RIVALS.items()},  # older reports have none
    }
    errors = [("the model", report["error"])]
    errors += [(name, error) for name, error in rivals.items() if error is not None]
    where = f"{report['n_judged']:,} held-out bags"
    what = targets_in_words(report.get("targets") or ()) or "the labels"
    sentence = verdict(what, report["measure"], where, errors, report.get("standard_error"))
    first = " It is the first model of the registry." if report["champion_before"] is None else ""
    return f"{outcome}.{first} {sentence}"


def _charts(report: dict[str, Any], rounds: Sequence[Round]) -> list[Chart]:
    def series(
        label: str, key: str, chosen: Sequence[Round], color: str = "blue", radius: float = 3.0
    ) -> Series:
        points = [(past.number, getattr(past, key)) for past in chosen]
        known = [(x, y) for x, y in points if y is not None]
        x, y = [x for x, _ in known], [y for _, y in known]
        return Series(label, x, y, color=color, radius=radius)

    refused = [past for past in rounds if past.decision != "promoted"]
    errors = [
        series("challenger", "error", rounds),
        series("champion before", "champion_error", rounds, color="orange"),
        series("not promoted", "error", refused, color="purple", radius=6),
    ]
    charts = [Chart(f"{report['measure']} over the rounds", "round", report["measure"], errors)]
    tested = []
    for gate, color in GATE_COLORS.items():
        known = [past for past in rounds if gate in past.p_values]
        if known:
            numbers, p = [past.number for past in known], [past.p_values[gate] for past in known]
            tested.append(Series(gate, numbers, p, color=color))
    charts += _wealth(report, rounds)
    if tested:
        level = (report.get("gates") or {}).get("level")
        note = "" if level is None else f"In this round a gate alarms up to p = {level:.3g}."
        charts.append(Chart("Gates of drift", "round", "p-value", tested, note, log_y=True))
    return charts


def _wealth(report: dict[str, Any], rounds: Sequence[Round]) -> list[Chart]:
    """Draw the capital of gates that bet over the rounds; no chart where none does."""
    drawn = []
    for gate, color in GATE_COLORS.items():
        known = [past for past in rounds if gate in past.wealth]
        if known:
            values = [10 ** past.wealth[gate] for past in known]
            drawn.append(Series(gate, [past.number for past in known], values, color=color))
    if not drawn:
        return []
    level = (report.get("gates") or {}).get("level")
    note = (
        "" if not level else f"A gate alarms where its wealth, 1 at first, reaches {1 / level:.3g}."
    )
    return [Chart("Wealth of the gates that bet", "round", "wealth", drawn, note, log_y=True)]


def _decision(report: dict[str, Any]) -> str:
    model, before = report["model"], report["champion_before"]
    if report["decision"] == "promoted":
        return f"promoted {model}" + (f" instead of {before}" if before else "")
    if report["decision"] == "overtaken":
        return f"overtaken: {'; '.join(report['reasons'])}"
    return f"kept {before}, not {model}: {'; '.join(report['reasons'])}"


def _corruption(report: dict[str, Any]) -> str:
    check = report["check"]
    name, value = max(check["differences"].items(), key=lambda item: item[1])
    return (
        f"CORRUPT SUMS: {name} differed by {value:.3g} from the bags counted again (rounding stays "
        f"below {check['bound']:.0e}); the corrupt sums were discarded. Models since the last "
        "check may be wrong: look at the disk and its memory"
    )


def _gates(gates: dict[str, Any]) -> Table:
    chance = gates.get("level_of_horizon", gates.get("alpha"))  # alpha: of an earlier version
    begun = (
        f"A gate alarms where p is at most {gates['level']:.3g} and the effect at least "
        f"{gates['min_effect']:g}. False alarms have a chance of {chance:g} in "
    )
    if gates.get("wealth"):
        line = (
            f"{begun}all rounds together. The statistic is the wealth of a gate, which began as 1."
        )
    else:
        rounds = f"{gates['horizon']:,} rounds, of which this is number {gates['n_tested']:,}."
        line = begun + rounds
    keys = ("p_value", "effect", "statistic", "n_reference", "n_new")
    rows = [
        [name, "drift" if result["drifted"] else "no drift", *(result[key] for key in keys)]
        for name, result in gates["gates"].items()
    ]
    columns = ("gate", "found", "p", "effect", "statistic", "bags before", "new bags")
    return Table("Gates of drift", columns, rows, line)


def _coordinates(drift: dict[str, Any]) -> Table:
    keys = ("mean_shift", "mean_p_value", "spread_shift", "spread_p_value")
    rows = [
        [str(shift["coordinate"]), *(shift[key] for key in keys)] for shift in drift["coordinates"]
    ]
    columns = ("coordinate", "shift of the mean / sd", "p", "shift of the spread / sd", "p")
    note = f"{drift['n_reference']:,} bags before, {drift['n_new']:,} new."
    return Table("Coordinates that drifted most", columns, rows, note)
