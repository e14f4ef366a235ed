from .mlflow_models import (
    log_model as log_model,
)
from .registry import (
    ModelRecord as ModelRecord,
    Registry as Registry,
)
