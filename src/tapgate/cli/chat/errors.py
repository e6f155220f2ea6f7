"""Chat command errors."""


class ChatError(Exception):
    """Error with a one-line message that states the problem and the remedy."""
