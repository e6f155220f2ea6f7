"""The command-line operator: identity in the audit log, and exit status after an interrupt."""

import getpass
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tapgate.auth.actors import Actor


INTERRUPTED_EXIT_CODE = 130  # the shell convention for SIGINT


def build_actor() -> "Actor":
    from tapgate.auth.actors import Actor  # noqa: PLC0415

    actor_id = f"command line:{_get_username()}"
    return Actor(record={"type": "system", "id": actor_id})


def _get_username() -> str:
    """Return the user's name, or the user ID if there is no name, as is common in containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
