"""Platform overview: rollups, an account and card snapshot, and ledger verifications."""
