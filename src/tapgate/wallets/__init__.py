"""Wallets: balances, transfers, top-ups and statements."""
