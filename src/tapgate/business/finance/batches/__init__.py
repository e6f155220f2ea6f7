"""Batches: credits to many wallets, such as salaries and grants."""
