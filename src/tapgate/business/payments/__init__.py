"""Transactions, wallets, statements and fees."""
