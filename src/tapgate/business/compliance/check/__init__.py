"""Compliance checks: preview the decision on a transaction without executing it."""
