"""Identity of the command-line operator in the audit log."""

import getpass
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tapgate.edge.origin import Origin


def build_origin() -> "Origin":
    from tapgate.edge.origin import Origin  # noqa: PLC0415

    actor_id = f"command line:{_get_username()}"
    return Origin(actor={"type": "system", "id": actor_id}, actor_id=actor_id)


def _get_username() -> str:
    """Return the user's name, or the user ID if there is no name, as is common in containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
