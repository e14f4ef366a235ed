from .dependence.aggregated_dependence import (
    HSICAggregate as HSICAggregate,
    HSICFuse as HSICFuse,
)
from .dependence.feature_dependence import (
    KCCA as KCCA,
    RDC as RDC,
    HSICFourier as HSICFourier,
    HSICNystroem as HSICNystroem,
    KCCAFourier as KCCAFourier,
)
from .dependence.hsic import (
    DistanceCovariance as DistanceCovariance,
    HSICb as HSICb,
    HSICBlock as HSICBlock,
    HSICu as HSICu,
    Lancaster as Lancaster,
)
from .dependence.joint import (
    JointHSIC as JointHSIC,
)
from .dependence.nfsic import (
    NFSIC as NFSIC,
)
from .dependence.pairs import (
    INDEPENDENCE as INDEPENDENCE,
)
from .goodness.scores import (
    MixtureScore as MixtureScore,
    SeriesScore as SeriesScore,
)
from .goodness_of_fit import (
    FIT as FIT,
    FSSD as FSSD,
    KSD as KSD,
    KSDAggregate as KSDAggregate,
    KSDRanks as KSDRanks,
    fit_test as fit_test,
)
from .independence import (
    independence_test as independence_test,
)
from .objectives.derivatives import (
    DerivativeNorms as DerivativeNorms,
    derivative_norms as derivative_norms,
)
from .objectives.registration import (
    Registration as Registration,
    register_images as register_images,
)
from .objectives.selection import (
    Selection as Selection,
    select_coordinates as select_coordinates,
)
from .objectives.subspaces import (
    IndependentSubspaces as IndependentSubspaces,
)
from .result import (
    HypothesisResult as HypothesisResult,
)
from .two_sample import (
    two_sample_test as two_sample_test,
)
from .two_samples.aggregated import (
    Aggregate as Aggregate,
)
from .two_samples.block_mmd import (
    BlockMMD as BlockMMD,
    LinearMMD as LinearMMD,
)
from .two_samples.comparison import (
    TWO_SAMPLE as TWO_SAMPLE,
)
from .two_samples.exact_mmd import (
    BiasedMMD as BiasedMMD,
    EnergyDistance as EnergyDistance,
    UnbiasedMMD as UnbiasedMMD,
)
from .two_samples.feature_mmd import (
    FastfoodMMD as FastfoodMMD,
    FourierMMD as FourierMMD,
)
from .two_samples.fused import (
    Fuse as Fuse,
)
from .two_samples.fused_ranks import (
    FuseRanks as FuseRanks,
)
from .two_samples.locations import (
    MeanEmbeddings as MeanEmbeddings,
    SmoothedCharacteristicFunctions as SmoothedCharacteristicFunctions,
)
from .two_samples.sliced import (
    Sliced as Sliced,
)
