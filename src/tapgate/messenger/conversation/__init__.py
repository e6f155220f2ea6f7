"""Conversation engine: pure and table-driven.

It takes the conversation state and an event, and returns the new state, the replies, the effects
and at most one gateway request.
"""
