"""Reconciliation: bank statements, their lines, and what the lines are matched with."""
