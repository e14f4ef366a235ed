from .alignment import (
    has_index as has_index,
    in_order_of as in_order_of,
)
from .arrow_arrays import (
    arrow_stream as arrow_stream,
    arrow_table as arrow_table,
    plain_column as plain_column,
)
from .bags import (
    AnyRagged as AnyRagged,
    Bags as Bags,
    Ragged as Ragged,
    Stored as Stored,
    as_bags as as_bags,
    concatenate as concatenate,
    offsets_of as offsets_of,
    take_rows as take_rows,
)
from .box import (
    BOUNDS as BOUNDS,
    MOST_DIMS as MOST_DIMS,
    Box as Box,
    box_or_quantile as box_or_quantile,
    measured_box as measured_box,
    range_of as range_of,
)
from .checks import (
    IdsLike as IdsLike,
    as_bag as as_bag,
    check_finite as check_finite,
)
from .coordinates import (
    Names as Names,
    checked_names as checked_names,
    order_of as order_of,
)
from .format_rules import (
    FormatRules as FormatRules,
)
from .frames import (
    COUNTS as COUNTS,
    arrow_reader as arrow_reader,
    is_groups as is_groups,
    names_of_table as names_of_table,
    points_frame as points_frame,
    ragged_dataset as ragged_dataset,
    split_groups as split_groups,
    take_columns as take_columns,
)
from .html import (
    html_table as html_table,
)
from .ids import (
    LARGEST_ID as LARGEST_ID,
    BagIds as BagIds,
    TakenIds as TakenIds,
    as_ids as as_ids,
    comparable as comparable,
    find_ids as find_ids,
)
from .packed_attributes import (
    HONOURED as HONOURED,
    IGNORED as IGNORED,
    REFUSED as REFUSED,
    XARRAY_RULES as XARRAY_RULES,
    days_of as days_of,
    decoded_dataset as decoded_dataset,
    filled as filled,
    has_meaning as has_meaning,
    unpacked as unpacked,
)
from .packed_points import (
    FRACTIONS as FRACTIONS,
    GIVE_BOX as GIVE_BOX,
    PACKED as PACKED,
    WHOLE as WHOLE,
    box_of as box_of,
    decode as decode,
    encode as encode,
    points_dtype as points_dtype,
)
from .precision import (
    merged_by_float32 as merged_by_float32,
    steps_of as steps_of,
    too_coarse as too_coarse,
)
from .responses import (
    Responses as Responses,
    as_response as as_response,
    as_responses as as_responses,
)
