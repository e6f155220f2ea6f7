"""A process's open file limit, and the number of connections it allows."""

import contextlib
import resource
from typing import Final

#: Reserved for everything except accepted connections: database and outgoing connections, files,
#: and a connection that is accepted only to be rejected.
_RESERVED_FILES: Final = 256


def raise_open_file_limit() -> None:
    """Raise the soft open file limit to the hard limit.

    A thousand clients would exhaust the usual default. A process that cannot accept a connection
    cannot reject it with an error either.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Some systems do not grant the hard limit that they report. Keep the soft limit there.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def get_max_connections() -> int:
    """Return how many accepted connections the soft open file limit allows."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return 1_000_000
    # Under a very low limit, use half of it: the process needs some connections to be useful.
    return max(soft - _RESERVED_FILES, soft // 2)
