"""Account statements: credits and debits of a wallet over a period."""
