"""Platform overview: transaction rollups, a snapshot of accounts and cards, and ledger proofs."""
