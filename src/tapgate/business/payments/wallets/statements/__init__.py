"""Account statements: a wallet's credits and debits over a period."""
