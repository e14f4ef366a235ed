from .bags import (
    Bags as Bags,
)
from .clusters import (
    connect as connect,
)
from .embeddings import (
    BagOfWordsEmbedding as BagOfWordsEmbedding,
    CoefficientPCA as CoefficientPCA,
    EmbeddingUnion as EmbeddingUnion,
    ExtremesEmbedding as ExtremesEmbedding,
    HDDEmbedding as HDDEmbedding,
    HistogramEmbedding as HistogramEmbedding,
    MeanMapEmbedding as MeanMapEmbedding,
    MomentsEmbedding as MomentsEmbedding,
    PointTransformer as PointTransformer,
    ProjectionEmbedding as ProjectionEmbedding,
    ShrunkEmbedding as ShrunkEmbedding,
    SlicedWassersteinEmbedding as SlicedWassersteinEmbedding,
)
from .evaluation import (
    cross_val_score as cross_val_score,
    evaluate as evaluate,
)
from .models import (
    DoubleBasisClassifier as DoubleBasisClassifier,
    DoubleBasisRegressor as DoubleBasisRegressor,
    KernelSmoother as KernelSmoother,
    StreamingRidge as StreamingRidge,
    TripleBasisRegressor as TripleBasisRegressor,
    features as features,
    load_model as load_model,
)
from .random_features import (
    LearnedFourierFeatures as LearnedFourierFeatures,
    NystroemFeatures as NystroemFeatures,
    RandomFourierFeatures as RandomFourierFeatures,
)
from .store import (
    BagStore as BagStore,
)

__version__: str
