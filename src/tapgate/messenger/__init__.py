"""The messenger: the conversational agent on a messaging channel."""
