"""The place where a job puts its model: free, taken, or holding this job's own earlier model."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from bagbasis.core.errors import ModelError, StoreError
from bagbasis.data.storage.files import read_json
from bagbasis.data.storage.urls import normalize_url
from bagbasis.data.storage.zarr_stores import is_taken

from ..files import plain

if TYPE_CHECKING:
    from bagbasis.models.saving import Saveable
    from bagbasis.neural import SequenceClassifier, SequenceRegressor

    from ..configs.model_sections import FittingConfig
    from ..pictures.model_part import JobModel


class ModelPlace:
    """The ``model_url`` of a job, which recognises a model saved by an earlier try of the job.

    A submitted run recognises it by the run's id. Any other job recognises it by its config, as
    long as its report is missing, because the report is the last thing a job writes.

    Parameters
    ----------
    job : str
    config : FittingConfig
    run : str or None
        The id of the submitted run.

    Attributes
    ----------
    url : str

    Raises
    ------
    ModelError
        Something is there that must stay.
    """

    def __init__(self, job: str, config: FittingConfig, run: str | None) -> None:
        from bagbasis.models.saving import check_model_place

        self.url = normalize_url(config.model_url)
        self._overwrite = config.overwrite
        self._mark = run or _mark(job, config)
        if is_taken(self.url) and not self._may_replace():
            raise ModelError(
                f"{self.url}: exists already; choose another model_url or set overwrite=true"
            )
        if not self.is_ours():
            check_model_place(self.url, overwrite=True)

    def is_ours(self) -> bool:
        """Return whether an earlier try of the job saved the model that is there."""
        from bagbasis.models.saving import is_of_run

        return is_of_run(self.url, self._mark)

    def save(self, model: Saveable) -> None:
        """Save the job's model."""
        from bagbasis.models import save_model

        save_model(model, self.url, overwrite=self._may_replace(), run=self._mark)

    def checkpoint(self, url: str | None) -> str | None:
        """Return this job's own folder below the URL for its checkpoints; None without one."""
        if url is None:
            return None
        mark = self._mark or hashlib.sha256(self.url.encode()).hexdigest()[:32]
        return f"{normalize_url(url)}/network-{mark}"

    def _may_replace(self) -> bool:
        return self._overwrite or self.is_ours()


def open_model(url: str) -> JobModel:
    """Load a saved model of any kind; an error names the extra where a network needs it.

    Raises
    ------
    ModelError
        Nothing there, not a model, or damaged.
    """
    from bagbasis import load_model
    from bagbasis.models.loading import is_network

    if not is_network(url):
        return load_model(url)
    from bagbasis.neural import load_network

    network: Any = load_network(url)  # of the kinds that `bags fit` fits
    fitted: SequenceRegressor | SequenceClassifier = network
    return fitted


def _mark(job: str, config: FittingConfig) -> str | None:
    """Return a name of the job made from its config; None if the job is already done."""
    path = config.report_path
    values = plain(config.model_dump())
    if path is None:
        return None
    with suppress(StoreError):  # an empty file is not a report
        if read_json(path, lambda report: report["config"]) == values:
            return None
    from bagbasis import BagStore

    # A model of other bags is another model, which must not be replaced.
    store = BagStore.open(config.data_url)
    values |= {"n_bags": store.n_bags, "n_points": store.n_points, "snapshot": store.snapshot}
    return f"{job}-{hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:32]}"
