"""Which worker a task of a repeated pass should run on: the one that keeps its rows."""

from __future__ import annotations

from .tasks import current_client


class WorkerAffinity:
    """Remembers a worker for each task, so that the next pass runs it there again.

    Workers have even shares: what is above them, as when a worker has joined, and the tasks of
    workers that are gone, move to those with the fewest. It is a preference alone: a worker
    without work takes others' tasks.
    """

    def __init__(self) -> None:
        self._affinity: dict[int, str] = {}

    def __call__(self, n_tasks: int) -> list[str]:
        """Return the address of a worker per task; nothing without a cluster."""
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
    """Return the addresses of the open cluster's workers; none where work is done here."""
    client = None if here else current_client()
    return [] if client is None else sorted(client.scheduler_info(n_workers=-1)["workers"])
