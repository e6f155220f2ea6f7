"""Subscribers: people with a wallet, a PIN and any number of cards."""
