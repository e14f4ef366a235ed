"""A valid call of every public callable of runs, as `examples` has them; no driver is started."""

from __future__ import annotations

from bagbasis.data.storage.files import write_json
from bagbasis.jobs import runs
from bagbasis.jobs.runs import Status
from bagbasis.jobs.runs.record import STATE
from tests.contract.data_examples import Example
from tests.contract.world import World


def _config(w: World) -> dict[str, str]:
    return {"data_url": w.url, "model_url": str(w.new())}


def _submitted(w: World) -> runs.Run:
    return runs.submit("fit", _config(w), root=w.new(""))


def _over(w: World, status: Status) -> runs.Run:
    run = _submitted(w)
    values = {"attempt": run.record()["attempt"], "status": str(status), "report": {}}
    write_json(f"{run.url}/{STATE}", values)
    return run


RUN_EXAMPLES: dict[str, Example] = {
    "submit": lambda w: (
        runs.submit,
        {"job": "fit", "config": _config(w), "root": w.new("")},
    ),
    "resume": lambda w: (runs.resume, {"run": _over(w, Status.FAILED)}),
    "attach": lambda w: (runs.attach, {"run": _submitted(w).url}),
    "runs_in": lambda w: (runs.runs_in, {"root": w.new("")}),
    "Run": lambda w: (
        lambda **values: runs.Run(**values).status(),
        {"url": _submitted(w).url},
    ),
    "Run.result": lambda w: (_over(w, Status.DONE).result, {}),
    **{
        f"Run.{method}": lambda w, method=method: (getattr(_submitted(w), method), {})
        for method in ("cancel", "logs", "progress", "record", "state", "status")
    },
}
