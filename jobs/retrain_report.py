"""The report of a round: JSON, Markdown, and a picture of all rounds so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from bagbasis.retraining import Round
from bagbasis.storage.files import writing
from bagbasis.storage.urls import normalize_url

from .files import write_report
from .pictures.evaluation import BLUE, GREY, ORANGE, new_figure

NAME = "retrain"


def write_round(out_dir: str, report: dict[str, Any], rounds: Sequence[Round]) -> str:
    """Write ``retrain.json``, ``.md`` and ``.png`` into the round's folder; returns its URL.

    Each file is replaced as a whole, so a round may be written twice.

    Raises
    ------
    StoreError
        The folder can not be written.
    """
    folder = f"{out_dir.rstrip('/')}/round-{report['number']:06d}"
    url = f"{normalize_url(folder)}/{NAME}"
    write_report(f"{url}.json", report)
    with writing(f"{url}.md") as path:
        path.write_text(markdown(report))
    figure = _draw(rounds, report)
    with writing(f"{url}.png") as path:
        figure.savefig(path, format="png")
    return folder


def lines_of(report: dict[str, Any]) -> list[str]:
    """What a person needs to know of a round, or of a call without one, line by line."""
    if "number" not in report:
        return [str(report["reason"])]
    lines = [f"Round {report['number']}: {_decision(report)}"]
    if report["corrupt"]:
        lines.append(_corruption(report))
    if report["new_line"]:
        lines.append(f"All features were decided anew: {report['new_line']}")
    elif report["recomputed"]:
        lines.append(f"All bags were counted again: {report['recomputed']}")
    drift = report["drift"]
    if drift is not None and drift["drifted"]:
        lines.append(f"The new bags drifted: p = {drift['p_value']:.3g}")
    outside = {what: n for what, n in report["n_outside_box"].items() if n}
    lines += [f"Outside the box, of the new bags: {n:,} {what}" for what, n in outside.items()]
    return lines


def markdown(report: dict[str, Any]) -> str:
    """The whole report for people."""
    first, *notes = lines_of(report)
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
    parts = [f"# {first}", *notes, _table(("", ""), rows)]
    parts += ["## Bags that went through the bases", _table(("for", "bags"), passes)]
    if report["drift"] is not None:
        parts += ["## Drift of the new bags", *_drift(report["drift"])]
    if report["check"] is not None:
        check = report["check"]
        parts += [
            "## Running sums against the bags counted again",
            f"Relative differences; rounding stays below {check['bound']:.0e}.",
            _table(("array", "difference"), list(check["differences"].items())),
        ]
    return "\n\n".join([*parts, f"![{NAME}.png]({NAME}.png)"]) + "\n"


def _decision(report: dict[str, Any]) -> str:
    model, before = report["model"], report["champion_before"]
    if report["decision"] == "promoted":
        return f"promoted {model}" + (f" in place of {before}" if before else "")
    return f"kept {before}, not {model}: {'; '.join(report['reasons'])}"


def _corruption(report: dict[str, Any]) -> str:
    check = report["check"]
    name, value = max(check["differences"].items(), key=lambda item: item[1])
    return (
        f"CORRUPT SUMS: {name} differed by {value:.3g} from the bags counted again (rounding stays "
        f"below {check['bound']:.0e}); the corrupt sums were discarded. Models since the last "
        "check may be wrong: look at the disk and its memory"
    )


def _drift(drift: dict[str, Any]) -> list[str]:
    outcome = "a drift" if drift["drifted"] else "no drift"
    line = (
        f"{outcome.capitalize()} at alpha = {drift['alpha']:g}: p = {drift['p_value']:.3g}, MMD² = "
        f"{drift['statistic']:.3g}, {drift['n_reference']:,} bags of the window before against "
        f"{drift['n_new']:,} new ones."
    )
    keys = ("coordinate", "mean_shift", "mean_p_value", "spread_shift", "spread_p_value")
    rows = [[shift[key] for key in keys] for shift in drift["coordinates"]]
    columns = ("coordinate", "shift of the mean / sd", "p", "shift of the spread / sd", "p")
    return [line, _table(columns, rows)]


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(_cell(value) for value in line) + " |" for line in lines)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _draw(rounds: Sequence[Round], report: dict[str, Any]) -> Any:
    """Errors, new bags and drift over the rounds, one panel each."""
    figure = new_figure(9.0, 8.4)
    axes = figure.subplots(3, 1, sharex=True)
    _errors(axes[0], rounds, report["measure"])
    _new_bags(axes[1], rounds)
    _p_values(axes[2], rounds, report["drift"])
    axes[2].set_xlabel("round")
    axes[2].xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes[2].set_xlim(0.3, rounds[-1].number + 0.7)
    figure.suptitle(f"Retraining up to round {rounds[-1].number}")
    return figure


def _errors(axis: Axes, rounds: Sequence[Round], measure: str) -> None:
    judged = [one for one in rounds if one.error is not None]
    against = [one for one in rounds if one.champion_error is not None]
    kept = [one for one in judged if one.decision == "kept"]
    axis.plot(
        _numbers(judged), [_y(one.error) for one in judged], "o-", color=BLUE, label="challenger"
    )
    axis.plot(
        _numbers(against),
        [_y(one.champion_error) for one in against],
        "s--",
        color=ORANGE,
        label="champion before",
    )
    axis.plot(_numbers(kept), [_y(one.error) for one in kept], "kx", markersize=11, label="refused")
    axis.set_ylabel(measure if len(measure) < 40 else "error")
    axis.legend(loc="best", fontsize=9)


def _new_bags(axis: Axes, rounds: Sequence[Round]) -> None:
    numbers = _numbers(rounds)
    axis.bar(numbers, [one.n_new for one in rounds], color=GREY, label="new bags")
    axis.bar(numbers, [one.n_new_labelled for one in rounds], 0.5, color=BLUE, label="with a label")
    axis.set_yscale("log")
    axis.set_ylim(bottom=0.8)
    axis.set_ylabel("new bags")
    axis.legend(loc="best", fontsize=9)


def _p_values(axis: Axes, rounds: Sequence[Round], drift: dict[str, Any] | None) -> None:
    tested = [one for one in rounds if one.p_value is not None]
    axis.plot(
        _numbers(tested), [_y(one.p_value) for one in tested], "o", color=BLUE, label="p-value"
    )
    if drift is not None:
        axis.axhline(drift["alpha"], color=ORANGE, linestyle="--", label="alpha")
    axis.set_yscale("log")
    axis.set_ylim(top=1.3)
    axis.set_ylabel("p-value of the drift test")
    if axis.get_legend_handles_labels()[0]:
        axis.legend(loc="best", fontsize=9)


def _numbers(rounds: Sequence[Round]) -> list[int]:
    return [one.number for one in rounds]


def _y(value: float | None) -> float:
    return float("nan") if value is None else value
