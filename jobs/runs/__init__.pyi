from .driver import (
    run_driver as run_driver,
)
from .launchers import (
    LAUNCHERS as LAUNCHERS,
    Launch as Launch,
)
from .record import (
    RunState as RunState,
    Status as Status,
)
from .run import (
    Run as Run,
    attach as attach,
    explain as explain,
    runs_in as runs_in,
)
from .submission import (
    check_unchanged as check_unchanged,
    resume as resume,
    submit as submit,
)
