"""``python -m tests.jobs.stopping PLACE FOLDER ARGS``: ``bags ARGS``, which stands still there.

At "judged" a network in training has written its second checkpoint. At "saved" the model is there,
and its checkpoints, too; at "discarded" all is done but for saying so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

from bagbasis.jobs.cli import main
from bagbasis.jobs.runs.driver import Driver
from bagbasis.models import saving
from tests.execution.gated import Gate


def stop_at(place: str, gate: Gate) -> None:
    """Whoever comes to the place waits at the gate."""
    if place == "saved":
        save_model = saving.save_model

        @wraps(save_model)  # keys of jobs are declared by its parameters
        def save(*args: Any, **arguments: Any) -> None:
            save_model(*args, **arguments)
            gate.wait()

        saving.save_model = save  # type: ignore[assignment]
    elif place == "judged":
        from bagbasis.neural import training  # JAX: seconds that the other places do not need

        write = training.write_leaves

        def write_and_wait(*args: Any) -> None:
            write(*args)
            if len(args[2]) == 2:  # looks at the bags that judge
                gate.wait()

        training.write_leaves = write_and_wait  # type: ignore[assignment]
    elif place == "discarded":
        Driver.finish = waiting(Driver.finish, gate)  # type: ignore[method-assign]


def waiting(function: Callable[..., None], gate: Gate) -> Callable[..., None]:
    """The function, behind the gate."""

    def wait(*args: Any, **more: Any) -> None:
        gate.wait()
        function(*args, **more)

    return wait


if __name__ == "__main__":
    place, folder, *sys.argv[1:] = sys.argv[1:]
    stop_at(place, Gate(folder))
    main()
