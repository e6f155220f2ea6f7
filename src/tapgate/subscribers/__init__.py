"""Subscribers: people who have a wallet, a PIN and optional cards."""
