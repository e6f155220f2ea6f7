"""Outbox: messages stored until the channel's provider accepts them, in order per person."""
