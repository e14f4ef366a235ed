"""Preferred workers of the tasks of a repeated pass: those that keep the tasks' rows."""

from __future__ import annotations

from .tasks import current_client


class WorkerAffinity:
    """Remembers a worker for each task, so that the next pass runs it there again.

    Tasks are spread evenly over the workers. Excess tasks, for example after a worker has joined,
    and the tasks of lost workers move to the workers with the fewest tasks. This is only a
    preference: an idle worker takes tasks of other workers.
    """

    def __init__(self) -> None:
        self._affinity: dict[int, str] = {}

    def __call__(self, n_tasks: int) -> list[str]:
        """Return the address of a worker for each task; an empty list without a cluster."""
        workers = addresses()
        if not workers:
            return []
        counts = dict.fromkeys(workers, 0)
        most = -(-n_tasks // len(workers))
        preferred_workers: dict[int, str] = {}
        for i, preferred in self._affinity.items():
            if counts.get(preferred, most) < most:
                preferred_workers[i] = preferred
                counts[preferred] += 1
        for i in range(n_tasks):
            if i not in preferred_workers:
                preferred_workers[i] = min(workers, key=counts.__getitem__)
                counts[preferred_workers[i]] += 1
        self._affinity = preferred_workers
        return [preferred_workers[i] for i in range(n_tasks)]


def addresses(here: bool = False) -> list[str]:
    """Return the addresses of the open cluster's workers; an empty list without a cluster."""
    client = None if here else current_client()
    return [] if client is None else sorted(client.scheduler_info(n_workers=-1)["workers"])
