"""Log models to MLflow with the contents of their report, and load them as ``python_function``.

MLflow stores the folder that ``save`` writes, not a pickle. Loading a model therefore runs no code
from the stored files.
"""

from __future__ import annotations

import os
import tempfile
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import numpy as np

from ...core import Instance, checked
from ...core.config_errors import items_of
from ...core.errors import BagbasisError, ModelError, needing_extra
from ...core.versions import version
from ...models.loading import PythonFunction, is_network, load_model
from ...models.saving import Saveable, save_model

if TYPE_CHECKING:
    from mlflow.models.model import ModelInfo

LONGEST = 500  # characters of a parameter that every tracking server accepts
_FOLDER = "model.zarr"
LOADS_NETWORKS = "bagbasis.neural.loading"  # module that MLflow imports to load a network


def _load_pyfunc(path: str) -> PythonFunction:
    """Load a model that MLflow stored; MLflow calls the function by this name."""
    return PythonFunction(load_model(path))


class Logged(Saveable, Protocol):
    """A fitted estimator with the counts of its fit."""

    report_: dict[str, Any]


@checked
def log_model(
    model: Annotated[
        Logged, Instance("DoubleBasis") | Instance("LabelledNetwork", "SequenceRegressor")
    ],
    name: str = "model",
) -> ModelInfo:
    """Log a fitted model, its parameters and its report to MLflow's active run.

    The logged model can be loaded with ``mlflow.pyfunc.load_model`` if bagbasis is installed. The
    ``predict`` of the loaded model takes a list of bags, or a DataFrame with a column ``bag``
    (points per bag). Needs ``pip install 'bagbasis[mlflow]'``.

    Parameters
    ----------
    model : fitted estimator
        Fitted estimator, or a fitted network that predicts numbers or classes, such as
        `bagbasis.neural.SequenceRegressor`. Loading a network needs ``bagbasis[neural]``.
    name : str
        Name of the model in the run.

    Returns
    -------
    mlflow.models.model.ModelInfo
        Description of the logged model. Pass its ``model_uri`` to `mlflow.pyfunc.load_model` or
        `mlflow.register_model`.

    Raises
    ------
    ModelError
        If the model is not fitted, MLflow is not installed, or MLflow raises an error.

    See Also
    --------
    Registry : Versioned models under one URL.
    bagbasis.models.save_model : Save a fitted model.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> import mlflow
    >>> from bagbasis import DoubleBasisRegressor
    >>> from bagbasis.operations import log_model
    >>> model = DoubleBasisRegressor('moments').fit(X, y)
    >>> with mlflow.start_run():  # doctest: +SKIP
    ...     info = log_model(model)
    """
    if not hasattr(model, "report_"):
        raise ModelError("the model is not fitted; call fit before logging it")
    with needing_extra("mlflow", "log_model", ModelError):
        import mlflow  # noqa: PLC0415 - an extra
    numbers = {
        key: float(value)
        for key, value in items_of({"alpha": getattr(model, "alpha_", None), **model.report_})
        if isinstance(value, Real) and np.isfinite(float(value))
    }
    params = {key: str(value)[:LONGEST] for key, value in model.get_params().items()}
    try:
        mlflow.log_params(params)
        mlflow.log_metrics(numbers)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / _FOLDER
            save_model(model, os.fspath(path))
            network = is_network(path)
            extras = "mlflow,neural" if network else "mlflow"
            info: ModelInfo = mlflow.pyfunc.log_model(
                name=name,
                loader_module=LOADS_NETWORKS if network else __name__,
                data_path=os.fspath(path),
                pip_requirements=[f"bagbasis[{extras}]=={version('bagbasis')}"],
            )
            return info
    except BagbasisError:
        raise
    except (mlflow.MlflowException, OSError, ValueError) as error:  # ValueError: names with a NUL
        raise ModelError(f"MLflow did not take the model ({error})") from error
