"""Compliance rules: what to screen transactions for, and the action to take on a match."""
