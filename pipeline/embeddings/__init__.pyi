from .base import (
    Embedding as Embedding,
    EmbeddingSpec as EmbeddingSpec,
)
from .bases.functions import (
    BASES as BASES,
    evaluate_basis as evaluate_basis,
)
from .bases.index_sets import (
    index_set as index_set,
)
from .composed.coefficient_pca import (
    CoefficientPCA as CoefficientPCA,
    CoefficientPCASpec as CoefficientPCASpec,
)
from .composed.point_transformer import (
    PointTransformer as PointTransformer,
    PointTransformerSpec as PointTransformerSpec,
)
from .composed.series import (
    SeriesEmbedding as SeriesEmbedding,
    bags_of_series as bags_of_series,
)
from .composed.shrunk import (
    ShrunkEmbedding as ShrunkEmbedding,
    ShrunkSpec as ShrunkSpec,
)
from .composed.union import (
    EmbeddingUnion as EmbeddingUnion,
    UnionSpec as UnionSpec,
)
from .description import (
    Description as Description,
    SeriesShape as SeriesShape,
)
from .extremes import (
    ExtremesEmbedding as ExtremesEmbedding,
    ExtremesSpec as ExtremesSpec,
)
from .hdd import (
    HDDEmbedding as HDDEmbedding,
)
from .hdd_spec import (
    HDDSpec as HDDSpec,
)
from .histogram import (
    HistogramEmbedding as HistogramEmbedding,
    HistogramSpec as HistogramSpec,
)
from .kinds import (
    EMBEDDINGS as EMBEDDINGS,
)
from .mean_map import (
    MeanMapEmbedding as MeanMapEmbedding,
    MeanMapSpec as MeanMapSpec,
    mmd_squared as mmd_squared,
)
from .moments import (
    MomentsEmbedding as MomentsEmbedding,
    MomentsSpec as MomentsSpec,
)
from .projection import (
    ProjectionEmbedding as ProjectionEmbedding,
    ProjectionSpec as ProjectionSpec,
)
from .random_features.base import (
    FeatureSpec as FeatureSpec,
    RandomFeatures as RandomFeatures,
)
from .random_features.fourier import (
    FourierSpec as FourierSpec,
    RandomFourierFeatures as RandomFourierFeatures,
)
from .random_features.learned import (
    LearnedFourierFeatures as LearnedFourierFeatures,
)
from .random_features.learned_spec import (
    LearnedSpec as LearnedSpec,
)
from .random_features.nystroem import (
    NystroemFeatures as NystroemFeatures,
    NystroemSpec as NystroemSpec,
)
from .random_features.registered import (
    DEFAULT_FEATURES as DEFAULT_FEATURES,
    RANDOM_FEATURES as RANDOM_FEATURES,
)
from .ranked import (
    RankedSummariesEmbedding as RankedSummariesEmbedding,
    RankedSummariesSpec as RankedSummariesSpec,
)
from .registered import (
    spec_from_dict as spec_from_dict,
    spec_to_dict as spec_to_dict,
)
from .size import (
    SizeEmbedding as SizeEmbedding,
    SizeSpec as SizeSpec,
)
from .sliced import (
    SlicedWassersteinEmbedding as SlicedWassersteinEmbedding,
    SlicedWassersteinSpec as SlicedWassersteinSpec,
)
from .words import (
    BagOfWordsEmbedding as BagOfWordsEmbedding,
    BagOfWordsSpec as BagOfWordsSpec,
)
