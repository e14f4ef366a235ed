from .alignment import (
    aligned as aligned,
    ids_of as ids_of,
)
from .column_splits import (
    GroupFolds as GroupFolds,
    GroupSplit as GroupSplit,
)
from .columns import (
    Column as Column,
)
from .frame_columns import (
    FromFrame as FromFrame,
    from_frame as from_frame,
)
from .holdout import (
    HOLDOUT as HOLDOUT,
    NO_HOLDOUT as NO_HOLDOUT,
    Holdout as Holdout,
    HoldoutLike as HoldoutLike,
)
from .inputs import (
    BagsInMemory as BagsInMemory,
    BagsLike as BagsLike,
    LabelsLike as LabelsLike,
    as_targets as as_targets,
    with_responses as with_responses,
    with_targets as with_targets,
    with_values as with_values,
)
from .labelled import (
    ROWS_PER_BLOCK as ROWS_PER_BLOCK,
    Batch as Batch,
    LabelledBags as LabelledBags,
    box_of_bags as box_of_bags,
    naming as naming,
    take_range as take_range,
    with_missing as with_missing,
)
from .labels import (
    ResponseBags as ResponseBags,
    Targets as Targets,
)
from .leaks import (
    warn_of_leaks as warn_of_leaks,
)
from .splits import (
    VALIDATION_SEED as VALIDATION_SEED,
    Folds as Folds,
    IndexFolds as IndexFolds,
    Membership as Membership,
    Split as Split,
    hash_index as hash_index,
)
from .suspected_groups import (
    suspect_groups as suspect_groups,
)
from .weights import (
    SampleWeight as SampleWeight,
    Weights as Weights,
)
