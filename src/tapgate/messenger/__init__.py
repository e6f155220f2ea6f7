"""Messenger service: the conversational agent on a messaging channel."""
