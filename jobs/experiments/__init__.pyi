from .data import (
    NBody as NBody,
)
from .kit.runner import (
    run_experiment as run_experiment,
)
from .registered import (
    EXPERIMENTS as EXPERIMENTS,
    experiment_type as experiment_type,
)
