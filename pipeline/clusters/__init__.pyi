from .connections import (
    connect as connect,
    profile_of as profile_of,
)
from .profiles import (
    is_loopback as is_loopback,
)
from .tls import (
    closed_http as closed_http,
)
