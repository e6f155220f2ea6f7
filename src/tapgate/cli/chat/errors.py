"""Errors of the chat command."""


class ChatError(Exception):
    """Error with a one-line message that states the problem and the remedy."""
