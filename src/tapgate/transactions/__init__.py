"""Transactions: every movement of money, how it is asked for and how it is shown."""
