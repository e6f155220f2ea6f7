"""Outbox: stores messages and sends them to the channel's provider, in order per person."""
