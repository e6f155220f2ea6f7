"""How many files, and so connections, a process may have open."""

import contextlib
import resource


def allow_as_many_as_may_be() -> None:
    """What is usual is meant for programs with a few files: a thousand clients would use it up,
    and who cannot accept a connection cannot even refuse."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Some systems name a hard limit that they do not grant. Then it stays as it is.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
