"""Models in MLflow: logged with what their report says, and loaded as a ``python_function``.

What MLflow keeps is the folder that ``save`` writes, not a pickle: loading it runs no code from it.
"""

from __future__ import annotations

import os
import tempfile
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..config_errors import items_of
from ..errors import BagbasisError, ModelError, needing_extra
from ..models import DoubleBasis, load_model
from ..parameters import Instance, Text, checked
from ..versions import version

if TYPE_CHECKING:
    from mlflow.models.model import ModelInfo

LONGEST = 500  # characters of a parameter, which every tracking server keeps
FOLDER = "model.zarr"


class _Bags:
    """What MLflow calls: predictions of bags that are given as lists, arrays or a frame."""

    def __init__(self, model: DoubleBasis) -> None:
        self._model = model

    def predict(self, model_input: Any, params: object = None) -> NDArray[Any]:  # noqa: ANN401
        """Return the predictions of bags: a list of arrays, or a frame with a column ``bag``."""
        bags = model_input["bag"] if hasattr(model_input, "columns") else model_input
        found: NDArray[Any] = self._model.predict([np.asarray([*bag], dtype=float) for bag in bags])
        return found


def _load_pyfunc(path: str) -> _Bags:
    """Load what MLflow kept; it looks for this name."""
    return _Bags(load_model(path))


@checked(model=Instance("DoubleBasis"), name=Text)
def log_model(model: DoubleBasis, name: str = "model") -> ModelInfo:
    """Log a fitted model into MLflow's active run: itself, its parameters and its report.

    ``mlflow.pyfunc.load_model`` then gives a model whose ``predict`` takes a list of bags, or a
    data frame with a column ``bag`` (points per bag), where bagbasis is installed. Needs
    ``pip install 'bagbasis[mlflow]'``.

    Parameters
    ----------
    model : fitted estimator
    name : str
        In the run.

    Returns
    -------
    mlflow.models.model.ModelInfo
        ``model_uri`` is what `mlflow.pyfunc.load_model` and `mlflow.register_model` take.

    Raises
    ------
    ModelError
        The model is not fitted, MLflow is not installed, or it refuses.
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
    given = {key: str(value)[:LONGEST] for key, value in model.get_params().items()}
    try:
        mlflow.log_params(given)
        mlflow.log_metrics(numbers)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / FOLDER
            model.save(os.fspath(path))
            return mlflow.pyfunc.log_model(
                name=name,
                loader_module=__name__,
                data_path=os.fspath(path),
                pip_requirements=[f"bagbasis[mlflow]=={version('bagbasis')}"],
            )
    except BagbasisError:
        raise
    except (mlflow.MlflowException, OSError, ValueError) as error:  # the last of names with a NUL
        raise ModelError(f"MLflow did not take the model ({error})") from error
