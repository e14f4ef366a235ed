from .config import (
    ClusterConfig as ClusterConfig,
    DirectoryConfig as DirectoryConfig,
    JobConfig as JobConfig,
    ReportConfig as ReportConfig,
    Section as Section,
    load_config as load_config,
    read_yaml as read_yaml,
)
from .model_sections import (
    FittingConfig as FittingConfig,
    ModelSection as ModelSection,
)
from .search_sections import (
    MULTIPLIERS as MULTIPLIERS,
    RUNGS as RUNGS,
    SearchSection as SearchSection,
    embeddings_of as embeddings_of,
    labels_of as labels_of,
)
from .sections import (
    AUTO as AUTO,
    INNER as INNER,
    NAMED as NAMED,
    EmbeddingName as EmbeddingName,
    EmbeddingSection as EmbeddingSection,
    build as build,
    is_automatic as is_automatic,
    named_embedding as named_embedding,
    section_of as section_of,
    section_of_features as section_of_features,
    title_of as title_of,
    with_parameters as with_parameters,
    without_method as without_method,
)
from .sequence_section import (
    FitSection as FitSection,
    RidgeAlone as RidgeAlone,
    RidgeSection as RidgeSection,
    SequenceSection as SequenceSection,
)
