from . import (
    data as data,
    datasets as datasets,
    densities as densities,
    embeddings as embeddings,
    hypotheses as hypotheses,
    ingest as ingest,
    models as models,
    neural as neural,
    operations as operations,
    plotting as plotting,
    search as search,
    singlecell as singlecell,
)
from .core.errors import (
    BagbasisError as BagbasisError,
    BagbasisWarning as BagbasisWarning,
    BagError as BagError,
    BusyError as BusyError,
    ClusterError as ClusterError,
    ConfigError as ConfigError,
    DataError as DataError,
    ExhaustedError as ExhaustedError,
    InterruptedStoreError as InterruptedStoreError,
    ModelError as ModelError,
    ParameterError as ParameterError,
    RunError as RunError,
    StoreError as StoreError,
    WriterBusyError as WriterBusyError,
)
from .data.bags.bags import (
    Bags as Bags,
    as_bags as as_bags,
)
from .data.bags.box import (
    Box as Box,
)
from .data.bags.responses import (
    Responses as Responses,
    as_responses as as_responses,
)
from .data.store.merging import (
    merge_stores as merge_stores,
)
from .data.store.store import (
    BagStore as BagStore,
)
from .embeddings.composed.coefficient_pca import (
    CoefficientPCA as CoefficientPCA,
)
from .embeddings.composed.point_transformer import (
    PointTransformer as PointTransformer,
)
from .embeddings.composed.shrunk import (
    ShrunkEmbedding as ShrunkEmbedding,
)
from .embeddings.composed.union import (
    EmbeddingUnion as EmbeddingUnion,
)
from .embeddings.extremes import (
    ExtremesEmbedding as ExtremesEmbedding,
)
from .embeddings.hdd import (
    HDDEmbedding as HDDEmbedding,
)
from .embeddings.histogram import (
    HistogramEmbedding as HistogramEmbedding,
)
from .embeddings.mean_map import (
    MeanMapEmbedding as MeanMapEmbedding,
)
from .embeddings.moments import (
    MomentsEmbedding as MomentsEmbedding,
)
from .embeddings.projection import (
    ProjectionEmbedding as ProjectionEmbedding,
)
from .embeddings.random_features.fourier import (
    RandomFourierFeatures as RandomFourierFeatures,
)
from .embeddings.random_features.learned import (
    LearnedFourierFeatures as LearnedFourierFeatures,
)
from .embeddings.random_features.nystroem import (
    NystroemFeatures as NystroemFeatures,
)
from .embeddings.ranked import (
    RankedSummariesEmbedding as RankedSummariesEmbedding,
)
from .embeddings.size import (
    SizeEmbedding as SizeEmbedding,
)
from .embeddings.sliced import (
    SlicedWassersteinEmbedding as SlicedWassersteinEmbedding,
)
from .embeddings.words import (
    BagOfWordsEmbedding as BagOfWordsEmbedding,
)
from .execution.clusters.connections import (
    connect as connect,
)
from .execution.progress import (
    Progress as Progress,
    Report as Report,
)
from .models.classifier import (
    DoubleBasisClassifier as DoubleBasisClassifier,
)
from .models.evaluation.cross_validation import (
    cross_val_score as cross_val_score,
)
from .models.judging import (
    evaluate as evaluate,
)
from .models.loading import (
    load_model as load_model,
)
from .models.predictions.features import (
    features as features,
)
from .models.regressor import (
    DoubleBasisRegressor as DoubleBasisRegressor,
)
from .models.smoothing.smoother import (
    KernelSmoother as KernelSmoother,
)
from .models.streaming_ridge import (
    StreamingRidge as StreamingRidge,
)
from .models.triple_basis import (
    TripleBasisRegressor as TripleBasisRegressor,
)
from .models.tuning.halving import (
    tune as tune,
)

__version__: str
