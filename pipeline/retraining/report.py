"""The report of a round: everything that was counted, in types that JSON knows."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..monitoring import DriftResult
from .gates import DriftGate
from .state import Round
from .sums import Check

if TYPE_CHECKING:
    from .rounds import NewRound

SHOWN = 5  # coordinates of a drift


def round_report(made: NewRound, round_: Round, seconds: float) -> dict[str, Any]:
    """What `Round` has, and

    - ``reasons``: why the champion stayed; ``champion_before``
    - ``measure``, ``n_judged``: what the errors are, on how many bags
    - ``window``, ``n_left``: the bags of the sums, and how many left them
    - ``new_line``, ``recomputed``: why features were decided anew, why all bags were counted; None
    - ``check``, ``corrupt``: of the running sums, see `Check`
    - ``n_outside_box``: points of the new bags outside the box (of all bags counted in a new line)
    - ``drift``: see `drift_test`
    - ``bag_passes``: bags that went through the bases, by purpose
    """
    model, sums, judged = made.model, made.sums, made.judgement
    return {
        **asdict(round_),
        "champion_before": made.champion,
        "reasons": made.objections,
        "measure": model.outcome_.measure,
        "n_judged": judged.n,
        "data_url": made.store.url,
        "registry_url": made.registry.url,
        "window": list(made.window),
        "n_left": max(0, made.window[0] - made.before[0]) if made.state else 0,
        "n_bags_fitted": model.report_["n_bags_fitted"],
        "alpha": model.alpha_,
        "new_line": made.new_line,
        "recomputed": sums.why,
        "check": _check(sums.check),
        "corrupt": sums.check is not None and not sums.check.passed,
        "n_outside_box": sums.n_outside,
        "drift": _drift(made.drift, made.spec.drift),
        "bag_passes": {
            **sums.passes,
            "evaluation": judged.n * (1 if made.champion is None else 2),
            "drift": made.drift.n_reference + made.drift.n_new if made.drift else 0,
        },
        "seconds": seconds,
    }


def _check(check: Check | None) -> dict[str, Any] | None:
    return None if check is None else asdict(check)


def _drift(result: DriftResult | None, gate: DriftGate) -> dict[str, Any] | None:
    """Of the coordinates the five that differ most."""
    if result is None:
        return None
    values = result.to_dict()
    values["coordinates"].sort(key=lambda one: min(one["mean_p_value"], one["spread_p_value"]))
    return {
        **values,
        "coordinates": values["coordinates"][:SHOWN],
        "alpha": gate.alpha,
        "drifted": result.p_value <= gate.alpha,
        "action": gate.action,
    }
