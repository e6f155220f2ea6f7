"""Business rules as pure functions, which the ledger applies to every command."""
