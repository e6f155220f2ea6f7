"""What goes wrong while talking."""


class ChatError(Exception):
    """In one line: what is wrong, and what to do about it."""
