"""Understanding of chat messages: intents, answers, small talk and secrets.

Only the optional language model uses the network. It may only name a command.
"""
