"""Transactions: submitting money requests, and reading the recorded transactions."""
