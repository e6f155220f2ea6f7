"""Account statements: what came in and went out of a wallet, day by day."""
