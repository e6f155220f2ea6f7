"""Who gives commands, as the audit log has it."""

import getpass
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tapgate.edge.origin import Origin


def build_origin() -> "Origin":
    from tapgate.edge.origin import Origin  # noqa: PLC0415

    who = f"command line:{_get_username()}"
    return Origin(actor={"type": "system", "id": who}, actor_id=who)


def _get_username() -> str:
    """In a container a process may have a number that no user has."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
