"""Wallets: balances, transfers, quotes, fee rules and statements."""
