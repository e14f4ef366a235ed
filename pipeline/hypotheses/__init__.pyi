from .declared import (
    DRIFT_STATISTIC as DRIFT_STATISTIC,
    PERMUTATIONS as PERMUTATIONS,
    DriftStatistic as DriftStatistic,
    Permutations as Permutations,
)
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
from .goodness.scores import (
    MixtureScore as MixtureScore,
    SeriesScore as SeriesScore,
)
from .goodness_of_fit import (
    FIT as FIT,
    FSSD as FSSD,
    KSD as KSD,
    KSDAggregate as KSDAggregate,
    fit_test as fit_test,
)
from .independence import (
    INDEPENDENCE as INDEPENDENCE,
    independence_test as independence_test,
)
from .kernels.features import (
    FourierFeatures as FourierFeatures,
)
from .kernels.kernels import (
    resolve_kernel as resolve_kernel,
)
from .kernels.scales import (
    Scales as Scales,
)
from .nulls.draws import (
    generator_of as generator_of,
)
from .nulls.mean_difference import (
    MeanDifference as MeanDifference,
    compare_means as compare_means,
)
from .nulls.permutation import (
    p_values as p_values,
    split_sums as split_sums,
)
from .nulls.wild_bootstrap import (
    WILD as WILD,
)
from .registry import (
    Statistic as Statistic,
)
from .result import (
    HypothesisResult as HypothesisResult,
)
from .samples.row_sources import (
    EmbedBags as EmbedBags,
    EmbeddedRows as EmbeddedRows,
)
from .samples.samples import (
    as_points as as_points,
    is_bags as is_bags,
    resolve_embedding as resolve_embedding,
    thinned_size as thinned_size,
)
from .samples.thinning import (
    BagSet as BagSet,
    ComparedBags as ComparedBags,
    ThinnedBags as ThinnedBags,
    as_bag_set as as_bag_set,
    held_size as held_size,
    in_one_order as in_one_order,
    thin_sets as thin_sets,
)
from .samples.variables import (
    as_rows as as_rows,
    target_rows as target_rows,
)
from .two_sample import (
    TWO_SAMPLE as TWO_SAMPLE,
    two_sample_test as two_sample_test,
)
from .two_samples.aggregated import (
    Aggregate as Aggregate,
)
from .two_samples.block_mmd import (
    BlockMMD as BlockMMD,
    LinearMMD as LinearMMD,
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
    FusedDifference as FusedDifference,
    fuse_rows as fuse_rows,
    fuse_sums as fuse_sums,
)
from .two_samples.kernel_choice import (
    CRITERIA as CRITERIA,
)
from .two_samples.locations import (
    MeanEmbeddings as MeanEmbeddings,
    SmoothedCharacteristicFunctions as SmoothedCharacteristicFunctions,
)
from .two_samples.sliced import (
    Sliced as Sliced,
)
from .two_samples.unit_sums import (
    UnitSums as UnitSums,
    plan_units as plan_units,
)
