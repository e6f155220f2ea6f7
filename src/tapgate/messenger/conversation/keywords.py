"""The words that are commands in any state, whatever was asked."""

from tapgate.messenger.model.common import Command
from tapgate.messenger.understanding import resolver


def match_command(text: str) -> Command | None:
    """The command that a text is and nothing else. What holds a figure also answers something."""
    if any(sign.isdigit() for sign in text):
        return None
    known = resolver.match_literal(text, None)
    return known.command if known is not None and known.is_exact else None
