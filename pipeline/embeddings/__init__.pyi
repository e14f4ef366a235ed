from .base import (
    OUT_OF_BOX as OUT_OF_BOX,
    SHARE as SHARE,
    BagsLike as BagsLike,
    BoxLike as BoxLike,
    ChoiceSample as ChoiceSample,
    Embedding as Embedding,
    EmbeddingSpec as EmbeddingSpec,
    MarginalSpec as MarginalSpec,
)
from .composed.coefficient_pca import (
    CoefficientPCA as CoefficientPCA,
    CoefficientPCASpec as CoefficientPCASpec,
)
from .composed.point_maps import (
    PointMap as PointMap,
    transformer_of as transformer_of,
    transformer_to_list as transformer_to_list,
)
from .composed.point_transformer import (
    PointScales as PointScales,
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
    JOINS as JOINS,
    EmbeddingUnion as EmbeddingUnion,
    UnionSpec as UnionSpec,
    name_parts as name_parts,
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
    embedding as embedding,
    names_of_arrays as names_of_arrays,
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
from .refusals import (
    outside_error as outside_error,
    refuse_outside as refuse_outside,
)
from .registered import (
    EmbeddingName as EmbeddingName,
    named_embedding as named_embedding,
    spec_from_dict as spec_from_dict,
    spec_to_dict as spec_to_dict,
)
from .sliced import (
    SlicedWassersteinEmbedding as SlicedWassersteinEmbedding,
    SlicedWassersteinSpec as SlicedWassersteinSpec,
)
from .words import (
    BagOfWordsEmbedding as BagOfWordsEmbedding,
    BagOfWordsSpec as BagOfWordsSpec,
)
