"""General ledger: GL codes, balances by account kind, trial balance and journal."""
