from .serving.serve import (
    serve_registry as serve_registry,
)
