from .charts import (
    BAR_LEFT as BAR_LEFT,
    BOTTOM as BOTTOM,
    HEIGHT as HEIGHT,
    LEFT as LEFT,
    RIGHT as RIGHT,
    TOP as TOP,
    WIDTH as WIDTH,
    Chart as Chart,
    Series as Series,
)
from .densities import (
    draw_bags as draw_bags,
    draw_densities as draw_densities,
)
from .errors_page import (
    SUBSETS as SUBSETS,
    errors_part as errors_part,
)
from .evaluation import (
    BLUE as BLUE,
    GREY as GREY,
    ORANGE as ORANGE,
    draw_confusion as draw_confusion,
    draw_predictions as draw_predictions,
    draw_residuals as draw_residuals,
    new_figure as new_figure,
    plain_log as plain_log,
    save_figure as save_figure,
)
from .importances import (
    importance_part as importance_part,
)
from .locations import (
    draw_locations as draw_locations,
)
from .model_part import (
    answer_of as answer_of,
    card_of as card_of,
    choice_tables as choice_tables,
    compare as compare,
    compare_judged as compare_judged,
    header_of as header_of,
    interval_tables as interval_tables,
    path_of as path_of,
    rivals_of as rivals_of,
    score_tables as score_tables,
    worries_of_model as worries_of_model,
    worries_of_penalty as worries_of_penalty,
)
from .nulls import (
    draw_null as draw_null,
)
from .parts import (
    Part as Part,
    Table as Table,
    facts as facts,
)
from .rounds import (
    draw_rounds as draw_rounds,
)
from .scales import (
    draw_coordinates as draw_coordinates,
    draw_scales as draw_scales,
)
from .tuning import (
    draw_tuning as draw_tuning,
)
from .tuning_part import (
    tune_part as tune_part,
)
