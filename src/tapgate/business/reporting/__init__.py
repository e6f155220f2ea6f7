"""Platform overview: rollups, a snapshot of accounts and cards, and ledger verifications."""
