from .candidates import (
    Candidate as Candidate,
)
from .halving import (
    tune as tune,
)
from .leads import (
    Losses as Losses,
    difference as difference,
)
from .order import (
    Rung as Rung,
)
from .records import (
    Lead as Lead,
    Score as Score,
    Tuning as Tuning,
)
from .search import (
    Search as Search,
)
