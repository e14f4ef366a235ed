from .arrow_arrays import (
    arrow_stream as arrow_stream,
)
from .bags import (
    AnyRagged as AnyRagged,
    Bags as Bags,
    IdsLike as IdsLike,
    Ragged as Ragged,
    as_bag as as_bag,
    as_bags as as_bags,
    check_finite as check_finite,
    concatenate as concatenate,
    offsets_of as offsets_of,
    take_rows as take_rows,
)
from .box import (
    MOST_DIMS as MOST_DIMS,
    Box as Box,
    box_or_quantile as box_or_quantile,
    range_of as range_of,
)
from .html import (
    html_table as html_table,
)
from .ids import (
    LARGEST_ID as LARGEST_ID,
    TakenIds as TakenIds,
    as_ids as as_ids,
    comparable as comparable,
    find_ids as find_ids,
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
from .responses import (
    Responses as Responses,
    as_response as as_response,
    as_responses as as_responses,
)
