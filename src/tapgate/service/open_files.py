"""How many files, and so connections, a process may have open."""

import contextlib
import resource
from typing import Final

#: Kept for everything except accepted connections: the database's and outgoing connections, files,
#: and a connection that is accepted only to be refused.
_RESERVED_FILES: Final = 256


def raise_open_file_limit() -> None:
    """What is usual is meant for programs with a few files: a thousand clients would use it up,
    and who cannot accept a connection cannot even refuse."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Some systems name a hard limit that they do not grant. Then it stays as it is.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def get_max_connections() -> int:
    """Return how many accepted connections the limit of open files leaves room for."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return 1_000_000
    # A very low limit is divided: without any connection the process would be of no use.
    return max(soft - _RESERVED_FILES, soft // 2)
