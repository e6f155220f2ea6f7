"""Compliance checks: what would be said of a transaction, before anybody asks for it."""
