"""Offline understanding of chat messages.

There is no I/O except for the optional language model, which may only name a command.
"""
