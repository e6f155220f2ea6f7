"""Alerts: what was noticed about a subscriber or a transaction, until somebody has looked at it."""
