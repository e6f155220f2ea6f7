"""Subscribers: people with a wallet, a PIN and perhaps cards."""
