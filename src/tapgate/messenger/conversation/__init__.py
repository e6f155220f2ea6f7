"""Conversation engine: pure and table-driven.

It takes the person, the conversation and an event, and returns both with their changes, the replies
and at most one gateway request.
"""
